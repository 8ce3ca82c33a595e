//! Findings about the run as a whole.

use veeksha_events::{FailedPlugin, NeverSentReason, PluginRole};
use veeksha_metrics::{
    Evaluation, HostPerformance, Metric, RecordEnd, RunCounts, ThreadUse, WorkloadFailures,
};
use veeksha_stats::{counted, duration, share};

use crate::bound::{ENOUGH, ErrorBound, MetricAssessment};
use crate::conditions::DOCTOR;
use crate::self_test::SelfTest;
use crate::tokens::token_findings;
use crate::verdict::{CertFinding, Thresholds, Verdict};

/// A client thread that is on a processor for this share of a second has no reserve. If there is
/// also lag, the run is invalid.
const SATURATED: f64 = 0.95;
/// A thread that waits for a processor for this share of a second causes a remark.
const KEPT_WAITING: f64 = 0.10;
/// A lag, in seconds, that would be an error without kernel timestamps.
const LONG_LAG: f64 = 1e-3;

/// Returns the finding on an incomplete record. A cut record contains all events up to the cut; the
/// lost parts of a damaged record are unknown.
pub(crate) fn of_record(end: RecordEnd) -> Option<CertFinding> {
    let (verdict, what, remedy) = match (end.damaged, end.complete) {
        (true, _) => (
            Verdict::Invalid,
            "parts of the record could not be read: every metric may be wrong",
            "repeat the run, or restore its folder from a copy",
        ),
        (false, false) => (
            Verdict::Degraded,
            "the record was cut short: the metrics cover only the events before",
            "repeat the run to its end",
        ),
        (false, true) if end.interrupted => {
            let what = "the run was interrupted: the metrics cover only the requests until then";
            return Some(CertFinding::remark(what.into()));
        }
        (false, true) => return None,
    };
    Some(CertFinding {
        verdict,
        remedy: Some(remedy.into()),
        ..CertFinding::remark(what.into())
    })
}

pub(crate) fn nothing_answered(evaluation: &Evaluation) -> CertFinding {
    let what = evaluation
        .why_nothing_was_measured()
        .unwrap_or_else(|| "no request was answered: there is nothing to certify".into());
    CertFinding {
        verdict: Verdict::Invalid,
        ..CertFinding::remark(what)
    }
}

/// Returns the finding that no answer has tokens, so that no latency exists.
pub(crate) fn no_tokens(counts: &RunCounts) -> Option<CertFinding> {
    let has_tokens = counts.completed == 0 || counts.empty_answers < counts.completed;
    (!has_tokens).then(|| CertFinding {
        verdict: Verdict::Invalid,
        remedy: Some(
            "check that `client.type` matches the server's API, and request one answer with curl".into(),
        ),
        ..CertFinding::remark(format!(
            "no latency was measured: none of the {} answers has generated tokens",
            counts.completed
        ))
    })
}

/// Returns the findings that do not concern a single metric.
pub(crate) fn findings_of_run(
    evaluation: &Evaluation,
    assessment: &MetricAssessment<'_>,
    bounds: &[ErrorBound],
) -> Vec<CertFinding> {
    let MetricAssessment {
        thresholds,
        conditions,
        self_test,
        ..
    } = assessment;
    let host = &evaluation.host;
    let mut findings = Vec::new();
    findings.extend(of_record(evaluation.end));
    findings.extend(missed(&evaluation.counts, thresholds));
    findings.extend(withheld(&evaluation.counts));
    findings.extend(missing_tool_runs(&evaluation.counts));
    findings.extend(evaluation.workload_failures.iter().map(lost_sessions));
    findings.extend(evaluation.failed.iter().map(failed_plugin));
    findings.extend(
        host.threads
            .iter()
            .filter(|thread| thread.is_client())
            .filter_map(|thread| busy(thread, lags(host, thresholds, bounds), thresholds)),
    );
    findings.extend(host.threads.iter().filter_map(kept_waiting));
    findings.extend(late_reads(host));
    findings.extend(lag(host));
    findings.extend(openings(host, bounds));
    findings.extend(clock_steps(host));
    findings.extend(starved(host));
    findings.extend(token_findings(&evaluation.samples.answer_tokens(), conditions));
    findings.extend(failed(&evaluation.counts, thresholds));
    findings.extend(self_test.and_then(test_itself));
    findings
}

