//! The results of objectives.

use serde_json::{Value, json};
use veeksha_events::FailedPlugin;
use veeksha_model::Nanos;
use veeksha_ports::SloVerdict;
use veeksha_slo::{ComparisonOperator, Quantity};

use super::ask::{Limit, SampleQuery, SampleStatistic};
use super::checked::{Checked, ObjectiveTarget};
use super::plugin_verdict::PluginVerdict;
use super::stated::{Stated, percent};
use crate::json_shapes::failed_plugin;
use crate::label_sets::Matching;
use crate::objectives::check::Objectives;
use crate::objectives::goodput::GoodputResult;
use crate::objectives::unknown::Unknown;
use crate::run_metric::RunMetric;
use crate::run_samples::RunSamples;
use crate::schedule::TimeSpan;
use crate::workload_failures::WorkloadFailures;
use veeksha_definitions::Metric;

/// The result of one objective.
#[derive(Clone, Debug, PartialEq)]
pub struct SloResult {
    /// The objective as stated.
    pub stated: Stated,
    /// The objective as text: `p99(ttfc) <= 0.5`.
    pub objective: String,
    /// `ttfc_p99`, `tbc_p99.9`: Veeksha's `slo_metric_key`. The target as text if it is not a plain
    /// percentile.
    pub key: String,
    /// The metric or run metric, by Veeksha's name in results.
    pub metric: String,
    /// `0.0..=1.0`, if a percentile is bounded, as stated.
    pub percentile: Option<f64>,
    /// The direction of the bound.
    pub comparison: ComparisonOperator,
    /// The bound, in `unit`.
    pub threshold: f64,
    /// The unit of bound and observed value.
    pub unit: String,
    /// The observed value, in `unit`; over windows, the value of the worst one. `None` without
    /// samples.
    pub observed: Option<f64>,
    /// True if the objective was met. An unobserved objective was not met.
    pub met: bool,
    /// The reason why the result is unknown, if it is: a plugin that it depends on failed, and the
    /// samples before the failure do not decide it.
    pub unknown: Option<String>,
    /// The number of samples; over windows, that of the worst one. `None` for a run metric.
    pub sample_count: Option<u64>,
    /// True if a percentile depends on so few samples that it is nearly the extreme value (a P99 of
    /// fewer than 100).
    pub thin: bool,
    /// The worst window, for an objective over windows.
    pub worst_window: Option<DecidingWindow>,
    /// Additional information for the reader: the reason for missing samples (`no request has the
    /// label tier="golf"; did you mean tier="gold"?`), or windows without samples (`in 3 of 10
    /// windows no request was answered: they are not judged`).
    pub detail: Option<String>,
}

/// The window that decides an objective over windows: the first one with the worst value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidingWindow {
    /// The start of the window, inclusive.
    pub from: Nanos,
    /// The end of the window, exclusive. Not later than the schedule's end, which cuts the last
    /// window.
    pub to: Nanos,
    /// Samples in the window.
    pub sample_count: u64,
    /// The number of evaluated windows: those with intended requests, for a `count` or `sum`
    /// including those without samples (0), otherwise only those with samples.
    pub windows: u64,
}

/// The results of all objectives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SloResults {
    /// One for each objective, in the given order.
    pub results: Vec<SloResult>,
    /// Plugins' verdicts on the run.
    pub verdicts: Vec<PluginVerdict>,
    /// Good requests ÷ all scheduled requests ([`crate::RunCounts::intended`]). A good request was
    /// measured, had a non-empty answer, met every condition individually and was judged good by
    /// every judging plugin. `None` if good requests are not defined, or if there is no request.
    pub goodput: Option<f64>,
    /// The good requests per second of the measured window; `None` if good requests are not
    /// defined or unknown, or without a window. It exists without `goodput` if the agents of
    /// sessions failed: the good requests are known, and the requests that were due are not.
    pub good_requests_per_second: Option<f64>,
    /// Remarks on goodput for the reader: conditions that do not apply to any request.
    pub remarks: Vec<String>,
    /// Messages about objectives of the run that are unknown: then it is also unknown if all were
    /// met.
    pub not_asked: Vec<String>,
}

