//! Sections about one scenario: workload, traffic, servers and plugins.

use veeksha_model::{Request, Segment, Session, SessionId, ToolDefinitions, redact_address};
use veeksha_ports::Workload;
use veeksha_prompt::Tokenizer;
use veeksha_report::{Section, SummaryRow, number};
use veeksha_scenario::{Client, FixedSchedule, IntervalGenerator, NamedClient, Scenario, Traffic};

use super::duration::RunDuration;
use veeksha_app::CommandFailure;
use veeksha_app::Wired;

/// Number of sessions that are generated to estimate the size of the workload.
const SAMPLE: u32 = 100;

/// Returns the sections about a scenario, and the duration of its run.
pub(super) fn sections(
    scenario: &Scenario,
    wired: &Wired,
) -> Result<(Vec<Section>, RunDuration), CommandFailure> {
    let (workload, sessions) = workload(wired, scenario)?;
    let duration = RunDuration::of(scenario, sessions);
    let sections = vec![
        workload,
        traffic(scenario, duration),
        servers(scenario, wired),
        plugin(wired),
        objectives(wired),
    ];
    Ok((sections, duration))
}

pub(super) fn row(name: &str, value: impl Into<String>) -> SummaryRow {
    SummaryRow {
        name: name.into(),
        cells: vec![value.into()],
        ..SummaryRow::default()
    }
}

/// Totals of a sample of sessions.
#[derive(Default)]
struct WorkloadSample {
    sessions: u64,
    requests: u64,
    tool_runs: u64,
    prompt_tokens: u64,
    output_tokens: u64,
    open_outputs: u64,
}

impl WorkloadSample {
    fn add(&mut self, session: &Session, tokenizer: &Tokenizer) {
        self.sessions += 1;
        self.tool_runs += session.tool_runs.len() as u64;
        for request in &session.requests {
            self.requests += 1;
            self.prompt_tokens += new_prompt_tokens(request, tokenizer);
            match request.output.target_tokens {
                Some(tokens) => self.output_tokens += u64::from(tokens),
                None => self.open_outputs += 1,
            }
        }
    }

    fn mean(&self, total: u64) -> String {
        if self.requests == 0 {
            "none".into()
        } else {
            number(total as f64 / self.requests as f64)
        }
    }
}

/// Returns the tokens of the messages of a request, and of the functions that it defines.
fn new_prompt_tokens(request: &Request, tokenizer: &Tokenizer) -> u64 {
    let count = |text: &String| u64::from(tokenizer.count(text));
    let contents = request.messages.iter().flat_map(|message| {
        let reasoning = message.reasoning.iter().flat_map(|reasoning| &reasoning.content);
        message.content.iter().chain(reasoning)
    });
    let contents = contents.map(|segment| match segment {
        Segment::Text(text) => count(text),
        Segment::Synthetic { tokens, .. } => u64::from(*tokens),
        Segment::TokenIds(ids) => ids.len() as u64,
        Segment::Media { .. } | Segment::ToolResult(_) => 0,
    });
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    let calls = calls.map(|call| count(&call.name) + count(&call.arguments));
    let tools = match request.tools.as_deref() {
        Some(ToolDefinitions::Definitions(text) | ToolDefinitions::Verbatim(text)) => count(text),
        Some(ToolDefinitions::Synthetic { tokens, .. }) => u64::from(*tokens),
        None => 0,
    };
    contents.chain(calls).chain([tools]).sum()
}

/// Returns the section about the workload, and the number of sessions if it is finite.
fn workload(wired: &Wired, scenario: &Scenario) -> Result<(Section, Option<u64>), CommandFailure> {
    let mut sample = WorkloadSample::default();
    let limit = scenario.runtime.session_limit();
    let (length, kind) = match wired.factory.open()? {
        Workload::Planned(mut source) => {
            let length = source.length()?;
            let wanted = limit
                .unwrap_or(u64::MAX)
                .min(length.unwrap_or(u64::MAX))
                .min(u64::from(SAMPLE));
            for (index, session) in (0..).zip(source.sessions(0, wanted as u32)?) {
                wired.check(SessionId(index), &session)?;
                sample.add(&session, &wired.tokenizer);
            }
            (length, "whole sessions in advance")
        }
        Workload::Reactive(mut agents) => {
            let length = agents.length()?;
            let first = SessionId(0);
            if limit != Some(0) && length != Some(0) {
                // Its steps were checked when the plugins were opened.
                let begun = agents.start(first)?.added;
                sample.add(&begun, &wired.tokenizer);
                agents.finish(first);
            }
            (
                length,
                "step by step, in response to the model (below: first steps only)",
            )
        }
    };
    let sessions = limit.into_iter().chain(length).min();
    let per_session = sample.requests as f64 / sample.sessions.max(1) as f64;
    let mut rows = vec![
        row(
            "Sessions",
            sessions.map_or("endless".to_owned(), |sessions| sessions.to_string()),
        ),
        row("Planned", kind),
        row("Requests per session", number(per_session)),
        row("New prompt tokens per request", sample.mean(sample.prompt_tokens)),
        row("Output tokens per request", sample.mean(sample.output_tokens)),
    ];
    if sample.tool_runs > 0 {
        let per_session = sample.tool_runs as f64 / sample.sessions.max(1) as f64;
        rows.push(row("Tool runs per session", number(per_session)));
    }
    if sample.open_outputs > 0 {
        rows.push(row(
            "Requests without an output length",
            sample.open_outputs.to_string(),
        ));
    }
    let title = format!(
        "Workload (means of {})",
        veeksha_stats::counted(sample.sessions, "session")
    );
    let section = Section {
        title,
        columns: Vec::new(),
        rows,
    };
    Ok((section, sessions))
}

