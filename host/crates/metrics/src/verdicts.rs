//! The findings of a certificate, each a rule and its words.

use veeksha_events::NeverSentReason;
use veeksha_stats::{Summary, duration, share};

use crate::certificate::{CertFinding, ENOUGH, ErrorBound, ErrorSource, FINEST, Thresholds, Verdict};
use crate::{
    Counts, ErrorEstimate, ErrorPart, Evaluation, HostFigures, Metric, RunEnd, SelfTest, ThreadFigures,
};

/// The P50 of gaps that is below this share of their mean is a time within bursts, not a pace.
const IN_BURSTS: f64 = 0.1;
/// A client thread that is on a processor for this share of a second has nothing left; with lag, the run is invalid.
const SATURATED: f64 = 0.95;
/// A thread that is kept from running for this share of a second is worth a remark.
const KEPT_WAITING: f64 = 0.10;
/// A lag that would be an error without kernel timestamps, in seconds.
const LONG_LAG: f64 = 1e-3;

const DOCTOR: &str = "`veeksha-host doctor` says what to improve on this machine";

/// A metric as people call it.
fn called(metric: Metric) -> &'static str {
    match metric {
        Metric::Ttfc => "TTFC",
        Metric::TtfcFromIntended => "TTFC from intended",
        Metric::Tbc => "TBC",
        Metric::Tpot => "TPOT",
        Metric::EndToEnd => "E2E",
        Metric::EndToEndFromIntended => "E2E from intended",
        other => other.display_name(),
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

/// Counts of output tokens that differ by more than this share are by other tokenizers.
const OTHER_TOKENS: f64 = 0.05;

fn remark(what: String) -> CertFinding {
    CertFinding {
        metric: None,
        verdict: Verdict::Valid,
        what,
        remedy: None,
    }
}

/// What is missing of the record itself. What came before a cut is all that happened until then; of a damaged record nobody knows
/// what the lost part would have said.
pub(crate) fn of_record(end: RunEnd) -> Option<CertFinding> {
    let (verdict, what) = match (end.damaged, end.complete) {
        (true, _) => (
            Verdict::Invalid,
            "parts of the record could not be read: every figure may be wrong",
        ),
        (false, false) => (
            Verdict::Degraded,
            "the record was cut short: the figures are of what came before",
        ),
        (false, true) => return None,
    };
    Some(CertFinding {
        verdict,
        ..remark(what.into())
    })
}

pub(crate) fn nothing_answered(evaluation: &Evaluation) -> CertFinding {
    let what = evaluation
        .why_nothing_was_measured()
        .unwrap_or_else(|| "no request was answered: there is nothing to certify".into());
    CertFinding {
        verdict: Verdict::Invalid,
        ..remark(what)
    }
}

/// The bound of a metric and what it means.
pub(crate) fn of_metric(
    estimate: &ErrorEstimate,
    summary: &Summary,
    thresholds: &Thresholds,
    self_test: Option<&SelfTest>,
) -> (ErrorBound, CertFinding) {
    let metric = estimate.metric;
    let measured = self_test
        .and_then(|test| test.errors_of(metric))
        .filter(|errors| errors.count as u64 >= ENOUGH);
    let from_test = measured.filter(|errors| errors.mean_abs > estimate.mean);
    let in_bursts = metric == Metric::Tbc && summary.p50 < IN_BURSTS * summary.mean;
    let reference = if in_bursts { summary.mean } else { summary.p50 };
    let error = from_test.map_or(estimate.mean, |errors| errors.mean_abs);
    let bound = ErrorBound {
        metric,
        count: estimate.count,
        mean_error: error,
        p99_error: measured.map_or(estimate.p99, |errors| errors.p99),
        source: measured.map_or(ErrorSource::Estimated, |_| ErrorSource::SelfTest),
        reference,
        relative_to_p50: (reference > 0.0).then(|| error / reference),
        // A self-test sees the whole error, also what the run could not.
        unknown: if measured.is_some() { 0 } else { estimate.unknown },
    };
    let decided_by = from_test.map_or(ErrorSource::Estimated, |_| ErrorSource::SelfTest);
    let mut finding = judged(&bound, decided_by, estimate.main, in_bursts, thresholds);
    if let (Some(errors), ErrorSource::Estimated) = (measured, decided_by) {
        finding.what.push_str(&format!(
            "; that is by the run's own record, and the self-test measured {}",
            duration(errors.mean_abs)
        ));
    }
    (bound, finding)
}

fn judged(
    bound: &ErrorBound,
    decided_by: ErrorSource,
    main: ErrorPart,
    in_bursts: bool,
    thresholds: &Thresholds,
) -> CertFinding {
    let name = called(bound.metric);
    let Some(relative) = bound.relative_to_p50 else {
        return CertFinding {
            metric: Some(bound.metric),
            ..remark(format!("{name}: not certified, because its values are 0"))
        };
    };
    let figure = if in_bursts {
        "mean, because chunks come in bursts"
    } else {
        "P50"
    };
    let mut what = format!(
        "{name}: error {} of its {figure} ({} of {})",
        share(relative),
        duration(bound.mean_error),
        duration(bound.reference)
    );
    let mut verdict = thresholds.of_error(relative);
    let mut remedy = None;
    if verdict > Verdict::Valid {
        let (cause, cure) = cause(decided_by, main);
        what.push_str(cause);
        remedy = Some(cure.to_owned());
    }
    if bound.unknown > 0 {
        what.push_str(&format!(
            "; {} of {} have arrival times of reads, and how late these were is not known",
            bound.unknown, bound.count
        ));
        verdict = verdict.max(Verdict::Degraded);
        remedy.get_or_insert_with(|| "measure it with --self-test".into());
    }
    if bound.count < ENOUGH {
        what.push_str(&format!(
            "; too few {} to certify it: {}, and {ENOUGH} are needed",
            if bound.metric == Metric::Tbc {
                "gaps"
            } else {
                "requests"
            },
            bound.count
        ));
        verdict = verdict.min(Verdict::Degraded);
    }
    if bound.reference < FINEST {
        what.push_str(&format!(
            "; not certified, because no client can tell times below {} apart",
            duration(FINEST)
        ));
        verdict = verdict.min(Verdict::Degraded);
    }
    CertFinding {
        metric: Some(bound.metric),
        verdict,
        what,
        remedy,
    }
}

/// Where the most of an error comes from, and what helps.
fn cause(source: ErrorSource, main: ErrorPart) -> (&'static str, &'static str) {
    if source == ErrorSource::SelfTest {
        return ("; measured by the self-test", DOCTOR);
    }
    match main {
        ErrorPart::Dispatch => (
            "; most of it is late dispatch",
            "keep a core for the dispatcher (`runtime.dispatcher_cores`), let it spin (`runtime.spin_microseconds`), or give it `runtime.realtime_priority`",
        ),
        ErrorPart::Send => (
            "; most of it lies between dispatch and the last byte sent",
            "keep a core for the client threads (`runtime.client_cores`, `runtime.realtime_priority`), or use more of them if they are busy (`runtime.num_client_threads`)",
        ),
        ErrorPart::LateReads => (
            "; most of it is due to reads so late that arrival times were lost",
            "keep a core for the client threads (`runtime.client_cores`, `runtime.realtime_priority`), or use more of them if they are busy (`runtime.num_client_threads`)",
        ),
        ErrorPart::Lag => (
            "; most of it is the lag of reads, whose times stand for the arrivals",
            "use plain HTTP/1.1 on Linux, where the kernel stamps arrivals, or measure the lag with --self-test",
        ),
        ErrorPart::Kernel => (
            "; it is next to the shortest time that a client can tell apart",
            "times this short are better read from the server's own record",
        ),
    }
}

/// Everything that is not about one metric.
pub(crate) fn findings_of_host(
    evaluation: &Evaluation,
    thresholds: &Thresholds,
    self_test: Option<&SelfTest>,
    bounds: &[ErrorBound],
) -> Vec<CertFinding> {
    let host = &evaluation.host;
    let mut findings = Vec::new();
    findings.extend(of_record(evaluation.end));
    findings.extend(missed(&evaluation.counts, thresholds));
    findings.extend(withheld(&evaluation.counts));
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
    findings.extend(other_tokens(evaluation));
    findings.extend(self_test.and_then(test_itself));
    findings
}

/// What was due and what the host, not the server or a limit, kept from being sent.
fn missed(counts: &Counts, thresholds: &Thresholds) -> Option<CertFinding> {
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
        (late, "the run ended before the host came to them"),
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
            "{missed} of {} that were due ({}) were never sent: {}; the load was lower than asked",
            counted(due, "request"),
            share(share_of_due),
            reasons.join(", ")
        ),
        remedy: Some(
            "a lower rate, a faster plugin or more plugin threads (`runtime.num_plugin_threads`)".into(),
        ),
    })
}