impl SloResults {
    /// Returns the results of all objectives. The run metrics of the samples must be known.
    pub(crate) fn of(
        objectives: &Objectives,
        samples: &RunSamples,
        unknown: &Unknown<'_>,
        goodput: GoodputResult,
        verdicts: Vec<(String, SloVerdict)>,
    ) -> SloResults {
        let mut remarks = samples.idle_conditions(objectives);
        let why = goodput.share_unknown.as_ref();
        remarks.extend(why.map(|why| format!("goodput is not known: {why}")));
        let results = objectives.checked.iter();
        SloResults {
            results: results
                .map(|checked| answer(checked, samples, unknown, &goodput))
                .collect(),
            verdicts: verdicts
                .into_iter()
                .map(|(plugin, verdict)| PluginVerdict::new(&plugin, verdict, samples.catalogue()))
                .collect(),
            goodput: goodput.share,
            good_requests_per_second: goodput.per_second,
            remarks,
            not_asked: Vec::new(),
        }
    }

    /// Returns true if every known objective was met and every known verdict of a plugin is good;
    /// true if there is none. An objective with an unknown result was not met.
    pub fn all_met(&self) -> bool {
        self.results.iter().all(|result| result.met)
            && self.verdicts.iter().all(|of_plugin| of_plugin.verdict.met)
    }

    /// Returns the content of `metrics/slo_results.json`.
    ///
    /// The verdicts of plugins that `failed` while they judged are unknown: then it is also unknown
    /// if all objectives are met. Failures of the workload are listed as well, but the objectives
    /// are about the requests that were sent.
    pub(crate) fn json<'a>(
        &self,
        failed: impl Iterator<Item = &'a FailedPlugin>,
        of_workload: &[WorkloadFailures],
    ) -> Value {
        let failed: Vec<Value> = failed.map(failed_plugin).collect();
        let some_missed = self
            .results
            .iter()
            .any(|result| !result.met && result.unknown.is_none())
            || self.verdicts.iter().any(|of_plugin| !of_plugin.verdict.met);
        let all_known = failed.is_empty()
            && self.not_asked.is_empty()
            && self.results.iter().all(|result| result.unknown.is_none());
        let all_met = match (some_missed, all_known) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        };
        let remarks: Vec<&String> = self.remarks.iter().chain(&self.not_asked).collect();
        let results = self.results.iter().map(SloResult::json);
        let verdicts = self.verdicts.iter().map(PluginVerdict::json);
        let of_workload = of_workload.iter().map(WorkloadFailures::json);
        json!({
            "all_slos_met": all_met,
            "results": results.chain(verdicts).collect::<Vec<_>>(),
            "remarks": remarks,
            "failed_plugins": failed.into_iter().chain(of_workload).collect::<Vec<_>>(),
        })
    }
}

impl SloResult {
    /// Returns the user-defined name.
    pub fn name(&self) -> Option<&str> {
        self.stated.name()
    }

    fn json(&self) -> Value {
        let met = self.unknown.is_none().then_some(self.met);
        let window = self.worst_window.map(|window| {
            json!({
                "from": window.from as f64 / 1e9, "to": window.to as f64 / 1e9,
                "sample_count": window.sample_count, "windows": window.windows,
            })
        });
        json!({
            "met": met,
            "slo_metric_key": self.key,
            "observed_value": self.observed,
            "threshold": self.threshold,
            "percentile": self.percentile,
            "metric": self.metric,
            "name": self.name(),
            "lower_is_better": matches!(self.comparison, ComparisonOperator::Below | ComparisonOperator::AtMost),
            "sample_count": self.sample_count,
            "objective": self.objective,
            "unit": self.unit,
            "too_few_samples": self.thin,
            "worst_window": window,
            "plugin": Value::Null,
            "detail": self.detail,
        })
    }
}

