//! The line of a step.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use veeksha_model::{NodeId, ReplayedSession, Request, Session, SessionId, ToolRun};
use veeksha_ports::AgentStep;

use super::content::{Text, is_default};
use super::request::{PairLines, RequestEntry, ToolRunEntry, header_lines, label_lines, pairs};
use crate::recorded_step::RecordedStep;
use crate::redact::Redact;

/// A step of an agent. The names of keys are those of the Lua API where it has them.
#[derive(Serialize, Deserialize)]
pub(crate) struct StepLine<'a> {
    session: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_call_ids: Vec<Text<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestEntry<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_runs: Vec<ToolRunEntry<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cancel: Vec<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    done: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: PairLines<'a>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: PairLines<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrives_at_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replays: Option<ReplayedLine>,
}

/// The session of an earlier run whose decisions a session sends again.
#[derive(Serialize, Deserialize)]
struct ReplayedLine {
    session: u64,
    seed: u64,
}

impl<'a> StepLine<'a> {
    /// Returns the line of the step with which an agent answered the end of the node `after`.
    /// `tool_call_ids` are those of the node's answer.
    pub(crate) fn of(
        session: SessionId,
        after: Option<NodeId>,
        tool_call_ids: &[&'a str],
        step: &'a AgentStep,
        redact: &dyn Redact,
    ) -> Self {
        let added = &step.added;
        let requests = added.requests.iter();
        let tool_runs = added.tool_runs.iter();
        StepLine {
            session: session.0,
            after: after.map(|node| node.0),
            tool_call_ids: tool_call_ids.iter().copied().map(Cow::Borrowed).collect(),
            requests: requests
                .map(|request| RequestEntry::of(request, redact))
                .collect(),
            tool_runs: tool_runs.map(|run| ToolRunEntry::of(run, redact)).collect(),
            cancel: step.cancel.iter().map(|node| node.0).collect(),
            done: step.done,
            headers: header_lines(&added.headers, redact),
            labels: label_lines(&added.labels, redact),
            arrives_at_ns: added.arrives_at,
            // The same in each step.
            replays: added
                .replays
                .filter(|_| after.is_none())
                .map(|ReplayedSession { session, seed }| ReplayedLine {
                    session: session.0,
                    seed,
                }),
        }
    }
}

impl From<StepLine<'_>> for RecordedStep {
    fn from(line: StepLine<'_>) -> Self {
        let redacted = line.requests.iter().filter_map(RequestEntry::redacted).collect();
        RecordedStep {
            redacted,
            session: SessionId(line.session),
            after: line.after.map(NodeId),
            tool_call_ids: line.tool_call_ids.into_iter().map(Cow::into_owned).collect(),
            step: AgentStep {
                added: Session {
                    requests: line.requests.into_iter().map(Request::from).collect(),
                    tool_runs: line.tool_runs.into_iter().map(ToolRun::from).collect(),
                    arrives_at: line.arrives_at_ns,
                    headers: pairs(line.headers),
                    labels: pairs(line.labels),
                    replays: line.replays.map(|replayed| ReplayedSession {
                        session: SessionId(replayed.session),
                        seed: replayed.seed,
                    }),
                },
                cancel: line.cancel.into_iter().map(NodeId).collect(),
                done: line.done,
            },
        }
    }
}