/// What the server's failures and the scenario's own limits kept from being sent.
fn withheld(counts: &Counts) -> impl Iterator<Item = CertFinding> {
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
        Some(remark(format!(
            "{count} of {due} that were due: {why}; the load was lower than asked"
        )))
    })
}

/// Whether reads were late enough to matter.
fn lags(host: &HostFigures, thresholds: &Thresholds, bounds: &[ErrorBound]) -> bool {
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

fn busy(thread: &ThreadFigures, lags: bool, thresholds: &Thresholds) -> Option<CertFinding> {
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

fn kept_waiting(thread: &ThreadFigures) -> Option<CertFinding> {
    let waiting = thread.most_waiting.filter(|waiting| *waiting >= KEPT_WAITING)?;
    Some(CertFinding {
        remedy: Some(format!("give the host processors of its own; {DOCTOR}")),
        ..remark(format!(
            "{} was ready to run and had no processor for {} of a second",
            thread.thread,
            share(waiting)
        ))
    })
}

fn late_reads(host: &HostFigures) -> Option<CertFinding> {
    let late = host.late_merged_chunk_share.filter(|late| *late > 0.0)?;
    Some(remark(format!(
        "{} of the chunks were merged by late reads of the client (of all chunks, {} shared a read)",
        share(late),
        share(host.merged_chunk_share.unwrap_or(late))
    )))
}

fn lag(host: &HostFigures) -> Option<CertFinding> {
    let lag = host.client_lag.filter(|lag| lag.p99 >= LONG_LAG)?;
    Some(remark(format!(
        "the client read chunks up to {} (P99) after the kernel had them; the kernel's own times were used, so by itself that is no error",
        duration(lag.p99)
    )))
}

/// `itl` divides gaps by the host's count of each chunk's tokens, and every other figure of tokens goes by the server's.
fn other_tokens(evaluation: &Evaluation) -> Option<CertFinding> {
    let told = evaluation.samples.requests.told_twice;
    let (host, server) = (told.by_host as f64, told.by_server as f64);
    let differ = told.by_server > 0 && (host - server).abs() > OTHER_TOKENS * server;
    differ.then(|| {
        remark(format!(
            "itl is of other tokens than the rest: the host counts each chunk's, {} in answers that have {} by the server's usage, because its \
             tokenizer is not the model's (`client.tokenizer` names one) or because chunks end within words",
            told.by_host, told.by_server
        ))
    })
}

fn openings(host: &HostFigures, bounds: &[ErrorBound]) -> Option<CertFinding> {
    let opened = Some(host.ttfc_with_opening).filter(|opened| *opened > 0)?;
    let ttfc = bounds.iter().find(|bound| bound.metric == Metric::Ttfc)?;
    Some(remark(format!(
        "TTFC: {opened} of {} contain the opening of a connection, which is counted as the network's, not as the client's",
        ttfc.count
    )))
}

fn clock_steps(host: &HostFigures) -> Option<CertFinding> {
    let step = host.largest_clock_step?;
    Some(remark(format!(
        "the wall clock was set {} (by {} at the most): kernel timestamps that it spoilt were refused, and {} of {} answers have the times of reads",
        counted(host.clock_steps, "time"),
        duration(step.abs()),
        host.read_stamped,
        host.read_stamped + host.kernel_stamped
    )))
}

fn starved(host: &HostFigures) -> Option<CertFinding> {
    (host.starvations > 0).then(|| CertFinding {
        remedy: Some("use more plugin threads (`runtime.num_plugin_threads`), or a faster plugin".into()),
        ..remark(format!(
            "{} came from the plugin after they were due, by {} in all; where arrivals have instants of their own, this is in the dispatch lateness",
            counted(host.starvations, "session"),
            duration(host.starved_seconds)
        ))
    })
}

/// A self-test that could say little, or that lost something.
fn test_itself(test: &SelfTest) -> Option<CertFinding> {
    let lost = test.unmatched_requests + test.unmatched_truth + test.chunks_differ;
    if lost > 0 {
        return Some(CertFinding {
            verdict: Verdict::Degraded,
            remedy: Some("this is a defect, please report it".into()),
            ..remark(format!(
                "self-test: client and server do not agree: {} and {} without a counterpart, {} with other chunks",
                counted(test.unmatched_requests as u64, "answer"),
                counted(test.unmatched_truth as u64, "request"),
                test.chunks_differ
            ))
        });
    }
    ((test.matched as u64) < ENOUGH).then(|| {
        remark(format!(
            "self-test: too short to count, it has {} and {ENOUGH} are needed",
            counted(test.matched as u64, "request")
        ))
    })
}
