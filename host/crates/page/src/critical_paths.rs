//! The critical paths of the sessions on a page.

use std::collections::HashMap;

use serde::Serialize;
use veeksha_definitions::{GraphRequest, PathPart, RequestPhases, SessionGraph};

use crate::request::{PageRequest, RequestList};

/// The critical path of a session. Times are in microseconds.
#[derive(Serialize)]
pub(crate) struct PathOfSession {
    /// The nodes on the path in the order of time, each with the number of the event for which the
    /// next one waited, in the order of `Trigger::ALL`.
    steps: Vec<(u32, u8)>,
    /// The name and the time of each part.
    parts: Vec<(&'static str, u64)>,
}

/// Returns the paths of the sessions of several requests that ended and of which every request is
/// on the page.
pub(crate) fn critical_paths(list: &RequestList) -> HashMap<u64, PathOfSession> {
    let mut rows: HashMap<u64, Vec<&PageRequest>> = HashMap::new();
    for row in &list.rows {
        rows.entry(row.id.session.0).or_default().push(row);
    }
    let sessions = list.sessions.iter();
    let ended = sessions.filter(|session| session.end.is_some() && session.requests > 1);
    let paths = ended.filter_map(|session| {
        let rows = rows.get_mut(&session.session)?;
        let complete = rows.len() == session.requests as usize;
        Some((session.session, path(rows).filter(|_| complete)?))
    });
    paths.collect()
}

fn path(rows: &mut [&PageRequest]) -> Option<PathOfSession> {
    rows.sort_by_key(|row| row.id.node);
    let requests: Vec<GraphRequest> = rows.iter().map(|row| request(row)).collect();
    let path = SessionGraph::of(&requests)?.critical_path();
    let steps = path.steps.iter();
    Some(PathOfSession {
        steps: steps
            .map(|step| (requests[step.place].node.0, step.event as u8))
            .collect(),
        parts: PathPart::ALL
            .map(|part| (part.name(), path.times.of(part) / 1000))
            .to_vec(),
    })
}

fn request(row: &PageRequest) -> GraphRequest<'_> {
    GraphRequest {
        node: row.id.node,
        phases: RequestPhases::new(
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
