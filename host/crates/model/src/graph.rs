//! Validation of a session's request graph.

use std::collections::HashSet;

use crate::content::Segment;
use crate::edge::{Edge, Trigger};
use crate::headers::{HeaderError, check_headers};
use crate::ids::NodeId;
use crate::session::{Message, Request, Role};

/// The reason for which a session's graph was refused. The message names the nodes, so that the
/// plugin's author finds the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Nothing to send.
    #[error("the session has no requests")]
    Empty,
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
    /// A parent is listed twice.
    #[error("node {node} lists the parent {parent} twice")]
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

fn list(nodes: &[NodeId]) -> String {
    nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ")
}

/// Checks a step of a session: `requests` are new, `known` are the nodes that earlier steps brought
/// (empty for a planned session).
pub fn check_session(requests: &[Request], known: &HashSet<NodeId>) -> Result<(), GraphError> {
    if requests.is_empty() && known.is_empty() {
        return Err(GraphError::Empty);
    }
    let index = Index::of(requests, known)?;
    for request in requests {
        check_edges(request, |parent| {
            known.contains(&parent) || index.position(parent).is_some()
        })?;
    }
    check_acyclic(requests, &index)
}

/// Positions of the new nodes. Generators number their nodes in order, so a sorted list is cheaper
/// to build and to search than a hash map: this runs for every session before it is sent.
struct Index(Vec<(NodeId, usize)>);

impl Index {
    fn of(requests: &[Request], known: &HashSet<NodeId>) -> Result<Self, GraphError> {
        let mut nodes: Vec<_> = requests
            .iter()
            .enumerate()
            .map(|(i, request)| (request.node, i))
            .collect();
        if !nodes.is_sorted() {
            nodes.sort_unstable();
        }
        let twice = nodes
            .windows(2)
            .find(|pair| pair[0].0 == pair[1].0)
            .map(|pair| pair[0].0);
        let again = || {
            nodes
                .iter()
                .map(|(node, _)| *node)
                .find(|node| known.contains(node))
        };
        match twice.or_else(again) {
            Some(node) => Err(GraphError::DuplicateNode(node)),
            None => Ok(Index(nodes)),
        }
    }

    fn position(&self, node: NodeId) -> Option<usize> {
        let found = self.0.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        Some(self.0[found].1)
    }
}

/// Refuses a system or user message without text and media. The result of a tool and a repeated
/// answer may be empty, and a request with a body may have its messages there.
fn check_messages(request: &Request) -> Result<(), GraphError> {
    if request.body.is_some() {
        return Ok(());
    }
    let is_empty = |message: &Message| {
        matches!(message.role, Role::System | Role::User) && message.content.iter().all(Segment::is_empty)
    };
    match (1..)
        .zip(&request.messages)
        .find(|(_, message)| is_empty(message))
    {
        Some((number, message)) => Err(GraphError::EmptyMessage {
            node: request.node,
            number,
            role: message.role,
        }),
        None => Ok(()),
    }
}

/// Parents beyond which a set is quicker than looking through the list.
const FEW: usize = 16;

fn check_edges(request: &Request, exists: impl Fn(NodeId) -> bool) -> Result<(), GraphError> {
    let node = request.node;
    if request.messages.is_empty() {
        return Err(GraphError::NoMessages(node));
    }
    check_messages(request)?;
    check_headers(&request.headers).map_err(|error| GraphError::Header { node, error })?;
    let parents = &request.parents;
    let mut seen = HashSet::new();
    for (i, &Edge { parent, .. }) in parents.iter().enumerate() {
        if !exists(parent) {
            return Err(GraphError::DanglingParent { node, parent });
        }
        let twice = if parents.len() <= FEW {
            parents[..i].iter().any(|edge| edge.parent == parent)
        } else {
            !seen.insert(parent)
        };
        if twice {
            return Err(GraphError::DuplicateParent { node, parent });
        }
    }
    let Some(parent) = request.history_parent else {
        return Ok(());
    };
    match parents
        .iter()
        .find(|edge| edge.parent == parent)
        .map(|edge| edge.trigger)
    {
        None => Err(GraphError::HistoryNotParent { node, parent }),
        Some(Trigger::Completed) => Ok(()),
        Some(trigger) => Err(GraphError::HistoryNotComplete {
            node,
            parent,
            trigger,
        }),
    }
}

/// A graph whose parents all precede their children has no cycle. Otherwise Kahn's algorithm: a
/// node that is never released is on, or behind, a cycle.
fn check_acyclic(requests: &[Request], index: &Index) -> Result<(), GraphError> {
    let parents = |request: &Request| {
        request
            .parents
            .iter()
            .filter_map(|edge| index.position(edge.parent))
            .max()
    };
    if requests
        .iter()
        .enumerate()
        .all(|(i, request)| parents(request).is_none_or(|parent| parent < i))
    {
        return Ok(());
    }
    let mut waiting = vec![0usize; requests.len()];
    let mut children = vec![Vec::new(); requests.len()];
    for (child, request) in requests.iter().enumerate() {
        for parent in request
            .parents
            .iter()
            .filter_map(|edge| index.position(edge.parent))
        {
            waiting[child] += 1;
            children[parent].push(child);
        }
    }
    let mut free: Vec<usize> = (0..requests.len()).filter(|&i| waiting[i] == 0).collect();
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
    if released == requests.len() {
        return Ok(());
    }
    let stuck = requests.iter().zip(&waiting).filter(|(_, left)| **left > 0);
    Err(GraphError::Cycle(
        stuck.map(|(request, _)| request.node).take(8).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(node: u32, parents: &[u32], history: Option<u32>) -> Request {
        Request {
            node: NodeId(node),
            parents: parents.iter().map(|parent| NodeId(*parent).into()).collect(),
            history_parent: history.map(NodeId),
            messages: vec![Message {
                role: Role::User,
                content: vec![Segment::Text("hello".into())],
                tool_call_id: None,
            }],
            ..Request::default()
        }
    }

    fn check(requests: &[Request]) -> Result<(), GraphError> {
        check_session(requests, &HashSet::new())
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
        let message = |role, content: &[Segment]| Message {
            role,
            content: content.to_vec(),
            tool_call_id: None,
        };
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

    #[test]
    fn later_step_may_reference_but_not_redefine_nodes() {
        let known = HashSet::from([NodeId(0)]);
        assert_eq!(check_session(&[request(1, &[0], Some(0))], &known), Ok(()));
        assert_eq!(
            check_session(&[request(0, &[], None)], &known),
            Err(GraphError::DuplicateNode(NodeId(0)))
        );
        assert_eq!(check_session(&[], &known), Ok(()));
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
