//! The results of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use veeksha_definitions::Metric;
use veeksha_events::FailedPlugin;
use veeksha_ports::SloVerdict;
use veeksha_stats::Summary;

use crate::cache_accounting::CacheAccounting;
use crate::counts::RunCounts;
use crate::curves::LoadCurves;
use crate::groups::LabelGroups;
use crate::host_metrics::HostPerformance;
use crate::metric_summaries::{BuiltInSummary, CustomSummary};
use crate::objectives::{PluginVerdict, SloResults};
use crate::refused::RefusedSamples;
use crate::run_metric::RunMetric;
use crate::run_samples::RunSamples;
use crate::sent_requests::SentRequests;
use crate::slices::TimeSlices;
use crate::throughput::Throughput;
use crate::workload::WorkloadDigest;
use crate::workload_failures::WorkloadFailures;

/// All results of a run. The methods return them in the format of Veeksha's files, with additional
/// keys for what Veeksha omits. A value that does not exist is `null` (or its key is absent, where
/// Veeksha omits it).
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Counts of requests and sessions by outcome.
    pub counts: RunCounts,
    /// Summaries of built-in metrics that have samples, in the order of [`Metric::all`].
    pub metrics: Vec<BuiltInSummary>,
    /// Summaries of plugin metrics that have samples, in the order of their definitions.
    pub custom: Vec<CustomSummary>,
    /// The delivered throughput.
    pub throughput: Throughput,
    /// The prompt tokens by what the servers' caches could have known; `None` if the servers report
    /// no cached tokens.
    pub cache: Option<CacheAccounting>,
    /// The results of objectives, and goodput.
    pub slos: SloResults,
    /// Load and throughput over time.
    pub curves: LoadCurves,
    /// The run in slices of equal length.
    pub slices: TimeSlices,
    /// The requests grouped by the values of labels.
    pub groups: Vec<LabelGroups>,
    /// Statistics of the host's own performance.
    pub host: HostPerformance,
    /// Sessions started per second: (sessions − 1) / (last start − first start).
    pub session_dispatch_rate: Option<f64>,
    /// The digest of the planned workload, if the record contains it.
    pub workload: Option<WorkloadDigest>,
    /// The digest of the requests that were sent; `None` in virtual time, and for records without
    /// digests of bodies.
    pub sent: Option<SentRequests>,
    /// All samples, for further queries.
    pub samples: Arc<RunSamples>,
    /// The state of the record's end.
    pub end: RecordEnd,
    /// Dropped samples of plugin metrics, by metric and reason.
    pub refused: Vec<RefusedSamples>,
    /// Plugins that failed while they measured or judged: their results cover only the requests
    /// before the failure.
    pub failed: Vec<FailedPlugin>,
    /// Failures of workload plugins, by plugin.
    pub workload_failures: Vec<WorkloadFailures>,
}

/// The state of a record's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordEnd {
    /// True if the run ended normally and its record is complete. A record without an end event was
    /// cut short.
    pub complete: bool,
    /// True if parts of the record could not be read. The lost part may contain any event.
    pub damaged: bool,
    /// True if a part of the record could not be written. The results cover all events, and a
    /// later evaluation of the record does not.
    pub unrecorded: bool,
    /// True if the user interrupted the run.
    pub interrupted: bool,
    /// True if the record had requests of which none could be read: their outcome is unknown.
    pub requests_unread: bool,
    /// Definitions of plugin metrics that were rejected because their names are taken or invalid.
    pub refused_metrics: u64,
    /// Samples of plugin metrics that were dropped: values that are not finite or exceed 1e90, or
    /// weights that are not positive.
    pub refused_samples: u64,
}

impl Evaluation {
    /// Returns the summary of a built-in metric; `None` if it has no samples.
    pub fn metric(&self, metric: Metric) -> Option<&Summary> {
        self.metrics
            .iter()
            .find(|entry| entry.metric == metric)
            .map(|entry| &entry.summary)
    }

    /// Returns a run metric; `None` if it does not exist.
    pub fn run_metric(&self, metric: RunMetric) -> Option<f64> {
        self.run_metrics().get(&metric).copied()
    }

    /// Returns the run metrics that exist.
    pub fn run_metrics(&self) -> &BTreeMap<RunMetric, f64> {
        &self.samples.run_metrics
    }

    /// Marks the record as damaged, which the certificate reports.
    pub fn mark_record_damaged(&mut self) {
        self.end.damaged = true;
        self.end.complete = false;
    }

    /// Returns the reason why no request was measured, if none was.
    pub fn why_nothing_was_measured(&self) -> Option<String> {
        if self.counts.requests > 0 {
            return None;
        }
        let sent = self.counts.unfinished;
        if sent == 0
            && let Some(failed) = self.workload_failures.first()
        {
            return Some(format!(
                "nothing was measured: the plugin `{}` failed {}",
                failed.plugin, failed.first
            ));
        }
        Some(match (self.end.requests_unread, sent) {
            (true, _) => {
                "the result of the run is unknown: the record's table of requests could not be read".into()
            }
            (false, 0) => "nothing was measured: the run ended before its first request".into(),
            (false, 1) => "nothing was measured: 1 request was sent, and its end was not recorded".into(),
            (false, _) => {
                format!("nothing was measured: {sent} requests were sent, and the end of none was recorded")
            }
        })
    }

    /// Sets a plugin's complete verdicts on the run, which count in [`SloResults::all_met`]. They
    /// replace the plugin's recorded verdicts.
    pub fn set_verdicts(&mut self, plugin: &str, verdicts: Vec<SloVerdict>) {
        let catalogue = self.samples.catalogue();
        let said = verdicts
            .into_iter()
            .map(|verdict| PluginVerdict::new(plugin, verdict, catalogue));
        let all = &mut self.slos.verdicts;
        let place = all.iter().position(|before| before.plugin == plugin);
        all.retain(|before| before.plugin != plugin);
        let place = place.unwrap_or(all.len());
        all.splice(place..place, said);
    }

    /// Returns the names of the labels of the measured requests and of their sessions.
    pub fn label_names(&self) -> BTreeSet<&str> {
        self.samples.label_names()
    }
}
