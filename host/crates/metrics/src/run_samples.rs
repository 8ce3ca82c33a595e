//! All samples of a run, for queries by metric, label and window.

use std::collections::{BTreeMap, BTreeSet};

use veeksha_model::{Label, Nanos};
use veeksha_ports::{MetricStats, RunResults, WindowStats};
use veeksha_stats::Summary;

use crate::catalogue::Catalogue;
use crate::custom_samples::Resolved;
use crate::fluidity::Deadlines;
use crate::label_sets::Matching;
use crate::pooled::{GapSet, RowSelection, TokenSet};
use crate::requests::RequestTable;
use crate::row::RequestRow;
use crate::run_metric::RunMetric;
use crate::sample_set::{SampleSet, stats};
use crate::schedule::{Schedule, TimeSpan};
use crate::session_graph::SessionTable;
use crate::sessions::SessionMetrics;
use crate::token_counts::{AnswerTokens, PromptCounts};
use crate::tool_runs::ToolRow;
use crate::what_if::Counterfactual;
use veeksha_definitions::{Metric, Samples};

/// The number of windows above which [`RunResults::windows`] omits those without samples.
const MANY_WINDOWS: u64 = 100_000;

/// All samples of a run: of built-in and plugin metrics, each with the labels and the intended
/// instant of its request. Every statistic is exact, for any labels and windows.
///
/// Holds about 200 bytes per request and four per gap between chunks. The times between tokens
/// (`itl`) are derived from the gaps (`tbc`); if every chunk has one token, they are the same
/// samples.
#[derive(Debug, PartialEq)]
pub struct RunSamples {
    pub(crate) requests: RequestTable,
    /// The measured rows with any outcome, by intended instant.
    by_intended: Vec<u32>,
    pub(crate) sessions: SessionTable,
    pub(crate) custom: BTreeMap<String, Resolved>,
    catalogue: Catalogue,
    schedule: Option<Schedule>,
    summaries: BTreeMap<String, Summary>,
    pub(crate) run_metrics: BTreeMap<RunMetric, f64>,
}

impl RunSamples {
    /// Creates the samples. The requests must be sorted.
    pub(crate) fn new(
        requests: RequestTable,
        sessions: SessionTable,
        custom: BTreeMap<String, Resolved>,
        catalogue: Catalogue,
        schedule: Option<Schedule>,
    ) -> Self {
        let rows = (0u32..).zip(&requests.rows);
        let mut by_intended: Vec<u32> = rows
            .filter(|(_, row)| row.measured)
            .map(|(place, _)| place)
            .collect();
        by_intended.sort_unstable_by_key(|place| (requests.rows[*place as usize].observed.intended, *place));
        let mut samples = RunSamples {
            schedule,
            by_intended,
            requests,
            sessions,
            custom,
            catalogue,
            summaries: BTreeMap::new(),
            run_metrics: BTreeMap::new(),
        };
        samples.summaries = samples.summarised();
        samples
    }

    fn summarised(&self) -> BTreeMap<String, Summary> {
        let all = self.matching(&[]);
        let tbc = self.set(Metric::Tbc.name(), &all, None).summary();
        let of = |name: &str| {
            let metric = self.catalogue.get(name).and_then(|info| info.metric);
            match metric.map(|metric| metric.definition_of().samples) {
                Some(Samples::ChunkGaps) => tbc,
                Some(Samples::TokenGaps) if self.itl_is_tbc() => tbc,
                _ => self.set(name, &all, None).summary(),
            }
        };
        let names = self.catalogue.iter().map(|info| info.name.as_str());
        let undefined = self.custom.keys().map(String::as_str);
        names
            .chain(undefined)
            .filter_map(|name| Some((name.to_owned(), of(name)?)))
            .collect()
    }

    /// Returns the makespans with changed times, in the order of `Setup::what_if`.
    pub fn counterfactuals(&self) -> &[Counterfactual] {
        &self.sessions.counterfactuals
    }

    /// Returns the metrics that are available in this run.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns the names of all metrics that have samples: built-in ones in the order of the files,
    /// then plugin metrics.
    pub fn names(&self) -> Vec<String> {
        let defined = self.catalogue.iter().map(|info| &info.name);
        let undefined = self
            .custom
            .keys()
            .filter(|name| self.catalogue.get(name).is_none());
        defined
            .chain(undefined)
            .filter(|name| self.summaries.contains_key(*name))
            .cloned()
            .collect()
    }

