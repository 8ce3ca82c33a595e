//! Export of a run as AIPerf's files.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use veeksha_events::Event;
use veeksha_model::{Nanos, RequestRecord, Status};

use super::curves::Curves;
use super::facts::Facts;
use super::files::{self, AiperfFiles, ExportMetadata};
use super::results::{Metric, Selection};
use super::row;
use crate::answer;
use crate::options::{Options, OptionsError, Threshold};
use crate::sample::GapPool;
use crate::tokens::TokenCounts;
use crate::tool::Tool;

/// Metadata of a run that AIPerf's files contain next to its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AiperfInfo {
    /// `benchmark_id`: the run's identifier.
    pub benchmark_id: String,
    /// `aiperf_version`: the program that wrote the file, such as `veeksha-host 0.1.0`.
    pub version: String,
    /// `run_info.random_seed`.
    pub seed: Option<u64>,
    /// `run_info.cli_command`, without secrets.
    pub cli_command: String,
    /// `input_config`: the resolved configuration, without secrets.
    pub input_config: Value,
    /// Goodput thresholds by AIPerf's tags, in the displayed units (milliseconds).
    pub goodput: Vec<Threshold>,
    /// Name of the tokenizer behind the client's counts, as used in a sentence; `None` omits the
    /// remark.
    pub tokenizer: Option<String>,
    /// Length of a time slice in nanoseconds; `None` or 0 omits the slices.
    pub slice: Option<Nanos>,
}

/// Produces AIPerf's files of a run: `profile_export_aiperf.json`, `.csv`, `profile_export.jsonl`
/// and, on request, the time slices.
///
/// Keeps about 250 bytes per request and four per gap between chunks.
#[derive(Debug)]
pub struct AiperfExport {
    info: AiperfInfo,
    state: State,
    tokens: TokenCounts,
}

/// Data collected from the run so far.
#[derive(Debug, Default)]
pub(super) struct State {
    epoch: u64,
    facts: Vec<Facts>,
    gaps: GapPool,
    /// Failures by HTTP status, class and message.
    errors: BTreeMap<(Option<u16>, &'static str, String), u64>,
    end: Nanos,
    interrupted: bool,
    ended: bool,
}

/// Reason why an answer that is complete for HTTP counts as an error.
pub(super) const NO_CONTENT: &str = "no response with content: only a role, usage or end markers came";

impl AiperfExport {
    /// Creates an export of an empty run.
    ///
    /// # Errors
    ///
    /// Returns an error if a goodput threshold names an unknown metric, is repeated, negative or
    /// not a number.
    pub fn new(info: AiperfInfo) -> Result<Self, OptionsError> {
        let options = Options {
            goodput: info.goodput.clone(),
            ..Options::default()
        };
        options.check(Tool::Aiperf)?;
        Ok(AiperfExport {
            info,
            state: State::default(),
            tokens: TokenCounts::default(),
        })
    }

    /// Processes an event.
    pub fn on(&mut self, event: &Event) {
        if let Event::Finished(record) = event
            && record.measured
        {
            self.tokens.take(record);
        }
        self.state.on(event);
    }

    /// Returns the line of `profile_export.jsonl`, with its line end, for a finished and measured
    /// request; `None` for other events. It depends only on the start of the run, so lines can be
    /// written immediately.
    pub fn jsonl_line(&self, event: &Event) -> Option<Vec<u8>> {
        match event {
            Event::Finished(record) if record.measured => {
                Some(row::line(record, self.state.epoch, &self.info.goodput))
            }
            _ => None,
        }
    }

    /// Returns the files. A truncated run gives files of what exists, marked as incomplete.
    pub fn finish(self) -> AiperfFiles {
        let AiperfExport { info, state, tokens } = self;
        let metrics = state.metrics(&info.goodput);
        let slices = info.slice.filter(|&slice| slice > 0).map(|slice| {
            files::slices(
                &state.slices(slice, &info.goodput),
                state.epoch,
                &info.input_config,
            )
        });
        let frame = ExportMetadata {
            info: &info,
            epoch: state.epoch,
            end: state.end,
            interrupted: state.interrupted,
            ended: state.ended,
            errors: state.error_summary(),
        };
        AiperfFiles {
            json: files::json(&metrics, &frame),
            csv: files::csv(&metrics),
            timeslices: slices,
            remarks: tokens.note(info.tokenizer.as_deref()).into_iter().collect(),
        }
    }
}

impl State {
    pub(super) fn on(&mut self, event: &Event) {
        match event {
            Event::RunStarted(info) => self.epoch = info.epoch_wall_nanos,
            Event::Finished(record) if record.measured => self.take(record),
            Event::Interrupted { .. } => self.interrupted = true,
            Event::RunEnded { .. } => self.ended = true,
            _ => {}
        }
    }

    fn take(&mut self, record: &RequestRecord) {
        let facts = Facts::of(record, &mut self.gaps);
        self.end = self.end.max(answer::end_time(record));
        if facts.error {
            let key = match &record.status {
                Status::Ok { .. } => (None, "InvalidInferenceResultError", NO_CONTENT.to_owned()),
                Status::Failed { class, message } => {
                    let status = record.http_status.filter(|status| !(200..300).contains(status));
                    (status, class.name(), message.clone())
                }
            };
            *self.errors.entry(key).or_default() += 1;
        }
        self.facts.push(facts);
    }

    /// Returns all metrics of the run.
    pub(super) fn metrics(&self, goodput: &[Threshold]) -> Vec<Metric> {
        let selection = Selection {
            requests: self.facts.iter().collect(),
            gaps: &self.gaps,
            goodput,
            window: (0, self.end),
            slice: false,
        };
        let mut metrics = selection.metrics();
        metrics.extend(Curves::of(&self.facts, &self.gaps).metrics(0, self.end));
        metrics
    }

    /// `_compute_timeslices`: windows from the first start on. A request belongs to the window in
    /// which it started; empty windows are left out.
    fn slices(&self, slice: Nanos, goodput: &[Threshold]) -> Vec<Slice> {
        let curves = Curves::of(&self.facts, &self.gaps);
        let first = self.facts.iter().map(|facts| facts.start).min().unwrap_or(0);
        let last = self.facts.iter().map(|facts| facts.end).max().unwrap_or(0);
        let mut windows: BTreeMap<u64, Vec<&Facts>> = BTreeMap::new();
        for facts in &self.facts {
            windows
                .entry((facts.start - first) / slice)
                .or_default()
                .push(facts);
        }
        let slice_of = |(index, requests): (u64, Vec<&Facts>)| {
            let from = first.saturating_add(index.saturating_mul(slice));
            let end = from.saturating_add(slice);
            let complete = end <= last;
            let to = end.min(last);
            let selection = Selection {
                requests,
                gaps: &self.gaps,
                goodput,
                window: (from, to),
                slice: true,
            };
            let mut metrics = selection.metrics();
            metrics.extend(curves.metrics(from, to));
            Slice {
                from,
                to,
                complete,
                metrics,
            }
        };
        windows.into_iter().map(slice_of).collect()
    }

    fn error_summary(&self) -> Vec<Value> {
        let of = |((status, class, message), count): (&(Option<u16>, &str, String), &u64)| {
            let mut details = json!({ "type": class, "message": message });
            if let (Some(status), Some(details)) = (status, details.as_object_mut()) {
                details.insert("code".into(), (*status).into());
            }
            json!({ "error_details": details, "count": count })
        };
        self.errors.iter().map(of).collect()
    }
}

/// Metrics of one window, with instants relative to the run's zero.
pub(super) struct Slice {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) complete: bool,
    pub(super) metrics: Vec<Metric>,
}
