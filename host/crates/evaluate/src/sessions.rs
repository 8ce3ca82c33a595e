//! Sessions put together from what is known of their requests.

use veeksha_events::SessionEnd;
use veeksha_model::{Nanos, NodeId, SessionId};

use crate::Metric;
use crate::label_sets::LabelSet;
use crate::latencies::seconds_between;
use crate::requests::Requests;
use crate::row::{End, Row};

/// When sessions began and ended.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    starts: Vec<(SessionId, Nanos)>,
    ends: Vec<(SessionId, Nanos, SessionEnd)>,
}

impl Sessions {
    pub(crate) fn on_started(&mut self, session: SessionId, at: Nanos) {
        self.starts.push((session, at));
    }

    pub(crate) fn on_finished(&mut self, session: SessionId, at: Nanos, end: SessionEnd) {
        self.ends.push((session, at, end));
    }

    /// Sessions that began.
    pub(crate) fn started(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Sessions that ended.
    pub(crate) fn finished(&self) -> u64 {
        self.ends.len() as u64
    }

    pub(crate) fn sort(&mut self) {
        self.starts.sort_unstable();
        self.ends.sort_unstable();
    }

    /// Sessions begun per second, (sessions − 1) / (last start − first start); `None` for fewer than two.
    pub(crate) fn dispatch_rate(&self) -> Option<f64> {
        let instants = || self.starts.iter().map(|(_, at)| *at);
        let (first, last) = (instants().min()?, instants().max()?);
        let others = self.started().checked_sub(1).filter(|others| *others > 0)?;
        (last > first).then(|| others as f64 / seconds_between(first, last))
    }

    /// The end of a session; the sessions are sorted.
    pub(crate) fn end(&self, session: SessionId) -> Option<(Nanos, SessionEnd)> {
        let place = self.ends.binary_search_by_key(&session, |(id, _, _)| *id).ok()?;
        let (_, at, end) = self.ends[place];
        Some((at, end))
    }

    /// Sessions that began and never ended; the sessions are sorted.
    pub(crate) fn without_end(&self) -> u64 {
        let open = |(session, _): &&(SessionId, Nanos)| self.end(*session).is_none();
        self.starts.iter().filter(open).count() as u64
    }

    /// When each session that began was active; one without an end until `end`. The sessions are sorted.
    pub(crate) fn active(&self, end: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> + '_ {
        self.starts
            .iter()
            .map(move |(session, at)| (*at, self.end(*session).map_or(end, |(at, _)| at)))
    }
}

/// The figures of one session of which every request was tried and measured. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionFigures {
    /// Which session.
    pub session: SessionId,
    /// The earliest instant that the schedule asked for.
    pub intended: Nanos,
    /// `session_size`
    pub requests: u32,
    /// `session_duration`
    pub duration: f64,
    /// `session_makespan`
    pub makespan: f64,
    /// `session_critical_path_llm_time`; `None` where the record lacks a parent.
    pub critical_path_llm_time: Option<f64>,
    /// `session_tool_time`; `None` where no tool was called.
    pub tool_time: Option<f64>,
    /// `session_slowdown`; `None` where a request was not answered with something.
    pub slowdown: Option<f64>,
}

/// [`SessionFigures`] as they are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SessionRow {
    pub(crate) session: SessionId,
    pub(crate) intended: Nanos,
    /// Labels that all its requests have.
    pub(crate) labels: LabelSet,
    requests: u32,
    duration: f64,
    makespan: f64,
    critical_path: Known,
    tool_time: Known,
    slowdown: Known,
}

/// A figure that may not exist, in eight bytes.
#[derive(Clone, Copy, Debug)]
struct Known(f64);

impl Known {
    fn of(value: Option<f64>) -> Self {
        Known(value.unwrap_or(f64::NAN))
    }

    fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl SessionRow {
    pub(crate) fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::SessionSize => Some(f64::from(self.requests)),
            Metric::SessionDuration => Some(self.duration),
            Metric::SessionMakespan => Some(self.makespan),
            Metric::SessionCriticalPath => self.critical_path.get(),
            Metric::SessionToolTime => self.tool_time.get(),
            Metric::SessionSlowdown => self.slowdown.get(),
            _ => None,
        }
    }

    pub(crate) fn figures(&self) -> SessionFigures {
        SessionFigures {
            session: self.session,
            intended: self.intended,
            requests: self.requests,
            duration: self.duration,
            makespan: self.makespan,
            critical_path_llm_time: self.critical_path.get(),
            tool_time: self.tool_time.get(),
            slowdown: self.slowdown.get(),
        }
    }
}

/// What requests and ends come to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SessionTable {
    /// By `intended`.
    pub(crate) sessions: Vec<SessionRow>,
    /// Of each measured request that has parents, all of them known.
    pub(crate) think_times: Vec<ThinkTime>,
}

/// How long a session waited before a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ThinkTime {
    pub(crate) intended: Nanos,
    pub(crate) row: u32,
    pub(crate) seconds: f64,
}

