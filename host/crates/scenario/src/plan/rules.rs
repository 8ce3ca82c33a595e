//! Rules that a schema cannot express: dependencies between keys, and the form of addresses.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use veeksha_model::{MAX_SYNTHETIC_TOKENS, TIMER};
use veeksha_slo::Objective;

use crate::path;
use crate::plan::certificate::Certificate;
use crate::plan::client::Client;
use crate::plan::client_rules;
use crate::plan::evaluator::{Evaluator, Slo, SloMap};
use crate::plan::findings::{Findings, address_problem};
use crate::plan::named_clients::path_of;
use crate::plan::runtime::Runtime;
use crate::plan::tool::{QuantityConfig, ToolConfig, spacing};
use crate::plan::traffic::Traffic;
use crate::problem::Problem;
use crate::tree::Node;

/// The values that the rules inspect.
pub(super) struct RuleInput<'a> {
    pub(super) endpoint: Option<&'a str>,
    pub(super) client: &'a Client,
    pub(super) clients: &'a BTreeMap<String, Client>,
    pub(super) runtime: &'a Runtime,
    pub(super) evaluators: &'a [Evaluator],
    pub(super) traffic: &'a Traffic,
    pub(super) certificate: &'a Certificate,
    pub(super) tools: &'a BTreeMap<String, ToolConfig>,
}

/// Returns every violated rule.
pub(super) fn broken(root: &Node, generator: &Json, input: &RuleInput<'_>) -> Vec<Problem> {
    let mut findings = Findings {
        root,
        problems: Vec::new(),
    };
    if let Some(message) = input.endpoint.and_then(address_problem) {
        findings.add("endpoint.api_base", message);
    }
    clients(&mut findings, input);
    if input.runtime.max_sessions == 0 {
        findings.add(
            "runtime.max_sessions",
            "no session would run; give a positive number, or -1 for no limit",
        );
    }
    if input.runtime.pregenerate_sessions && input.runtime.max_sessions <= 0 {
        findings.add(
            "runtime.pregenerate_sessions",
            "needs a positive `runtime.max_sessions`",
        );
    }
    let grace = input.runtime.post_timeout_grace_seconds;
    if grace < 0.0 && grace != -1.0 {
        findings.add(
            "runtime.post_timeout_grace_seconds",
            "must be -1 (wait for all), 0 or more",
        );
    }
    evaluators(&mut findings, input.evaluators);
    if generator.get("type").and_then(Json::as_str) == Some("lua") {
        match (
            generator.get("sessions").is_some(),
            generator.get("agent").is_some(),
        ) {
            (true, true) => findings.add("session_generator.agent", "give `sessions` or `agent`, not both"),
            (false, false) => {
                findings.add(
                    "session_generator",
                    "a `lua` generator needs a function: `sessions` or `agent`",
                );
            }
            _ => {}
        }
        let has_recorded_run = generator.get("recorded_run").is_some_and(|run| !run.is_null());
        if has_recorded_run && generator.get("sessions").is_some() {
            findings.add(
                "session_generator.recorded_run",
                "only an `agent` makes decisions; whole sessions are the same in every run of their scenario",
            );
        }
    }
    tools(&mut findings, input);
    thresholds(&mut findings, input.certificate);
    recorded_arrivals(&mut findings, generator, input.traffic);
    groupings(&mut findings, generator);
    ranges(&mut findings, generator, "session_generator");
    findings.problems
}

fn thresholds(findings: &mut Findings<'_>, certificate: &Certificate) {
    let of_simulator = certificate
        .simulator
        .map(|limits| ("certificate.simulator.degraded", limits.degraded, limits.invalid));
    let all = [("certificate.degraded", certificate.degraded, certificate.invalid)];
    for (path, degraded, invalid) in all.into_iter().chain(of_simulator) {
        if degraded > invalid {
            findings.add(
                path,
                "must be at most `invalid`: a run is degraded before it is invalid",
            );
        }
    }
}

