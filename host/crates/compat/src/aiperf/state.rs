//! Data of a run from which AIPerf's files and tables are computed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use veeksha_events::Event;
use veeksha_model::{Nanos, RequestRecord, Status};

use super::curves::AiperfCurves;
use super::facts::RequestFacts;
use super::results::{AiperfMetric, Selection};
use crate::answer;
use crate::options::Threshold;
use crate::sample::GapPool;

/// Data collected from the run so far.
#[derive(Debug, Default)]
pub(super) struct AiperfState {
    pub(super) epoch: u64,
    pub(super) run_id: Option<String>,
    facts: Vec<RequestFacts>,
    gaps: GapPool,
    /// Failures by HTTP status, class and message.
    errors: BTreeMap<(Option<u16>, &'static str, String), u64>,
    pub(super) end: Nanos,
    pub(super) interrupted: bool,
    pub(super) ended: bool,
}

/// Reason why an answer that is complete for HTTP counts as an error.
pub(super) const NO_CONTENT: &str = "no response with content: only a role, usage or end markers came";

impl AiperfState {
    pub(super) fn on(&mut self, event: &Event) {
        match event {
            Event::RunStarted(info) => {
                self.epoch = info.epoch_wall_nanos;
                self.run_id = info.run_id.clone();
            }
            // What its workload cancels is neither an answer nor an error.
            Event::Finished(record) if record.measured && record.status != Status::CancelledByClient => {
                self.take(record);
            }
            Event::Interrupted { .. } => self.interrupted = true,
            Event::RunEnded { .. } => self.ended = true,
            _ => {}
        }
    }

    fn take(&mut self, record: &RequestRecord) {
        let facts = RequestFacts::of(record, &mut self.gaps);
        self.end = self.end.max(answer::end_time(record));
        if facts.error {
            let key = match &record.status {
                Status::Ok { .. } | Status::CancelledByClient => {
                    (None, "InvalidInferenceResultError", NO_CONTENT.to_owned())
                }
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
    pub(super) fn metrics(&self, goodput: &[Threshold]) -> Vec<AiperfMetric> {
        let selection = Selection {
            requests: self.facts.iter().collect(),
            gaps: &self.gaps,
            goodput,
            window: (0, self.end),
            slice: false,
        };
        let mut metrics = selection.metrics();
        metrics.extend(AiperfCurves::of(&self.facts, &self.gaps).metrics(0, self.end));
        metrics
    }

    /// `_compute_timeslices`: windows from the first start on. A request belongs to the window in
    /// which it started; empty windows are left out.
    pub(super) fn slices(&self, slice: Nanos, goodput: &[Threshold]) -> Vec<AiperfSlice> {
        let curves = AiperfCurves::of(&self.facts, &self.gaps);
        let first = self.facts.iter().map(|facts| facts.start).min().unwrap_or(0);
        let last = self.facts.iter().map(|facts| facts.end).max().unwrap_or(0);
        let mut windows: BTreeMap<u64, Vec<&RequestFacts>> = BTreeMap::new();
        for facts in &self.facts {
            windows
                .entry((facts.start - first) / slice)
                .or_default()
                .push(facts);
        }
        let slice_of = |(index, requests): (u64, Vec<&RequestFacts>)| {
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
            AiperfSlice {
                from,
                to,
                complete,
                metrics,
            }
        };
        windows.into_iter().map(slice_of).collect()
    }

    pub(super) fn error_summary(&self) -> Vec<Value> {
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
pub(super) struct AiperfSlice {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) complete: bool,
    pub(super) metrics: Vec<AiperfMetric>,
}
