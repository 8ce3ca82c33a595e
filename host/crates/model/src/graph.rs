//! Validation of a session's request graph.

use std::collections::HashSet;

use crate::content::Segment;
use crate::edge::{Edge, Trigger};
use crate::headers::{HeaderError, check_headers};
use crate::ids::NodeId;
use crate::node_kind::{KnownNodes, NodeKind};
use crate::replay::HistoryMode;
use crate::session::{Message, Request, Role, Session, ToolRun};

/// Maximum number of nodes of one session.
pub const MAX_NODES: usize = 65_536;

/// Maximum number of synthetic tokens of one request, and of the result of a tool run: far above
/// any model's context, far below a machine's memory.
pub const MAX_SYNTHETIC_TOKENS: u32 = 1 << 24;

/// The reason for which a session's graph was refused. The message names the nodes, so that the
/// plugin's author finds the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Nothing to send.
    #[error("the session has no requests")]
    Empty,
    /// More nodes than a session may have, which an agent that never ends reaches.
    #[error("the session has {0} nodes; a session may have {MAX_NODES}")]
    TooManyNodes(usize),
    /// A node id occurs twice.
    #[error("node {0} is defined twice")]
    DuplicateNode(NodeId),
    /// A parent does not exist.
    #[error("node {node} names the parent {parent}, which the session does not have")]
    DanglingParent {
        /// The child.
        node: NodeId,
        /// The missing parent.
        parent: NodeId,
    },
    /// An event of a parent is listed twice.
    #[error("node {node} lists the parent {parent} twice with the same trigger")]
    DuplicateParent {
        /// The child.
        node: NodeId,
        /// The repeated parent.
        parent: NodeId,
    },
    /// The history parent is not a parent.
    #[error("node {node} continues the history of {parent}, which is not one of its parents")]
    HistoryNotParent {
        /// The child.
        node: NodeId,
        /// The node whose history it wants.
        parent: NodeId,
    },
    /// The history parent may still be in progress when the node is sent.
    #[error(
        "node {node} continues the history of {parent}, whose answer is not complete at `{}`; wait for \
         `completed`, or do not continue its history",
        .trigger.name()
    )]
    HistoryNotComplete {
        /// The child.
        node: NodeId,
        /// The node whose history it wants.
        parent: NodeId,
        /// The awaited event of that node.
        trigger: Trigger,
    },
    /// The history parent is a tool run.
    #[error(
        "node {node} continues the history of {parent}, which is a tool run; continue the request before it"
    )]
    HistoryOfToolRun {
        /// The child.
        node: NodeId,
        /// The tool run.
        parent: NodeId,
    },
    /// A message holds the result of something that is not a tool run.
    #[error("node {node} sends the result of {run}, which is not a tool run of the session")]
    NoToolRun {
        /// The request.
        node: NodeId,
        /// The named node.
        run: NodeId,
    },
    /// A message holds the result of a tool run that may not have ended.
    #[error("node {node} sends the result of the tool run {run}, which may not have ended; wait for its end")]
    ResultNotAwaited {
        /// The request.
        node: NodeId,
        /// The tool run.
        run: NodeId,
    },
    /// The result of a tool run that no prompt can contain.
    #[error("node {node} states a result of {tokens} tokens; a result may have {MAX_SYNTHETIC_TOKENS}")]
    ResultTooLong {
        /// The tool run.
        node: NodeId,
        /// The tokens of its result.
        tokens: u32,
    },
    /// A cancellation that can never take place.
    #[error("node {node}: its cancellation {why}")]
    Cancellation {
        /// The request.
        node: NodeId,
        /// The reason.
        why: &'static str,
    },
    /// A request is cancelled by its own end.
    #[error(
        "node {node}: its cancellation waits for its own end; use its `{}` or `{}`",
        Trigger::Dispatched.name(),
        Trigger::FirstChunk.name()
    )]
    CancelledByOwnEnd {
        /// The request.
        node: NodeId,
    },
    /// A cancellation names a node that does not exist.
    #[error("node {node} is cancelled by an event of {parent}, which the session does not have")]
    DanglingCancellation {
        /// The request.
        node: NodeId,
        /// The missing node.
        parent: NodeId,
    },
    /// A header of the session cannot be sent.
    #[error("{0}")]
    SessionHeader(HeaderError),
    /// Some nodes wait for one another.
    #[error("the nodes {} wait for one another", list(.0))]
    Cycle(Vec<NodeId>),
    /// A request without any message.
    #[error("node {0} has no messages")]
    NoMessages(NodeId),
    /// A header of a request cannot be sent.
    #[error("node {node}: {error}")]
    Header {
        /// The request.
        node: NodeId,
        /// The reason.
        error: HeaderError,
    },
    /// Calls or reasoning in a message that is not the assistant's.
    #[error("node {node}: message {number} (`{}`) has {what}, which only `assistant` may have", .role.name())]
    NotOfTheAssistant {
        /// The request.
        node: NodeId,
        /// The message's number in the request, from 1.
        number: usize,
        /// The message's role.
        role: Role,
        /// The misplaced part.
        what: &'static str,
    },
    /// Token ids together with something that cannot be sent with them.
    #[error("node {node} has token ids {why}")]
    TokenIds {
        /// The request.
        node: NodeId,
        /// The reason, and the remedy.
        why: &'static str,
    },
    /// Something other than text where only text can be sent.
    #[error("node {node}: {place} has {what}, which only the content of a message may have; use text")]
    NotText {
        /// The request.
        node: NodeId,
        /// The part of the request.
        place: String,
        /// The misplaced content.
        what: &'static str,
    },
    /// A message to the model without content.
    #[error("node {node}: message {number} (`{}`) is empty; give it text, or leave it out", .role.name())]
    EmptyMessage {
        /// The request.
        node: NodeId,
        /// The message's number in the request, from 1.
        number: usize,
        /// The message's role.
        role: Role,
    },
}

