//! What a run came to, as its page shows it.

use std::collections::BTreeMap;

use veeksha_evaluate::{
    Basis, Catalogue, Certificate, CurvePoint, ErrorSource, Evaluation, Live, LiveFigures, PluginVerdict,
    SloResult, TimeSlices, Verdict,
};
use veeksha_events::NeverSentReason;
use veeksha_health::{Check, Outcome};
use veeksha_model::Nanos;
use veeksha_page::{
    Bound, CheckOutcome, Curves, Fact, Failures, Figure, Finding, Metric, MetricSummary, NeverSent, PageData,
    Plugin, Requests, RunFacts, RunState, Slice, SliceColumn, Slices, Slo, WorstWindow,
};
use veeksha_report::RunFolder;
use veeksha_stats::Summary;

use super::{Clock, Judged};
use crate::analysis::{About, Analysed, FirstFailure};

/// Steps of the curves of a run that is too long for its page.
const STEPS: usize = 600;

/// The metrics that stand first on a page.
const FIRST: [&str; 6] = [
    "ttfc",
    "ttfc_from_intended",
    "tbc",
    "tpot",
    "end_to_end_latency",
    "e2e_from_intended",
];

/// The page of a whole run.
pub(super) fn whole(
    folder: &RunFolder,
    analysed: &Analysed,
    certificate: &Certificate,
    judged: &Judged,
) -> PageData {
    let evaluation = &analysed.evaluation;
    let state = match (evaluation.end.complete, evaluation.end.interrupted) {
        (_, true) => RunState::Interrupted,
        (true, false) => RunState::Ended,
        (false, false) => RunState::Cut,
    };
    let mut run = facts(&analysed.about, state);
    run.remarks
        .extend(evaluation.refused.iter().map(ToString::to_string));
    run.name = folder
        .path()
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    run.elapsed = evaluation.curves.window.map(|(_, to)| seconds(to));
    run.remarks.extend(evaluation.slos.remarks.iter().cloned());
    run.started_unix = analysed
        .started
        .as_ref()
        .filter(|_| judged.clock == Clock::Real)
        .map(|info| info.epoch_wall_nanos as f64 / 1e9);
    if let Some(workload) = &evaluation.workload {
        run.facts.push(fact(
            "Workload",
            format!("{} of {} sessions", short(&workload.digest), workload.sessions),
        ));
    }
    let curves = (analysed.requests.rows.len() as u64) < analysed.requests.total;
    PageData {
        run,
        certificate: Some(trust(certificate)),
        figures: figures(evaluation),
        metrics: metrics(evaluation),
        slos: evaluation
            .slos
            .results
            .iter()
            .map(slo)
            .chain(evaluation.slos.verdicts.iter().map(verdict))
            .collect(),
        curves: curves.then(|| load(evaluation)).flatten(),
        requests: analysed.requests.clone(),
        failures: failures(&analysed.failures),
        never_sent: never_sent(evaluation),
        slices: slices(&evaluation.slices),
        health: analysed.health.checks.iter().map(check).collect(),
        configuration: (!analysed.about.config.is_empty()).then(|| analysed.about.config.clone()),
        plugins: plugins(&analysed.about),
        machine: machine(evaluation),
        versions: versions(),
    }
}

