//! The figures of a run.

use std::collections::BTreeMap;
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
use crate::host_figures::HostFigures;
use crate::json;
use crate::objectives::{PluginVerdict, SloResults};
use crate::objectives::{Unknown, answer, count_good};
use crate::refused::RefusedSamples;
use crate::run_metric::RunMetric;
use crate::run_samples::RunSamples;
use crate::schedule::Schedule;
use crate::session_graph;
use crate::slices::TimeSlices;
use crate::slices::{Course, slices};
use crate::throughput::Throughput;
use crate::workload::WorkloadDigest;
use crate::workload_failures::WorkloadFailures;
use veeksha_definitions::Metric;

/// All figures of a run. The functions give them in the shape of Veeksha's files, with what Veeksha leaves out
/// beside it; a figure that does not exist is `null` there (or its key is absent, where Veeksha omits it).
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// How many requests and sessions, and how they ended.
    pub counts: Counts,
    /// Built-in metrics that have samples, in the order of [`Metric::all`].
    pub metrics: Vec<MetricSummary>,
    /// Metrics of plugins that have samples, in the order of their definitions.
    pub custom: Vec<CustomSummary>,
    /// What the system delivered per second.
    pub throughput: Throughput,
    /// Figures of the whole run that objectives can name; those that exist.
    pub figures: BTreeMap<RunMetric, f64>,
    /// What was asked of the run, and goodput.
    pub slos: SloResults,
    /// How the load and the throughput went over time, in steps.
    pub curves: Curves,
    /// The run in slices of equal length.
    pub slices: TimeSlices,
    /// How well the host did.
    pub host: HostFigures,
    /// Sessions begun per second: (sessions − 1) / (last start − first start).
    pub session_dispatch_rate: Option<f64>,
    /// What work the run was given, if the record says so.
    pub workload: Option<WorkloadDigest>,
    /// All samples, for further questions.
    pub samples: Arc<RunSamples>,
    /// How the record ends.
    pub end: RunEnd,
    /// Samples of plugins' metrics that are left out, by metric and reason.
    pub refused: Vec<RefusedSamples>,
    /// Plugins that failed while they measured or judged: what is known of them is of the requests before.
    pub failed: Vec<FailedPlugin>,
    /// Failures of the plugins that make sessions, by plugin.
    pub workload_failures: Vec<WorkloadFailures>,
}

/// The summary of a metric's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricSummary {
    /// Which metric; it knows its names and its unit.
    pub metric: Metric,
    /// Its figures, in the metric's unit.
    pub summary: Summary,
}

/// The summary of the samples of a plugin's metric.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomSummary {
    /// Its name.
    pub name: String,
    /// What the plugin says of it; `None` if the record has samples and no definition.
    pub info: Option<MetricInfo>,
    /// Its figures, in the metric's unit; weighted where samples have weights.
    pub summary: Summary,
}

/// How a record ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// Whether the run came to its end and its record is whole; a record without the end was cut short.
    pub complete: bool,
    /// Whether parts of the record could not be read: what is left may be any part of what happened.
    pub damaged: bool,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Whether the record had requests of which none could be read: what became of them is not known.
    pub requests_unread: bool,
    /// Definitions of plugins' metrics that do not stand, because their names are taken or none.
    pub refused_metrics: u64,
    /// Samples of plugins' metrics that are left out: their values are no numbers (or beyond 1e90), or their weights no positive ones.
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
        // What is not needed any more is let go before what takes memory for a while.
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
            slips: Vec::new(),
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
            figures: samples.figures.clone(),
            samples: Arc::new(samples),
            workload: planned.digest(),
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

    /// The figures of a built-in metric; `None` if it has no samples.
    pub fn metric(&self, metric: Metric) -> Option<&Summary> {
        self.metrics
            .iter()
            .find(|entry| entry.metric == metric)
            .map(|entry| &entry.summary)
    }

    /// A figure of the whole run; `None` if it does not exist.
    pub fn figure(&self, figure: RunMetric) -> Option<f64> {
        self.figures.get(&figure).copied()
    }

    /// Takes note that parts of the record could not be read: the certificate says so.
    pub fn record_is_damaged(&mut self) {
        self.end.damaged = true;
        self.end.complete = false;
    }

    /// Why there are no figures of any request, if there are none.
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

    /// What a plugin says of the run, all of it: it counts in [`SloResults::all_met`]. It takes the place of what the plugin said before,
    /// as the record tells it.
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

    /// `metrics/summary_stats.json`.
    pub fn summary_stats(&self) -> Value {
        json::summary_stats(self)
    }

    /// `metrics/throughput_metrics.json`.
    pub fn throughput_metrics(&self) -> Value {
        json::throughput_metrics(self)
    }

    /// `metrics/slo_results.json`.
    pub fn slo_results(&self) -> Value {
        let failed = |failed: &&FailedPlugin| failed.part != PluginRole::Metric;
        self.slos.json(self.failed.iter().filter(failed))
    }

    /// `metrics/time_slices.json`; [`TimeSlices::table`] is the same as rows.
    pub fn time_slices(&self) -> Value {
        self.slices.json()
    }

    /// `metrics/curves.json`.
    pub fn curves(&self) -> Value {
        self.curves.json()
    }

    /// `metrics/session_metrics.json`: the summaries of the session metrics, and the figures of each session.
    pub fn session_metrics(&self) -> Value {
        json::session_metrics(self)
    }

    /// The same, written session by session: one on each line.
    ///
    /// # Errors
    /// Those of the writer.
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
