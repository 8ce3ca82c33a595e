//! The results of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use veeksha_events::{FailedPlugin, PluginRole};
use veeksha_model::Nanos;
use veeksha_ports::SloVerdict;
use veeksha_stats::Summary;

use crate::catalogue::MetricInfo;
use crate::counts::Counts;
use crate::curves::Curves;
use crate::curves::{CurveParts, curves};
use crate::evaluator::Evaluator;
use crate::groups::{LabelGroups, groups};
use crate::host_figures::HostFigures;
use crate::json;
use crate::objectives::{PluginVerdict, SloResults};
use crate::objectives::{Unknown, answer, count_good};
use crate::refused::RefusedSamples;
use crate::run_metric::RunMetric;
use crate::run_samples::RunSamples;
use crate::schedule::Schedule;
use crate::sent_requests::SentRequests;
use crate::session_graph;
use crate::slices::TimeSlices;
use crate::slices::{Course, slices};
use crate::throughput::Throughput;
use crate::workload::WorkloadDigest;
use crate::workload_failures::WorkloadFailures;
use veeksha_definitions::Metric;

/// All results of a run. The methods return them in the format of Veeksha's files, with additional
/// keys for what Veeksha omits. A value that does not exist is `null` (or its key is absent, where
/// Veeksha omits it).
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Counts of requests and sessions by outcome.
    pub counts: Counts,
    /// Summaries of built-in metrics that have samples, in the order of [`Metric::all`].
    pub metrics: Vec<MetricSummary>,
    /// Summaries of plugin metrics that have samples, in the order of their definitions.
    pub custom: Vec<CustomSummary>,
    /// The delivered throughput.
    pub throughput: Throughput,
    /// The run-level aggregates that objectives can name, if they exist.
    pub figures: BTreeMap<RunMetric, f64>,
    /// The results of objectives, and goodput.
    pub slos: SloResults,
    /// Load and throughput over time.
    pub curves: Curves,
    /// The run in slices of equal length.
    pub slices: TimeSlices,
    /// The requests grouped by the values of labels.
    pub groups: Vec<LabelGroups>,
    /// Statistics of the host's own performance.
    pub host: HostFigures,
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
    pub end: RunEnd,
    /// Dropped samples of plugin metrics, by metric and reason.
    pub refused: Vec<RefusedSamples>,
    /// Plugins that failed while they measured or judged: their results cover only the requests
    /// before the failure.
    pub failed: Vec<FailedPlugin>,
    /// Failures of workload plugins, by plugin.
    pub workload_failures: Vec<WorkloadFailures>,
}

/// The summary of a metric's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricSummary {
    /// The metric, which provides names and unit.
    pub metric: Metric,
    /// The statistics, in the metric's unit.
    pub summary: Summary,
}

/// The summary of the samples of a plugin metric.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomSummary {
    /// The name of the metric.
    pub name: String,
    /// The plugin's definition; `None` if the record has samples without a definition.
    pub info: Option<MetricInfo>,
    /// The statistics, in the metric's unit; weighted if samples have weights.
    pub summary: Summary,
}