/// Returns the finding on due requests that the host, not the server or a limit, failed to send.
fn missed(counts: &RunCounts, thresholds: &Thresholds) -> Option<CertFinding> {
    let of = |reason| counts.never_sent.get(&reason).copied().unwrap_or(0);
    let (late, failed, arrivals) = (
        of(NeverSentReason::Missed),
        of(NeverSentReason::PluginFailed),
        counts.arrivals_missed,
    );
    let missed = late + failed + arrivals;
    if missed == 0 {
        return None;
    }
    let due = counts.intended() + arrivals;
    let share_of_due = missed as f64 / due as f64;
    let reasons = [
        (late, "the run ended before the host reached them"),
        (failed, "their plugin failed"),
        (arrivals, "the plugin had not made their sessions yet"),
    ];
    let reasons: Vec<String> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{count} because {reason}"))
        .collect();
    Some(CertFinding {
        metric: None,
        verdict: thresholds.of_missed(share_of_due),
        what: format!(
            "{missed} of {} that were due ({}) were never sent: {}; the load was lower than the scenario specifies",
            counted(due, "request"),
            share(share_of_due),
            reasons.join(", ")
        ),
        remedy: Some(
            "a lower rate, a faster plugin or more plugin threads (`runtime.num_plugin_threads`)".into(),
        ),
    })
}

/// Returns the finding on sessions that ended early because their plugin failed.
fn lost_sessions(failures: &WorkloadFailures) -> CertFinding {
    CertFinding {
        verdict: Verdict::Degraded,
        ..CertFinding::remark(format!(
            "{failures}; the load was lower than the scenario specifies"
        ))
    }
}

/// Returns the finding on a plugin that failed while it measured or judged.
pub(crate) fn failed_plugin(failed: &FailedPlugin) -> CertFinding {
    const EVALUATE: &str = "correct the plugin, and evaluate the run again with `evaluate --plugin`";
    let (missing, remedy) = match failed.part {
        PluginRole::Metric => ("its metrics do not cover all requests", EVALUATE),
        PluginRole::RequestCheck => ("it did not check all requests", EVALUATE),
        PluginRole::SloCheck => ("its verdicts on the run are missing", EVALUATE),
        PluginRole::Workload => (
            "its sessions are missing",
            "correct the plugin, and repeat the run",
        ),
    };
    CertFinding {
        verdict: Verdict::Degraded,
        remedy: Some(remedy.into()),
        ..CertFinding::remark(format!(
            "the plugin `{}` failed, {}: {missing}",
            failed.plugin, failed.message
        ))
    }
}

/// Returns the findings on requests that were withheld due to server failures and the scenario's
/// limits.
fn withheld(counts: &RunCounts) -> impl Iterator<Item = CertFinding> {
    let reasons = [
        (
            NeverSentReason::SessionCancelled,
            "withdrawn, because an earlier one of the session failed",
        ),
        (NeverSentReason::Held, "held back by a limit until the run ended"),
    ];
    reasons.into_iter().filter_map(|(reason, why)| {
        let count = counts
            .never_sent
            .get(&reason)
            .copied()
            .filter(|count| *count > 0)?;
        let due = counted(counts.intended(), "request");
        Some(CertFinding::remark(format!(
            "{count} of {due} that were due: {why}; the load was lower than the scenario specifies"
        )))
    })
}

/// Returns the finding on tool runs whose times are missing because they did not end. With bounded
/// draining, those are the longest ones.
fn missing_tool_runs(counts: &RunCounts) -> Option<CertFinding> {
    let missing: u64 = counts.missing_tool_runs().values().sum();
    let ended: u64 = counts.tools.values().map(|tool| tool.runs).sum();
    (missing > 0).then(|| {
        let due = counted(missing + ended, "tool run");
        CertFinding::remark(format!(
            "{missing} of {due} that were due did not end: `tool_waiting_time` and \
             `tool_service_time` are of the others, and too low if the long ones are missing"
        ))
    })
}

/// Returns true if reads were late enough to affect the results.
fn lags(host: &HostPerformance, thresholds: &Thresholds, bounds: &[ErrorBound]) -> bool {
    let long = host.client_lag.is_some_and(|lag| lag.p99 >= LONG_LAG);
    let merged = host
        .late_merged_chunk_share
        .is_some_and(|share| share > thresholds.degraded);
    let large = |bound: &ErrorBound| {
        bound
            .relative_to_p50
            .is_some_and(|relative| thresholds.of_error(relative) > Verdict::Valid)
    };
    long || merged || bounds.iter().any(large)
}

fn busy(thread: &ThreadUse, lags: bool, thresholds: &Thresholds) -> Option<CertFinding> {
    let busiest = thread.busiest.filter(|busiest| *busiest >= thresholds.busy)?;
    let was = format!(
        "{} was on a processor for {} of a second",
        thread.thread,
        share(busiest)
    );
    let (verdict, what) = if busiest >= SATURATED.max(thresholds.busy) && lags {
        (
            Verdict::Invalid,
            format!("{was} and its reads lagged: the client was the bottleneck"),
        )
    } else {
        (
            Verdict::Degraded,
            format!("{was}: the client was nearly the bottleneck"),
        )
    };
    Some(CertFinding {
        metric: None,
        verdict,
        what,
        remedy: Some(
            "use more client threads (`runtime.num_client_threads`), or send less from this machine".into(),
        ),
    })
}