/// Returns the nodes whose ends these edges wait for.
fn ends(edges: &[Edge]) -> impl Iterator<Item = NodeId> + '_ {
    let ends = edges.iter().filter(|edge| edge.trigger == Trigger::Completed);
    ends.map(|edge| edge.parent)
}

fn list(nodes: &[NodeId]) -> String {
    nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ")
}

/// Checks a session, or a step of one: `session` has the new nodes, `known` are those that earlier
/// steps brought (empty for a planned session).
pub fn check_session(session: &Session, known: &KnownNodes) -> Result<(), GraphError> {
    if session.requests.is_empty() && session.tool_runs.is_empty() && known.is_empty() {
        return Err(GraphError::Empty);
    }
    let nodes = known.len() + session.requests.len() + session.tool_runs.len();
    if nodes > MAX_NODES {
        return Err(GraphError::TooManyNodes(nodes));
    }
    check_headers(&session.headers).map_err(GraphError::SessionHeader)?;
    let index = Index::of(session, known)?;
    for request in &session.requests {
        check_content(request)?;
        index.check_edges(request.node, &request.parents)?;
        index.check_history(request)?;
        index.check_results(request)?;
        index.check_cancellation(request)?;
    }
    for run in &session.tool_runs {
        index.check_edges(run.node, &run.parents)?;
        if let Some(tokens) = run.result_tokens.filter(|tokens| *tokens > MAX_SYNTHETIC_TOKENS) {
            let node = run.node;
            return Err(GraphError::ResultTooLong { node, tokens });
        }
    }
    index.check_acyclic()
}

/// The new nodes by position, requests first, and those of earlier steps. Generators number their
/// nodes in order, so a sorted list is cheaper to build and to search than a hash map: this runs
/// for every session before it is sent.
struct Index<'a> {
    requests: &'a [Request],
    tool_runs: &'a [ToolRun],
    known: &'a KnownNodes,
    positions: Vec<(NodeId, usize)>,
}

impl<'a> Index<'a> {
    fn of(session: &'a Session, known: &'a KnownNodes) -> Result<Self, GraphError> {
        let mut positions: Vec<_> = session.nodes().zip(0..).collect();
        if !positions.is_sorted() {
            positions.sort_unstable();
        }
        let twice = positions
            .windows(2)
            .find(|pair| pair[0].0 == pair[1].0)
            .map(|pair| pair[0].0);
        let again = || {
            positions
                .iter()
                .map(|(node, _)| *node)
                .find(|node| known.contains_key(node))
        };
        match twice.or_else(again) {
            Some(node) => Err(GraphError::DuplicateNode(node)),
            None => Ok(Index {
                requests: &session.requests,
                tool_runs: &session.tool_runs,
                known,
                positions,
            }),
        }
    }