/// Checks every client. A problem of `client` is not repeated for those that take its keys.
fn clients(findings: &mut Findings<'_>, input: &RuleInput<'_>) {
    client_rules::broken(findings, input.client, "client");
    let of_default: Vec<(String, String)> = findings
        .problems
        .iter()
        .filter_map(|problem| {
            let key = problem.path.strip_prefix("client")?;
            Some((key.to_owned(), problem.message.clone()))
        })
        .collect();
    for (name, client) in input.clients {
        let at = path_of(name);
        let before = findings.problems.len();
        client_rules::broken(findings, client, &at);
        let found = findings.problems.split_off(before);
        findings.problems.extend(found.into_iter().filter(|problem| {
            let key = problem.path.strip_prefix(&at).unwrap_or_default();
            !of_default
                .iter()
                .any(|(known, message)| known == key && *message == problem.message)
        }));
    }
}

fn recorded_arrivals(findings: &mut Findings<'_>, generator: &Json, traffic: &Traffic) {
    let is_trace = generator.get("type").and_then(Json::as_str) == Some("trace");
    let Some(schedule) = traffic.recorded_arrivals() else {
        return;
    };
    for (key, given) in [("start", schedule.start), ("end", schedule.end)] {
        if given.is_some() && !is_trace {
            findings.add(
                &format!("traffic_scheduler.{key}"),
                "applies to traces only; other generators decide which sessions they make",
            );
        }
    }
    if let (Some(start), Some(end)) = (schedule.start, schedule.end)
        && start >= end
    {
        findings.add(
            "traffic_scheduler.start",
            format!("must be before `end`: nothing arrives from second {start} to second {end}"),
        );
    }
    if is_trace && generator.get("shuffle").and_then(Json::as_str) == Some("always") {
        findings.add(
            "session_generator.shuffle",
            "`fixed_schedule` replays sessions in the order of their arrival",
        );
    }
}

/// A Lua flavor groups its rows in at most one way.
fn groupings(findings: &mut Findings<'_>, generator: &Json) {
    let Some(flavor) = generator.get("flavor") else {
        return;
    };
    let given = |key: &str| match flavor.get(key) {
        None | Some(Json::Null | Json::Bool(false)) => false,
        Some(_) => true,
    };
    if ["group_by", "tree", "pools"]
        .into_iter()
        .filter(|key| given(key))
        .count()
        > 1
    {
        findings.add(
            "session_generator.flavor",
            "give one of `group_by`, `tree` and `pools`, not several",
        );
    }
}

fn evaluators(findings: &mut Findings<'_>, evaluators: &[Evaluator]) {
    let mut seen_performance = false;
    let mut names: Vec<&str> = Vec::new();
    for (index, evaluator) in evaluators.iter().enumerate() {
        let at = path::item("evaluators", index);
        match evaluator {
            Evaluator::Performance(performance) => {
                if seen_performance {
                    findings.add(
                        &at,
                        "there is already a `performance` evaluator; put all `slos` into one",
                    );
                }
                seen_performance = true;
                objectives(findings, &at, &performance.slos);
                conditions(findings, &at, &performance.goodput);
                if performance.text_channel.decode_window_config.is_some()
                    && !performance.text_channel.decode_window_enabled
                {
                    findings.add(
                        &format!("{at}.text_channel.decode_window_config"),
                        "has no effect unless `decode_window_enabled` is true",
                    );
                }
            }
            Evaluator::Lua {
                name,
                measures,
                judges_requests,
                judges_run,
                ..
            } => {
                if !(*measures || *judges_requests || *judges_run) {
                    findings.add(
                        &at,
                        "a `lua` evaluator needs functions: `metrics`, `good` or `check`",
                    );
                }
                if names.contains(&name.as_str()) {
                    findings.add(
                        &path::join(&at, "name"),
                        format!("duplicate evaluator name `{name}`"),
                    );
                }
                names.push(name);
            }
            Evaluator::Wasm(_) => {}
        }
    }
}

