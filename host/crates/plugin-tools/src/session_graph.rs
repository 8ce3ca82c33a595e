//! A session as a drawing of several lines: nodes below their parents, with the edges that are not
//! visible from the position, think times, lengths and the first words of texts.

use std::collections::BTreeMap;

use veeksha_model::{Edge, Message, NodeId, Request, Segment, ToolRun, Trigger, printable, seconds};

use crate::play::PlayedSession;

/// Maximum length of an excerpt of a message, in characters.
const EXCERPT: usize = 48;
/// Maximum depth that is drawn; deeper nodes are drawn there.
const MAX_DEPTH: usize = 24;

/// Returns the drawing of a session.
pub fn session_graph(session: &PlayedSession) -> String {
    let mut lines = vec![heading(session)];
    let mut depths: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut last: Option<NodeId> = None;
    for step in &session.steps {
        let added = &step.step.added;
        let mut nodes: Vec<(NodeId, &[Edge], String)> = Vec::new();
        nodes.extend(
            added
                .requests
                .iter()
                .map(|request| (request.node, &*request.parents, describe(request))),
        );
        nodes.extend(
            added
                .tool_runs
                .iter()
                .map(|run| (run.node, &*run.parents, describe_tool(run))),
        );
        for (node, parents, text) in nodes {
            let depth = parents
                .iter()
                .filter_map(|edge| depths.get(&edge.parent))
                .max()
                .map_or(0, |depth| depth + 1);
            depths.insert(node, depth);
            let indent = "  ".repeat(depth.min(MAX_DEPTH));
            lines.push(format!("{indent}{node} {text}{}", edges(parents, last)));
            last = Some(node);
        }
        let cancelled = step.step.cancel.iter();
        lines.extend(cancelled.map(|node| format!("  cancels node {node}")));
    }
    if !session.open.is_empty() {
        let open: Vec<String> = session.open.iter().map(NodeId::to_string).collect();
        lines.push(format!("  open: {}", open.join(", ")));
    }
    lines.join("\n")
}

fn heading(session: &PlayedSession) -> String {
    let nodes: usize = session
        .steps
        .iter()
        .map(|step| step.step.added.nodes().count())
        .sum();
    let mut text = format!(
        "session {}: {}",
        session.session,
        veeksha_stats::counted(nodes as u64, "node")
    );
    if session.is_agent {
        text.push_str(&format!(
            " in {}",
            veeksha_stats::counted(session.steps.len() as u64, "step")
        ));
    }
    let first = session.steps.first().map(|step| &step.step.added);
    for (name, value) in first.into_iter().flat_map(|added| &added.labels) {
        text.push_str(&format!(", {}={}", printable(name), printable(value)));
    }
    if let Some(at) = first.and_then(|added| added.arrives_at) {
        text.push_str(&format!(", arrives at {} s", seconds(at)));
    }
    text
}

/// Returns the edges, except for one to the node on the line before that waits for its end.
fn edges(parents: &[Edge], last: Option<NodeId>) -> String {
    if let [only] = parents
        && Some(only.parent) == last
        && only.trigger == Trigger::Completed
        && only.delay == 0
    {
        return String::new();
    }
    let edge = |edge: &Edge| {
        let mut text = edge.parent.to_string();
        if edge.trigger != Trigger::Completed {
            text.push_str(&format!(" {}", edge.trigger.name().replace('_', " ")));
        }
        if edge.delay > 0 {
            text.push_str(&format!(" + {} s", seconds(edge.delay)));
        }
        text
    };
    let edges: Vec<String> = parents.iter().map(edge).collect();
    match edges.as_slice() {
        [] => String::new(),
        edges => format!("  ← {}", edges.join(", ")),
    }
}

fn describe(request: &Request) -> String {
    let mut text = "request".to_owned();
    if let Some(history) = request.history_parent {
        text.push_str(&format!(" (continues {history})"));
    }
    if request.wait_after_ready > 0 {
        text.push_str(&format!(" after {} s", seconds(request.wait_after_ready)));
    }
    for message in &request.messages {
        text.push_str(&format!(" {}: {}", message.role.name(), content(message)));
    }
    if let Some(tokens) = request.output.target_tokens {
        let sign = if request.output.exact { "=" } else { "≤" };
        text.push_str(&format!(" → {sign}{tokens} tokens"));
    }
    for (name, value) in &request.labels {
        text.push_str(&format!(" {}={}", printable(name), printable(value)));
    }
    text
}

fn describe_tool(run: &ToolRun) -> String {
    let mut text = format!("tool {}", printable(&run.class));
    if let Some(time) = run.service_time {
        text.push_str(&format!(" {} s", seconds(time)));
    }
    if let Some(tokens) = run.result_tokens {
        text.push_str(&format!(" → {tokens} tokens"));
    }
    text
}

fn content(message: &Message) -> String {
    let segments = message.content.iter().map(|segment| match segment {
        Segment::Text(text) => excerpt(text),
        Segment::Synthetic { tokens, .. } => format!("[{tokens} tokens]"),
        Segment::Media { source, .. } => format!("[media {}]", excerpt(source)),
        Segment::TokenIds(ids) => format!("[{} token ids]", ids.len()),
        Segment::ToolResult(run) => format!("[result of {run}]"),
    });
    segments.collect::<Vec<_>>().join(" ")
}

/// Returns the first words of a text in quotes.
fn excerpt(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = printable(&line);
    if line.chars().count() <= EXCERPT {
        return format!("\"{line}\"");
    }
    let begin: String = line.chars().take(EXCERPT).collect();
    format!("\"{begin}…\"")
}

#[cfg(test)]
mod tests {
    use veeksha_model::{OutputSpec, Role, Session, SessionId};

    use super::*;
    use crate::play::play_planned;

    #[test]
    fn nodes_are_below_their_parents() {
        let request = |node, text: &str, parents| Request {
            node: NodeId(node),
            messages: vec![Message::new(Role::User, vec![Segment::Text(text.into())])],
            output: OutputSpec {
                target_tokens: Some(7),
                ..OutputSpec::default()
            },
            parents,
            ..Request::default()
        };
        let late = Edge {
            parent: NodeId(0),
            trigger: Trigger::FirstChunk,
            delay: 500_000_000,
        };
        let session: Session = vec![
            request(0, "Plan.", Vec::new()),
            request(1, "Search.", vec![NodeId(0).into()]),
            request(2, "Test.", vec![late]),
        ]
        .into();
        let drawing = session_graph(&play_planned(SessionId(4), session));
        assert_eq!(
            drawing,
            "session 4: 3 nodes\n\
             0 request user: \"Plan.\" → ≤7 tokens\n\
             \x20 1 request user: \"Search.\" → ≤7 tokens\n\
             \x20 2 request user: \"Test.\" → ≤7 tokens  ← 0 first chunk + 0.5 s"
        );
    }
}