    fn position(&self, node: NodeId) -> Option<usize> {
        // Most generators number their nodes from 0 without a gap; the list is sorted, so the entry
        // at index `node` is then the one.
        if let Some((_, position)) = self
            .positions
            .get(node.0 as usize)
            .filter(|entry| entry.0 == node)
        {
            return Some(*position);
        }
        let found = self
            .positions
            .binary_search_by_key(&node, |(node, _)| *node)
            .ok()?;
        Some(self.positions[found].1)
    }

    fn kind(&self, node: NodeId) -> Option<NodeKind> {
        match self.position(node) {
            Some(position) if position < self.requests.len() => Some(NodeKind::Request),
            Some(position) => {
                let run = position.checked_sub(self.requests.len());
                let run = run.and_then(|run| self.tool_runs.get(run));
                run.map(|run| NodeKind::ToolRun { key: run.key })
            }
            None => self.known.get(&node).copied(),
        }
    }

    /// The edges of the node at a position.
    fn parents(&self, position: usize) -> &'a [Edge] {
        match self.requests.get(position) {
            Some(request) => &request.parents,
            None => &self.tool_runs[position - self.requests.len()].parents,
        }
    }

    fn check_edges(&self, node: NodeId, parents: &[Edge]) -> Result<(), GraphError> {
        let mut seen = HashSet::new();
        for (i, edge) in parents.iter().enumerate() {
            let Edge { parent, trigger, .. } = *edge;
            if self.kind(parent).is_none() {
                return Err(GraphError::DanglingParent { node, parent });
            }
            let twice = if parents.len() <= FEW {
                let is_same = |edge: &Edge| (edge.parent, edge.trigger) == (parent, trigger);
                parents[..i].iter().any(is_same)
            } else {
                !seen.insert((parent, trigger))
            };
            if twice {
                return Err(GraphError::DuplicateParent { node, parent });
            }
        }
        Ok(())
    }

    fn check_history(&self, request: &Request) -> Result<(), GraphError> {
        let node = request.node;
        let Some(parent) = request.history_parent else {
            return Ok(());
        };
        let of_ids = |request: &Request| {
            let mut segments = request.messages.iter().flat_map(|message| &message.content);
            segments.any(|segment| matches!(segment, Segment::TokenIds(_)))
        };
        let continued = self
            .position(parent)
            .and_then(|position| self.requests.get(position));
        if request.history_mode() != HistoryMode::Fresh && continued.is_some_and(of_ids) {
            let why = "in the conversation that it continues; send the whole prompt as token ids, without `history`";
            return Err(GraphError::TokenIds { node, why });
        }
        let edges = request.parents.iter().filter(|edge| edge.parent == parent);
        // One edge to the end of the node is enough; it is the last trigger.
        match edges.map(|edge| edge.trigger).max() {
            None => Err(GraphError::HistoryNotParent { node, parent }),
            Some(_) if self.kind(parent) != Some(NodeKind::Request) => {
                Err(GraphError::HistoryOfToolRun { node, parent })
            }
            Some(Trigger::Completed) => Ok(()),
            Some(trigger) => Err(GraphError::HistoryNotComplete {
                node,
                parent,
                trigger,
            }),
        }
    }

    /// Checks the results of tool runs that a request sends.
    fn check_results(&self, request: &Request) -> Result<(), GraphError> {
        let node = request.node;
        // Nearly every request waits for its runs itself. The others need one walk, not one for
        // each result.
        let mut awaited = None;
        for segment in request.messages.iter().flat_map(|message| &message.content) {
            let Segment::ToolResult(run) = *segment else {
                continue;
            };
            match self.kind(run) {
                None | Some(NodeKind::Request) => return Err(GraphError::NoToolRun { node, run }),
                Some(NodeKind::EndedToolRun { .. }) => {}
                // The tokens of a run of an earlier step are not known before its end.
                Some(NodeKind::ToolRun { .. })
                    if self.position(run).is_some()
                        && (ends(&request.parents).any(|parent| parent == run)
                            || awaited
                                .get_or_insert_with(|| self.awaited(&request.parents))
                                .contains(&run)) => {}
                Some(NodeKind::ToolRun { .. }) => return Err(GraphError::ResultNotAwaited { node, run }),
            }
        }
        Ok(())
    }

    /// Returns the nodes whose ends these edges, or those of the nodes that they wait for, wait
    /// for.
    fn awaited(&self, parents: &'a [Edge]) -> HashSet<NodeId> {
        let (mut open, mut seen) = (vec![parents], HashSet::new());
        let mut awaited = HashSet::new();
        while let Some(parents) = open.pop() {
            awaited.extend(ends(parents));
            for edge in parents {
                if let Some(position) = self.position(edge.parent)
                    && seen.insert(position)
                {
                    open.push(self.parents(position));
                }
            }
        }
        awaited
    }

    fn check_cancellation(&self, request: &Request) -> Result<(), GraphError> {
        let node = request.node;
        let Some(cancellation) = &request.cancellation else {
            return Ok(());
        };
        let why = match (cancellation.when.as_slice(), cancellation.after_chunks) {
            ([], None) => Some("has no event; leave it out, or name one"),
            (_, Some(0)) => Some("is after 0 chunks; use its own dispatch to cancel it at once"),
            _ => None,
        };
        if let Some(why) = why {
            return Err(GraphError::Cancellation { node, why });
        }
        let is_own_end = |edge: &Edge| edge.parent == node && edge.trigger == Trigger::Completed;
        if cancellation.when.iter().any(is_own_end) {
            return Err(GraphError::CancelledByOwnEnd { node });
        }
        let missing = |edge: &&Edge| self.kind(edge.parent).is_none();
        match cancellation.when.iter().find(missing) {
            Some(edge) => Err(GraphError::DanglingCancellation {
                node,
                parent: edge.parent,
            }),
            None => Ok(()),
        }
    }

    /// A graph whose parents all precede their children has no cycle. Otherwise Kahn's algorithm: a
    /// node that is never released is on, or behind, a cycle.
    fn check_acyclic(&self) -> Result<(), GraphError> {
        let count = self.positions.len();
        let parents = |position| {
            let edges = self.parents(position).iter();
            edges.filter_map(|edge| self.position(edge.parent))
        };
        if (0..count).all(|position| parents(position).all(|parent| parent < position)) {
            return Ok(());
        }
        let mut waiting = vec![0usize; count];
        let mut children = vec![Vec::new(); count];
        for (child, left) in waiting.iter_mut().enumerate() {
            for parent in parents(child) {
                *left += 1;
                children[parent].push(child);
            }
        }
        let mut free: Vec<usize> = (0..count).filter(|&i| waiting[i] == 0).collect();
        let mut released = 0;
        while let Some(node) = free.pop() {
            released += 1;
            for &child in &children[node] {
                waiting[child] -= 1;
                if waiting[child] == 0 {
                    free.push(child);
                }
            }
        }
        if released == count {
            return Ok(());
        }
        let stuck = self
            .positions
            .iter()
            .filter(|(_, position)| waiting[*position] > 0);
        Err(GraphError::Cycle(stuck.map(|(node, _)| *node).take(8).collect()))
    }
}