    /// Returns the summary of all samples of a metric; `None` if it has none.
    pub fn summary(&self, metric: &str) -> Option<&Summary> {
        self.summaries.get(self.own_name(metric))
    }

    /// Returns the exact distribution of a metric as `points` pairs of share and value, from the
    /// smallest value to the largest at equal steps of the share (101 points: every percentile).
    /// Empty if there are no samples or fewer than two points.
    pub fn quantiles(&self, metric: &str, points: usize) -> Vec<(f64, f64)> {
        let Some(last) = points.checked_sub(1).filter(|last| *last > 0) else {
            return Vec::new();
        };
        let shares: Vec<f64> = (0..points).map(|point| point as f64 / last as f64).collect();
        let values = self.set(metric, &self.matching(&[]), None).percentiles(&shares);
        shares.into_iter().zip(values).collect()
    }

    /// Returns the distinct values of a metric with the share of samples at or below each,
    /// ascending, if all samples are whole numbers and have equal weights; otherwise empty.
    pub fn shares_of_counts(&self, metric: &str) -> Vec<(f64, f64)> {
        match self.set(metric, &self.matching(&[]), None) {
            SampleSet::Plain(values) if values.iter().all(|value| value.fract() == 0.0) => {
                let total = values.len() as f64;
                let mut below = 0;
                let distinct = values.chunk_by(|a, b| a == b).filter_map(|same| {
                    below += same.len();
                    Some((*same.first()?, below as f64 / total))
                });
                distinct.collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the names of all labels of the run's requests and tool runs.
    pub(crate) fn label_names(&self) -> BTreeSet<&str> {
        let labels = self.requests.labels.all();
        labels.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns true if `itl` and `tbc` are the same samples, because every chunk has one token.
    pub fn itl_is_tbc(&self) -> bool {
        self.requests.itl_is_tbc()
    }

    /// Returns the output tokens of the answers that both the host and the server counted.
    pub fn answer_tokens(&self) -> AnswerTokens {
        self.requests.answer_tokens
    }

    /// Returns the prompt tokens of the answers that both the host and the server counted.
    pub fn prompt_counts(&self) -> PromptCounts {
        self.requests.prompt_counts
    }

    /// Returns the token deadlines of the fluidity index.
    pub fn deadlines(&self) -> Deadlines {
        self.requests.deadlines
    }

    /// Returns the sessions of which every request was attempted and measured, by their first
    /// intended instant, each with the labels that all its requests share.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = (SessionMetrics, &[Label])> {
        let labels = &self.requests.labels;
        let rows = self.sessions.sessions.iter();
        rows.map(|row| (row.metrics(), labels.labels(row.labels)))
    }

    /// Returns the instants at which the measured requests were intended, in order.
    pub fn intended(&self) -> impl ExactSizeIterator<Item = Nanos> {
        let rows = &self.requests.rows;
        let places = self.by_intended.iter();
        places.map(|place| rows[*place as usize].observed.intended)
    }

    /// Returns the interval in which the schedule requested measured requests; `None` if it
    /// requested none.
    pub(crate) fn schedule(&self) -> Option<Schedule> {
        self.schedule
    }

    /// Returns the measured requests that were intended within a span, in the order of their
    /// intended instants.
    pub(crate) fn asked_rows(&self, span: Option<TimeSpan>) -> impl Iterator<Item = &RequestRow> {
        self.asked_places(span)
            .map(|place| &self.requests.rows[place as usize])
    }

    fn asked_places(&self, span: Option<TimeSpan>) -> impl Iterator<Item = u32> {
        let rows = &self.requests.rows;
        let places = within(&self.by_intended, span, |place| {
            rows[*place as usize].observed.intended
        });
        places.iter().copied()
    }

    pub(crate) fn matching(&self, filter: &[Label]) -> Matching {
        self.requests.labels.matching(filter)
    }

    fn own_name<'a>(&'a self, metric: &'a str) -> &'a str {
        self.catalogue
            .get(metric)
            .map_or(metric, |info| info.name.as_str())
    }

    /// Returns the samples of requests that match the filter and were intended within `[from, to)`;
    /// empty for a metric that does not exist.
    pub(crate) fn set(&self, metric: &str, matching: &Matching, span: Option<TimeSpan>) -> SampleSet<'_> {
        match self.catalogue.get(metric).and_then(|info| info.metric) {
            Some(metric) => self.built_in(metric, matching, span),
            None => match self.custom.get(metric) {
                Some(samples) => samples.set(matching, span),
                None => SampleSet::Plain(Vec::new()),
            },
        }
    }

    fn built_in(&self, metric: Metric, matching: &Matching, span: Option<TimeSpan>) -> SampleSet<'_> {
        let rows = &self.requests.rows;
        let passing = || {
            self.asked_places(span).filter(|place| {
                let row = &rows[*place as usize];
                row.has_samples() && matching.has(row.labels)
            })
        };
        let of = || {
            if matching.is_all() && span.is_none() {
                RowSelection::All
            } else {
                RowSelection::These(passing().collect())
            }
        };
        match metric.definition_of().samples {
            Samples::ChunkGaps => SampleSet::Gaps(GapSet::new(&self.requests, of())),
            Samples::TokenGaps if self.itl_is_tbc() => SampleSet::Gaps(GapSet::new(&self.requests, of())),
            Samples::TokenGaps => SampleSet::Tokens(TokenSet::new(&self.requests, of())),
            Samples::ThinkTimes => {
                let times = within(&self.sessions.think_times, span, |time| time.intended);
                let passing = times
                    .iter()
                    .filter(|time| matching.has(rows[time.row as usize].labels));
                SampleSet::plain(passing.map(|time| time.seconds).collect())
            }
            Samples::Session => {
                let sessions = within(&self.sessions.sessions, span, |session| session.intended);
                let passing = sessions.iter().filter(|session| matching.has(session.labels));
                SampleSet::plain(passing.filter_map(|session| session.value(metric)).collect())
            }
            Samples::ToolRun(value) => {
                let begins_within =
                    |row: &&ToolRow| span.is_none_or(|(from, to)| (from..to).contains(&row.times.ready));
                let measured = self.requests.measured_tool_runs().filter(begins_within);
                let passing = measured.filter(|row| matching.has(row.labels));
                SampleSet::plain(passing.map(|row| value(&row.times)).collect())
            }
            Samples::Request(_) => SampleSet::plain(
                passing()
                    .filter_map(|place| rows[place as usize].sample(metric))
                    .collect(),
            ),
        }
    }
}

/// Returns the items that were intended within `[from, to)`; the items must be in the order of
/// their instants.
fn within<T>(items: &[T], span: Option<TimeSpan>, intended: impl Fn(&T) -> Nanos) -> &[T] {
    let Some((from, to)) = span else {
        return items;
    };
    let place = |at: Nanos| items.partition_point(|item| intended(item) < at);
    &items[place(from)..place(to)]
}

impl RunResults for RunSamples {
    fn metrics(&self) -> Vec<String> {
        self.names()
    }

