//! Tool runs, written down shortly.

use std::time::Duration;

use crate::session::nanos;
use crate::types::{Edge, Segment, Session, ToolRun};

/// The text that a tool run of the session returns.
pub fn result_of(run: u32) -> Segment {
    Segment::ResultOf(run)
}

impl ToolRun {
    /// A run of a tool of the scenario: a root of the session, whose service time and result are
    /// drawn from the distributions of the tool.
    pub fn new(node: u32, tool: impl Into<String>) -> Self {
        ToolRun {
            tool: Some(tool.into()),
            ..ToolRun::timer(node, Duration::ZERO)
        }
    }

    /// A timer: a root of the session, which ends after this time.
    pub fn timer(node: u32, time: Duration) -> Self {
        let service_time = Some(nanos(time)).filter(|time| *time > 0);
        ToolRun {
            node,
            parents: Vec::new(),
            tool: None,
            service_time,
            result_tokens: None,
            fails: None,
            labels: Vec::new(),
        }
    }

    /// A run of a tool for [`AgentSession::tool`](crate::AgentSession::tool): the session numbers
    /// it.
    pub fn of(tool: impl Into<String>) -> Self {
        ToolRun::new(0, tool)
    }

    /// Waits for a node of the session: for its end, given its number, or for the event of an
    /// [`Edge`]. A later edge to the same event of a node replaces the earlier one.
    pub fn after(mut self, edge: impl Into<Edge>) -> Self {
        edge.into().join(&mut self.parents);
        self
    }

    /// Takes this long once a server serves it, and the cold start of its tool if there is one.
    pub fn service_time(mut self, time: Duration) -> Self {
        self.service_time = Some(nanos(time));
        self
    }

    /// Returns this many tokens.
    pub fn result_tokens(mut self, tokens: u32) -> Self {
        self.result_tokens = Some(tokens);
        self
    }

    /// Fails, or succeeds whatever the failure rate of its tool.
    pub fn fails(mut self, fails: bool) -> Self {
        self.fails = Some(fails);
        self
    }

    /// Adds a label to the run's record.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }
}

impl Session {
    /// Adds a tool run.
    pub fn tool_run(mut self, run: ToolRun) -> Self {
        self.tool_runs.push(run);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Request, Trigger};

    #[test]
    fn tool_run_is_a_node_between_requests() {
        let run = ToolRun::new(1, "sandbox")
            .after(0)
            .after(Edge::first_chunk(0))
            .service_time(Duration::from_millis(3))
            .result_tokens(40)
            .fails(true);
        assert_eq!(run.fails, Some(true));
        assert_eq!(
            (run.parents.len(), run.parents[1].trigger),
            (2, Trigger::FirstChunk)
        );
        assert_eq!((run.service_time, run.result_tokens), (Some(3_000_000), Some(40)));
        let read = Request::new(2).history(0).after(1).user(result_of(1));
        let session = Session::new([Request::new(0).user("x"), read]).tool_run(run);
        assert_eq!(session.tool_runs[0].tool.as_deref(), Some("sandbox"));
        assert_eq!(session.requests[1].messages[0].content, [Segment::ResultOf(1)]);
    }
}