/// Refuses messages that no API takes: a system or user message without text and media, calls and
/// reasoning of another role than the assistant, reasoning alone, a prompt that mixes token ids
/// with something else. The result of a tool and a repeated answer may be empty, and a request with
/// a body may have its messages there.
fn check_messages(request: &Request) -> Result<(), GraphError> {
    let node = request.node;
    for (number, message) in (1..).zip(&request.messages) {
        let empty = message.content.iter().all(Segment::is_empty);
        let role = message.role;
        if role != Role::Assistant {
            for (found, what) in [
                (!message.tool_calls.is_empty(), "tool calls"),
                (message.reasoning.is_some(), "reasoning"),
            ] {
                if found {
                    return Err(GraphError::NotOfTheAssistant {
                        node,
                        number,
                        role,
                        what,
                    });
                }
            }
        }
        let alone = empty && message.tool_calls.is_empty() && message.reasoning.is_some();
        let refused = empty && matches!(role, Role::System | Role::User);
        if alone || (refused && request.body.is_none()) {
            return Err(GraphError::EmptyMessage { node, number, role });
        }
    }
    check_token_ids(request)
}

/// A prompt of token ids is sent as it is, so nothing can come before, between or after them.
fn check_token_ids(request: &Request) -> Result<(), GraphError> {
    let is_ids = |segment: &Segment| matches!(segment, Segment::TokenIds(_));
    let segments = || request.messages.iter().flat_map(|message| &message.content);
    if !segments().any(is_ids) {
        return Ok(());
    }
    let plain = |message: &Message| {
        message.role == Role::User && message.reasoning.is_none() && message.tool_calls.is_empty()
    };
    let why = if !segments().all(is_ids) {
        "with other content; send the whole prompt as token ids, or as text"
    } else if !request.messages.iter().all(plain) {
        "in a message of another role than `user`"
    } else if request.history_parent.is_some() && request.history_mode() != HistoryMode::Fresh {
        "after a history; send the whole prompt as token ids, without `history`"
    } else {
        return Ok(());
    };
    Err(GraphError::TokenIds {
        node: request.node,
        why,
    })
}

