//! The error bound of each metric, and the resulting finding.

use veeksha_metrics::{ErrorEstimate, ErrorPart, Metric};
use veeksha_stats::{Summary, duration, share};

use crate::conditions::{DOCTOR, RunConditions, ThreadConditions};
use crate::self_test::SelfTest;
use crate::tokens::TokenDoubt;
use crate::verdict::{CertFinding, Thresholds, Verdict};

/// The minimum number of samples for a metric to be certified.
pub const ENOUGH: u64 = 30;

/// The shortest typical value, in seconds, for a metric to be certified: five times the P99 of the
/// time between the wire and the kernel's timestamp.
pub const FINEST: f64 = 100e-6;

/// Gaps whose P50 is below this share of their mean are within bursts: the P50 is then not a pace.
const IN_BURSTS: f64 = 0.1;

/// The origin of an error bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorSource {
    /// Estimated from the run's own record.
    Estimated,
    /// Measured by the self-test.
    SelfTest,
}

impl ErrorSource {
    /// The snake-case name in files.
    pub fn name(self) -> &'static str {
        match self {
            ErrorSource::Estimated => "estimated",
            ErrorSource::SelfTest => "self_test",
        }
    }
}

/// The error that the client may have added to a metric: its mean and its 99th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBound {
    /// The metric.
    pub metric: Metric,
    /// Samples of the metric.
    pub count: u64,
    /// Mean absolute error of a sample, in the metric's unit. It decides the verdict.
    pub mean_error: f64,
    /// 99th percentile of the absolute errors: the larger of the estimate from the run's record and
    /// the self-test's. Displayed next to the metric.
    pub p99_error: f64,
    /// The origin of `p99_error`.
    pub source: ErrorSource,
    /// The value that the error is compared with: the metric's P50 (of `tbc` in bursts, its mean).
    pub reference: f64,
    /// `mean_error` ÷ `reference`; `None` if the reference is 0.
    pub relative_to_p50: Option<f64>,
    /// Samples whose error is partly unknown and excluded.
    pub unknown: u64,
}

impl ErrorBound {
    /// Returns true if the metric has enough samples to be certified.
    pub fn has_enough(&self) -> bool {
        self.count >= ENOUGH
    }

    /// Returns the reason why a metric with too few samples is not certified.
    pub fn lack_of_samples(&self) -> Option<String> {
        (!self.has_enough()).then(|| format!("not certified: {} of {ENOUGH} samples", self.count))
    }
}

/// The inputs of the assessment of every metric.
pub(crate) struct MetricAssessment<'a> {
    pub(crate) thresholds: &'a Thresholds,
    pub(crate) conditions: &'a RunConditions,
    pub(crate) self_test: Option<&'a SelfTest>,
    pub(crate) token_doubt: Option<TokenDoubt>,
}

/// The error of a metric, with its origin.
struct AssessedError<'a> {
    bound: &'a ErrorBound,
    decided_by: ErrorSource,
    main: ErrorPart,
    in_bursts: bool,
}

