//! Collects a run for AIPerf's files.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use veeksha_events::Event;
use veeksha_model::{Nanos, RequestRecord, Status};

use super::curves::Curves;
use super::facts::Facts;
use super::files::{self, AiperfFiles, Frame};
use super::results::{Metric, Selection};
use super::row;
use crate::answer;
use crate::options::{Options, OptionsError, Threshold};
use crate::sample::Gaps;
use crate::tokens::TokenCounts;
use crate::tool::Tool;

/// What AIPerf's files say of a run beside its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AiperfInfo {
    /// `benchmark_id`: the run's identifier.
    pub benchmark_id: String,
    /// `aiperf_version`: who wrote the file, such as `veeksha-host 0.1.0`.
    pub version: String,
    /// `run_info.random_seed`.
    pub seed: Option<u64>,
    /// `run_info.cli_command`, without secrets.
    pub cli_command: String,
    /// `input_config`: the resolved configuration, without secrets.
    pub input_config: Value,
    /// Goodput's thresholds, by AIPerf's tags, in the displayed units (milliseconds).
    pub goodput: Vec<Threshold>,
    /// Which tokenizer the client's counts are from, as it reads in a sentence; `None`: nothing is said of it.
    pub tokenizer: Option<String>,
    /// The length of the time slices, in nanoseconds; `None` or 0: none.
    pub slice: Option<Nanos>,
}

/// Makes AIPerf's files of a run: `profile_export_aiperf.json`, `.csv`, `profile_export.jsonl` and, if asked for, the time slices.
///
/// It keeps some 250 bytes for a request and four for a gap between its chunks.
#[derive(Debug)]
pub struct AiperfExport {
    info: AiperfInfo,
    state: State,
    tokens: TokenCounts,
}

/// What is known of the run so far.
#[derive(Debug, Default)]
pub(super) struct State {
    epoch: u64,
    facts: Vec<Facts>,
    gaps: Gaps,
    /// By HTTP status, class and message.
    errors: BTreeMap<(Option<u16>, &'static str, String), u64>,
    end: Nanos,
    interrupted: bool,
    ended: bool,
}

/// Why an answer that HTTP calls complete is an error.
pub(super) const NO_CONTENT: &str = "no response with content: only a role, usage or end markers came";

impl AiperfExport {
    /// Starts with an empty run.
    ///
    /// # Errors
    ///
    /// If a threshold of goodput names no metric of AIPerf, is repeated, negative or not a number.
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

    /// Takes in an event.
    pub fn on(&mut self, event: &Event) {
        if let Event::Finished(record) = event
            && record.measured
        {
            self.tokens.take(record);
        }
        self.state.on(event);
    }

    /// The line of `profile_export.jsonl` for a request that finished and counts, with its line end; `None` for other events.
    /// It needs nothing but the start of the run, so lines can be written as they come.
    pub fn jsonl_line(&self, event: &Event) -> Option<Vec<u8>> {
        match event {
            Event::Finished(record) if record.measured => {
                Some(row::line(record, self.state.epoch, &self.info.goodput))
            }
            _ => None,
        }
    }

    /// The files, after the last event. A run that was cut short gives the files of what there is, marked as incomplete.
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
        let frame = Frame {
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
            remarks: tokens.remark(info.tokenizer.as_deref()).into_iter().collect(),
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
        self.end = self.end.max(answer::over(record));
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

    /// All metrics of the run.
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

    /// `_compute_timeslices`: windows from the first start on; a request belongs to the window in which it started, and windows
    /// in which none did are left out.
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

/// The metrics of one window, instants relative to the run's zero.
pub(super) struct Slice {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) complete: bool,
    pub(super) metrics: Vec<Metric>,
}
