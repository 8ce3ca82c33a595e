//! Opening of the recorded decisions of a run.

use std::path::Path;
use std::sync::Arc;

use veeksha_decisions::{DecisionsError, DecisionsFile, DivergenceSummary, FILE, compare_files};
use veeksha_model::RequestId;
use veeksha_present::terminal;
use veeksha_scenario::{Document, Value};

use crate::failure::CommandFailure;
use crate::record::sweep_manifest;
use crate::scenario::source::Loaded;

/// Opens the recorded decisions of the run in `folder`. `key` is the scenario key that names it.
///
/// # Errors
/// If the folder is not that of a run, or the run has no decisions that this version reads.
pub(crate) fn open(folder: &Path, key: &str) -> Result<Arc<DecisionsFile>, CommandFailure> {
    let shown = folder.display();
    if sweep_manifest::is_sweep(folder) {
        return Err(sweep_manifest::not_a_run(folder));
    }
    if !sweep_manifest::is_run(folder) {
        return Err(
            CommandFailure::usage(format!("{key}: {shown} is not the folder of a run"))
                .hinted("name a folder in the `output_dir` of a run, or its link `latest`"),
        );
    }
    let path = folder.join(FILE);
    if !path.exists() {
        return Err(missing(folder, key));
    }
    let opened = DecisionsFile::open(&path);
    let file = opened.map_err(|error| {
        let refused = CommandFailure::usage(format!("{key}: {}: {error}", path.display()));
        match error {
            DecisionsError::OtherVersion { .. } => {
                refused.hinted("record the decisions again with this version")
            }
            _ => refused,
        }
    })?;
    if file.session_count() == 0 {
        return Err(CommandFailure::usage(format!(
            "{key}: {} has no session, because none started in that run",
            path.display()
        )));
    }
    Ok(Arc::new(file))
}

/// Opens the decisions that those of a run of this scenario are compared with, if there are any.
///
/// # Errors
/// As [`open`]; if the scenario keeps the run's own decisions off the disk.
pub(crate) fn to_compare_with(loaded: &Loaded) -> Result<Option<Arc<DecisionsFile>>, CommandFailure> {
    const KEY: &str = "session_generator.recorded_run";
    let Some(run) = loaded.scenario.session_generator.recorded_run() else {
        return Ok(None);
    };
    if !loaded.scenario.trace_recorder.decisions {
        return Err(CommandFailure::usage(format!(
            "{KEY}: the decisions of this run are not recorded, so there is nothing to compare"
        ))
        .hinted("set trace_recorder.decisions = true"));
    }
    open(&loaded.folder().join(run), KEY).map(Some)
}

/// Compares the decisions in the folder of a finished run with recorded ones.
pub(crate) fn divergence(recorded: &DecisionsFile, run: &Path) -> Option<DivergenceSummary> {
    let path = run.join(FILE);
    if !path.exists() {
        terminal::err(
            "note: session_generator.recorded_run: the workload plans whole sessions, so there are no decisions to compare",
        );
        return None;
    }
    let compared = DecisionsFile::open(&path).and_then(|own| compare_files(recorded, &own));
    compared
        .map_err(|error| {
            let path = path.display();
            terminal::err(format!(
                "warning: the decisions were not compared: {path}: {error}"
            ));
        })
        .ok()
}

/// Returns the error of a run without decisions.
fn missing(folder: &Path, key: &str) -> CommandFailure {
    let shown = folder.display();
    let config = std::fs::read_to_string(folder.join("config.yml")).unwrap_or_default();
    let config = Document::from_yaml(&config, "config.yml").ok();
    let key_of = |section: &str, key: &str| {
        let value = config.as_ref()?.root.get(section)?.get(key)?;
        Some(value.value.clone())
    };
    let repeat = format!("run its scenario again: `veeksha-host run {shown}`");
    if key_of("trace_recorder", "decisions") == Some(Value::Bool(false)) {
        return CommandFailure::usage(format!(
            "{key}: {shown} has no {FILE}, because its scenario has `trace_recorder.decisions = false`"
        ))
        .hinted("record a run with `trace_recorder.decisions = true`");
    }
    let kind = match key_of("session_generator", "type") {
        Some(Value::Text(kind) | Value::Word(kind)) => kind,
        _ => "synthetic".to_owned(),
    };
    let has_agent = key_of("session_generator", "agent").is_some();
    match kind.as_str() {
        "lua" if has_agent => CommandFailure::usage(format!(
            "{key}: {shown} has no {FILE}; it was recorded by an older version, or its workload never started"
        ))
        .hinted("record the run again with this version"),
        "wasm" => CommandFailure::usage(format!(
            "{key}: {shown} has no {FILE}; its component plans whole sessions, or an older version recorded it"
        ))
        .hinted(repeat),
        _ => CommandFailure::usage(format!(
            "{key}: {shown} has no decisions of agents: its workload (`{kind}`) plans whole sessions"
        ))
        .hinted(repeat),
    }
}

/// Returns a remark for headers that are not sent, because a secret was removed from them.
///
/// # Errors
/// If a secret was removed from the content of a request: the server would be sent another one.
pub(crate) fn redaction_note(file: &DecisionsFile, run: &Path) -> Result<Option<String>, CommandFailure> {
    const KEY: &str = "session_generator.run";
    let (shown, redacted) = (run.display(), file.redacted());
    if let Some(RequestId { session, node }) = redacted.first_request {
        let further = match redacted.requests - 1 {
            0 => String::new(),
            further => format!(" (and {} more)", veeksha_stats::counted(further, "request")),
        };
        return Err(CommandFailure::usage(format!(
            "{KEY}: node {node} of session {session}{further} of {shown} cannot be sent as recorded: a secret in it \
             was replaced by `***`"
        ))
        .hinted(format!(
            "record a run whose secrets are in `client` (`headers`, `additional_sampling_params`), or replace `***` in \
             its {FILE} and remove the key `redacted` of the request"
        )));
    }
    Ok((redacted.headers > 0).then(|| {
        format!(
            "{KEY}: secrets were removed from headers in {} of {shown}; these headers are not sent, set them in \
             `client.headers`",
            veeksha_stats::counted(redacted.headers, "step")
        )
    }))
}

/// Returns a note on recorded sessions that have no end; a replay of them ends with what was
/// recorded.
pub(crate) fn incomplete_note(file: &DecisionsFile, run: &Path) -> Option<String> {
    let (unfinished, all) = (file.unfinished_sessions(), file.session_count());
    if unfinished == 0 && !file.is_cut() {
        return None;
    }
    let why = if file.is_cut() {
        format!("its {FILE} was cut, so that further sessions may be missing")
    } else {
        "their agents failed, or the run or the recording ended before".to_owned()
    };
    Some(format!(
        "session_generator.run: the recording of {} is incomplete: {unfinished} of {} have no end in it; {why}",
        run.display(),
        veeksha_stats::counted(all, "session")
    ))
}