/// The page of a run that goes on.
pub(crate) fn so_far(
    about: &About,
    live: &Live,
    requests: Requests,
    failed: &BTreeMap<&'static str, FirstFailure>,
    state: RunState,
    elapsed: f64,
) -> PageData {
    let mut run = facts(about, state);
    run.elapsed = Some(elapsed);
    let count = |label: &str, value: u64| Figure {
        name: label.to_lowercase().replace(' ', "_"),
        label: label.to_owned(),
        value: Some(value as f64),
        ..Figure::default()
    };
    let rate = |name: &str, label: &str, value, unit: &str| Figure {
        name: name.to_owned(),
        label: label.to_owned(),
        value,
        unit: unit.to_owned(),
        detail: Some("over the last ten seconds".to_owned()),
        ..Figure::default()
    };
    PageData {
        run,
        figures: vec![
            count("Answered", live.completed),
            count("In flight", live.in_flight),
            count("Failed", live.failed),
            rate(
                "requests_per_second",
                "Requests",
                live.requests_per_second,
                "requests/s",
            ),
            rate(
                "output_tokens_per_second",
                "Output tokens",
                live.output_tokens_per_second,
                "tokens/s",
            ),
        ],
        metrics: [
            ("ttfc", live.ttfc),
            ("tbc", live.tbc),
            ("tpot", live.tpot),
            ("end_to_end_latency", live.end_to_end),
        ]
        .into_iter()
        .filter_map(|(name, figures)| on_the_way(name, figures?))
        .collect(),
        requests,
        failures: failures(failed),
        configuration: (!about.config.is_empty()).then(|| about.config.clone()),
        plugins: plugins(about),
        versions: versions(),
        ..PageData::default()
    }
}

/// A metric of which only some figures are known on the way: the page shows the others as unknown.
fn on_the_way(name: &str, figures: LiveFigures) -> Option<Metric> {
    let catalogue = Catalogue::built_in();
    let info = catalogue.get(name)?;
    Some(Metric {
        name: info.name.clone(),
        label: info.display.clone(),
        unit: info.unit.clone(),
        better: info.better.name().to_owned(),
        definition: info.definition.clone(),
        plugin: None,
        summary: Some(MetricSummary {
            count: figures.count,
            mean: figures.mean,
            std: f64::NAN,
            min: f64::NAN,
            max: figures.max,
            p50: figures.p50,
            p90: figures.p90,
            p95: figures.p95,
            p99: figures.p99,
        }),
    })
}

