//! Sessions assembled from their requests and tool runs: longest paths, waits, and estimated
//! duration without queueing.

use std::collections::HashSet;

use veeksha_definitions::{GraphNode, Metric, NodePhases, SessionGraph, seconds_between};
use veeksha_events::SessionEnd;
use veeksha_model::{Edge, EventInstants, Nanos, NodeId, SessionId, Trigger, seconds};

use crate::cache_accounting::ClassifiedPrompts;
use crate::label_sets::LabelSet;
use crate::requests::RequestTable;
use crate::row::{End, RequestRow};
use crate::sessions::{Known, PathTimes, SessionRow, Sessions};
use crate::tool_runs::ToolRow;
use crate::what_if::{Counterfactual, WhatIf};

/// The sessions derived from requests and session ends.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SessionTable {
    /// By `intended`.
    pub(crate) sessions: Vec<SessionRow>,
    /// The first intended instant and the labels of each session that a failure cut short, which
    /// has no statistics.
    pub(crate) withdrawn: Vec<(Nanos, LabelSet)>,
    /// Think times of the measured requests that have parents, all of them known.
    pub(crate) think_times: Vec<ThinkTime>,
    /// The makespans that the sessions would have had.
    pub(crate) counterfactuals: Vec<Counterfactual>,
}

/// The time that a session waited before a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ThinkTime {
    pub(crate) intended: Nanos,
    pub(crate) row: u32,
    pub(crate) seconds: f64,
}

/// Assembles the sessions; requests and sessions must be sorted.
pub(crate) fn table(requests: &mut RequestTable, sessions: &Sessions, what_if: Vec<WhatIf>) -> SessionTable {
    let shortest = ShortestFirst::of(&requests.rows);
    let mut table = SessionTable {
        sessions: Vec::with_capacity(sessions.ends.len()),
        withdrawn: Vec::new(),
        think_times: Vec::new(),
        counterfactuals: what_if.into_iter().map(Counterfactual::new).collect(),
    };
    let mut begin = 0;
    while begin < requests.rows.len() {
        let session = requests.rows[begin].id.session;
        let length = requests.rows[begin..].partition_point(|row| row.id.session == session);
        let end = begin + length;
        let graph = Graph::of(requests, begin, end);
        table.think_times.extend(graph.think_times());
        let ended = sessions.end(session).map(|(_, end)| end);
        let tried = ended.filter(|end| *end != SessionEnd::Incomplete);
        if let Some(ended) = tried
            && graph.is_measured()
        {
            let mut row = graph.row(&shortest);
            let sets: Vec<LabelSet> = graph.rows.iter().map(|row| row.labels).collect();
            let timed = graph.timed;
            row.labels = requests.labels.common(sets);
            match ended {
                SessionEnd::Cancelled => table.withdrawn.push((row.intended, row.labels)),
                _ => {
                    table.sessions.push(row);
                    for counterfactual in &mut table.counterfactuals {
                        timed.iter().for_each(|timed| counterfactual.add(timed));
                    }
                }
            }
        }
        begin = end;
    }
    table.sessions.sort_by_key(|row| (row.intended, row.session));
    table.think_times.sort_by_key(|time| (time.intended, time.row));
    table
}

