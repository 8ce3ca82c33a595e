//! Metrics, SLOs and summaries: functions of a run's record.
//!
//! A [`RunEvaluator`] processes the events of a run in any order and keeps the data that the
//! results need: 200 bytes per request, four per gap between chunks. It does not read a clock and
//! does no IO, so live runs, simulations and old records produce identical results.
//! [`RunEvaluator::live`] returns statistics during the run, [`RunEvaluator::finish`] the exact
//! results: an [`Evaluation`], whose [`RunSamples`] answer further queries by metric, label and
//! window.
//!
//! The [`Catalogue`] lists the available metrics: the built-in [`Metric`]s, plugin metrics, and the
//! [`RunMetric`]s of the whole run. [`Objectives`] are checked against it before the run;
//! [`SloResults`] holds their results.
//!
//! The client's contribution to each metric is estimated along the way ([`ErrorEstimate`]); the
//! crate `veeksha-certificate` derives the verdict on the run from it.
//!
//! [`Fidelity`] compares a replayed trace with its recording.
//!
//! **Included requests.** A metric is computed from *measured* requests only
//! (`RequestRecord::measured`); drained ones are counted separately. Latencies, token counts and
//! throughput come from answered requests; failures are counted by class. A value that could not be
//! observed is absent (`null` in files), never 0.
#![forbid(unsafe_code)]

#[cfg(test)]
mod blank;
mod cache_accounting;
mod catalogue;
mod counts;
mod curves;
mod custom_samples;
mod decode_windows;
mod edges;
mod error_estimates;
mod evaluation;
mod evaluator;
mod fidelity;
mod fidelity_report;
mod finish;
mod fluidity;
mod gaps;
mod groups;
mod host_metrics;
mod json;
mod json_shapes;
mod label_sets;
mod latencies;
mod live;
mod live_seconds;
mod metric_summaries;
mod objectives;
mod pooled;
mod prefill;
mod ranks;
mod reads;
mod refused;
mod request_totals;
mod requests;
mod row;
mod run_metric;
mod run_samples;
mod sample_set;
mod schedule;
mod sent_requests;
mod session_graph;
mod sessions;
mod setup;
mod slices;
mod summary_columns;
mod threads;
mod throughput;
mod timed;
mod token_bins;
mod token_counts;
mod token_times;
mod tool_runs;
mod what_if;
mod windows;
mod workload;
mod workload_failures;

pub use cache_accounting::{CacheAccounting, CacheEdge, CacheEdgeKind, ClassifiedPrompts};
pub use catalogue::{Catalogue, CatalogueError, MetricInfo};
pub use counts::{RunCounts, ServerCounts};
pub use curves::{CurvePoint, LoadCurve, LoadCurves};
pub use decode_windows::{
    DecodeConcurrency, DecodeWindowRules, DecodeWindowSelection, DecodeWindows, WholeAnswers, WindowAnchor,
};
pub use error_estimates::{ErrorEstimate, ErrorPart};
pub use evaluation::{Evaluation, RecordEnd};
pub use evaluator::RunEvaluator;
pub use fidelity::{Fidelity, FidelitySchedule};
pub use fidelity_report::{ArrivalFidelity, EdgeFidelity, FidelityReport, Lengths, PrefixHits};
pub use fluidity::Deadlines;
pub use groups::{GroupKey, LabelGroups, RequestGroup};
pub use host_metrics::{HeldDelays, HostPerformance, LagDistribution};
pub use latencies::{RequestLatencies, latencies};
pub use live::{LiveDistribution, LiveStats};
pub use live_seconds::LiveSecond;
pub use metric_summaries::{BuiltInSummary, CustomSummary};
pub use objectives::{
    ConstantSlo, DecidingWindow, ObjectiveError, ObjectiveProblem, Objectives, PluginVerdict, SloResult,
    SloResults, Stated,
};
pub use prefill::PrefillStats;
pub use refused::{RefusedSamples, SampleFault};
pub use request_totals::RequestTotals;
pub use run_metric::{RunMetric, RunMetricInfo};
pub use run_samples::RunSamples;
pub use sent_requests::{SentPrefix, SentRequests};
pub use sessions::{PathTimes, SessionMetrics};
pub use setup::Setup;
pub use slices::{TimeSlice, TimeSlices};
pub use threads::ThreadUse;
pub use throughput::Throughput;
pub use token_counts::{AnswerTokens, CountComparison, PromptCounts};
pub use tool_runs::ToolCounts;
pub use veeksha_definitions::{
    CacheClass, CacheTokens, Metric, Needs, Observation, PathPart, Samples, Scope, UnknownMetric,
    seconds_between,
};
pub use what_if::{Counterfactual, WhatIf, WhatIfError};
pub use workload::WorkloadDigest;
pub use workload_failures::WorkloadFailures;
