//! Tests of generators and of arrival processes.

use serde_json::{Value, json};
use veeksha_app::CommandFailure;
use veeksha_manifest::PluginKind;
use veeksha_model::{SessionId, seconds};
use veeksha_ports::{PluginFailure, PluginFailureKind, Workload};
use veeksha_prompt::Tokenizer;

use super::format::TestCase;
use super::session_view::{sessions_json, sessions_view};
use crate::json_layout::broken_into_lines;
use crate::opened::{OpenError, OpenedPlugin, PluginSettings};
use crate::play::{AnswerScript, PlayError, PlayedSession, play_agent, play_planned};

/// The number of arrivals of tests that state none.
const ARRIVALS: u32 = 8;

/// The result of a test: the value that conditions refer to, and the text of the snapshot.
pub(crate) struct CaseResult {
    pub(crate) value: Value,
    pub(crate) snapshot: String,
}

impl CaseResult {
    /// A result whose snapshot is its JSON.
    pub(crate) fn of(value: Value) -> Result<Self, CommandFailure> {
        let snapshot = broken_into_lines(&value.to_string());
        Ok(CaseResult { value, snapshot })
    }
}

/// The reason why a test has no result.
pub(crate) enum CaseFailure {
    /// The plugin failed, which a test may expect.
    Plugin(Box<PluginFailure>),
    /// The host refused the plugin or its settings, which a test may expect as well.
    Command(CommandFailure),
    /// The test is wrong.
    Test(String),
}

impl From<PluginFailure> for CaseFailure {
    fn from(failure: PluginFailure) -> Self {
        CaseFailure::Plugin(Box::new(failure))
    }
}

impl From<CommandFailure> for CaseFailure {
    fn from(failure: CommandFailure) -> Self {
        CaseFailure::Command(failure)
    }
}

impl From<OpenError> for CaseFailure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Plugin(failure) => CaseFailure::Plugin(failure),
            OpenError::Command(failure) => CaseFailure::Command(failure),
        }
    }
}

impl From<PlayError> for CaseFailure {
    fn from(error: PlayError) -> Self {
        match error {
            PlayError::Plugin(failure) => CaseFailure::Plugin(failure),
            PlayError::Script { .. } | PlayError::Endless { .. } => CaseFailure::Test(error.to_string()),
        }
    }
}

/// Makes the sessions of a test.
pub(crate) fn sessions(
    plugin: &OpenedPlugin,
    kind: PluginKind,
    settings: &PluginSettings,
    case: &TestCase,
) -> Result<CaseResult, CaseFailure> {
    let indices = case.sessions.clone().unwrap_or_default().indices();
    let script = AnswerScript {
        ends: case.answers.clone(),
        remaining: case.then,
    };
    let mut workload = plugin.workload(kind, settings)?.open_silent()?;
    let length = workload.length()?;
    let played = play(plugin.host().tokenizer(), &mut workload, &indices, &script)?;
    let mut value = sessions_view(&played)?;
    if let (Value::Object(members), Some(length)) = (&mut value, length) {
        members.insert("length".to_owned(), length.into());
    }
    Ok(CaseResult {
        snapshot: sessions_json(&played)?,
        value,
    })
}

/// Plays sessions of an open workload. Sessions behind its end are left out.
pub(crate) fn play(
    tokenizer: &Tokenizer,
    workload: &mut Workload,
    indices: &[u64],
    script: &AnswerScript,
) -> Result<Vec<PlayedSession>, PlayError> {
    let mut played = Vec::new();
    for index in indices {
        let session = SessionId(*index);
        match workload {
            Workload::Planned(source) => {
                let made = source.sessions(*index, 1)?;
                played.extend(made.into_iter().map(|planned| play_planned(session, planned)));
            }
            Workload::Reactive(agents) => {
                let count = |text: &str| tokenizer.count(text);
                played.push(play_agent(agents.as_mut(), session, script, &count)?);
            }
        }
    }
    Ok(played)
}

/// Asks for the first arrivals of a process.
pub(crate) fn arrivals(
    plugin: &OpenedPlugin,
    settings: &PluginSettings,
    case: &TestCase,
) -> Result<CaseResult, CaseFailure> {
    let count = case.arrivals.unwrap_or(ARRIVALS);
    let mut process = plugin.arrivals(settings)?.open_silent()?;
    let arrivals: Vec<f64> = process.next(count)?.into_iter().map(seconds).collect();
    let ends = arrivals.len() < count as usize;
    Ok(CaseResult::of(json!({ "arrivals": arrivals, "ends": ends }))?)
}

/// Returns the parts of a failure that a test can expect: code, path, message.
pub(crate) fn parts(failure: &CaseFailure) -> Option<(Option<&str>, Option<&str>, &str)> {
    match failure {
        CaseFailure::Plugin(failure) => match &failure.kind {
            PluginFailureKind::Refused { code, path, .. } => {
                Some((Some(code), path.as_deref(), &failure.message))
            }
            _ => Some((None, None, &failure.message)),
        },
        CaseFailure::Command(failure) => Some((None, None, &failure.message)),
        CaseFailure::Test(_) => None,
    }
}
