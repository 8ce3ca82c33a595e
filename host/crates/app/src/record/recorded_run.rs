//! Folder of a finished run: its record and its scenario.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use veeksha_events::Event;
use veeksha_model::{MetricDefinition, shortened};
use veeksha_record::RunRecord;
use veeksha_scenario::{Document, Generator, LuaGuarantees, LuaKind, Node, Value, function_place};

use crate::failure::CommandFailure;
use crate::record::recording::digest_of_config;
use crate::record::sweep_manifest;
use crate::scenario::source::{Loaded, Source, read};

/// A finished run.
pub struct RecordedRun {
    /// Events of the run.
    pub record: RunRecord,
    /// Scenario, as far as `config.yml` describes it; Lua functions are not part of it.
    pub loaded: Loaded,
    /// Lua evaluators that checked requests; their results are in the record.
    pub lua_request_checks: Vec<String>,
    /// Lua evaluators that checked the run; their verdicts are in the record.
    pub lua_slo_checks: Vec<String>,
    /// Remarks about missing parts of the record.
    pub notes: Vec<String>,
    /// Remarks about the scenario, for example why it is unknown.
    pub about_scenario: Vec<String>,
    /// Reason why the scenario and its objectives are unknown; defaults are used then. A note in
    /// `about_scenario` repeats it.
    pub unknown: Option<String>,
    /// Lua evaluators, whose functions cannot be called again.
    pub lua_evaluators: Vec<String>,
    /// Text of `config.yml`, or the reason why it is missing.
    pub config: String,
    /// True if the last pass over the record contained a request.
    request_seen: bool,
}

impl RecordedRun {
    /// Opens the folder of a run.
    pub fn open(folder: &Path, no_cache: bool) -> Result<RecordedRun, CommandFailure> {
        let record = RunRecord::open(folder).map_err(|error| {
            if sweep_manifest::is_sweep(folder) {
                sweep_manifest::not_a_run(folder)
            } else {
                CommandFailure::usage(error)
            }
        })?;
        let mut findings = ScenarioFindings::default();
        let loaded = scenario(folder, no_cache, &mut findings)?;
        let mut notes = Vec::new();
        let info = record.info();
        if !info.complete {
            notes.push(match info.cut_after {
                Some(at) => format!(
                    "the record ends after {}: only that part is evaluated",
                    veeksha_report::duration(at as f64 / 1e9)
                ),
                None => "the record is incomplete: only its readable part is evaluated".to_owned(),
            });
        }
        notes.extend(shortened(info.damaged.clone()));
        let is_another = |digest: &String| *digest != digest_of_config(&findings.config);
        if !findings.config.is_empty() && info.config.as_ref().is_some_and(is_another) {
            findings.about_scenario.insert(
                0,
                "config.yml is not the one that the run was recorded with (it was edited, or is that of another \
                 run): it is used as it is"
                    .to_owned(),
            );
        }
        Ok(RecordedRun {
            record,
            loaded,
            lua_request_checks: findings.lua_request_checks,
            lua_slo_checks: findings.lua_slo_checks,
            notes,
            about_scenario: findings.about_scenario,
            unknown: findings.unknown,
            lua_evaluators: findings.lua_evaluators,
            config: findings.config,
            request_seen: false,
        })
    }

    /// Returns true if the part of the record that was read so far is complete.
    pub fn is_whole(&self) -> bool {
        self.record.info().complete
    }

    /// Returns true if no request could be read although events are lost. Valid after
    /// [`RecordedRun::for_each`].
    pub(crate) fn requests_unread(&self) -> bool {
        !self.request_seen && self.record.info().lost > 0
    }

    /// Returns true if some of the record that was read so far is unreadable or missing.
    pub fn is_damaged(&self) -> bool {
        !self.record.info().damaged.is_empty()
    }

