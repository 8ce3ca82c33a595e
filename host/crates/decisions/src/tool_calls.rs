//! The tool calls of a session by their ids.
//!
//! Servers make up the ids, and some repeat them in each answer (`0`, `call_0`). An id therefore
//! names the call of the nearest answer above the request whose message has it.

use std::collections::{HashMap, HashSet, VecDeque};

use veeksha_model::{Edge, Message, NodeId};

use crate::recorded_step::RecordedStep;

/// A tool call: the node whose answer asked for it, and its position in the answer.
pub(crate) type CallPlace = (NodeId, usize);

/// The calls that a message names; `None` for an id that no answer had.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedCalls {
    /// The call that a tool's message answers.
    pub(crate) answered: Option<CallPlace>,
    /// The calls of an assistant's message.
    pub(crate) calls: Vec<Option<CallPlace>>,
}

/// The tool calls of a session.
#[derive(Debug, Default)]
pub(crate) struct ToolCallIndex {
    /// The answers with a call of an id, and its positions in each.
    answers: HashMap<String, HashMap<NodeId, Vec<usize>>>,
    /// The nodes before each node, the most likely origin of its messages first.
    before: HashMap<NodeId, Vec<NodeId>>,
}

impl ToolCallIndex {
    /// Adds the calls of an answer.
    pub(crate) fn add_answer(&mut self, node: NodeId, ids: &[String]) {
        for (place, id) in ids.iter().enumerate() {
            let answers = self.answers.entry(id.clone()).or_default();
            answers.entry(node).or_default().push(place);
        }
    }

    /// Adds the nodes of a step.
    pub(crate) fn add_nodes(&mut self, step: &RecordedStep) {
        let added = &step.step.added;
        // Of several parents, the one whose end the step answered is the most likely; a step may
        // also answer a node that is not a parent.
        let before = |edges: &[Edge]| {
            let mut before: Vec<NodeId> = edges.iter().map(|edge| edge.parent).collect();
            before.sort_by_key(|parent| Some(*parent) != step.after);
            before.extend(step.after);
            before
        };
        for request in &added.requests {
            let history = request.history_parent.into_iter();
            let before = history.chain(before(&request.parents)).collect();
            self.before.insert(request.node, before);
        }
        for run in &added.tool_runs {
            self.before.insert(run.node, before(&run.parents));
        }
    }

    /// Returns the calls that the messages of a node's request name. If a request repeats an id,
    /// its last message has the call of the nearest answer, the one before that of the next one.
    pub(crate) fn named(&self, node: NodeId, messages: &[Message]) -> Vec<NamedCalls> {
        let mut seen: HashMap<(bool, &str), usize> = HashMap::new();
        let mut call = |id: &str, is_answered: bool, key| {
            let nearer = seen.entry((is_answered, key)).or_default();
            let found = self.call(node, id, *nearer);
            *nearer += 1;
            found
        };
        let named = messages.iter().rev().map(|message| {
            let answered = message.tool_call_id.as_deref();
            let answered = answered.and_then(|id| call(id, true, id));
            let calls = message.tool_calls.iter().rev();
            let mut calls: Vec<_> = calls.map(|of| call(&of.id, false, &of.id)).collect();
            calls.reverse();
            NamedCalls { answered, calls }
        });
        let mut named: Vec<_> = named.collect();
        named.reverse();
        named
    }

    /// Returns a call of an id: that of the nearest answer above the node, or of one beyond
    /// `nearer` others, as far as they exist. An id that only one answer had names its call,
    /// wherever the agent got it from.
    fn call(&self, node: NodeId, id: &str, nearer: usize) -> Option<CallPlace> {
        let answers = self.answers.get(id)?;
        if let (1, Some((answer, places))) = (answers.len(), answers.iter().next())
            && let [place] = places[..]
        {
            return Some((*answer, place));
        }
        let mut found = Vec::new();
        let mut reached = HashSet::from([node]);
        let mut next = VecDeque::from([node]);
        while let Some(node) = next.pop_front() {
            for before in self.before.get(&node).into_iter().flatten() {
                if !reached.insert(*before) {
                    continue;
                }
                let places = answers.get(before).into_iter().flatten().rev();
                found.extend(places.map(|place| (*before, *place)));
                if let Some(call) = found.get(nearer) {
                    return Some(*call);
                }
                next.push_back(*before);
            }
        }
        found.last().copied()
    }
}