fn kept_waiting(thread: &ThreadUse) -> Option<CertFinding> {
    let waiting = thread.most_waiting.filter(|waiting| *waiting >= KEPT_WAITING)?;
    Some(CertFinding {
        remedy: Some(format!("give the host dedicated processors; {DOCTOR}")),
        ..CertFinding::remark(format!(
            "{} was ready to run and had no processor for {} of a second",
            thread.thread,
            share(waiting)
        ))
    })
}

fn late_reads(host: &HostPerformance) -> Option<CertFinding> {
    let late = host.late_merged_chunk_share.filter(|late| *late > 0.0)?;
    Some(CertFinding::remark(format!(
        "{} of the chunks were merged by late reads of the client (of all chunks, {} shared a read)",
        share(late),
        share(host.merged_chunk_share.unwrap_or(late))
    )))
}

fn lag(host: &HostPerformance) -> Option<CertFinding> {
    let lag = host.client_lag.filter(|lag| lag.p99 >= LONG_LAG)?;
    Some(CertFinding::remark(format!(
        "reads returned up to {} (P99) after the kernel had received their last segment; the kernel's times were used, so this is an error only for chunks that shared such a read",
        duration(lag.p99)
    )))
}

/// Returns the finding on failed requests, which restrict the metrics to the answered ones.
pub(crate) fn failed(counts: &RunCounts, thresholds: &Thresholds) -> Option<CertFinding> {
    let rate = counts.error_rate()?;
    let verdict = thresholds.of_failed(rate);
    (verdict > Verdict::Valid && counts.completed > 0).then(|| CertFinding {
        metric: None,
        verdict,
        what: format!(
            "{} of {} failed ({}): the metrics describe only those that were answered",
            counts.errored,
            counted(counts.requests, "request"),
            share(rate)
        ),
        remedy: Some("see their errors in `error_class_freq` of summary_stats.json; if the server is overloaded, lower the load".into()),
    })
}

fn openings(host: &HostPerformance, bounds: &[ErrorBound]) -> Option<CertFinding> {
    let opened = Some(host.ttfc_with_opening).filter(|opened| *opened > 0)?;
    let ttfc = bounds.iter().find(|bound| bound.metric == Metric::Ttfc)?;
    Some(CertFinding::remark(format!(
        "TTFC: {opened} of {} contain the opening of a connection, which is counted as the network's, not as the client's",
        ttfc.count
    )))
}

fn clock_steps(host: &HostPerformance) -> Option<CertFinding> {
    let step = host.largest_clock_step?;
    Some(CertFinding::remark(format!(
        "the wall clock was set {} (by {} at the most): kernel timestamps that this made wrong were discarded, and {} of {} answers have the times of reads",
        counted(host.clock_steps, "time"),
        duration(step.abs()),
        host.read_stamped,
        host.read_stamped + host.kernel_stamped
    )))
}

fn starved(host: &HostPerformance) -> Option<CertFinding> {
    (host.starvations > 0).then(|| CertFinding {
        remedy: Some("use more plugin threads (`runtime.num_plugin_threads`), or a faster plugin".into()),
        ..CertFinding::remark(format!(
            "{} came from the plugin after they were due, by {} in all; if arrivals have scheduled instants, the dispatch lateness includes this",
            counted(host.starvations, "session"),
            duration(host.starved_seconds)
        ))
    })
}

/// Returns the finding on a self-test with too few samples or lost requests.
fn test_itself(test: &SelfTest) -> Option<CertFinding> {
    let lost = test.unmatched_requests + test.unmatched_truth + test.chunks_differ;
    if lost > 0 {
        return Some(CertFinding {
            verdict: Verdict::Degraded,
            remedy: Some("this is a defect, please report it".into()),
            ..CertFinding::remark(format!(
                "self-test: client and server do not agree: {} and {} without a counterpart, {} with other chunks",
                counted(test.unmatched_requests as u64, "answer"),
                counted(test.unmatched_truth as u64, "request"),
                test.chunks_differ
            ))
        });
    }
    ((test.matched as u64) < ENOUGH).then(|| {
        CertFinding::remark(format!(
            "self-test: too short to count, it has {} and {ENOUGH} are needed",
            counted(test.matched as u64, "request")
        ))
    })
}
