//! [`RequestList`] as JSON: one list per column, because twenty thousand objects would repeat the
//! names of their members twenty thousand times.
//!
//! `intended` holds differences, each to the previous row, in microseconds. All other times are
//! microseconds after the row's `intended` (`completed` after its `dispatched`). Texts are indices
//! into `texts`. A column that has the default value in every row is omitted. `custom` has, for
//! each metric, the rows that have a sample and their values.

use std::collections::HashMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use veeksha_definitions::Metric;
use veeksha_model::{Edge, Label, Nanos, Trigger};

use crate::critical_paths::critical_paths;
use crate::request::{Outcome, PageRequest, PageToolRun, RequestList};

/// Serializes the items of an iterator as a list, without collecting them.
struct SerializedList<F>(F);

impl<I, F> Serialize for SerializedList<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Returns `later - earlier` in microseconds, rounded to the nearest.
fn micros_between(earlier: Nanos, later: Nanos) -> i64 {
    let nanos = later as i64 - earlier as i64;
    (nanos + 500 * nanos.signum()) / 1000
}

#[derive(Serialize)]
struct Custom<'a> {
    name: &'a str,
    rows: Vec<u32>,
    values: Vec<f64>,
}

/// The samples of a built-in metric: a value or `null` for each row.
#[derive(Serialize)]
struct BuiltIn {
    name: &'static str,
    label: &'static str,
    short: &'static str,
    unit: &'static str,
    /// The divisor from the metric's unit to the written values.
    divisor: u32,
    values: Vec<Option<Digits>>,
}

/// A tool run. `ready` is an instant in microseconds, the next two are microseconds after it.
#[derive(Serialize)]
struct ToolRunColumns<'a> {
    session: u64,
    node: u32,
    tool: &'a str,
    ready: u64,
    started: i64,
    ended: i64,
    cold: bool,
    failed: bool,
    result_tokens: u32,
    /// Parent, number of the awaited event, and delay in microseconds.
    edges: Vec<(u32, u8, u64)>,
}

impl<'a> ToolRunColumns<'a> {
    fn of(run: &'a PageToolRun) -> Self {
        let edge = |edge: &Edge| (edge.parent.0, edge.trigger as u8, edge.delay / 1000);
        ToolRunColumns {
            session: run.id.session.0,
            node: run.id.node.0,
            tool: &run.class,
            ready: run.times.ready / 1000,
            started: micros_between(run.times.ready, run.times.started),
            ended: micros_between(run.times.ready, run.times.completed),
            cold: run.is_cold,
            failed: run.failed,
            result_tokens: run.result_tokens,
            edges: run.parents.iter().map(edge).collect(),
        }
    }
}

/// A number with six significant digits, written without a fraction if it is an integer.
struct Digits(f64);

impl Digits {
    fn of(value: f64) -> Self {
        if value == 0.0 || !value.is_finite() {
            return Digits(value);
        }
        let places = 5 - value.abs().log10().floor() as i32;
        // Powers of ten above 1 are exact; dividing by one rounds once.
        let power = 10f64.powi(places.abs());
        Digits(if places >= 0 {
            (value * power).round() / power
        } else {
            (value / power).round() * power
        })
    }
}

impl Serialize for Digits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < 1e15 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

#[derive(Default)]
struct TextIndex<'a> {
    known: HashMap<&'a str, u32>,
    list: Vec<&'a str>,
}

impl<'a> TextIndex<'a> {
    fn index(&mut self, text: &'a str) -> u32 {
        let list = &mut self.list;
        *self.known.entry(text).or_insert_with(|| {
            list.push(text);
            (list.len() - 1) as u32
        })
    }
}

fn labels_of<'a>(texts: &mut TextIndex<'a>, labels: &'a [Label]) -> Vec<u32> {
    labels
        .iter()
        .flat_map(|(name, value)| [texts.index(name), texts.index(value)])
        .collect()
}

