//! The results of generators: the canonical JSON of their steps, and a form in which conditions
//! find nodes without knowing their steps.

use serde_json::{Map, Value, json};
use veeksha_app::CommandFailure;
use veeksha_decisions::{CanonicalSteps, PrintableSteps, Redact, Verbatim};

use crate::json_layout::broken_into_lines;
use crate::play::PlayedSession;

/// Returns the canonical JSON of sessions: an array with the steps of each, on several lines.
///
/// # Errors
/// None for plain data.
pub fn sessions_json(sessions: &[PlayedSession]) -> Result<String, CommandFailure> {
    redacted_sessions_json(sessions, &Verbatim)
}

/// Returns the same without secrets.
///
/// # Errors
/// None for plain data.
pub fn redacted_sessions_json(
    sessions: &[PlayedSession],
    redact: &dyn Redact,
) -> Result<String, CommandFailure> {
    let steps: Vec<_> = sessions
        .iter()
        .flat_map(|session| session.steps.iter().cloned())
        .collect();
    let compact = serde_json::to_string(&PrintableSteps {
        steps: &steps,
        redact,
    })
    .map_err(CommandFailure::internal)?;
    Ok(broken_into_lines(&compact))
}

/// Returns `{ "sessions": […] }`, in which a session has the nodes of all its steps.
///
/// # Errors
/// None for plain data.
pub fn sessions_view(sessions: &[PlayedSession]) -> Result<Value, CommandFailure> {
    let views: Result<Vec<Value>, CommandFailure> = sessions.iter().map(view).collect();
    Ok(json!({ "sessions": views? }))
}

fn view(session: &PlayedSession) -> Result<Value, CommandFailure> {
    let steps = serde_json::to_value(CanonicalSteps(&session.steps)).map_err(CommandFailure::internal)?;
    let all = |key: &str| -> Vec<Value> {
        let lists = steps.as_array().into_iter().flatten();
        lists
            .filter_map(|step| step.get(key)?.as_array())
            .flatten()
            .cloned()
            .collect()
    };
    let first = |key: &str| steps.get(0).and_then(|step| step.get(key)).cloned();
    let mut members = Map::new();
    members.insert("session".to_owned(), session.session.0.into());
    for key in ["requests", "tool_runs", "cancel"] {
        members.insert(key.to_owned(), all(key).into());
    }
    for key in ["headers", "labels", "arrives_at_ns"] {
        if let Some(value) = first(key) {
            members.insert(key.to_owned(), value);
        }
    }
    if session.is_agent {
        let open: Vec<u32> = session.open.iter().map(|node| node.0).collect();
        let done = session.steps.iter().any(|step| step.step.done);
        members.insert("open".to_owned(), open.into());
        members.insert("done".to_owned(), done.into());
        members.insert("steps".to_owned(), steps);
    }
    Ok(Value::Object(members))
}