/// Returns the result of an objective.
fn answer(
    checked: &Checked,
    samples: &RunSamples,
    unknown: &Unknown<'_>,
    goodput: &GoodputResult,
) -> SloResult {
    let mut seen = observe(checked, samples);
    let failed = match &checked.target {
        ObjectiveTarget::Run(RunMetric::Goodput) => goodput.share_unknown.clone(),
        ObjectiveTarget::Run(RunMetric::GoodRequestsPerSecond) => goodput.good_unknown.clone(),
        ObjectiveTarget::Run(_) => None,
        ObjectiveTarget::Samples { samples: asked, .. } => {
            unknown.samples(&asked.metric, samples.catalogue())
        }
    };
    let is_kept = seen.value.is_some_and(|value| checked.limit.is_kept_by(value));
    let is_known = failed.is_none() || (seen.value.is_some() && !is_kept && is_final_if_missed(checked));
    if let Some(failed) = &failed {
        seen.detail = Some(if seen.value.is_some() {
            format!("{failed}: the observed value is that of the samples until then")
        } else {
            failed.clone()
        });
    }
    SloResult {
        objective: checked.stated.to_string(),
        key: key(checked),
        metric: metric(checked),
        percentile: stated_percentile(checked),
        comparison: checked.limit.comparison,
        threshold: checked.limit.value,
        unit: checked.unit.clone(),
        met: is_known && is_kept,
        unknown: failed.filter(|_| !is_known),
        observed: seen.value,
        sample_count: seen.sample_count,
        thin: seen.thin,
        worst_window: seen.window,
        detail: seen.detail,
        stated: checked.stated.clone(),
    }
}

/// Returns true if an objective that some of the samples miss is also missed with further samples.
fn is_final_if_missed(checked: &Checked) -> bool {
    let ObjectiveTarget::Samples { samples, .. } = &checked.target else {
        return false;
    };
    match samples.of {
        SampleStatistic::Max | SampleStatistic::Count => checked.limit.is_upper(),
        SampleStatistic::Min => !checked.limit.is_upper(),
        SampleStatistic::Quantile(_)
        | SampleStatistic::Mean
        | SampleStatistic::Std
        | SampleStatistic::Sum => false,
    }
}

#[derive(Default)]
struct ObservedValue {
    value: Option<f64>,
    sample_count: Option<u64>,
    thin: bool,
    window: Option<DecidingWindow>,
    detail: Option<String>,
}

fn observe(checked: &Checked, samples: &RunSamples) -> ObservedValue {
    let (asked, window) = match &checked.target {
        ObjectiveTarget::Run(metric) => {
            return ObservedValue {
                value: samples.run_metrics.get(metric).copied(),
                ..ObservedValue::default()
            };
        }
        ObjectiveTarget::Samples { samples, window } => (samples, window),
    };
    if window.is_none()
        && asked.filter.is_empty()
        && let Some(summary) = samples.summary(&asked.metric)
        && let Some(value) = asked.of.among(summary)
    {
        let count = summary.count as u64;
        return ObservedValue {
            value: Some(value),
            sample_count: Some(count),
            thin: asked.of.is_thin(count),
            ..ObservedValue::default()
        };
    }
    match window {
        Some(length) => observe_windows(asked, *length, checked.limit, samples),
        None => {
            let set = samples.set(&asked.metric, &samples.matching(&asked.filter), None);
            ObservedValue {
                value: asked.of.observe(&set).filter(|value| value.is_finite()),
                sample_count: Some(set.count()),
                thin: asked.of.is_thin(set.count()),
                window: None,
                detail: (set.count() == 0).then(|| samples.why_none(asked)),
            }
        }
    }
}

