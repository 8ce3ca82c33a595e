//! The critical paths of the sessions on a page.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use veeksha_definitions::{GraphNode, NodePhases, PathPart, SessionGraph};
use veeksha_events::NeverSentReason;
use veeksha_model::NodeId;

use crate::request::{PageRequest, PageToolRun, RequestList};

/// The critical path of a session. Times are in microseconds.
#[derive(Serialize)]
pub(crate) struct PathOfSession {
    /// The nodes on the path in the order of time, each with the number of the event for which the
    /// next one waited, in the order of `Trigger::ALL`.
    steps: Vec<(u32, u8)>,
    /// The name and the time of each part.
    parts: Vec<(&'static str, u64)>,
}

/// Returns the paths of the sessions of several nodes that ended and of which every node is on the
/// page.
pub(crate) fn critical_paths(list: &RequestList) -> HashMap<u64, PathOfSession> {
    let mut nodes: HashMap<u64, Vec<GraphNode>> = HashMap::new();
    for row in &list.rows {
        nodes.entry(row.id.session.0).or_default().push(request(row));
    }
    for run in &list.tool_runs {
        nodes.entry(run.id.session.0).or_default().push(tool_run(run));
    }
    let mut unsent: HashMap<u64, Vec<GraphNode>> = HashMap::new();
    for node in &list.never_sent {
        if node.reason == NeverSentReason::CancelledByClient {
            unsent.entry(node.id.session.0).or_default().push(GraphNode {
                node: node.id.node,
                phases: NodePhases::of_unsent(node.at),
                wait: 0,
                edges: &[],
            });
        }
    }
    let sessions = list.sessions.iter();
    let paths = sessions.filter_map(|session| {
        let nodes = nodes.get_mut(&session.session)?;
        let all = session.requests as usize + session.tool_runs as usize;
        let unsent = unsent.remove(&session.session).unwrap_or_default();
        let is_known = session.end.is_some() && all > 1 && nodes.len() + unsent.len() == all;
        Some((session.session, path(nodes, unsent).filter(|_| is_known)?))
    });
    paths.collect()
}

/// Returns the path through the nodes and those of `unsent` for which another one waited. The
/// latter take no time and are not steps.
fn path<'a>(nodes: &mut Vec<GraphNode<'a>>, mut unsent: Vec<GraphNode<'a>>) -> Option<PathOfSession> {
    let sent: HashSet<NodeId> = nodes.iter().map(|node| node.node).collect();
    let edges = nodes.iter().flat_map(|node| node.edges);
    let awaited: HashSet<NodeId> = edges.map(|edge| edge.parent).collect();
    unsent.retain(|node| awaited.contains(&node.node));
    nodes.append(&mut unsent);
    nodes.sort_by_key(|node| node.node);
    let path = SessionGraph::of(nodes)?.critical_path();
    let steps = path.steps.iter();
    Some(PathOfSession {
        steps: steps
            .filter(|step| sent.contains(&nodes[step.place].node))
            .map(|step| (nodes[step.place].node.0, step.event as u8))
            .collect(),
        parts: PathPart::ALL
            .map(|part| (part.name(), path.times.of(part) / 1000))
            .to_vec(),
    })
}

fn tool_run(run: &PageToolRun) -> GraphNode<'_> {
    GraphNode {
        node: run.id.node,
        phases: NodePhases::of_tool_run(&run.times),
        wait: 0,
        edges: &run.parents,
    }
}

fn request(row: &PageRequest) -> GraphNode<'_> {
    GraphNode {
        node: row.id.node,
        phases: NodePhases::new(
            row.intended,
            row.dispatched,
            row.sent,
            row.first_chunk,
            row.completed,
        ),
        wait: row.wait_after_ready,
        edges: &row.parents,
    }
}