impl Serialize for RequestList {
    #[expect(clippy::too_many_lines, reason = "one column after the other")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = &self.rows;
        let mut texts = TextIndex::default();
        let outcomes: Vec<(u32, Option<u32>)> = rows
            .iter()
            .map(|row| match &row.outcome {
                Outcome::Answered { finish_reason } => (texts.index(finish_reason), None),
                Outcome::CancelledByClient => (texts.index("cancelled by the workload"), None),
                Outcome::Failed { class, message } => (texts.index(message), Some(texts.index(class.name()))),
            })
            .collect();
        let labels: Vec<Vec<u32>> = rows
            .iter()
            .map(|row| labels_of(&mut texts, &row.labels))
            .collect();

        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("total", &self.total)?;
        map.serialize_entry("shown", &rows.len())?;
        map.serialize_entry("texts", &texts.list)?;
        let mut columns = RequestColumns { map: &mut map, rows };
        columns.always("session", |row| row.id.session.0)?;
        columns.always("node", |row| row.id.node.0)?;
        let mut before = 0;
        let intended: Vec<i64> = rows
            .iter()
            .map(|row| {
                let at = (row.intended / 1000) as i64;
                let step = at - before;
                before = at;
                step
            })
            .collect();
        columns.map.serialize_entry("intended", &intended)?;
        columns.always("dispatched", |row| micros_between(row.intended, row.dispatched))?;
        columns.unless_none("sent", |row| row.sent.map(|at| micros_between(row.intended, at)))?;
        columns.unless_none("first_byte", |row| {
            row.first_byte.map(|at| micros_between(row.intended, at))
        })?;
        columns.unless_none("first_chunk", |row| {
            row.first_chunk.map(|at| micros_between(row.intended, at))
        })?;
        columns.unless_none("last_chunk", |row| {
            row.last_chunk.map(|at| micros_between(row.intended, at))
        })?;
        columns.always("completed", |row| micros_between(row.dispatched, row.completed))?;
        columns.unless_default("wait", |row| row.wait_after_ready / 1000)?;
        columns.edges()?;
        columns.unless_none("history_parent", |row| row.history_parent)?;
        columns.always("prompt_tokens", |row| row.prompt_tokens)?;
        columns.always("output_tokens", |row| row.output_tokens)?;
        columns.unless_none("target_output_tokens", |row| row.target_output_tokens)?;
        columns.unless_none("cached_tokens", |row| row.cached_tokens)?;
        columns.unless_none("http_status", |row| row.http_status)?;
        columns.unless_default("server", |row| row.server)?;
        columns.unless_default("drained", |row| u8::from(!row.measured))?;
        columns.unless_default("cancelled", |row| {
            u8::from(row.outcome == Outcome::CancelledByClient)
        })?;
        columns.unless_none("good", |row| row.good.map(u8::from))?;
        columns.unless_none("chunks", |row| row.chunks.as_ref())?;
        map.serialize_entry(
            "message",
            &SerializedList(|| outcomes.iter().map(|(message, _)| message)),
        )?;
        if outcomes.iter().any(|(_, failed)| failed.is_some()) {
            map.serialize_entry(
                "failed",
                &SerializedList(|| outcomes.iter().map(|(_, failed)| failed)),
            )?;
        }
        if labels.iter().any(|labels| !labels.is_empty()) {
            map.serialize_entry("labels", &labels)?;
        }
        map.serialize_entry("metrics", &self.built_in())?;
        map.serialize_entry("custom", &self.custom())?;
        let paths = critical_paths(self);
        let sessions = || {
            self.sessions.iter().map(|session| {
                (
                    session.session,
                    session.started.map(|at| at / 1000),
                    session.finished.map(|at| at / 1000),
                    session.end.map(veeksha_events::SessionEnd::name),
                    session.requests,
                    paths.get(&session.session),
                )
            })
        };
        map.serialize_entry("sessions", &SerializedList(sessions))?;
        let never_sent = || {
            self.never_sent.iter().map(|node| {
                (
                    node.id.session.0,
                    node.id.node.0,
                    node.reason.name(),
                    node.at / 1000,
                )
            })
        };
        map.serialize_entry("never_sent", &SerializedList(never_sent))?;
        if !self.tool_runs.is_empty() {
            let tool_runs = || self.tool_runs.iter().map(ToolRunColumns::of);
            map.serialize_entry("tool_runs", &SerializedList(tool_runs))?;
        }
        map.end()
    }
}