/// Returns the value observed in the worst window. In a window with intended requests but without
/// samples, a count and a sum are 0; any other statistic does not exist.
fn observe_windows(asked: &SampleQuery, length: Nanos, limit: Limit, samples: &RunSamples) -> ObservedValue {
    let matching = samples.matching(&asked.filter);
    let mut seen = ObservedValue {
        sample_count: Some(0),
        ..ObservedValue::default()
    };
    let (mut judged, mut sampled) = (0, 0);
    let mut not_judged = Vec::new();
    for span in windows_of(asked, &matching, length, limit, samples) {
        let set = samples.set(&asked.metric, &matching, Some(span));
        let count = set.count();
        sampled += count;
        let value = match count {
            0 => asked.of.grows_with_time().then_some(0.0),
            _ => asked.of.observe(&set),
        };
        let Some(value) = value else {
            not_judged.push(span);
            continue;
        };
        judged += 1;
        if seen.value.is_none_or(|worst| limit.is_worse(value, worst)) {
            let (from, to) = span;
            seen.value = Some(value);
            seen.sample_count = Some(count);
            seen.thin = asked.of.is_thin(count);
            seen.window = Some(DecidingWindow {
                from,
                // No request was scheduled after the schedule's end.
                to: match samples.schedule() {
                    Some(schedule) if schedule.end > from => to.min(schedule.end),
                    _ => to,
                },
                sample_count: count,
                windows: 0,
            });
        }
    }
    if let Some(window) = &mut seen.window {
        window.windows = judged;
    }
    if sampled == 0 {
        seen.detail = Some(samples.why_none(asked));
        // As without windows: the count of an empty set is 0, and its sum does not exist.
        if asked.of != SampleStatistic::Count {
            (seen.value, seen.window) = (None, None);
        }
    } else {
        let windows = judged + not_judged.len() as u64;
        seen.detail = samples.why_not_judged(asked, &matching, &not_judged, windows);
    }
    seen
}

/// Returns the windows in which a statistic is evaluated. A statistic that grows with time and has
/// a lower bound is not evaluated in a window that the schedule left before its end, unless every
/// window is such a one.
fn windows_of(
    asked: &SampleQuery,
    matching: &Matching,
    length: Nanos,
    limit: Limit,
    samples: &RunSamples,
) -> Vec<TimeSpan> {
    let mut spans = samples.spans(&asked.metric, matching, length);
    let filled = |(_, to): &TimeSpan| samples.schedule().is_some_and(|schedule| *to <= schedule.end);
    if asked.of.grows_with_time() && !limit.is_upper() && spans.iter().any(filled) {
        spans.retain(filled);
    }
    spans
}

fn metric(checked: &Checked) -> String {
    match &checked.target {
        ObjectiveTarget::Run(metric) => metric.name().to_owned(),
        ObjectiveTarget::Samples { samples, .. } => slo_name(&samples.metric).to_owned(),
    }
}

fn slo_name(metric: &str) -> &str {
    match metric.parse::<Metric>() {
        Ok(built_in) => built_in.slo_name(),
        Err(_) => metric,
    }
}

/// Returns the percentile as stated. Veeksha's objective on output throughput states the share
/// above the bound.
fn stated_percentile(checked: &Checked) -> Option<f64> {
    match (&checked.stated, &checked.target) {
        (Stated::Constant(slo), _) => Some(slo.percentile),
        (_, ObjectiveTarget::Samples { samples, .. }) => match samples.of {
            SampleStatistic::Quantile(p) => Some(p),
            _ => None,
        },
        _ => None,
    }
}

fn key(checked: &Checked) -> String {
    let quantity = match &checked.stated {
        Stated::Constant(slo) => return format!("{}_p{}", slo.metric.slo_name(), percent(slo.percentile)),
        Stated::Expression(objective) => &objective.quantity,
    };
    match (quantity, &checked.target) {
        (
            Quantity::Samples {
                aggregate: veeksha_slo::Aggregate::Percentile(percent),
                filter,
                window: None,
                ..
            },
            ObjectiveTarget::Samples { samples, .. },
        ) if filter.is_empty() => format!("{}_p{percent}", slo_name(&samples.metric)),
        (quantity, _) => quantity.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConstantSlo, Objectives};

    #[test]
    fn keys_are_veekshas() {
        let key_of = |metric, percentile| {
            let slo = ConstantSlo {
                name: None,
                metric,
                percentile,
                value: 1.0,
            };
            key(&Objectives::constants(vec![slo]).checked[0])
        };
        assert_eq!(key_of(Metric::Ttfc, 0.99), "ttfc_p99");
        assert_eq!(key_of(Metric::EndToEnd, 0.5), "e2e_p50");
        assert_eq!(key_of(Metric::Tbc, 0.999), "tbc_p99.9");
        assert_eq!(key_of(Metric::Tbc, 0.29), "tbc_p29");
    }
}
