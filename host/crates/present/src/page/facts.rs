//! Facts about a run: settings, plugins, machine and versions.

use veeksha_metrics::Evaluation;
use veeksha_page::{Fact, Plugin, RunFacts, RunState};

use crate::description::RunDescription;

pub(super) fn facts(about: &RunDescription, state: RunState) -> RunFacts {
    let folder = about.folder.file_name().unwrap_or(about.folder.as_os_str());
    let folder = folder.to_string_lossy().into_owned();
    let mut facts: Vec<Fact> = about
        .facts
        .iter()
        .map(|(name, value)| fact(name, value.as_str()))
        .collect();
    if !about.tags.is_empty() {
        facts.push(fact("Tags", about.tags.join(", ")));
    }
    if about.name.is_some() {
        facts.push(fact("Run", folder.as_str()));
    }
    RunFacts {
        name: about.name.clone().unwrap_or(folder),
        state,
        summary: about.description.clone(),
        facts,
        started_unix: None,
        elapsed: None,
        planned: about.planned,
        remarks: about.remarks.clone(),
    }
}

pub(super) fn plugins(about: &RunDescription) -> Vec<Plugin> {
    let plugin = |(role, info): &(String, veeksha_ports::WorkloadInfo)| Plugin {
        name: info.name.clone(),
        role: role.clone(),
        version: Some(info.version.clone()),
        source: Some(info.engine.to_owned()),
        digest: Some(format!("blake3:{}", info.digest)),
    };
    about.plugins.iter().map(plugin).collect()
}

pub(super) fn machine(evaluation: &Evaluation, cores: usize) -> Vec<Fact> {
    let host = &evaluation.host;
    let mut facts = vec![fact("Cores", cores.to_string())];
    facts.extend(host.threads.iter().filter_map(|thread| {
        let busy = thread.busy_share()?;
        Some(fact(
            &format!("Thread {}", thread.thread),
            format!("busy {}", veeksha_report::share(busy)),
        ))
    }));
    facts
}

pub(super) fn versions() -> Vec<Fact> {
    vec![
        fact("veeksha-host", env!("CARGO_PKG_VERSION")),
        fact("plugin contract", "veeksha:plugin@0.2.0"),
    ]
}

pub(super) fn fact(name: &str, value: impl Into<String>) -> Fact {
    Fact {
        name: name.to_owned(),
        value: value.into(),
    }
}