    fn run_metric(&self, name: &str) -> Option<f64> {
        self.run_metrics.get(&RunMetric::of_name(name)?).copied()
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> MetricStats {
        if filter.is_empty() {
            return stats(self.summary(metric));
        }
        let set = self.set(metric, &self.matching(filter), None);
        stats(set.summary().as_ref())
    }

    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64> {
        let share = fraction(percent);
        let known = || self.summary(metric)?.known_quantile(share);
        let found = if filter.is_empty() { known() } else { None };
        found.or_else(|| self.set(metric, &self.matching(filter), None).percentile(share))
    }

    /// Omits windows without samples if there are more than a hundred thousand windows.
    fn windows(&self, metric: &str, filter: &[Label], length: Nanos) -> Vec<WindowStats> {
        let length = length.max(1);
        let matching = self.matching(filter);
        let of = |(from, to): TimeSpan| {
            let summary = self.set(metric, &matching, Some((from, to))).summary();
            WindowStats {
                from,
                to,
                stats: stats(summary.as_ref()),
            }
        };
        let spans = self.spans(metric, &self.matching(&[]), length);
        let last = spans.last().map(|(from, _)| (from - self.begin()) / length);
        match last {
            Some(last) if last < MANY_WINDOWS => {
                (0..=last).map(|number| of(self.span(number, length))).collect()
            }
            _ => spans
                .into_iter()
                .map(of)
                .filter(|window| window.stats.count > 0)
                .collect(),
        }
    }
}

/// Returns a percentage as a fraction, by moving the decimal point: 99.9 / 100 is not 0.999 in
/// binary.
pub(crate) fn fraction(percent: f64) -> f64 {
    format!("{percent}e-2").parse().unwrap_or(percent / 100.0)
}
