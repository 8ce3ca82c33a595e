//! The run in slices of equal length.

use serde_json::{Map, Value, json};
use veeksha_model::Nanos;

use crate::json_shapes::summary_json;
use crate::metric_summaries::BuiltInSummary;
use crate::request_totals::{RequestTotals, TOTAL_COLUMNS};
use crate::run_samples::RunSamples;
use crate::summary_columns::{SUMMARY_COLUMNS, summary_cells};
use veeksha_definitions::Metric;

/// The largest number of slices. The slice length of a longer run is doubled until they fit.
const MAX_SLICES: u64 = 2000;

/// The shortest automatic length, and the largest number of slices of automatic length: enough
/// points for a chart, and few enough for a table.
const SHORTEST_AUTOMATIC: Nanos = 125_000_000;
const MAX_AUTOMATIC_SLICES: u64 = 60;

/// A slice that the schedule filled to less than 1/`RATED` has no rates: it is too short for them.
const RATED: u64 = 10;

/// The measured requests of a run by scheduled instant, in slices of equal length from the first
/// one on. A request belongs to the slice in which it was intended, with its answer, however much
/// later that arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeSlices {
    /// The length of a slice in nanoseconds.
    pub length: Nanos,
    /// In order of time, including those without intended requests.
    pub slices: Vec<TimeSlice>,
}

/// One slice of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSlice {
    /// The start of the slice.
    pub from: Nanos,
    /// The end of the slice; for the last slice, the end of the schedule if that is earlier.
    pub to: Nanos,
    /// The duration for the rates of the slice; `None` if it is too short.
    pub seconds: Option<f64>,
    /// True if the schedule continued beyond the end of the slice, and every request that was
    /// intended in it is known to have ended. Rates of other slices are of little significance.
    pub complete: bool,
    /// Requests that were intended in the slice, sent, and ended.
    pub totals: RequestTotals,
    /// Dispatched, with unknown outcome.
    pub unfinished: u64,
    /// The latencies and the throughput of answered requests, for metrics with samples.
    pub metrics: Vec<BuiltInSummary>,
}

impl TimeSlice {
    fn columns(&self) -> [(&'static str, Value); TOTAL_COLUMNS] {
        self.totals
            .columns(self.requests_per_second(), self.output_tokens_per_second())
    }

    fn rate(&self, amount: u64) -> Option<f64> {
        self.seconds.map(|seconds| amount as f64 / seconds)
    }

    /// Returns the answered requests per second of the slice.
    pub fn requests_per_second(&self) -> Option<f64> {
        self.rate(self.totals.completed)
    }

    /// Returns the failed requests per second of the slice.
    pub fn errored_per_second(&self) -> Option<f64> {
        self.rate(self.totals.errored)
    }

    /// Returns the prompt tokens of answered requests per second of the slice.
    pub fn input_tokens_per_second(&self) -> Option<f64> {
        self.rate(self.totals.input_tokens)
    }

    /// Returns the output tokens of answered requests per second of the slice.
    pub fn output_tokens_per_second(&self) -> Option<f64> {
        self.rate(self.totals.output_tokens)
    }

    /// Returns the summary of a metric.
    pub fn metric(&self, metric: Metric) -> Option<&veeksha_stats::Summary> {
        self.metrics
            .iter()
            .find(|entry| entry.metric == metric)
            .map(|entry| &entry.summary)
    }
}

/// The entries that only slices have: before the counts, and after the cancelled requests.
const BOUNDS: [&str; 3] = ["from", "to", "complete"];
const UNFINISHED: &str = "unfinished";

impl TimeSlices {
    /// Returns the slices as JSON: values by snake_case name, instants in seconds.
    pub fn json(&self) -> Value {
        let slice = |slice: &TimeSlice| {
            let metrics: Map<String, Value> = slice
                .metrics
                .iter()
                .map(|entry| (entry.metric.name().to_owned(), summary_json(&Some(entry.summary))))
                .collect();
            let bounds = [
                json!(slice.from as f64 / 1e9),
                json!(slice.to as f64 / 1e9),
                json!(slice.complete),
            ];
            let own = [
                (UNFINISHED, json!(slice.unfinished)),
                ("metrics", Value::Object(metrics)),
            ];
            BOUNDS
                .into_iter()
                .zip(bounds)
                .chain(own)
                .chain(slice.columns())
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Value>()
        };
        json!({
            "slice_seconds": self.length as f64 / 1e9,
            "slices": self.slices.iter().map(slice).collect::<Vec<_>>(),
        })
    }