/// The state of a record's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunEnd {
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
    pub(crate) fn of(evaluator: Evaluator) -> Evaluation {
        let Evaluator {
            setup,
            mut counts,
            mut requests,
            mut custom,
            judgements,
            verdicts,
            failed,
            workload_failures,
            planned,
            sent,
            tokens,
            host,
            totals,
            mut sessions,
            open,
            mut end,
            timeout_at,
            stopped_at,
            latest,
            ..
        } = evaluator;
        // Releases data that is no longer needed before steps that need temporary memory.
        let host = host.figures();
        let in_window = |at: Nanos| timeout_at.is_none_or(|timeout| at < timeout);
        let mut unfinished: Vec<Nanos> = open
            .in_flight
            .values()
            .filter(|dispatch| in_window(dispatch.at))
            .map(|dispatch| dispatch.intended)
            .collect();
        unfinished.sort_unstable();
        counts.unfinished = unfinished.len() as u64;
        sessions.sort();
        counts.incomplete_sessions += sessions.without_end();
        counts.sessions = sessions.started();
        end.refused_samples = custom.refused.count();
        let refused = std::mem::take(&mut custom.refused)
            .list(|metric| setup.catalogue.get(metric).and_then(|info| info.plugin.clone()));
        requests.sort();
        let curves = curves(
            &requests.rows,
            CurveParts {
                unfinished: open.in_flight.values().map(|dispatch| dispatch.at).collect(),
                sessions: sessions.active(latest).collect(),
                tokens,
                end: latest,
                window: totals.window(),
            },
        );
        let session_dispatch_rate = sessions.dispatch_rate();
        let table = session_graph::table(&mut requests, &sessions);
        drop(sessions);
        let custom = custom.resolve(&requests);
        let measured = requests.rows.iter().filter(|row| row.measured);
        let intended = measured
            .map(|row| row.observed.intended)
            .chain(unfinished.iter().copied());
        let schedule = Schedule::of(intended, stopped_at);
        let mut samples = RunSamples::new(requests, table, custom, setup.catalogue, schedule);
        let throughput = totals.throughput(
            samples.summary(Metric::Tpot.name()).map(|tpot| tpot.mean),
            samples.summary(Metric::Tbc.name()).map(|tbc| tbc.p99),
        );
        let unknown = Unknown {
            failed: &failed,
            complete: end.complete,
            measured_anew: &setup.measured_anew,
        };
        let good = count_good(&mut samples, &setup.objectives, judgements, &unknown);
        let intended = counts.intended();
        let goodput = good
            .count
            .filter(|_| intended > 0)
            .map(|good| good as f64 / intended as f64);
        let good_requests_per_second = goodput
            .and(good.count)
            .zip(throughput.window_seconds)
            .map(|(good, window)| good as f64 / window);
        samples.figures = [
            (RunMetric::Goodput, goodput),
            (RunMetric::GoodRequestsPerSecond, good_requests_per_second),
            (RunMetric::SessionDispatchRate, session_dispatch_rate),
        ]
        .into_iter()
        .chain(throughput.figures())
        .chain(counts.figures())
        .chain(curves.figures())
        .chain(totals.figures())
        .filter_map(|(figure, value)| Some((figure, value.filter(|value| value.is_finite())?)))
        .collect();
        let results = setup.objectives.checked.iter();
        let mut remarks = samples.idle_conditions(&setup.objectives);
        let unknown_goodput = good.unknown.as_ref();
        remarks.extend(unknown_goodput.map(|why| format!("goodput is not known: {why}")));
        let slos = SloResults {
            results: results
                .map(|checked| answer(checked, &samples, &unknown, &good))
                .collect(),
            verdicts: verdicts
                .into_iter()
                .map(|(plugin, verdict)| PluginVerdict::new(&plugin, verdict, samples.catalogue()))
                .collect(),
            goodput,
            good_requests_per_second,
            remarks,
            not_asked: Vec::new(),
        };
        let course = Course {
            unfinished: &unfinished,
            judged: good.count.is_some(),
        };
        Evaluation {
            metrics: built_in(&samples),
            custom: of_plugins(&samples),
            slices: slices(&samples, setup.slice, &course),
            groups: groups(
                &samples,
                setup.group_by.as_deref(),
                good.count.is_some(),
                throughput.window_seconds,
            ),
            figures: samples.figures.clone(),
            samples: Arc::new(samples),
            workload: planned.digest(),
            sent: sent.digest(),
            host,
            counts,
            throughput,
            slos,
            curves,
            session_dispatch_rate,
            end,
            refused,
            failed,
            workload_failures,
        }
    }

    /// Returns the summary of a built-in metric; `None` if it has no samples.
    pub fn metric(&self, metric: Metric) -> Option<&Summary> {
        self.metrics
            .iter()
            .find(|entry| entry.metric == metric)
            .map(|entry| &entry.summary)
    }

    /// Returns a run-level aggregate; `None` if it does not exist.
    pub fn figure(&self, figure: RunMetric) -> Option<f64> {
        self.figures.get(&figure).copied()
    }

    /// Marks the record as damaged, which the certificate reports.
    pub fn record_is_damaged(&mut self) {
        self.end.damaged = true;
        self.end.complete = false;
    }

    /// Returns the reason why no request was measured, if none was.
    pub fn why_nothing_was_measured(&self) -> Option<String> {
        if self.counts.requests > 0 {
            return None;
        }
        let sent = self.counts.unfinished;
        Some(match (self.end.requests_unread, sent) {
            (true, _) => {
                "nothing can be told of the run: the record's table of requests could not be read".into()
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
    pub fn judged_by(&mut self, plugin: &str, verdicts: Vec<SloVerdict>) {
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

    /// Returns the content of `metrics/summary_stats.json`.
    pub fn summary_stats(&self) -> Value {
        json::summary_stats(self)
    }

    /// Returns the content of `metrics/throughput_metrics.json`.
    pub fn throughput_metrics(&self) -> Value {
        json::throughput_metrics(self)
    }

    /// Returns the content of `metrics/slo_results.json`.
    pub fn slo_results(&self) -> Value {
        let failed = |failed: &&FailedPlugin| failed.part != PluginRole::Metric;
        self.slos
            .json(self.failed.iter().filter(failed), &self.workload_failures)
    }

    /// Returns the content of `metrics/time_slices.json`. [`TimeSlices::table`] returns the same
    /// data as rows.
    pub fn time_slices(&self) -> Value {
        self.slices.json()
    }

    /// Returns the names of the labels of the measured requests and of their sessions.
    pub fn label_names(&self) -> BTreeSet<&str> {
        self.samples.label_names()
    }

    /// Returns the content of `metrics/curves.json`.
    pub fn curves(&self) -> Value {
        self.curves.json()
    }

    /// Returns the content of `metrics/session_metrics.json`: the summaries of the session metrics,
    /// and the values of each session.
    pub fn session_metrics(&self) -> Value {
        json::session_metrics(self)
    }

    /// Writes the content of `metrics/session_metrics.json`, one session on each line.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub fn write_session_metrics(&self, writer: &mut dyn std::io::Write) -> std::io::Result<()> {
        json::write_session_metrics(self, writer)
    }
}

fn built_in(samples: &RunSamples) -> Vec<MetricSummary> {
    let with_samples = |metric: Metric| {
        let summary = *samples.summary(metric.name())?;
        Some(MetricSummary { metric, summary })
    };
    Metric::all().filter_map(with_samples).collect()
}

fn of_plugins(samples: &RunSamples) -> Vec<CustomSummary> {
    let catalogue = samples.catalogue();
    let names = samples.names().into_iter();
    names
        .filter(|name| name.parse::<Metric>().is_err())
        .filter_map(|name| {
            Some(CustomSummary {
                summary: *samples.summary(&name)?,
                info: catalogue.get(&name).cloned(),
                name,
            })
        })
        .collect()
}
