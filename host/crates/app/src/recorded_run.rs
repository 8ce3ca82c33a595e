//! The folder of an earlier run: its record, and the scenario that it was of.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use veeksha_events::Event;
use veeksha_model::MetricDefinition;
use veeksha_record::Record;
use veeksha_scenario::{Document, Generator, LuaKind, Node, Value};

use crate::failure::Failure;
use crate::recording::digest_of_config;
use crate::source::{Loaded, Source, read};
use crate::sweep_manifest;

/// An earlier run.
pub struct RecordedRun {
    /// What happened in it.
    pub record: Record,
    /// Its scenario, as far as it can be had from `config.yml`: Lua functions are not in there.
    pub loaded: Loaded,
    /// The Lua evaluators that judged its requests: what they said is in the record.
    pub lua_request_checks: Vec<String>,
    /// The Lua evaluators that judged the run itself: what they said is in the record.
    pub lua_slo_checks: Vec<String>,
    /// What the user should know of the record: what of it is missing.
    pub notes: Vec<String>,
    /// What the user should know of the scenario: why it is not known.
    pub about_scenario: Vec<String>,
    /// Why the scenario is not known, and with it what was asked of the run, if so: defaults stand in its place.
    pub unknown: Option<String>,
    /// The Lua evaluators, whose functions are not there to be called again.
    pub lua_evaluators: Vec<String>,
    /// `config.yml` as it is; empty if it cannot be read.
    pub config: String,
    /// Whether a request was among the events that were shown last.
    request_seen: bool,
}

impl RecordedRun {
    /// Opens the folder of a run.
    pub fn open(folder: &Path, no_cache: bool) -> Result<RecordedRun, Failure> {
        let record = Record::open(folder).map_err(|error| match sweep_manifest::is_sweep(folder) {
            true => sweep_manifest::is_no_run(folder),
            false => Failure::usage(error),
        })?;
        let mut told = Told::default();
        let loaded = scenario(folder, no_cache, &mut told)?;
        let mut notes = Vec::new();
        let info = record.info();
        if !info.complete {
            notes.push(match info.cut_after {
                Some(at) => format!(
                    "the record was cut short after {}: what is there is evaluated",
                    veeksha_report::duration(at as f64 / 1e9)
                ),
                None => "the record is not complete: what is there is evaluated".to_owned(),
            });
        }
        notes.extend(info.damaged.iter().cloned());
        let is_another = |digest: &String| *digest != digest_of_config(&told.config);
        if !told.config.is_empty() && info.config.as_ref().is_some_and(is_another) {
            told.about_scenario.insert(
                0,
                "config.yml is not the one that the run was recorded with (it was edited, or is another run's): what it asks for is \
                 taken as it stands"
                    .to_owned(),
            );
        }
        Ok(RecordedRun {
            record,
            loaded,
            lua_request_checks: told.lua_request_checks,
            lua_slo_checks: told.lua_slo_checks,
            notes,
            about_scenario: told.about_scenario,
            unknown: told.unknown,
            lua_evaluators: told.lua_evaluators,
            config: told.config,
            request_seen: false,
        })
    }

    /// Whether the run was recorded to its end and everything of it is there, as far as it was read.
    pub fn is_whole(&self) -> bool {
        self.record.info().complete
    }

    /// Whether no request could be read, although events of the record are lost: after [`RecordedRun::for_each`].
    pub(crate) fn requests_unread(&self) -> bool {
        !self.request_seen && self.record.info().lost > 0
    }

    /// Whether some of it cannot be read, or is not there, as far as it was read.
    pub fn is_damaged(&self) -> bool {
        !self.record.info().damaged.is_empty()
    }

    /// The metrics of plugins that the record has samples of: they are told before the first request is sent.
    pub fn definitions(&mut self) -> Result<Vec<MetricDefinition>, Failure> {
        let mut definitions = Vec::new();
        // Whether it was read to its end makes no difference.
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
            .map_err(Failure::internal)?;
        Ok(definitions)
    }