    /// Returns a table for a CSV file: the names of the columns, and a row for each slice; `None`
    /// for values that do not exist.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<Option<f64>>>) {
        let [requests, completed, errored, cancelled, by_client, others @ ..] = RequestTotals::column_names();
        let mut columns: Vec<String> = BOUNDS
            .into_iter()
            .chain([requests, completed, errored, cancelled, by_client, UNFINISHED])
            .chain(others)
            .map(str::to_owned)
            .collect();
        for metric in Metric::in_slices() {
            columns.extend(SUMMARY_COLUMNS.map(|column| format!("{}_{column}", metric.name())));
        }
        let row = |slice: &TimeSlice| {
            let totals = slice.columns().map(|(_, value)| value.as_f64());
            let [requests, completed, errored, cancelled, by_client, others @ ..] = totals;
            let bounds = [
                Some(slice.from as f64 / 1e9),
                Some(slice.to as f64 / 1e9),
                Some(f64::from(u8::from(slice.complete))),
            ];
            let unfinished = Some(slice.unfinished as f64);
            let mut row: Vec<Option<f64>> = bounds
                .into_iter()
                .chain([requests, completed, errored, cancelled, by_client, unfinished])
                .chain(others)
                .collect();
            for metric in Metric::in_slices() {
                row.extend(summary_cells(slice.metric(metric)));
            }
            row
        };
        (columns, self.slices.iter().map(row).collect())
    }
}

/// The inputs of the slices other than the samples.
pub(crate) struct Course<'a> {
    /// Intended instants of requests that were dispatched in time and never ended.
    pub(crate) unfinished: &'a [Nanos],
    /// True if goodput is defined and known.
    pub(crate) judged: bool,
}

/// Returns the length of the slices of a schedule. Automatic lengths are powers of two of a second,
/// so that runs of similar length have the same slices.
fn slice_length(wanted: Option<Nanos>, scheduled: Nanos) -> Nanos {
    let (mut length, most) = match wanted {
        Some(wanted) => (wanted.max(1), MAX_SLICES),
        None => (SHORTEST_AUTOMATIC, MAX_AUTOMATIC_SLICES),
    };
    while scheduled / length >= most {
        length = length.saturating_mul(2);
    }
    length
}

/// Divides a run into slices of the wanted length, or of an automatic one.
pub(crate) fn slices(samples: &RunSamples, wanted: Option<Nanos>, course: &Course<'_>) -> TimeSlices {
    let measured = || samples.requests.rows.iter().filter(|row| row.measured);
    let Some(schedule) = samples.schedule() else {
        return TimeSlices {
            length: slice_length(wanted, 0),
            slices: Vec::new(),
        };
    };
    let length = slice_length(wanted, schedule.last - schedule.begin);
    let number = |at: Nanos| (at.saturating_sub(schedule.begin) / length) as usize;
    let mut slices: Vec<TimeSlice> = (0..=number(schedule.last) as u64)
        .map(|number| {
            let from = schedule.begin + number * length;
            let whole = from.saturating_add(length);
            // A schedule of one instant has no duration, so its slice keeps the full length.
            let to = match schedule.end.min(whole) {
                end if end > schedule.last => end,
                _ => whole,
            };
            let covered = schedule.end.min(whole) - from.min(schedule.end);
            TimeSlice {
                from,
                to,
                seconds: (covered > 0 && covered >= length / RATED).then(|| covered as f64 / 1e9),
                complete: schedule.passed(whole),
                totals: RequestTotals::new(course.judged),
                unfinished: 0,
                metrics: Vec::new(),
            }
        })
        .collect();
    measured().for_each(|row| slices[number(row.observed.intended)].totals.add(row));
    for at in course.unfinished {
        let slice = &mut slices[number(*at)];
        slice.unfinished += 1;
        slice.complete = false;
    }
    let all = samples.matching(&[]);
    for slice in &mut slices {
        let span = Some((slice.from, slice.to));
        let summary = |metric: Metric| {
            let summary = samples.set(metric.name(), &all, span).summary()?;
            Some(BuiltInSummary { metric, summary })
        };
        slice.metrics = Metric::in_slices().into_iter().filter_map(summary).collect();
    }
    TimeSlices { length, slices }
}