/// A node of a session, with its row.
#[derive(Clone, Copy)]
enum SessionMember<'a> {
    /// A request, with its index among all rows.
    Request(u32, &'a RequestRow),
    ToolRun(&'a ToolRow),
    /// A node that was cancelled before it was sent, and its end.
    Unsent(NodeId, Nanos),
}

impl SessionMember<'_> {
    fn id(&self) -> NodeId {
        match self {
            SessionMember::Request(_, row) => row.id.node,
            SessionMember::ToolRun(row) => row.id.node,
            SessionMember::Unsent(node, _) => *node,
        }
    }

    fn phases(&self) -> NodePhases {
        match self {
            SessionMember::Request(_, row) => NodePhases::of(&row.observed, row.completed),
            SessionMember::ToolRun(row) => NodePhases::of_tool_run(&row.times),
            SessionMember::Unsent(_, at) => NodePhases::of_unsent(*at),
        }
    }

    fn wait(&self) -> Nanos {
        match self {
            SessionMember::Request(_, row) => row.wait_after_ready,
            SessionMember::ToolRun(_) | SessionMember::Unsent(..) => 0,
        }
    }

    fn parents(&self) -> (u32, u32) {
        match self {
            SessionMember::Request(_, row) => row.parents,
            SessionMember::ToolRun(row) => row.parents,
            SessionMember::Unsent(..) => (0, 0),
        }
    }

    /// Returns its scheduled instant, or that of the call of a tool.
    fn intended(&self) -> Nanos {
        match self {
            SessionMember::Request(_, row) => row.observed.intended,
            SessionMember::ToolRun(row) => row.times.ready,
            SessionMember::Unsent(_, at) => *at,
        }
    }

    fn events(&self) -> EventInstants {
        match self {
            SessionMember::Request(_, row) => row.events(),
            SessionMember::ToolRun(_) | SessionMember::Unsent(..) => self.phases().events(),
        }
    }

    fn called_tool(&self) -> bool {
        matches!(self, SessionMember::Request(_, row) if row.called_tool)
    }
}

/// Returns the nodes that were cancelled before they were sent and for which another one waited.
/// Others change nothing, and a session does not end with them.
fn awaited_unsent<'a>(
    requests: &'a RequestTable,
    session: SessionId,
    nodes: &[SessionMember<'a>],
) -> Vec<SessionMember<'a>> {
    let unsent = requests.unsent_of(session);
    if unsent.is_empty() {
        return Vec::new();
    }
    let edges = nodes.iter().flat_map(|node| requests.parents(node.parents()));
    let awaited: HashSet<NodeId> = edges.map(|edge| edge.parent).collect();
    let unsent = unsent.iter().filter(|(id, _)| awaited.contains(&id.node));
    unsent
        .map(|(id, at)| SessionMember::Unsent(id.node, *at))
        .collect()
}

/// The nodes of one session, with their edges as indices.
struct Graph<'a> {
    rows: &'a [RequestRow],
    tool_runs: &'a [ToolRow],
    /// Both, in the order of their ids.
    nodes: Vec<SessionMember<'a>>,
    /// For each node, its edges with the indices of its parents; `None` if the record lacks one.
    parents: Vec<Option<Vec<(usize, Edge)>>>,
    /// `None` if the record lacks a parent, or its edges form a cycle.
    timed: Option<SessionGraph>,
}

impl<'a> Graph<'a> {
    fn of(requests: &'a RequestTable, begin: usize, end: usize) -> Self {
        let rows = &requests.rows[begin..end];
        let tool_runs = requests.tool_runs_of(rows[0].id.session);
        let mut nodes: Vec<SessionMember> = (begin as u32..)
            .zip(rows)
            .map(|(place, row)| SessionMember::Request(place, row))
            .chain(tool_runs.iter().map(SessionMember::ToolRun))
            .collect();
        let unsent = awaited_unsent(requests, rows[0].id.session, &nodes);
        nodes.extend(unsent);
        if nodes.len() > rows.len() {
            nodes.sort_by_key(SessionMember::id);
        }
        let place = |edge: &Edge| {
            let place = nodes.binary_search_by_key(&edge.parent, SessionMember::id);
            Some((place.ok()?, *edge))
        };
        let parents = nodes
            .iter()
            .map(|node| requests.parents(node.parents()).iter().map(place).collect())
            .collect();
        let timed = |node: &SessionMember| GraphNode {
            node: node.id(),
            phases: node.phases(),
            wait: node.wait(),
            edges: requests.parents(node.parents()),
        };
        let timed: Vec<GraphNode> = nodes.iter().map(timed).collect();
        Graph {
            rows,
            tool_runs,
            parents,
            timed: SessionGraph::of(&timed),
            nodes,
        }
    }

    fn is_measured(&self) -> bool {
        self.rows.iter().all(|row| row.measured) && self.tool_runs.iter().all(|run| run.measured)
    }

