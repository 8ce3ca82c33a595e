//! Sessions assembled from their requests: longest paths, waits, and estimated duration without
//! queueing.

use veeksha_definitions::{GraphRequest, Metric, RequestPhases, SessionGraph, seconds_between};
use veeksha_events::SessionEnd;
use veeksha_model::{Edge, Nanos, Trigger, seconds};

use crate::label_sets::LabelSet;
use crate::requests::RequestTable;
use crate::row::{End, RequestRow};
use crate::sessions::{Known, PathTimes, SessionRow, Sessions};
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
            && requests.rows[begin..end].iter().all(|row| row.measured)
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

/// The requests of one session, with their edges as indices.
struct Graph<'a> {
    /// The index of the first request among all rows.
    begin: usize,
    rows: &'a [RequestRow],
    /// For each row, its edges with the indices of its parents; `None` if the record lacks one.
    parents: Vec<Option<Vec<(usize, Edge)>>>,
    /// `None` if the record lacks a parent, or its edges form a cycle.
    timed: Option<SessionGraph>,
}

impl<'a> Graph<'a> {
    fn of(requests: &'a RequestTable, begin: usize, end: usize) -> Self {
        let rows = &requests.rows[begin..end];
        let place = |edge: &Edge| {
            let place = rows.binary_search_by_key(&edge.parent, |row| row.id.node);
            Some((place.ok()?, *edge))
        };
        let parents = rows
            .iter()
            .map(|row| requests.parents(row).iter().map(place).collect())
            .collect();
        let request = |row: &'a RequestRow| GraphRequest {
            node: row.id.node,
            phases: RequestPhases::of(&row.observed, row.completed),
            wait: row.wait_after_ready,
            edges: requests.parents(row),
        };
        let timed: Vec<GraphRequest> = rows.iter().map(request).collect();
        Graph {
            begin,
            rows,
            parents,
            timed: SessionGraph::of(&timed),
        }
    }

    /// Returns intended − last awaited event of a parent, for a row that has parents. The delay of
    /// an edge is a part of the think time.
    fn think_time(&self, place: usize) -> Option<f64> {
        let parents = self.parents[place].as_ref()?;
        let event = |(parent, edge): &(usize, Edge)| self.rows[*parent].events().of(edge.trigger);
        let ready = parents.iter().map(event).max()?;
        Some(seconds_between(ready, self.rows[place].observed.intended))
    }

    fn think_times(&self) -> impl Iterator<Item = ThinkTime> + '_ {
        let measured = (0..self.rows.len()).filter(|place| self.rows[*place].measured);
        measured.filter_map(|place| {
            Some(ThinkTime {
                intended: self.rows[place].observed.intended,
                row: (self.begin + place) as u32,
                seconds: self.think_time(place)?,
            })
        })
    }

    fn tool_time(&self) -> Option<f64> {
        let follows_a_call = |place: &usize| {
            let mut parents = self.parents[*place].iter().flatten();
            parents.any(|(parent, edge)| edge.trigger == Trigger::Completed && self.rows[*parent].called_tool)
        };
        (0..self.rows.len())
            .filter(follows_a_call)
            .filter_map(|place| self.think_time(place))
            .reduce(|all, time| all + time)
    }

    /// Returns the longest path through the graph: a request begins `wait` after the last of its
    /// edges is met, or, without parents, at `root`, and its events happen `takes` after that.
    /// `None` if an input is unknown.
    fn longest_path(
        &self,
        root: impl Fn(&RequestRow) -> f64,
        wait: impl Fn(Nanos) -> f64,
        takes: impl Fn(&RequestRow, Trigger) -> Option<f64>,
    ) -> Option<f64> {
        let mut beginnings: Vec<Option<f64>> = vec![None; self.rows.len()];
        let mut last: Option<f64> = None;
        for &place in self.timed.as_ref()?.parents_first() {
            let row = &self.rows[place];
            let parents = self.parents[place].as_ref()?;
            let begins = if parents.is_empty() {
                root(row)
            } else {
                let met = |(parent, edge): &(usize, Edge)| {
                    let event = beginnings[*parent]? + takes(&self.rows[*parent], edge.trigger)?;
                    Some(event + wait(edge.delay))
                };
                let met = parents.iter().map(met).collect::<Option<Vec<_>>>()?;
                met.into_iter().fold(f64::NEG_INFINITY, f64::max) + wait(row.wait_after_ready)
            };
            beginnings[place] = Some(begins);
            let end = begins + takes(row, Trigger::Completed)?;
            last = Some(last.map_or(end, |last| last.max(end)));
        }
        last
    }

    fn row(&self, shortest: &ShortestFirst) -> SessionRow {
        let rows = self.rows;
        let intended = rows.iter().map(|row| row.observed.intended).min().unwrap_or(0);
        let dispatched = rows.iter().map(|row| row.observed.dispatched).min().unwrap_or(0);
        let completed = rows.iter().map(|row| row.completed).max().unwrap_or(0);
        let makespan = seconds_between(intended, completed);
        let ideal = self.longest_path(
            |row| seconds_between(intended, row.observed.intended),
            seconds,
            |row, trigger| {
                let first = row.observed.first.get().filter(|_| row.end == End::Answered)?;
                let prefill = shortest.at_least(row.observed.total_prompt_tokens)?;
                Some(match trigger {
                    Trigger::Dispatched => 0.0,
                    Trigger::FirstChunk => prefill,
                    Trigger::Completed => prefill + seconds_between(first, row.completed),
                })
            },
        );
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
                |row, trigger| Some(seconds_between(row.observed.dispatched, row.events().of(trigger))),
            )),
            tool_time: Known::of(self.tool_time()),
            slowdown: Known::of(ideal.filter(|ideal| *ideal > 0.0).map(|ideal| makespan / ideal)),
            path: self.timed.as_ref().map(path_times),
        }
    }
}

fn path_times(graph: &SessionGraph) -> PathTimes {
    let path = graph.critical_path();
    PathTimes {
        requests: path.steps.len() as u32,
        times: path.times,
    }
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