impl RequestList {
    /// Returns the charted metrics with at least one sample. Times are written in microseconds.
    fn built_in(&self) -> Vec<BuiltIn> {
        let columns = Metric::charted().into_iter().enumerate();
        let column = |(place, metric): (usize, Metric)| {
            let divisor = if metric.unit() == "s" { 1_000_000 } else { 1 };
            let sample = |row: &PageRequest| row.samples.get(place).copied().flatten();
            BuiltIn {
                name: metric.name(),
                label: metric.title(),
                short: metric.short_name(),
                unit: metric.unit(),
                divisor,
                values: self
                    .rows
                    .iter()
                    .map(|row| Some(Digits::of(sample(row)? * f64::from(divisor))))
                    .collect(),
            }
        };
        let has_samples = |column: &BuiltIn| column.values.iter().any(Option::is_some);
        columns.map(column).filter(has_samples).collect()
    }

    fn custom(&self) -> Vec<Custom<'_>> {
        let mut all: Vec<Custom<'_>> = self
            .custom_metrics
            .iter()
            .map(|name| Custom {
                name,
                rows: Vec::new(),
                values: Vec::new(),
            })
            .collect();
        for (place, row) in self.rows.iter().enumerate() {
            for &(metric, value) in &row.custom {
                if let Some(custom) = all.get_mut(metric as usize) {
                    custom.rows.push(place as u32);
                    custom.values.push(value);
                }
            }
        }
        all
    }
}

struct RequestColumns<'a, M> {
    map: &'a mut M,
    rows: &'a [PageRequest],
}

impl<'a, M: SerializeMap> RequestColumns<'a, M> {
    fn always<T: Serialize>(
        &mut self,
        name: &'static str,
        of: impl Fn(&'a PageRequest) -> T,
    ) -> Result<(), M::Error> {
        let rows = self.rows;
        self.map
            .serialize_entry(name, &SerializedList(|| rows.iter().map(&of)))
    }

    fn unless_none<T: Serialize>(
        &mut self,
        name: &'static str,
        of: impl Fn(&'a PageRequest) -> Option<T>,
    ) -> Result<(), M::Error> {
        if self.rows.iter().all(|row| of(row).is_none()) {
            return Ok(());
        }
        self.always(name, of)
    }

    /// The parents with the events that were awaited.
    fn edges(&mut self) -> Result<(), M::Error> {
        let edges =
            |row: &PageRequest, of: fn(&Edge) -> u64| -> Vec<u64> { row.parents.iter().map(of).collect() };
        self.unless_default("parents", |row| edges(row, |edge| edge.parent.0.into()))?;
        // Numbers of events in the order of `Trigger::ALL`; a list is empty if each parent had to
        // be complete.
        self.unless_default("parent_triggers", |row| {
            let ended = row.parents.iter().all(|edge| edge.trigger == Trigger::Completed);
            if ended {
                Vec::new()
            } else {
                edges(row, |edge| edge.trigger as u64)
            }
        })?;
        self.unless_default("parent_delays", |row| {
            let at_once = row.parents.iter().all(|edge| edge.delay == 0);
            if at_once {
                Vec::new()
            } else {
                edges(row, |edge| edge.delay / 1000)
            }
        })
    }

    fn unless_default<T: Serialize + Default + PartialEq>(
        &mut self,
        name: &'static str,
        of: impl Fn(&'a PageRequest) -> T,
    ) -> Result<(), M::Error> {
        if self.rows.iter().all(|row| of(row) == T::default()) {
            return Ok(());
        }
        self.always(name, of)
    }
}