    /// Returns the plugin metrics with samples in the record. Their definitions precede the first
    /// request.
    pub fn definitions(&mut self) -> Result<Vec<MetricDefinition>, CommandFailure> {
        let mut definitions = Vec::new();
        // The result is the same for a record that was not read to its end.
        let _ = self
            .record
            .for_each(|event| match event {
                Event::MetricDefined(definition) => {
                    definitions.push(definition.clone());
                    ControlFlow::Continue(())
                }
                Event::Dispatched { .. } | Event::Finished(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
            .map_err(CommandFailure::internal)?;
        Ok(definitions)
    }

    /// Calls `on` for every event of the record, in order.
    pub fn for_each(&mut self, mut on: impl FnMut(&Event)) -> Result<(), CommandFailure> {
        let mut request_seen = false;
        let read = self.record.for_each(|event| {
            request_seen |= matches!(event, Event::Finished(_));
            on(event);
            ControlFlow::<()>::Continue(())
        });
        self.request_seen = request_seen;
        let _whole = read.map_err(CommandFailure::internal)?;
        for damaged in shortened(self.record.info().damaged.clone()) {
            if !self.notes.contains(&damaged) {
                self.notes.push(damaged);
            }
        }
        Ok(())
    }
}

/// Findings about a scenario that is read again.
#[derive(Default)]
struct ScenarioFindings {
    about_scenario: Vec<String>,
    unknown: Option<String>,
    lua_evaluators: Vec<String>,
    lua_request_checks: Vec<String>,
    lua_slo_checks: Vec<String>,
    config: String,
}

impl ScenarioFindings {
    fn is_unknown(&mut self, why: String) {
        self.about_scenario
            .push(format!("the scenario is unknown and defaults are used: {why}"));
        self.unknown = Some(why);
    }
}

/// Reads the scenario in `config.yml`. Unreadable parts are replaced by defaults, because a record
/// can be evaluated without its scenario.
fn scenario(
    folder: &Path,
    no_cache: bool,
    findings: &mut ScenarioFindings,
) -> Result<Loaded, CommandFailure> {
    let defaults = || {
        let nothing = Document::from_yaml("", "config.yml").map_err(CommandFailure::internal)?;
        Source::of(nothing, folder.to_owned()).settle(&[], &[], no_cache)
    };
    let text = match config_text(folder) {
        Ok(text) => text,
        Err(why) => {
            findings.is_unknown(why);
            return defaults();
        }
    };
    findings.config.clone_from(&text);
    let document = Document::from_yaml(&text, "config.yml").map_err(CommandFailure::usage);
    let made_by_lua = document.as_ref().ok().and_then(lua_sessions);
    let document = document.map(|document| without_functions(document, findings));
    let loaded =
        document.and_then(|document| Source::of(document, folder.to_owned()).settle(&[], &[], no_cache));
    match loaded {
        Ok(mut loaded) => {
            // No sessions are generated, but the expectations depend on the generator.
            if let Some(generator) = made_by_lua {
                loaded.scenario.session_generator = generator;
            }
            Ok(loaded)
        }
        Err(failure) => {
            findings.is_unknown(format!(
                "config.yml is not a scenario of this version: {}",
                failure.message
            ));
            defaults()
        }
    }
}

/// Returns the text of `config.yml`, or the reason why it is missing.
fn config_text(folder: &Path) -> Result<String, String> {
    match read(&folder.join("config.yml")).map(String::from_utf8) {
        Ok(Ok(text)) if !text.trim().is_empty() => Ok(text),
        Ok(Ok(_)) => Err("config.yml is empty".to_owned()),
        Ok(Err(_)) => Err("config.yml is not UTF-8".to_owned()),
        Err(reason) => Err(format!("config.yml cannot be read ({reason})")),
    }
}

/// Removes the parts that describe Lua functions.
fn without_functions(mut document: Document, findings: &mut ScenarioFindings) -> Document {
    let Value::Map(entries) = &mut document.root.value else {
        return document;
    };
    // Sessions are not generated again.
    entries.retain(|(key, node)| !(key == "session_generator" && is_lua(node)));
    for (key, node) in entries.iter_mut() {
        if key == "traffic_scheduler" {
            restore_arrivals(node);
        }
        if key == "session_generator"
            && node.get("flavor").is_some_and(is_lua)
            && let Value::Map(keys) = &mut node.value
        {
            keys.retain(|(key, _)| key != "flavor");
        }
    }
    for (key, node) in entries.iter_mut() {
        let Value::List(evaluators) = &mut node.value else {
            continue;
        };
        if key != "evaluators" {
            continue;
        }
        evaluators.retain(|evaluator| {
            if is_lua(evaluator) {
                if evaluator.get("good").is_some() {
                    findings.lua_request_checks.push(name_of(evaluator));
                }
                if evaluator.get("check").is_some() {
                    findings.lua_slo_checks.push(name_of(evaluator));
                }
                findings.lua_evaluators.push(name_of(evaluator));
            }
            !is_lua(evaluator)
        });
    }
    entries.retain(|(key, node)| {
        !(key == "evaluators" && matches!(&node.value, Value::List(items) if items.is_empty()))
    });
    document
}

/// Makes the text in place of a Lua arrival process a function again. It is never called: the
/// traffic only needs to be known.
fn restore_arrivals(traffic: &mut Node) {
    let Value::Map(keys) = &mut traffic.value else {
        return;
    };
    let process = keys
        .iter_mut()
        .find(|(key, node)| key == "process" && is_lua(node));
    if let Some((_, process)) = process
        && let Value::Map(keys) = &mut process.value
    {
        for (_, function) in keys.iter_mut().filter(|(key, _)| key == "arrivals") {
            if let Value::Text(text) = &function.value {
                function.place = function_place(text);
            }
            function.value = Value::Function;
        }
    }
}

fn name_of(evaluator: &Node) -> String {
    match evaluator.get("name").map(|name| &name.value) {
        Some(Value::Text(name)) => name.clone(),
        _ => "lua".to_owned(),
    }
}

fn is_lua(node: &Node) -> bool {
    matches!(node.get("type").map(|kind| &kind.value), Some(Value::Text(kind)) if kind == "lua")
}

/// Returns the generator of a scenario whose sessions were generated by a Lua function.
fn lua_sessions(document: &Document) -> Option<Generator> {
    let generator = document
        .root
        .get("session_generator")
        .filter(|node| is_lua(node))?;
    let kind = match generator.get("agent") {
        Some(_) => LuaKind::Agent,
        None => LuaKind::Sessions,
    };
    Some(Generator::Lua {
        kind,
        length: None,
        guarantees: LuaGuarantees::default(),
        files: BTreeMap::new(),
        recorded_run: None,
        place: None,
    })
}