impl MetricAssessment<'_> {
    /// Returns the bound of a metric and its finding.
    pub(crate) fn of_metric(&self, estimate: &ErrorEstimate, summary: &Summary) -> (ErrorBound, CertFinding) {
        let metric = estimate.metric;
        let measured = self
            .self_test
            .and_then(|test| test.errors_of(metric))
            .filter(|errors| errors.count as u64 >= ENOUGH);
        // A quiet test does not excuse a disturbed run, so the larger value counts, for mean and
        // P99 alike.
        let from_test = measured.filter(|errors| errors.mean_abs > estimate.mean);
        let p99_of_test = measured
            .map(|errors| errors.p99_upper)
            .filter(|p99| *p99 > estimate.p99);
        let in_bursts = metric == Metric::Tbc && summary.p50 < IN_BURSTS * summary.mean;
        let reference = if in_bursts { summary.mean } else { summary.p50 };
        let error = from_test.map_or(estimate.mean, |errors| errors.mean_abs);
        let bound = ErrorBound {
            metric,
            count: estimate.count,
            mean_error: error,
            p99_error: p99_of_test.unwrap_or(estimate.p99),
            source: p99_of_test.map_or(ErrorSource::Estimated, |_| ErrorSource::SelfTest),
            reference,
            relative_to_p50: (reference > 0.0).then(|| error / reference),
            // A self-test measures the whole error, including the part that is unknown in the run.
            unknown: if measured.is_some() { 0 } else { estimate.unknown },
        };
        let decided_by = from_test.map_or(ErrorSource::Estimated, |_| ErrorSource::SelfTest);
        let mut finding = self.judged(&AssessedError {
            bound: &bound,
            decided_by,
            main: estimate.main,
            in_bursts,
        });
        if let (Some(errors), ErrorSource::Estimated) = (measured, decided_by) {
            finding.what.push_str(&format!(
                "; this is estimated from the run's record, and the self-test measured {}",
                duration(errors.mean_abs)
            ));
        }
        (bound, finding)
    }

    fn judged(&self, error: &AssessedError<'_>) -> CertFinding {
        let bound = error.bound;
        let definition = bound.metric.definition_of();
        let name = bound.metric.short_name();
        let Some(relative) = bound.relative_to_p50 else {
            return CertFinding {
                metric: Some(bound.metric),
                ..CertFinding::remark(format!("{name}: not certified, because its values are 0"))
            };
        };
        let mut what = self.statement(error, relative);
        if definition.from_schedule && !self.conditions.has_schedule {
            return CertFinding {
                metric: Some(bound.metric),
                ..CertFinding::remark(format!(
                    "{what}; not judged, because closed-loop traffic has no schedule"
                ))
            };
        }
        let mut verdict = self.thresholds.of_error(relative);
        let mut remedy = None;
        if verdict > Verdict::Valid {
            let (cause, remedy_of_cause) = cause(error.decided_by, error.main, &self.conditions.threads);
            what.push_str(cause);
            remedy = Some(remedy_of_cause);
        }
        if bound.unknown > 0 {
            what.push_str(&format!(
                "; {} of {} have arrival times of reads, and how late these were is not known",
                bound.unknown, bound.count
            ));
            verdict = verdict.max(Verdict::Degraded);
            remedy.get_or_insert_with(|| "measure it with --self-test".into());
        }
        if !bound.has_enough() {
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

    /// Returns the error of a metric as text. The error covers times only: doubtful token counts
    /// are stated, because they may change the metric by more.
    fn statement(&self, error: &AssessedError<'_>, relative: f64) -> String {
        let bound = error.bound;
        let statistic = if error.in_bursts {
            "mean, because chunks come in bursts"
        } else {
            "P50"
        };
        let counts = self.token_doubt.filter(|doubt| doubt.affects(bound.metric));
        let statement = format!(
            "{}: {} {} of its {statistic} ({} of {})",
            bound.metric.short_name(),
            if counts.is_some() { "timing error" } else { "error" },
            share(relative),
            duration(bound.mean_error),
            duration(bound.reference)
        );
        match counts {
            Some(doubt) => format!("{statement}, without the error of token counts: {doubt}"),
            None => statement,
        }
    }
}

/// Returns the largest part of an error as text, and the advice against it.
fn cause(source: ErrorSource, main: ErrorPart, threads: &ThreadConditions) -> (&'static str, String) {
    if source == ErrorSource::SelfTest {
        return ("; measured by the self-test", DOCTOR.to_owned());
    }
    match main {
        ErrorPart::Dispatch => ("; most of it is late dispatch", threads.advice_for_dispatchers()),
        ErrorPart::Send => (
            "; most of it lies between dispatch and the last byte sent",
            threads.advice_for_clients(),
        ),
        ErrorPart::LateReads => (
            "; most of it is due to reads so late that arrival times were lost",
            threads.advice_for_clients(),
        ),
        ErrorPart::Lag => (
            "; most of it is the lag of reads, whose times represent the arrivals",
            "use plain HTTP/1.1 on Linux, where the kernel stamps arrivals, or measure the lag with --self-test".to_owned(),
        ),
        ErrorPart::Kernel => (
            "; it is next to the shortest time that a client can tell apart",
            "times this short are better read from the server's own record".to_owned(),
        ),
    }
}