/// Puts the sessions together; requests and sessions are sorted.
pub(crate) fn table(requests: &mut Requests, sessions: &Sessions) -> SessionTable {
    let shortest = ShortestFirst::of(&requests.rows);
    let mut table = SessionTable {
        sessions: Vec::with_capacity(sessions.ends.len()),
        think_times: Vec::new(),
    };
    let mut begin = 0;
    while begin < requests.rows.len() {
        let session = requests.rows[begin].id.session;
        let length = requests.rows[begin..].partition_point(|row| row.id.session == session);
        let end = begin + length;
        let graph = Graph::of(requests, begin, end);
        table.think_times.extend(graph.think_times());
        let tried = sessions
            .end(session)
            .is_some_and(|(_, end)| matches!(end, SessionEnd::Completed | SessionEnd::Errored));
        if tried && requests.rows[begin..end].iter().all(|row| row.measured) {
            let mut figures = graph.figures(&shortest);
            let sets: Vec<LabelSet> = graph.rows.iter().map(|row| row.labels).collect();
            figures.labels = requests.labels.common(sets);
            table.sessions.push(figures);
        }
        begin = end;
    }
    table
        .sessions
        .sort_by_key(|figures| (figures.intended, figures.session));
    table.think_times.sort_by_key(|time| (time.intended, time.row));
    table
}

/// The requests of one session, with their edges as places.
struct Graph<'a> {
    /// The place of the first among all rows.
    begin: usize,
    rows: &'a [Row],
    /// Of each row, the places of its parents; `None` where the record lacks one.
    parents: Vec<Option<Vec<usize>>>,
}

impl<'a> Graph<'a> {
    fn of(requests: &'a Requests, begin: usize, end: usize) -> Self {
        let rows = &requests.rows[begin..end];
        let place = |node: &NodeId| rows.binary_search_by_key(node, |row| row.id.node).ok();
        let parents = rows
            .iter()
            .map(|row| requests.parents(row).iter().map(place).collect())
            .collect();
        Graph { begin, rows, parents }
    }

    /// Intended − last completion among the parents, of a row that has parents.
    fn think_time(&self, place: usize) -> Option<f64> {
        let parents = self.parents[place].as_ref()?;
        let ready = parents.iter().map(|parent| self.rows[*parent].completed).max()?;
        Some(seconds_between(ready, self.rows[place].intended))
    }

    fn think_times(&self) -> impl Iterator<Item = ThinkTime> + '_ {
        let measured = (0..self.rows.len()).filter(|place| self.rows[*place].measured);
        measured.filter_map(|place| {
            Some(ThinkTime {
                intended: self.rows[place].intended,
                row: (self.begin + place) as u32,
                seconds: self.think_time(place)?,
            })
        })
    }

    fn tool_time(&self) -> Option<f64> {
        let follows_a_call = |place: &usize| {
            let mut parents = self.parents[*place].iter().flatten();
            parents.any(|parent| self.rows[*parent].called_tool)
        };
        (0..self.rows.len())
            .filter(follows_a_call)
            .filter_map(|place| self.think_time(place))
            .reduce(|all, time| all + time)
    }

    /// The longest path through the graph: a request begins `wait` after the last of its parents, or, without parents, at `root`, and takes
    /// `takes`. `None` if something is unknown.
    fn longest_path(
        &self,
        root: impl Fn(&Row) -> f64,
        wait: impl Fn(&Row) -> f64,
        takes: impl Fn(&Row) -> Option<f64>,
    ) -> Option<f64> {
        // A child is dispatched after its parents.
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|place| (self.rows[*place].dispatched, *place));
        let mut ends: Vec<Option<f64>> = vec![None; self.rows.len()];
        for place in order {
            let row = &self.rows[place];
            let parents = self.parents[place].as_ref()?;
            let begins = if parents.is_empty() {
                root(row)
            } else {
                let ready = parents
                    .iter()
                    .map(|parent| ends[*parent])
                    .collect::<Option<Vec<_>>>()?;
                ready.into_iter().fold(f64::NEG_INFINITY, f64::max) + wait(row)
            };
            ends[place] = Some(begins + takes(row)?);
        }
        ends.into_iter().flatten().reduce(f64::max)
    }

    fn figures(&self, shortest: &ShortestFirst) -> SessionRow {
        let rows = self.rows;
        let intended = rows.iter().map(|row| row.intended).min().unwrap_or(0);
        let dispatched = rows.iter().map(|row| row.dispatched).min().unwrap_or(0);
        let completed = rows.iter().map(|row| row.completed).max().unwrap_or(0);
        let makespan = seconds_between(intended, completed);
        let ideal = self.longest_path(
            |row| seconds_between(intended, row.intended),
            |row| row.wait_after_ready as f64 / 1e9,
            |row| {
                let first = row.first.get().filter(|_| row.end == End::Answered)?;
                let after = seconds_between(first, row.completed);
                Some(shortest.at_least(row.total_prompt_tokens)? + after)
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
                |row| Some(seconds_between(row.dispatched, row.completed)),
            )),
            tool_time: Known::of(self.tool_time()),
            slowdown: Known::of(ideal.filter(|ideal| *ideal > 0.0).map(|ideal| makespan / ideal)),
        }
    }
}

/// The shortest TTFC of the run by prompt length: no request of this or a greater length was begun sooner.
struct ShortestFirst {
    /// Ascending in both: prompt tokens, and the shortest TTFC of requests with at least so many.
    steps: Vec<(u32, f64)>,
}

impl ShortestFirst {
    fn of(rows: &[Row]) -> Self {
        let mut times: Vec<(u32, f64)> = rows
            .iter()
            .filter(|row| row.counts())
            .filter_map(|row| Some((row.total_prompt_tokens, row.ttfc()?)))
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