    /// Returns intended − last awaited event of a parent, for a node that has parents. The delay of
    /// an edge is a part of the think time.
    fn think_time(&self, place: usize) -> Option<f64> {
        let parents = self.parents[place].as_ref()?;
        let event = |(parent, edge): &(usize, Edge)| self.nodes[*parent].events().of(edge.trigger);
        let ready = parents.iter().map(event).max()?;
        Some(seconds_between(ready, self.nodes[place].intended()))
    }

    /// Returns the think times of the measured requests that have parents.
    fn think_times(&self) -> impl Iterator<Item = ThinkTime> + '_ {
        let requests = self.nodes.iter().zip(0..);
        requests.filter_map(|(node, place)| match node {
            SessionMember::Request(row, of) if of.measured => Some(ThinkTime {
                intended: of.observed.intended,
                row: *row,
                seconds: self.think_time(place)?,
            }),
            _ => None,
        })
    }

    /// Returns the time in tools: of tool runs, and between calls of tools that the host does not
    /// run and the requests that follow them.
    fn tool_time(&self) -> Option<f64> {
        let follows_a_call = |place: &usize| {
            let parents = || self.parents[*place].iter().flatten();
            let is_tool_run = |parent: usize| matches!(self.nodes[parent], SessionMember::ToolRun(_));
            parents()
                .any(|(parent, edge)| edge.trigger == Trigger::Completed && self.nodes[*parent].called_tool())
                && !parents().any(|(parent, _)| is_tool_run(*parent))
        };
        let is_request = |place: &usize| matches!(self.nodes[*place], SessionMember::Request(..));
        let simulated = (0..self.nodes.len())
            .filter(is_request)
            .filter(follows_a_call)
            .filter_map(|place| self.think_time(place));
        let of_runs = self.tool_runs.iter().map(|run| run.times);
        of_runs
            .map(|times| seconds_between(times.ready, times.completed))
            .chain(simulated)
            .reduce(|all, time| all + time)
    }

    /// Returns the longest path through the graph: a node begins `wait` after the last of its edges
    /// is met, or, without parents, at `root`, and its events happen `takes` after that. `None` if
    /// an input is unknown.
    fn longest_path(
        &self,
        root: impl Fn(&SessionMember) -> f64,
        wait: impl Fn(Nanos) -> f64,
        takes: impl Fn(&SessionMember, Trigger) -> Option<f64>,
    ) -> Option<f64> {
        let mut beginnings: Vec<Option<f64>> = vec![None; self.nodes.len()];
        let mut last: Option<f64> = None;
        for &place in self.timed.as_ref()?.parents_first() {
            let node = &self.nodes[place];
            let parents = match node {
                // Its edges are not recorded, except that it ended with one of them.
                SessionMember::Unsent(..) => self.timed.as_ref()?.edges(place),
                _ => self.parents[place].as_ref()?,
            };
            let begins = if parents.is_empty() {
                root(node)
            } else {
                let met = |(parent, edge): &(usize, Edge)| {
                    let event = beginnings[*parent]? + takes(&self.nodes[*parent], edge.trigger)?;
                    Some(event + wait(edge.delay))
                };
                let met = parents.iter().map(met).collect::<Option<Vec<_>>>()?;
                met.into_iter().fold(f64::NEG_INFINITY, f64::max) + wait(node.wait())
            };
            beginnings[place] = Some(begins);
            let end = begins + takes(node, Trigger::Completed)?;
            last = Some(last.map_or(end, |last| last.max(end)));
        }
        last
    }

    /// Returns the makespan without queueing.
    fn ideal_makespan(&self, intended: Nanos, shortest: &ShortestFirst) -> Option<f64> {
        self.longest_path(
            |node| seconds_between(intended, node.intended()),
            seconds,
            |node, trigger| match (node, trigger) {
                (SessionMember::Unsent(..), _) => Some(0.0),
                (SessionMember::ToolRun(_), Trigger::Dispatched) => Some(0.0),
                (SessionMember::ToolRun(run), _) => {
                    Some(seconds_between(run.times.started, run.times.completed))
                }
                (SessionMember::Request(_, row), _) => {
                    let first = row.observed.first.get().filter(|_| row.end == End::Answered)?;
                    let prefill = shortest.at_least(row.observed.total_prompt_tokens)?;
                    Some(match trigger {
                        Trigger::Dispatched => 0.0,
                        Trigger::FirstChunk => prefill,
                        Trigger::Completed => prefill + seconds_between(first, row.completed),
                    })
                }
            },
        )
    }

    fn path_times(&self, graph: &SessionGraph) -> PathTimes {
        let path = graph.critical_path();
        let steps = path.steps.iter();
        let requests = steps.filter(|step| matches!(self.nodes[step.place], SessionMember::Request(..)));
        PathTimes {
            requests: requests.count() as u32,
            times: path.times,
        }
    }

    fn row(&self, shortest: &ShortestFirst) -> SessionRow {
        let rows = self.rows;
        let intended = self.nodes.iter().map(SessionMember::intended).min().unwrap_or(0);
        let dispatched = rows.iter().map(|row| row.observed.dispatched);
        let called = self.tool_runs.iter().map(|run| run.times.ready);
        let dispatched = dispatched.chain(called).min().unwrap_or(0);
        let ends = self.nodes.iter().map(|node| node.events().completed);
        let completed = ends.max().unwrap_or(0);
        let makespan = seconds_between(intended, completed);
        let ideal = self.ideal_makespan(intended, shortest);
        SessionRow {
            session: rows[0].id.session,
            intended,
            labels: 0,
            requests: rows.len() as u32,
            duration: seconds_between(dispatched, completed),
            makespan,
            critical_path: Known::of(self.longest_path(
                |_| 0.0,
                |_| 0.0,
                |node, trigger| {
                    Some(match node {
                        SessionMember::Request(_, row) => {
                            seconds_between(row.observed.dispatched, row.events().of(trigger))
                        }
                        SessionMember::ToolRun(_) | SessionMember::Unsent(..) => 0.0,
                    })
                },
            )),
            tool_time: Known::of(self.tool_time()),
            slowdown: Known::of(ideal.filter(|ideal| *ideal > 0.0).map(|ideal| makespan / ideal)),
            cache: classified(rows),
            path: self.timed.as_ref().map(|graph| self.path_times(graph)),
        }
    }
}

