//! Hashes by which equal nodes are found without comparing all pairs.

use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hash, Hasher};

use veeksha_model::{Request, Segment, ToolRun};

use super::correspondence::{Correspondence, GraphSide};
use super::graph::{DecisionNode, NodeDecision};

/// Returns a hash that is the same for two nodes without a [difference](super::difference).
pub(super) fn key(node: &DecisionNode<'_>, side: GraphSide, same: &Correspondence<'_, '_>) -> u64 {
    let mut key = KeyHasher(DefaultHasher::new());
    match node.work {
        NodeDecision::Request(request) => {
            key.content(request, side, same);
            key.rest(request, side, same);
        }
        NodeDecision::ToolRun(run) => {
            key.class(run);
            same.edges(side, &run.parents, run.node).hash(&mut key.0);
            key.debug(&(run.service_time, run.result_tokens, run.fails, &run.labels));
        }
    }
    key.0.finish()
}

/// Returns a hash that is the same for two nodes that differ in their history or edges only.
pub(super) fn content_key(node: &DecisionNode<'_>, side: GraphSide, same: &Correspondence<'_, '_>) -> u64 {
    let mut key = KeyHasher(DefaultHasher::new());
    match node.work {
        NodeDecision::Request(request) => key.content(request, side, same),
        NodeDecision::ToolRun(run) => key.class(run),
    }
    key.0.finish()
}

struct KeyHasher(DefaultHasher);

impl KeyHasher {
    /// The fields that [`difference`](super::difference::difference) compares before the history.
    fn content(&mut self, request: &Request, side: GraphSide, same: &Correspondence<'_, '_>) {
        "request".hash(&mut self.0);
        let named = same.calls(side, request);
        for (message, named) in request.messages.iter().zip(named) {
            self.debug(&message.role);
            for segment in &message.content {
                match segment {
                    Segment::Text(text) => text.hash(&mut self.0),
                    Segment::ToolResult(run) => same.node(side, *run).hash(&mut self.0),
                    other => self.debug(other),
                }
            }
            // An id that no answer had is compared as text.
            let id = |call: Option<_>, id: Option<&String>| (call, id.filter(|_| call.is_none()).cloned());
            id(named.answered, message.tool_call_id.as_ref()).hash(&mut self.0);
            for (call, place) in message.tool_calls.iter().zip(named.calls) {
                id(place, Some(&call.id)).hash(&mut self.0);
                (&call.name, &call.arguments).hash(&mut self.0);
            }
            self.debug(&message.reasoning);
        }
        self.debug(&request.tools);
    }

    fn rest(&mut self, request: &Request, side: GraphSide, same: &Correspondence<'_, '_>) {
        let history = request.history_parent.map(|node| same.node(side, node));
        history.hash(&mut self.0);
        same.edges(side, &request.parents, request.node).hash(&mut self.0);
        if let Some(cancellation) = &request.cancellation {
            same.edges(side, &cancellation.when, request.node)
                .hash(&mut self.0);
            cancellation.after_chunks.hash(&mut self.0);
        }
        self.debug(&(request.keep_reasoning, request.wait_after_ready, &request.output));
        self.debug(&(&request.client, &request.body, &request.headers));
        self.debug(&(&request.labels, &request.replay));
    }

    fn class(&mut self, run: &ToolRun) {
        ("tool run", &run.class).hash(&mut self.0);
    }

    /// Adds a value whose equality is that of its debug text.
    fn debug(&mut self, value: &dyn Debug) {
        // Hashing never fails.
        let _ = write!(self, "{value:?};");
    }
}

impl Write for KeyHasher {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
