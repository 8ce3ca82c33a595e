//! The canonical JSON of sessions: that of `decisions.jsonl`, without redaction.
//!
//! Members always have the same order, and members without a value are left out, so equal sessions
//! have equal texts. A planned session is one step, which follows no node.

use serde::Serialize;
use serde::ser::SerializeSeq;

use crate::recorded_step::RecordedStep;
use crate::redact::{Redact, Verbatim};
use crate::wire::StepLine;

/// Returns a step on one line.
///
/// # Errors
/// None for plain data.
pub fn canonical_step(step: &RecordedStep) -> serde_json::Result<String> {
    serde_json::to_string(&line(step, &Verbatim))
}

fn line<'a>(step: &'a RecordedStep, redact: &'a dyn Redact) -> StepLine<'a> {
    let ids: Vec<&str> = step.tool_call_ids.iter().map(String::as_str).collect();
    StepLine::of(step.session, step.after, &ids, &step.step, redact)
}

/// Steps as a JSON array.
#[derive(Clone, Copy, Debug)]
pub struct CanonicalSteps<'a>(pub &'a [RecordedStep]);

impl Serialize for CanonicalSteps<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let steps = PrintableSteps {
            steps: self.0,
            redact: &Verbatim,
        };
        steps.serialize(serializer)
    }
}

/// Steps as a JSON array without secrets, for printing.
#[derive(Clone, Copy)]
pub struct PrintableSteps<'a> {
    /// The steps.
    pub steps: &'a [RecordedStep],
    /// Removes secrets.
    pub redact: &'a dyn Redact,
}

impl Serialize for PrintableSteps<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.steps.len()))?;
        for step in self.steps {
            list.serialize_element(&line(step, self.redact))?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Message, NodeId, Request, Role, Segment, SessionId};
    use veeksha_ports::AgentStep;

    use super::*;

    #[test]
    fn members_are_ordered_and_absent_ones_left_out() {
        let request = Request {
            node: NodeId(1),
            messages: vec![Message::new(Role::User, vec![Segment::Text("Hello.".into())])],
            ..Request::default()
        };
        let step = RecordedStep {
            session: SessionId(3),
            after: Some(NodeId(0)),
            tool_call_ids: Vec::new(),
            step: AgentStep {
                added: vec![request].into(),
                done: true,
                ..AgentStep::default()
            },
            redacted: Vec::new(),
        };
        let line = canonical_step(&step).unwrap();
        assert_eq!(
            line,
            r#"{"session":3,"after":0,"requests":[{"node":1,"messages":[{"role":"user","content":[{"text":"Hello."}]}]}],"done":true}"#
        );
        let list = serde_json::to_string(&CanonicalSteps(&[step])).unwrap();
        assert_eq!(list, format!("[{line}]"));
    }
}