/// Objectives must parse and have unique names.
fn objectives(findings: &mut Findings<'_>, evaluator: &str, slos: &[Slo]) {
    let mut labels: Vec<String> = Vec::new();
    for (index, slo) in slos.iter().enumerate() {
        let at = format!("{evaluator}.slos[{index}]");
        let (text, name) = match slo {
            Slo::Text(text) => (text, None),
            Slo::Map(SloMap::Expression { objective, name }) => (objective, name.clone()),
            Slo::Map(SloMap::Constant {
                metric,
                percentile,
                name,
                ..
            }) => {
                let label = name
                    .clone()
                    .unwrap_or_else(|| format!("{} {percentile}", metric.name()));
                distinct(findings, &at, &mut labels, label);
                continue;
            }
        };
        match Objective::parse(text) {
            Ok(objective) => {
                let label = name.unwrap_or_else(|| objective.to_string());
                distinct(findings, &at, &mut labels, label);
            }
            Err(error) => findings.add(&at, error.to_string()),
        }
    }
}

fn distinct(findings: &mut Findings<'_>, at: &str, labels: &mut Vec<String>, label: String) {
    if labels.contains(&label) {
        findings.add(
            at,
            format!("duplicate objective `{label}`; give it a unique `name`"),
        );
    }
    labels.push(label);
}

fn conditions(findings: &mut Findings<'_>, evaluator: &str, goodput: &[String]) {
    for (index, text) in goodput.iter().enumerate() {
        if let Err(error) = Objective::parse_condition(text) {
            findings.add(&format!("{evaluator}.goodput[{index}]"), error.to_string());
        }
    }
}

/// A `min` and a `max` next to each other in a generator's configuration are in order.
fn ranges(findings: &mut Findings<'_>, value: &Json, at: &str) {
    match value {
        Json::Object(entries) => {
            let number = |key: &str| entries.get(key).and_then(Json::as_f64);
            if let (Some(min), Some(max)) = (number("min"), number("max"))
                && min > max
            {
                findings.add(
                    &path::join(at, "min"),
                    format!("must be at most `max`: {min} is more than {max}"),
                );
            }
            for (key, value) in entries {
                ranges(findings, value, &path::join(at, key));
            }
        }
        Json::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                ranges(findings, value, &path::item(at, index));
            }
        }
        _ => {}
    }
}
fn tools(findings: &mut Findings<'_>, input: &RuleInput<'_>) {
    for (name, tool) in input.tools {
        let at = |key: &str| format!("tools.{name}.{key}");
        if name == TIMER {
            findings.add(
                &format!("tools.{name}"),
                "every scenario has this tool, which only takes time; use another name",
            );
        }
        if let Some(rate) = tool.rate_limit.as_deref()
            && spacing(rate).is_none()
        {
            findings.add(
                &at("rate_limit"),
                format!(
                    "`{rate}` is not a rate; write calls per second, minute or hour: `20/s`, `100/min`, `1000/h`"
                ),
            );
        }
        for (key, quantity) in [("time", &tool.time), ("result_tokens", &tool.result_tokens)] {
            if let QuantityConfig::Uniform { min, max } = quantity
                && min > max
            {
                findings.add(&at(key), "`min` is above `max`");
            }
        }
        let (QuantityConfig::Constant { value: most } | QuantityConfig::Uniform { max: most, .. }) =
            tool.result_tokens
        else {
            continue;
        };
        if most > f64::from(MAX_SYNTHETIC_TOKENS) {
            findings.add(
                &at("result_tokens"),
                format!("a result has at most {MAX_SYNTHETIC_TOKENS} tokens"),
            );
        }
    }
    // The servers of a tool are one queue, which threads cannot share.
    if !input.tools.is_empty() && input.runtime.num_dispatcher_threads > 1 {
        findings.add(
            "runtime.num_dispatcher_threads",
            "must be 1 in a scenario with `tools`: their servers are one queue",
        );
    }
}