fn seconds(at: Nanos) -> f64 {
    at as f64 / 1e9
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn fact(name: &str, value: impl Into<String>) -> Fact {
    Fact {
        name: name.to_owned(),
        value: value.into(),
    }
}

fn facts(about: &About, state: RunState) -> RunFacts {
    let name = about.folder.file_name().unwrap_or(about.folder.as_os_str());
    RunFacts {
        name: name.to_string_lossy().into_owned(),
        state,
        summary: None,
        facts: about
            .facts
            .iter()
            .map(|(name, value)| fact(name, value.as_str()))
            .collect(),
        started_unix: None,
        elapsed: None,
        planned: about.planned,
        remarks: about.remarks.clone(),
    }
}

fn trust(certificate: &Certificate) -> veeksha_page::Certificate {
    veeksha_page::Certificate {
        verdict: verdict_of(certificate.verdict),
        basis: Some(
            match certificate.basis {
                Basis::Record => "the run's own record",
                Basis::SelfTest => "a self-test against a twin with known timings",
                Basis::Simulated => "virtual time: nothing is late by construction",
            }
            .to_owned(),
        ),
        findings: certificate
            .findings
            .iter()
            .map(|finding| Finding {
                verdict: verdict_of(finding.verdict),
                metric: finding.metric.map(|metric| metric.name().to_owned()),
                what: finding.what.clone(),
                remedy: finding.remedy.clone(),
            })
            .collect(),
        bounds: certificate
            .bounds
            .iter()
            .map(|bound| Bound {
                metric: bound.metric.name().to_owned(),
                count: bound.count,
                mean_error: bound.mean_error,
                p99_error: bound.p99_error,
                relative: bound.relative_to_p50,
                source: match bound.source {
                    ErrorSource::SelfTest => "measured by the self-test",
                    ErrorSource::Estimated => "estimated",
                }
                .to_owned(),
            })
            .collect(),
    }
}

fn verdict_of(verdict: Verdict) -> veeksha_page::Verdict {
    match verdict {
        Verdict::Valid => veeksha_page::Verdict::Valid,
        Verdict::Degraded => veeksha_page::Verdict::Degraded,
        Verdict::Invalid => veeksha_page::Verdict::Invalid,
    }
}

fn figures(evaluation: &Evaluation) -> Vec<Figure> {
    let (counts, throughput) = (&evaluation.counts, &evaluation.throughput);
    let figure = |name: &str, label: &str, value: Option<f64>, unit: &str| Figure {
        name: name.to_owned(),
        label: label.to_owned(),
        value,
        unit: unit.to_owned(),
        count: Some(counts.completed),
        count_of: Some("answered requests".to_owned()),
        ..Figure::default()
    };
    let of_all = |mut figure: Figure, detail: String| {
        figure.count = Some(counts.intended());
        figure.count_of = Some("intended requests".to_owned());
        figure.detail = Some(detail);
        figure
    };
    let mut figures = Vec::new();
    if let Some(goodput) = evaluation.slos.goodput {
        let good = (goodput * counts.intended() as f64).round();
        figures.push(of_all(
            figure("goodput", "Goodput", Some(goodput), "share"),
            format!("{good} of {} were good", counts.intended()),
        ));
    }
    figures.extend([
        figure(
            "requests_per_second",
            "Requests",
            throughput.requests_per_second,
            "requests/s",
        ),
        figure(
            "output_tokens_per_second",
            "Output tokens",
            throughput.output_tokens_per_second,
            "tokens/s",
        ),
        figure(
            "input_tokens_per_second",
            "Input tokens",
            throughput.input_tokens_per_second,
            "tokens/s",
        ),
        of_all(
            figure("error_rate", "Errors", counts.error_rate(), "share"),
            format!("{} of {} sent failed", counts.errored, counts.requests),
        ),
    ]);
    let lateness = evaluation.host.dispatch_lateness.as_ref();
    figures.extend(lateness.map(|late| Figure {
        name: "dispatch_lateness".to_owned(),
        label: "Dispatch lateness, P99".to_owned(),
        value: Some(late.p99),
        unit: "s".to_owned(),
        count: Some(late.count as u64),
        count_of: Some("dispatches".to_owned()),
        ..Figure::default()
    }));
    figures
}

fn summary(summary: &Summary) -> MetricSummary {
    MetricSummary {
        count: summary.count as u64,
        mean: summary.mean,
        std: summary.std,
        min: summary.min,
        max: summary.max,
        p50: summary.p50,
        p90: summary.p90,
        p95: summary.p95,
        p99: summary.p99,
    }
}

/// Those that have samples: the latencies people ask for first, then those of plugins, then the rest.
fn metrics(evaluation: &Evaluation) -> Vec<Metric> {
    let samples = &evaluation.samples;
    let mut infos: Vec<_> = samples.catalogue().iter().collect();
    let rank = |name: &str, plugin: bool| {
        let first = FIRST.iter().position(|known| *known == name);
        first.unwrap_or(if plugin { FIRST.len() } else { FIRST.len() + 1 })
    };
    infos.sort_by_key(|info| rank(&info.name, info.plugin.is_some()));
    let shown = infos
        .into_iter()
        .filter(|info| info.plugin.is_some() || samples.summary(&info.name).is_some());
    shown
        .map(|info| Metric {
            name: info.name.clone(),
            label: info.display.clone(),
            unit: info.unit.clone(),
            better: info.better.name().to_owned(),
            definition: info.definition.clone(),
            plugin: info.plugin.clone(),
            summary: samples.summary(&info.name).map(summary),
        })
        .collect()
}

fn slo(result: &SloResult) -> Slo {
    Slo {
        name: result.name().map(str::to_owned),
        expression: result.objective.clone(),
        observed: result.observed,
        bound: Some(result.threshold),
        comparison: Some(result.comparison.to_string()),
        unit: super::objective_unit(result).to_owned(),
        samples: result.sample_count,
        met: Some(result.met),
        worst_window: result.worst_window.map(|worst| WorstWindow {
            from: seconds(worst.from),
            to: seconds(worst.to),
            of: worst.windows,
        }),
        detail: match (&result.without_samples, result.thin) {
            (Some(why), _) => Some(why.clone()),
            (_, true) => Some("of few samples: hardly more than the outermost one".to_owned()),
            (_, false) => None,
        },
        plugin: None,
    }
}

fn verdict(said: &PluginVerdict) -> Slo {
    let verdict = &said.verdict;
    Slo {
        expression: verdict.name.clone(),
        observed: verdict.observed,
        bound: Some(verdict.threshold),
        comparison: said.comparison().map(|side| side.to_string()),
        unit: super::verdict_unit(said).to_owned(),
        met: Some(verdict.met),
        detail: (!verdict.detail.is_empty()).then(|| verdict.detail.clone()),
        plugin: Some(said.plugin.clone()),
        ..Slo::default()
    }
}

/// The curves of a run of which the page has only some requests.
fn load(evaluation: &Evaluation) -> Option<Curves> {
    let curves = &evaluation.curves;
    let (from, to) = curves.window?;
    let step = ((to - from) / STEPS as u64).max(1);
    let stepped = |points: &[CurvePoint]| -> Vec<f64> {
        let steps = steps(points, from, to, step).into_iter();
        steps.map(|step| step.mean).collect()
    };
    let in_flight = steps(&curves.in_flight.points, from, to, step);
    Some(Curves {
        from: seconds(from),
        step: seconds(step),
        in_flight: in_flight.iter().map(|step| step.mean).collect(),
        least_in_flight: in_flight.iter().map(|step| step.least).collect(),
        most_in_flight: in_flight.iter().map(|step| step.most).collect(),
        in_prefill: stepped(&curves.in_prefill.points),
        in_decode: stepped(&curves.in_decode.points),
        output_tokens_per_second: stepped(&curves.output_tokens.points),
        input_tokens_per_second: Vec::new(),
        requests_per_second: Vec::new(),
    })
}

/// A curve over a step of time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Weighted by time.
    mean: f64,
    least: f64,
    most: f64,
}

