//! The first difference between two nodes.

use std::fmt::Debug;

use veeksha_model::{Edge, Message, NodeId, Request, Segment, ToolRun};

use super::correspondence::{Correspondence, GraphSide};
use super::field::DecisionField;
use super::graph::{DecisionNode, NodeDecision};
use crate::tool_calls::{CallPlace, NamedCalls};

/// The field in which two nodes differ, and both values.
pub(super) struct Difference {
    pub(super) field: DecisionField,
    pub(super) values: [String; 2],
}

/// Characters of a value in a message.
const EXCERPT: usize = 48;
/// Characters of it before the first difference.
const BEFORE: usize = 12;

/// Returns excerpts of two texts around their first difference.
pub(super) fn excerpts(one: &str, other: &str) -> [String; 2] {
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let start = common.saturating_sub(BEFORE);
    [one, other].map(|text| {
        let mut excerpt: String = text.chars().skip(start).take(EXCERPT).collect();
        if start > 0 {
            excerpt.insert(0, '…');
        }
        if text.chars().nth(start + EXCERPT).is_some() {
            excerpt.push('…');
        }
        excerpt
    })
}

fn differing<T: PartialEq + Debug>(field: DecisionField, one: &T, other: &T) -> Option<Difference> {
    (one != other).then(|| Difference {
        field,
        values: excerpts(&format!("{one:?}"), &format!("{other:?}")),
    })
}

/// Returns the first difference between two nodes whose parents correspond.
pub(super) fn difference(
    one: &DecisionNode<'_>,
    other: &DecisionNode<'_>,
    same: &Correspondence<'_, '_>,
) -> Option<Difference> {
    match (one.work, other.work) {
        (NodeDecision::Request(one), NodeDecision::Request(other)) => requests(one, other, same),
        (NodeDecision::ToolRun(one), NodeDecision::ToolRun(other)) => tool_runs(one, other, same),
        (NodeDecision::Request(_), NodeDecision::ToolRun(_)) => Some(kinds(["a request", "a tool run"])),
        (NodeDecision::ToolRun(_), NodeDecision::Request(_)) => Some(kinds(["a tool run", "a request"])),
    }
}

fn kinds(values: [&str; 2]) -> Difference {
    Difference {
        field: DecisionField::Requests,
        values: values.map(str::to_owned),
    }
}

fn requests(one: &Request, other: &Request, same: &Correspondence<'_, '_>) -> Option<Difference> {
    let of_messages = || messages(one, other, same);
    let history = || {
        let named = |side, request: &Request| request.history_parent.map(|node| same.node(side, node));
        let is_same = named(GraphSide::Recorded, one) == named(GraphSide::Other, other);
        let values = [one, other].map(|request| (request.history_parent, request.keep_reasoning));
        (!is_same || one.keep_reasoning != other.keep_reasoning)
            .then(|| always(DecisionField::History, &values[0], &values[1]))
    };
    let cancellation = || {
        let when = |side, request: &Request| {
            let when = request
                .cancellation
                .as_ref()
                .map(|cancellation| &cancellation.when[..]);
            same.edges(side, when.unwrap_or_default(), request.node)
        };
        let chunks = |request: &Request| {
            request
                .cancellation
                .as_ref()
                .map(|cancellation| cancellation.after_chunks)
        };
        let is_same =
            chunks(one) == chunks(other) && when(GraphSide::Recorded, one) == when(GraphSide::Other, other);
        (!is_same).then(|| {
            always(
                DecisionField::Cancellation,
                &one.cancellation,
                &other.cancellation,
            )
        })
    };
    of_messages()
        .or_else(|| differing(DecisionField::Tools, &one.tools, &other.tools))
        .or_else(history)
        .or_else(|| edges(&one.parents, &other.parents, same, [one.node, other.node]))
        .or_else(|| {
            differing(
                DecisionField::Wait,
                &one.wait_after_ready,
                &other.wait_after_ready,
            )
        })
        .or_else(|| differing(DecisionField::Output, &one.output, &other.output))
        .or_else(cancellation)
        .or_else(|| differing(DecisionField::Client, &one.client, &other.client))
        .or_else(|| differing(DecisionField::Body, &one.body, &other.body))
        .or_else(|| differing(DecisionField::Headers, &one.headers, &other.headers))
        .or_else(|| differing(DecisionField::Labels, &one.labels, &other.labels))
        .or_else(|| differing(DecisionField::Recorded, &one.replay, &other.replay))
}