/// Parents beyond which a set is quicker than looking through the list.
const FEW: usize = 16;

fn check_content(request: &Request) -> Result<(), GraphError> {
    let node = request.node;
    if request.messages.is_empty() {
        return Err(GraphError::NoMessages(node));
    }
    check_messages(request)?;
    if let Some((place, what)) = misplaced_content(request) {
        return Err(GraphError::NotText { node, place, what });
    }
    check_headers(&request.headers).map_err(|error| GraphError::Header { node, error })
}

/// Returns the first part that has only text and contains something else, and what that is:
/// reasoning, and a recorded answer.
fn misplaced_content(request: &Request) -> Option<(String, &'static str)> {
    let of = |content: &[Segment]| content.iter().find_map(Segment::other_than_text);
    for (number, message) in (1..).zip(&request.messages) {
        if let Some(what) = message.reasoning.as_ref().and_then(|part| of(&part.content)) {
            return Some((format!("the reasoning of message {number}"), what));
        }
    }
    let answer = request.replay.as_ref()?.answer.as_ref()?;
    let reasoning = answer.reasoning.as_ref().and_then(|part| of(&part.content));
    let reasoning = reasoning.map(|what| ("the reasoning of the recorded answer".to_owned(), what));
    reasoning.or_else(|| Some(("the recorded answer".to_owned(), of(&answer.content)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{MediaKind, ReasoningContent};
    use crate::replay::{RecordedAnswer, Replay};
    use crate::session::Cancellation;

    fn request(node: u32, parents: &[u32], history: Option<u32>) -> Request {
        Request {
            node: NodeId(node),
            parents: parents.iter().map(|parent| NodeId(*parent).into()).collect(),
            history_parent: history.map(NodeId),
            messages: vec![Message::new(Role::User, vec![Segment::Text("hello".into())])],
            ..Request::default()
        }
    }

    fn check(requests: &[Request]) -> Result<(), GraphError> {
        check_session(&Session::from(requests.to_vec()), &KnownNodes::new())
    }

    /// Run 1 waits for request 0; request 2 waits for run 1, and request 3 for request 2.
    fn with_tool_run(result_tokens: Option<u32>, result_in: usize) -> Result<(), GraphError> {
        let mut requests = [
            request(0, &[], None),
            request(2, &[1], None),
            request(3, &[2], None),
        ];
        requests[result_in].messages[0]
            .content
            .push(Segment::ToolResult(NodeId(1)));
        let mut session = Session::from(requests.to_vec());
        session.tool_runs.push(ToolRun {
            node: NodeId(1),
            parents: vec![NodeId(0).into()],
            class: "search".into(),
            result_tokens,
            ..ToolRun::default()
        });
        check_session(&session, &KnownNodes::new())
    }

    #[test]
    fn result_of_a_tool_run_must_be_awaited() {
        assert_eq!(with_tool_run(None, 1), Ok(()), "directly");
        assert_eq!(with_tool_run(None, 2), Ok(()), "by its parent");
        let (node, run) = (NodeId(0), NodeId(1));
        assert_eq!(
            with_tool_run(None, 0),
            Err(GraphError::ResultNotAwaited { node, run })
        );
    }

    #[test]
    fn result_of_a_tool_run_is_bounded() {
        assert_eq!(with_tool_run(Some(MAX_SYNTHETIC_TOKENS), 1), Ok(()));
        let (node, tokens) = (NodeId(1), MAX_SYNTHETIC_TOKENS + 1);
        let refused = with_tool_run(Some(tokens), 1);
        assert_eq!(refused, Err(GraphError::ResultTooLong { node, tokens }));
    }

    #[test]
    fn refuses_other_content_than_text_in_reasoning_and_recorded_answers() {
        let text = Segment::Text("x".into());
        let reasoning = |content: &Segment| {
            Some(ReasoningContent {
                content: vec![text.clone(), content.clone()],
                signature: None,
            })
        };
        let answer = |answer: RecordedAnswer| {
            let mut request = request(0, &[], None);
            request.replay = Some(Box::new(Replay {
                answer: Some(answer),
                ..Replay::default()
            }));
            request
        };
        let image = Segment::Media {
            kind: MediaKind::Image,
            source: "a.png".into(),
        };
        for (content, what) in [
            (Segment::ToolResult(NodeId(0)), "the result of a tool run"),
            (Segment::TokenIds(vec![1]), "token ids"),
            (image, "media"),
        ] {
            let mut message = Message::new(Role::Assistant, vec![text.clone()]);
            message.reasoning = reasoning(&content);
            let mut stated = request(0, &[], None);
            stated.messages.push(message);
            for (request, place) in [
                (stated, "the reasoning of message 2"),
                (
                    answer(RecordedAnswer {
                        content: vec![text.clone(), content.clone()],
                        ..RecordedAnswer::default()
                    }),
                    "the recorded answer",
                ),
                (
                    answer(RecordedAnswer {
                        reasoning: reasoning(&content),
                        ..RecordedAnswer::default()
                    }),
                    "the reasoning of the recorded answer",
                ),
            ] {
                let error = check(&[request]).unwrap_err().to_string();
                let expected = format!(
                    "node 0: {place} has {what}, which only the content of a message may have; use text"
                );
                assert_eq!(error, expected);
            }
        }
        let accepted = answer(RecordedAnswer {
            content: vec![text.clone()],
            reasoning: reasoning(&text),
            ..RecordedAnswer::default()
        });
        assert_eq!(check(&[accepted]), Ok(()));
    }

    #[test]
    fn nodes_of_all_steps_are_bounded() {
        let known: KnownNodes = (1..MAX_NODES as u32)
            .map(|node| (NodeId(node), NodeKind::Request))
            .collect();
        let step = |nodes: &[u32]| {
            let requests: Vec<_> = nodes.iter().map(|node| request(*node, &[], None)).collect();
            check_session(&Session::from(requests), &known)
        };
        assert_eq!(step(&[0]), Ok(()));
        assert_eq!(step(&[0, 65_536]), Err(GraphError::TooManyNodes(65_537)));
    }

    #[test]
    fn a_node_may_wait_for_several_events_of_a_parent() {
        let mut child = request(1, &[0], Some(0));
        child.parents.insert(
            0,
            Edge {
                parent: NodeId(0),
                trigger: Trigger::Dispatched,
                delay: 5,
            },
        );
        assert_eq!(check(&[request(0, &[], None), child]), Ok(()));
    }

    #[test]
    fn accepts_diamond_graph() {
        let graph = [
            request(0, &[], None),
            request(1, &[0], Some(0)),
            request(2, &[0], None),
            request(3, &[1, 2], Some(2)),
        ];
        assert_eq!(check(&graph), Ok(()));
    }

    #[test]
    fn reports_every_graph_defect() {
        let cases: [(&[Request], GraphError); 6] = [
            (&[], GraphError::Empty),
            (
                &[request(1, &[], None), request(1, &[], None)],
                GraphError::DuplicateNode(NodeId(1)),
            ),
            (
                &[request(0, &[9], None)],
                GraphError::DanglingParent {
                    node: NodeId(0),
                    parent: NodeId(9),
                },
            ),
            (
                &[request(0, &[], None), request(1, &[0, 0], None)],
                GraphError::DuplicateParent {
                    node: NodeId(1),
                    parent: NodeId(0),
                },
            ),
            (
                &[
                    request(0, &[], None),
                    request(1, &[], None),
                    request(2, &[1], Some(0)),
                ],
                GraphError::HistoryNotParent {
                    node: NodeId(2),
                    parent: NodeId(0),
                },
            ),
            (
                &[
                    request(0, &[], None),
                    request(1, &[2], None),
                    request(2, &[1], None),
                ],
                GraphError::Cycle(vec![NodeId(1), NodeId(2)]),
            ),
        ];
        for (graph, expected) in cases {
            assert_eq!(check(graph), Err(expected));
        }
    }

    #[test]
    fn history_parent_must_be_complete() {
        for trigger in Trigger::ALL {
            let mut child = request(1, &[0], Some(0));
            child.parents[0].trigger = trigger;
            let refused = GraphError::HistoryNotComplete {
                node: NodeId(1),
                parent: NodeId(0),
                trigger,
            };
            let expected = if trigger == Trigger::Completed {
                Ok(())
            } else {
                Err(refused)
            };
            assert_eq!(check(&[request(0, &[], None), child.clone()]), expected);
            child.history_parent = None;
            assert_eq!(check(&[request(0, &[], None), child]), Ok(()));
        }
    }

    #[test]
    fn refuses_empty_messages_to_the_model() {
        let message = |role, content: &[Segment]| Message::new(role, content.to_vec());
        let check_message = |message: Message, body: Option<&str>| {
            check(&[Request {
                messages: vec![message],
                body: body.map(str::to_owned),
                ..request(3, &[], None)
            }])
        };
        let empty_text = Segment::Text(String::new());
        let no_tokens = Segment::Synthetic {
            seed: crate::Seed { high: 0, low: 1 },
            tokens: 0,
        };
        for role in [Role::System, Role::User] {
            for content in [&[][..], &[empty_text.clone(), no_tokens.clone()]] {
                let number = 1;
                let refused = GraphError::EmptyMessage {
                    node: NodeId(3),
                    number,
                    role,
                };
                assert_eq!(check_message(message(role, content), None), Err(refused));
                assert_eq!(check_message(message(role, content), Some("{}")), Ok(()));
            }
        }
        let content = [empty_text.clone(), Segment::Text("x".into())];
        assert_eq!(check_message(message(Role::User, &content), None), Ok(()));
        assert_eq!(
            check_message(message(Role::Tool, &[empty_text]), None),
            Ok(()),
            "a tool may return nothing"
        );
    }

    /// The message names events of which there are some by these names.
    #[test]
    fn refuses_a_cancellation_at_the_own_end() {
        let refused = |trigger| {
            let own = Edge {
                trigger,
                ..NodeId(3).into()
            };
            check(&[Request {
                cancellation: Some(Box::new(Cancellation {
                    when: vec![own],
                    ..Cancellation::default()
                })),
                ..request(3, &[], None)
            }])
        };
        let error = refused(Trigger::Completed).expect_err("it ends before");
        assert_eq!(error, GraphError::CancelledByOwnEnd { node: NodeId(3) });
        let message = error.to_string();
        let recommended = message.split('`').skip(1).step_by(2).map(Trigger::named);
        let recommended: Vec<_> = recommended.collect();
        assert_eq!(
            recommended,
            [Some(Trigger::Dispatched), Some(Trigger::FirstChunk)],
            "{message}"
        );
        for trigger in [Trigger::Dispatched, Trigger::FirstChunk] {
            assert_eq!(refused(trigger), Ok(()));
        }
    }

    #[test]
    fn later_step_may_reference_but_not_redefine_nodes() {
        let known = KnownNodes::from([(NodeId(0), NodeKind::Request)]);
        assert_eq!(
            check_session(&Session::from(vec![request(1, &[0], Some(0))]), &known),
            Ok(())
        );
        assert_eq!(
            check_session(&Session::from(vec![request(0, &[], None)]), &known),
            Err(GraphError::DuplicateNode(NodeId(0)))
        );
        assert_eq!(check_session(&Session::from(vec![]), &known), Ok(()));
    }

    #[test]
    fn accepts_any_node_order_and_checks_many_parents() {
        let graph = [
            request(5, &[2, 9], Some(9)),
            request(9, &[2], None),
            request(2, &[], None),
        ];
        assert_eq!(check(&graph), Ok(()));
        let mut wide: Vec<Request> = (0..40).map(|node| request(node, &[], None)).collect();
        let parents: Vec<u32> = (0..40).collect();
        wide.push(request(40, &parents, Some(39)));
        assert_eq!(check(&wide), Ok(()));
        wide[40].parents.push(NodeId(7).into());
        assert_eq!(
            check(&wide),
            Err(GraphError::DuplicateParent {
                node: NodeId(40),
                parent: NodeId(7)
            })
        );
        assert_eq!(
            check(&[request(3, &[3], None)]),
            Err(GraphError::Cycle(vec![NodeId(3)]))
        );
    }
}