/// A curve in steps of one length: a peak that lasts a moment is in the most of its step, though hardly in its mean.
fn steps(points: &[CurvePoint], from: Nanos, to: Nanos, step: Nanos) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut next = points.partition_point(|point| point.at <= from);
    let before = next.checked_sub(1).map(|at| points[at]);
    let (mut value, mut peak) = before.map_or((0.0, 0.0), |point| (point.value, point.max));
    let mut begin = from;
    while begin < to {
        let end = (begin + step).min(to);
        let (mut at, mut sum) = (begin, 0.0);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut hold = |value: f64, peak: f64, lasted: Nanos| {
            if lasted > 0 {
                sum += value * lasted as f64;
                (least, most) = (least.min(value), most.max(peak));
            }
        };
        while let Some(point) = points.get(next).filter(|point| point.at < end) {
            hold(value, peak, point.at.max(at) - at);
            (at, value, peak) = (point.at.max(at), point.value, point.max);
            next += 1;
        }
        hold(value, peak, end - at);
        steps.push(Step {
            mean: sum / (end - begin) as f64,
            least,
            most,
        });
        begin = end;
    }
    steps
}

fn failures(failed: &BTreeMap<&'static str, FirstFailure>) -> Vec<Failures> {
    let mut failures: Vec<Failures> = failed
        .iter()
        .map(|(class, first)| Failures {
            class: (*class).to_owned(),
            count: first.count,
            first_message: first.message.clone(),
            first_request: Some(first.request.clone()),
            first_at: Some(first.at),
        })
        .collect();
    failures.sort_by_key(|failures| std::cmp::Reverse(failures.count));
    failures
}

fn never_sent(evaluation: &Evaluation) -> Vec<NeverSent> {
    let counts = evaluation.counts.never_sent.iter();
    counts
        .map(|(reason, count)| NeverSent {
            reason: reason.name().to_owned(),
            count: *count,
            meaning: match reason {
                NeverSentReason::SessionCancelled => "an earlier request of the session failed",
                NeverSentReason::RunEnded => "the run ended before they were due",
                NeverSentReason::PluginFailed => "the session's plugin failed",
                NeverSentReason::Held => "a limit kept them back until the run ended",
                NeverSentReason::Missed => "they were due, and the host did not come to them",
            }
            .to_owned(),
        })
        .collect()
}