    /// Shows every event of the record, in its order.
    pub fn for_each(&mut self, mut on: impl FnMut(&Event)) -> Result<(), Failure> {
        let mut request_seen = false;
        let read = self.record.for_each(|event| {
            request_seen |= matches!(event, Event::Finished(_));
            on(event);
            ControlFlow::<()>::Continue(())
        });
        self.request_seen = request_seen;
        let _whole = read.map_err(Failure::internal)?;
        for damaged in &self.record.info().damaged {
            if !self.notes.contains(damaged) {
                self.notes.push(damaged.clone());
            }
        }
        Ok(())
    }
}

/// What comes to light while a scenario is read again.
#[derive(Default)]
struct Told {
    about_scenario: Vec<String>,
    unknown: Option<String>,
    lua_evaluators: Vec<String>,
    lua_request_checks: Vec<String>,
    lua_slo_checks: Vec<String>,
    config: String,
}

impl Told {
    fn is_unknown(&mut self, why: String) {
        self.about_scenario.push(why.clone());
        self.unknown = Some(why);
    }
}

const UNKNOWN: &str = "what the scenario asked for is not known, and defaults stand in its place";

/// The scenario in `config.yml`. What cannot be read leaves the defaults: a record is worth evaluating without it.
fn scenario(folder: &Path, no_cache: bool, told: &mut Told) -> Result<Loaded, Failure> {
    let defaults = || {
        let nothing = Document::from_yaml("", "config.yml").map_err(Failure::internal)?;
        Source::of(nothing, folder.to_owned()).settle(&[], &[], no_cache)
    };
    let text = match config_text(folder) {
        Ok(text) => text,
        Err(why) => {
            told.is_unknown(format!("{why}: {UNKNOWN}"));
            return defaults();
        }
    };
    told.config.clone_from(&text);
    let document = Document::from_yaml(&text, "config.yml").map_err(Failure::usage);
    let made_by_lua = document.as_ref().ok().and_then(lua_sessions);
    let document = document.map(|document| without_functions(document, told));
    let loaded =
        document.and_then(|document| Source::of(document, folder.to_owned()).settle(&[], &[], no_cache));
    match loaded {
        Ok(mut loaded) => {
            // Nobody makes sessions of it; but what is expected of a run depends on what made them.
            if let Some(generator) = made_by_lua {
                loaded.scenario.session_generator = generator;
            }
            Ok(loaded)
        }
        Err(failure) => {
            told.is_unknown(format!(
                "config.yml is not a scenario of this version, so {UNKNOWN}: {}",
                failure.message
            ));
            defaults()
        }
    }
}

/// The text of `config.yml`, or why there is none.
fn config_text(folder: &Path) -> Result<String, String> {
    match read(&folder.join("config.yml")).map(String::from_utf8) {
        Ok(Ok(text)) if !text.trim().is_empty() => Ok(text),
        Ok(Ok(_)) => Err("config.yml is empty".to_owned()),
        Ok(Err(_)) => Err("config.yml is not UTF-8".to_owned()),
        Err(reason) => Err(format!("config.yml cannot be read ({reason})")),
    }
}

/// The scenario without what stands for Lua functions in it.
fn without_functions(mut document: Document, told: &mut Told) -> Document {
    let Value::Map(entries) = &mut document.root.value else {
        return document;
    };
    // Sessions are not made again.
    entries.retain(|(key, node)| !(key == "session_generator" && is_lua(node)));
    for (key, node) in entries.iter_mut() {
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
                    told.lua_request_checks.push(name_of(evaluator));
                }
                if evaluator.get("check").is_some() {
                    told.lua_slo_checks.push(name_of(evaluator));
                }
                told.lua_evaluators.push(name_of(evaluator));
            }
            !is_lua(evaluator)
        });
    }
    entries.retain(|(key, node)| {
        !(key == "evaluators" && matches!(&node.value, Value::List(items) if items.is_empty()))
    });
    document
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

/// The generator of a scenario whose sessions a Lua function made.
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
        files: BTreeMap::new(),
        place: None,
    })
}
