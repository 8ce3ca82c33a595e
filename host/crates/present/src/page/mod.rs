//! The data of a run's page, `report.html`.

mod facts;
mod groups;
mod judged;
mod key_metrics;
mod losses;
mod over_time;

use std::collections::BTreeMap;

use veeksha_certificate::Certificate;
use veeksha_metrics::{LabelGroups, LiveStats};
use veeksha_model::seconds;
use veeksha_page::{KeyMetric, PageData, RequestList, RunState};

use crate::accuracy::{AccuracyContext, Clock};
use crate::cache_section;
use crate::description::RunDescription;
use crate::listed;
use crate::plugin_usage;
use crate::run_analysis::{FailureClass, RunAnalysis};
use crate::session_section;
use facts::{fact, facts, machine, plugins, versions};
use groups::groups;
use judged::{check, not_judged, slo, trust, verdict};
use key_metrics::{key_metrics, metrics, on_the_way};
use losses::{dropped_tool_runs, failed_plugins, failures, never_sent};
use over_time::{load, slices};

/// Returns the page of a finished run.
pub fn finished(results: &RunAnalysis, certificate: &Certificate, accuracy: &AccuracyContext) -> PageData {
    let evaluation = &results.evaluation;
    let state = match (evaluation.end.complete, evaluation.end.interrupted) {
        (_, true) => RunState::Interrupted,
        (true, false) => RunState::Ended,
        (false, false) => RunState::Cut,
    };
    let mut run = facts(&results.about, state);
    run.remarks
        .extend(listed::lines(&evaluation.refused, "kinds of samples left out"));
    run.remarks
        .extend(evaluation.groups.iter().filter_map(LabelGroups::remark));
    run.remarks.extend(evaluation.failed.iter().map(|failed| {
        format!(
            "the plugin `{}` failed {}: its results cover only the requests before",
            failed.plugin, failed.message
        )
    }));
    run.elapsed = evaluation.curves.window.map(|(_, to)| seconds(to));
    run.remarks.extend(evaluation.slos.remarks.iter().cloned());
    run.started_unix = results
        .started
        .as_ref()
        .filter(|_| accuracy.clock == Clock::Real)
        .map(|info| info.epoch_wall_nanos as f64 / 1e9);
    if let Some(divergence) = &results.divergence {
        let lines = divergence.lines().into_iter();
        let remarks = lines.map(|line| format!("decisions of agents against the recorded run: {line}"));
        run.remarks.extend(remarks);
    }
    if let Some(workload) = &evaluation.workload {
        run.facts.push(fact(
            "Workload",
            format!("{} of {} sessions", short(&workload.digest), workload.sessions),
        ));
    }
    let curves = (results.requests.rows.len() as u64) < results.requests.total;
    PageData {
        run,
        certificate: Some(trust(certificate)),
        key_metrics: key_metrics(evaluation, certificate),
        metrics: metrics(evaluation, certificate),
        slos: evaluation
            .slos
            .results
            .iter()
            .map(slo)
            .chain(evaluation.slos.verdicts.iter().map(verdict))
            .chain(
                evaluation
                    .slos
                    .not_asked
                    .iter()
                    .map(|unknown| not_judged(unknown)),
            )
            .collect(),
        curves: curves.then(|| load(evaluation)).flatten(),
        requests: results.requests.clone(),
        failures: failures(&results.failures),
        never_sent: never_sent(evaluation),
        dropped_tool_runs: dropped_tool_runs(evaluation),
        failed_plugins: failed_plugins(evaluation),
        sessions: session_section::tables(evaluation),
        cache: cache_section::table(evaluation),
        groups: groups(&evaluation.groups),
        slices: slices(&evaluation.slices),
        health: results.health.checks.iter().map(check).collect(),
        configuration: (!results.about.config.is_empty()).then(|| results.about.config.clone()),
        plugins: plugins(&results.about),
        plugin_use: plugin_usage::rows(&results.plugin_usage),
        machine: machine(evaluation, results.about.cores),
        versions: versions(),
    }
}

/// Returns the page of a run that is in progress.
pub fn in_progress(
    about: &RunDescription,
    live: &LiveStats,
    requests: RequestList,
    failed: &BTreeMap<&'static str, FailureClass>,
    state: RunState,
    elapsed: f64,
) -> PageData {
    let mut run = facts(about, state);
    run.elapsed = Some(elapsed);
    let count = |label: &str, value: u64| KeyMetric {
        name: label.to_lowercase().replace(' ', "_"),
        label: label.to_owned(),
        value: Some(value as f64),
        ..KeyMetric::default()
    };
    let rate = |name: &str, label: &str, value, unit: &str| KeyMetric {
        name: name.to_owned(),
        label: label.to_owned(),
        value,
        unit: unit.to_owned(),
        detail: Some("over the last ten seconds".to_owned()),
        ..KeyMetric::default()
    };
    PageData {
        run,
        key_metrics: vec![
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
        .filter_map(|(name, live)| on_the_way(name, live?))
        .collect(),
        requests,
        failures: failures(failed),
        configuration: (!about.config.is_empty()).then(|| about.config.clone()),
        plugins: plugins(about),
        versions: versions(),
        ..PageData::default()
    }
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
