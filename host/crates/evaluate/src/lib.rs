//! Metrics, SLOs, summaries: functions of a run's record.
//!
//! An [`Evaluator`] takes the events of a run in the order in which they come and holds what the figures need: one
//! number per sample, and the sessions and requests that are still open. It reads no clock and does no IO, so the same
//! figures come out live, from a simulation and from an old record. [`Evaluator::live`] gives figures on the way,
//! [`Evaluator::finish`] the exact ones.
//!
//! [`certify`] judges the run by its own record: how much of each metric is the client's doing. [`compare`] measures that against a
//! server whose own times are known.
//!
//! [`Fidelity`] does the same for a replayed trace: what was recorded against what was achieved.
//!
//! **What counts.** A metric is computed from *measured* requests only (`RequestRecord::measured`); drained ones are
//! counted apart. Latencies, token counts and throughput come from answered requests; failures are counted by class.
//! Whatever could not be observed is absent (`null` in files), never 0.
#![forbid(unsafe_code)]

#[cfg(test)]
mod blank;
mod certificate;
mod certificate_json;
mod counts;
mod decode_windows;
mod edges;
mod errors;
mod evaluation;
mod evaluator;
mod fidelity;
mod fidelity_report;
mod gap_samples;
mod host_figures;
mod json;
mod latencies;
mod metric;
mod prefill;
mod reads;
mod samples;
mod self_test;
mod sessions;
mod slo;
mod threads;
mod throughput;
mod verdicts;

pub use certificate::{
    Basis, CertFinding, Certificate, ENOUGH, ErrorBound, ErrorSource, FINEST, Thresholds, Verdict, certify,
};
pub use counts::{Counts, ServerCounts};
pub use decode_windows::{
    DecodeWindowConfig, DecodeWindows, MinActiveRequests, WholeAnswers, WindowAnchor, WindowSelection,
};
pub use errors::{ErrorEstimate, ErrorPart};
pub use evaluation::{Evaluation, MetricSummary, RunEnd};
pub use evaluator::{Evaluator, Live};
pub use fidelity::{Fidelity, FidelitySchedule};
pub use fidelity_report::{Arrivals, Edges, FidelityReport, Lengths, PrefixHits};
pub use host_figures::{HeldFigures, HostFigures, LagFigures};
pub use latencies::latencies;
pub use metric::{Metric, Scope, UnknownMetric};
pub use prefill::PrefillStats;
pub use self_test::{ErrorFigures, SelfTest, TwinRequest, compare};
pub use slo::{Slo, SloResult, SloResults};
pub use threads::ThreadFigures;
pub use throughput::Throughput;
