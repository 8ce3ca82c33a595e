//! The computation of a run's results from the state after the last event.

use std::collections::BTreeMap;
use std::sync::Arc;

use veeksha_definitions::Metric;
use veeksha_model::{Nanos, SessionId};

use crate::cache_accounting::CacheAccounting;
use crate::counts::RunCounts;
use crate::curves::{CurveParts, curves};
use crate::evaluation::Evaluation;
use crate::evaluator::RunEvaluator;
use crate::groups::groups;
use crate::metric_summaries::{built_in, of_plugins};
use crate::objectives::{GoodputResult, SloResults, Unknown, count_good};
use crate::requests::RequestTable;
use crate::run_metric::RunMetric;
use crate::run_samples::RunSamples;
use crate::schedule::Schedule;
use crate::session_graph;
use crate::sessions::Sessions;
use crate::slices::{Course, slices};

impl RunEvaluator {
    /// Returns the exact results of all events.
    pub fn finish(self) -> Evaluation {
        let evaluator = self;
        let RunEvaluator {
            setup,
            mut counts,
            mut requests,
            mut custom,
            mut sessions,
            mut end,
            ..
        } = evaluator;
        // Releases data that is no longer needed before steps that need temporary memory.
        let host = evaluator.host.finish();
        let unfinished = evaluator.open.intended_before(evaluator.timeout_at);
        counts.unfinished = unfinished.len() as u64;
        sessions.sort();
        count_sessions(
            &mut counts,
            &sessions,
            &evaluator.failed_sessions,
            evaluator.timeout_at,
        );
        end.refused_samples = custom.refused.count();
        let refused = std::mem::take(&mut custom.refused)
            .list(|metric| setup.catalogue.get(metric).and_then(|info| info.plugin.clone()));
        requests.sort();
        let curves = curves(
            &requests.rows,
            CurveParts {
                unfinished: evaluator.open.dispatched_at().collect(),
                sessions: sessions.active(evaluator.latest).collect(),
                tokens: evaluator.tokens,
                end: evaluator.latest,
                window: evaluator.totals.window(),
            },
        );
        let session_dispatch_rate = sessions.dispatch_rate();
        let table = session_graph::table(&mut requests, &sessions, setup.what_if);
        drop(sessions);
        let schedule = schedule(&requests, &unfinished, evaluator.stopped_at);
        let custom = custom.resolve(&requests);
        let mut samples = RunSamples::new(requests, table, custom, setup.catalogue, schedule);
        let throughput = evaluator.totals.throughput(
            samples.summary(Metric::Tpot.name()).map(|tpot| tpot.mean),
            samples.summary(Metric::Tbc.name()).map(|tbc| tbc.p99),
        );
        let unknown = Unknown {
            failed: &evaluator.failed,
            complete: end.complete,
            repeated_metrics: &setup.repeated_metrics,
        };
        let good = count_good(&mut samples, &setup.objectives, evaluator.judgements, &unknown);
        let goodput = GoodputResult::of(good, &counts, throughput.window_seconds);
        samples.run_metrics = [(RunMetric::SessionDispatchRate, session_dispatch_rate)]
            .into_iter()
            .chain(goodput.run_metrics())
            .chain(throughput.run_metrics())
            .chain(counts.run_metrics())
            .chain(curves.run_metrics())
            .chain(evaluator.totals.run_metrics())
            .filter_map(|(metric, value)| Some((metric, value.filter(|value| value.is_finite())?)))
            .collect();
        let course = Course {
            unfinished: &unfinished,
            judged: goodput.good.is_some(),
        };
        let mut slos = SloResults::of(&setup.objectives, &samples, &unknown, goodput, evaluator.verdicts);
        if end.interrupted {
            let remark = "the run was interrupted: only the requests until then are judged";
            slos.remarks.push(remark.to_owned());
        }
        Evaluation {
            cache: CacheAccounting::of(&samples.requests),
            metrics: built_in(&samples),
            custom: of_plugins(&samples),
            slices: slices(&samples, setup.slice, &course),
            groups: groups(
                &samples,
                setup.group_by.as_deref(),
                course.judged,
                throughput.window_seconds,
            ),
            slos,
            samples: Arc::new(samples),
            workload: evaluator.planned.digest(),
            sent: evaluator.sent.digest(),
            host,
            counts,
            throughput,
            curves,
            session_dispatch_rate,
            end,
            refused,
            failed: evaluator.failed,
            workload_failures: evaluator.workload_failures,
        }
    }
}

/// Adds the counts that depend on the starts and ends of sessions, which must be sorted.
fn count_sessions(
    counts: &mut RunCounts,
    sessions: &Sessions,
    failed: &BTreeMap<SessionId, Option<Nanos>>,
    timeout_at: Option<Nanos>,
) {
    counts.incomplete_sessions += sessions.without_end();
    counts.sessions = sessions.started();
    // A session that never began was not due.
    let in_window = |at: Nanos| timeout_at.is_none_or(|timeout| at < timeout);
    let failed = failed
        .iter()
        .filter(|(session, at)| at.is_none_or(in_window) && sessions.start(**session).is_some_and(in_window));
    counts.failed_agent_sessions = failed.count() as u64;
}

/// Returns the interval in which measured requests were intended.
fn schedule(requests: &RequestTable, unfinished: &[Nanos], stopped_at: Option<Nanos>) -> Option<Schedule> {
    let measured = requests.rows.iter().filter(|row| row.measured);
    let intended = measured.map(|row| row.observed.intended);
    Schedule::of(intended.chain(unfinished.iter().copied()), stopped_at)
}