fn traffic(scenario: &Scenario, duration: RunDuration) -> Section {
    let mut rows = match &scenario.traffic_scheduler {
        Traffic::Rate(rate) => {
            let generator = &rate.interval_generator;
            let shape = match generator {
                IntervalGenerator::Fixed { .. } => "fixed".to_owned(),
                IntervalGenerator::Poisson { .. } => "Poisson".to_owned(),
                IntervalGenerator::Gamma { cv, .. } => format!("gamma, cv {}", number(*cv)),
            };
            vec![
                row("Arrivals", format!("open loop, {shape}")),
                row("Sessions per second", number(generator.mean_rate())),
            ]
        }
        Traffic::FixedSchedule(schedule) => recorded(schedule),
        Traffic::ArrivalProcess(arrivals) => vec![
            row("Arrivals", "open loop, by a plugin"),
            row("Arrival process", arrivals.process.label()),
        ],
        Traffic::Concurrent(concurrent) => vec![
            row("Arrivals", "closed loop"),
            row(
                "Concurrent sessions",
                concurrent.target_concurrent_sessions.to_string(),
            ),
            row("Ramp", format!("{} s", number(concurrent.rampup_seconds))),
        ],
    };
    let limits = scenario.traffic_scheduler.limits();
    for (name, limit) in [
        ("Maximum concurrent sessions", limits.sessions),
        ("Maximum requests in flight", limits.requests_in_flight),
        ("Maximum requests in prefill", limits.requests_in_prefill),
    ] {
        rows.extend(limit.map(|limit| row(name, limit.to_string())));
    }
    let timeout = scenario.runtime.timeout();
    rows.push(row(
        "Ends after",
        timeout.map_or("the last session".into(), |t| {
            format!("{} s", number(t.as_secs_f64()))
        }),
    ));
    rows.push(row("Duration", duration.to_string()));
    Section {
        title: "Traffic".into(),
        columns: Vec::new(),
        rows,
    }
}

fn recorded(schedule: &FixedSchedule) -> Vec<SummaryRow> {
    let mut rows = vec![row("Arrivals", "as recorded")];
    if schedule.start.is_some() || schedule.end.is_some() {
        let start = number(schedule.start.unwrap_or(0.0));
        let end = schedule
            .end
            .map_or("its end".to_owned(), |end| format!("second {}", number(end)));
        rows.push(row("Part of the trace", format!("from second {start} to {end}")));
    }
    if schedule.speedup != 1.0 {
        rows.push(row("Speedup", format!("{} times", number(schedule.speedup))));
    }
    rows
}

fn addresses(client: &Client) -> String {
    match client.targets.as_slice() {
        [] => client
            .api_base
            .as_deref()
            .map_or("none: set client.api_base".into(), redact_address),
        several => {
            let several: Vec<String> = several
                .iter()
                .map(|server| redact_address(&server.api_base))
                .collect();
            several.join(", ")
        }
    }
}

fn model(client: &Client) -> String {
    client
        .model
        .clone()
        .unwrap_or_else(|| "first model of /v1/models".into())
}

fn servers(scenario: &Scenario, wired: &Wired) -> Section {
    let client = &scenario.client;
    let mut rows = vec![
        row("Target", addresses(client)),
        row("Endpoint", client.kind.name()),
        row("Model", model(client)),
        row("API key", if client.api_key.is_some() { "set" } else { "none" }),
        row("Tokenizer", wired.tokenizer.name()),
    ];
    rows.extend(
        scenario
            .all_clients()
            .skip(1)
            .map(|NamedClient { name, client, .. }| {
                let key = if client.api_key.is_some() { "set" } else { "none" };
                let facts = format!(
                    "{}; {}; {}; API key: {key}",
                    addresses(client),
                    client.kind.name(),
                    model(client)
                );
                row(&format!("Client {name}"), facts)
            }),
    );
    Section {
        title: "Target".into(),
        columns: Vec::new(),
        rows,
    }
}

/// Returns the section on the objectives, the metrics of plugins, and the checks.
fn objectives(wired: &Wired) -> Section {
    let sentence = |name: String| SummaryRow {
        name,
        ..SummaryRow::default()
    };
    let mut rows: Vec<SummaryRow> = wired
        .objectives
        .stated()
        .map(|objective| sentence(objective.to_string()))
        .collect();
    rows.extend(wired.definitions.iter().map(|metric| {
        row(
            &format!("{} ({})", metric.name, metric.unit),
            format!("measured by {}", metric.plugin),
        )
    }));
    let checks = wired
        .evaluators
        .infos()
        .into_iter()
        .filter(|(role, _)| *role != "metric");
    rows.extend(checks.map(|(role, info)| {
        let what = match role {
            "request-check" => "checks each request",
            _ => "checks the run",
        };
        row(&info.name, what)
    }));
    Section {
        title: "SLOs and plugin metrics".into(),
        columns: Vec::new(),
        rows,
    }
}

fn plugin(wired: &Wired) -> Section {
    let info = wired.factory.info();
    let granted = if info.granted.is_empty() {
        "nothing".to_owned()
    } else {
        info.granted.join(", ")
    };
    let rows = vec![
        row("Session generator", format!("{} {}", info.name, info.version)),
        row("Runs in", info.engine),
        row("Digest", info.digest.get(..16).unwrap_or(&info.digest)),
        row("Granted", granted),
    ];
    Section {
        title: "Plugin".into(),
        columns: Vec::new(),
        rows,
    }
}