fn tool_runs(one: &ToolRun, other: &ToolRun, same: &Correspondence<'_, '_>) -> Option<Difference> {
    differing(DecisionField::ToolClass, &one.class, &other.class)
        .or_else(|| edges(&one.parents, &other.parents, same, [one.node, other.node]))
        .or_else(|| differing(DecisionField::ServiceTime, &one.service_time, &other.service_time))
        .or_else(|| {
            differing(
                DecisionField::ResultTokens,
                &one.result_tokens,
                &other.result_tokens,
            )
        })
        .or_else(|| differing(DecisionField::ToolFailure, &one.fails, &other.fails))
        .or_else(|| differing(DecisionField::Labels, &one.labels, &other.labels))
}

fn always<T: Debug>(field: DecisionField, one: &T, other: &T) -> Difference {
    Difference {
        field,
        values: excerpts(&format!("{one:?}"), &format!("{other:?}")),
    }
}

fn edges(
    one: &[Edge],
    other: &[Edge],
    same: &Correspondence<'_, '_>,
    own: [NodeId; 2],
) -> Option<Difference> {
    let common = [
        same.edges(GraphSide::Recorded, one, own[0]),
        same.edges(GraphSide::Other, other, own[1]),
    ];
    (common[0] != common[1]).then(|| always(DecisionField::Edges, &one, &other))
}

fn messages(one: &Request, other: &Request, same: &Correspondence<'_, '_>) -> Option<Difference> {
    let roles = |request: &Request| -> Vec<&'static str> {
        let messages = request.messages.iter();
        messages.map(|message| message.role.name()).collect()
    };
    if let Some(found) = differing(DecisionField::Messages, &roles(one), &roles(other)) {
        return Some(found);
    }
    let named = [
        same.calls(GraphSide::Recorded, one),
        same.calls(GraphSide::Other, other),
    ];
    let named = named[0].iter().zip(&named[1]);
    let messages = one.messages.iter().zip(&other.messages);
    messages.zip(named).find_map(|((one, other), named)| {
        let content = || {
            let is_same = same.segments(&one.content, &other.content);
            (!is_same).then(|| Difference {
                field: DecisionField::MessageContent,
                values: excerpts(&text_of(&one.content), &text_of(&other.content))
                    .map(|text| format!("`{text}`")),
            })
        };
        let reasoning = || differing(DecisionField::MessageReasoning, &one.reasoning, &other.reasoning);
        content().or_else(|| calls(one, other, named)).or_else(reasoning)
    })
}

/// Returns the content of a message as readable text.
fn text_of(content: &[Segment]) -> String {
    let text = |segment: &Segment| match segment {
        Segment::Text(text) => text.clone(),
        Segment::Synthetic { seed, tokens } => {
            format!("<{tokens} synthetic tokens, seed {}>", u64::from(*seed))
        }
        Segment::Media { kind, source } => format!("<{} {source}>", kind.name()),
        Segment::TokenIds(ids) => format!("<token ids {ids:?}>"),
        Segment::ToolResult(run) => format!("<result of {run}>"),
    };
    content.iter().map(text).collect()
}

/// The ids of calls are made up by the server: they are the same if they represent the same call.
fn calls(one: &Message, other: &Message, named: (&NamedCalls, &NamedCalls)) -> Option<Difference> {
    let is_same_id = |one: &str, other: &str, named: [Option<CallPlace>; 2]| match named {
        [None, None] => one == other,
        [one, other] => one == other,
    };
    let answers = match (&one.tool_call_id, &other.tool_call_id) {
        (Some(one), Some(other)) => is_same_id(one, other, [named.0.answered, named.1.answered]),
        (one, other) => one == other,
    };
    let mut pairs = one.tool_calls.iter().zip(&other.tool_calls);
    let mut places = named.0.calls.iter().zip(&named.1.calls);
    let are_same = answers
        && one.tool_calls.len() == other.tool_calls.len()
        && pairs.all(|(one, other)| {
            let places = places.next().map_or([None; 2], |(one, other)| [*one, *other]);
            is_same_id(&one.id, &other.id, places)
                && one.name == other.name
                && one.arguments == other.arguments
        });
    let of = |message: &Message| (message.tool_call_id.clone(), message.tool_calls.clone());
    (!are_same).then(|| always(DecisionField::MessageToolCalls, &of(one), &of(other)))
}