fn slices(slices: &TimeSlices) -> Option<Slices> {
    use veeksha_evaluate::Metric as BuiltIn;
    if slices.slices.len() < 2 {
        return None;
    }
    let column = |label: &str, unit: &str| SliceColumn {
        label: label.to_owned(),
        unit: unit.to_owned(),
    };
    let rows = slices.slices.iter().map(|slice| {
        let of = |metric, figure: fn(&Summary) -> f64| slice.metric(metric).map(figure);
        Slice {
            from: seconds(slice.from),
            to: seconds(slice.to),
            values: vec![
                slice.requests_per_second(),
                slice.output_tokens_per_second(),
                slice.error_rate(),
                of(BuiltIn::Ttfc, |ttfc| ttfc.p50),
                of(BuiltIn::Ttfc, |ttfc| ttfc.p99),
                of(BuiltIn::Tbc, |tbc| tbc.p50),
                of(BuiltIn::Tbc, |tbc| tbc.p99),
            ],
        }
    });
    Some(Slices {
        columns: vec![
            column("Answered", "requests/s"),
            column("Output", "tokens/s"),
            column("Errors", "share"),
            column("TTFC P50", "s"),
            column("TTFC P99", "s"),
            column("TBC P50", "s"),
            column("TBC P99", "s"),
        ],
        rows: rows.collect(),
    })
}

fn check(check: &Check) -> veeksha_page::Check {
    let (outcome, why) = match &check.outcome {
        Outcome::Passed => (CheckOutcome::Passed, None),
        Outcome::Failed => (CheckOutcome::Failed, None),
        Outcome::Skipped(why) => (CheckOutcome::Skipped, Some(why.clone())),
    };
    let mut findings = check.findings.iter().cloned();
    veeksha_page::Check {
        name: check.name.to_owned(),
        outcome,
        summary: why.or_else(|| findings.next()).unwrap_or_default(),
        details: findings.collect(),
    }
}

fn plugins(about: &About) -> Vec<Plugin> {
    let plugin = |(role, info): &(String, veeksha_ports::WorkloadInfo)| Plugin {
        name: info.name.clone(),
        role: role.clone(),
        version: Some(info.version.clone()),
        source: Some(info.engine.to_owned()),
        digest: Some(format!("blake3:{}", info.digest)),
    };
    about.plugins.iter().map(plugin).collect()
}

fn machine(evaluation: &Evaluation) -> Vec<Fact> {
    let host = &evaluation.host;
    let mut facts = vec![fact("Cores", crate::wire_up::cores().to_string())];
    facts.extend(host.threads.iter().filter_map(|thread| {
        let busy = thread.busy_share()?;
        Some(fact(
            &format!("Thread {}", thread.thread),
            format!("busy {}", veeksha_report::share(busy)),
        ))
    }));
    facts
}

fn versions() -> Vec<Fact> {
    vec![
        fact("veeksha-host", env!("CARGO_PKG_VERSION")),
        fact("plugin contract", "veeksha:plugin@0.1.0"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 from 0 to 10, 4 from 10 to 15, 0 after: steps of 10 from 5 to 25 have means (2*5 + 4*5)/10 = 3 and 0.
    #[test]
    fn a_curve_is_averaged_over_time_and_keeps_its_peaks() {
        let point = |at, value| CurvePoint {
            at,
            value,
            max: value,
        };
        let points = [point(0, 2.0), point(10, 4.0), point(15, 0.0)];
        let of = |mean, least, most| Step { mean, least, most };
        assert_eq!(steps(&points, 5, 25, 10), [of(3.0, 2.0, 4.0), of(0.0, 0.0, 0.0)]);
        assert_eq!(steps(&points, 0, 10, 4), [of(2.0, 2.0, 2.0); 3]);
        assert_eq!(steps(&[], 0, 4, 4), [of(0.0, 0.0, 0.0)]);
        // A point that stands for a stretch has a peak within it.
        let stretch = CurvePoint {
            max: 9.0,
            ..point(0, 2.0)
        };
        assert_eq!(steps(&[stretch], 0, 4, 4), [of(2.0, 2.0, 9.0)]);
    }
}