fn classified(rows: &[RequestRow]) -> Option<ClassifiedPrompts> {
    let mut prompts = ClassifiedPrompts::default();
    let answered = rows.iter().filter(|row| row.counts());
    let tokens = answered.filter_map(|row| row.observed.cache_tokens());
    tokens.for_each(|tokens| prompts.add(&tokens));
    (prompts.requests > 0).then_some(prompts)
}

/// The shortest TTFC of the run by prompt length: the minimum over all requests of this or a
/// greater length.
struct ShortestFirst {
    /// Ascending in both: prompt tokens, and the shortest TTFC of requests with at least this
    /// length.
    steps: Vec<(u32, f64)>,
}

impl ShortestFirst {
    fn of(rows: &[RequestRow]) -> Self {
        let mut times: Vec<(u32, f64)> = rows
            .iter()
            .filter(|row| row.has_samples())
            .filter_map(|row| Some((row.observed.total_prompt_tokens, row.sample(Metric::Ttfc)?)))
            .collect();
        times.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut steps: Vec<(u32, f64)> = Vec::new();
        for (tokens, ttfc) in times.into_iter().rev() {
            if steps.last().is_none_or(|(_, shortest)| ttfc < *shortest) {
                steps.push((tokens, ttfc));
            }
        }
        steps.reverse();
        ShortestFirst { steps }
    }

    fn at_least(&self, tokens: u32) -> Option<f64> {
        let place = self.steps.partition_point(|(step, _)| *step < tokens);
        self.steps.get(place).map(|(_, ttfc)| *ttfc)
    }
}
