//! Verdicts, the thresholds that lead to them, and findings.

use std::fmt;

use veeksha_metrics::Metric;

/// The limits beyond which a run is degraded or invalid. Shares are `0.0..=1.0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// An error of more than this share of a metric's P50 degrades the run.
    pub degraded: f64,
    /// An error of more than this share of a metric's P50 invalidates it.
    pub invalid: f64,
    /// More than this share of due requests that the host failed to send degrades the run. The
    /// share that invalidates it is larger by the ratio of `invalid` to `degraded`.
    pub missed: f64,
    /// A client thread that was on a processor for this share of any second degrades the run.
    pub busy: f64,
    /// More than this share of failed requests degrades the run: its metrics describe only the
    /// answered requests, which are a favorable selection on an overloaded server.
    pub failed: f64,
    /// More than this share of failed requests invalidates the run.
    pub mostly_failed: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            degraded: 0.01,
            invalid: 0.05,
            missed: 0.01,
            busy: 0.70,
            failed: 0.05,
            mostly_failed: 0.50,
        }
    }
}

impl Thresholds {
    /// Returns the verdict on a metric whose error is this share of its P50.
    pub(crate) fn of_error(&self, share: f64) -> Verdict {
        if share > self.invalid {
            Verdict::Invalid
        } else if share > self.degraded {
            Verdict::Degraded
        } else {
            Verdict::Valid
        }
    }

    /// Returns the verdict on a run of which this share of requests failed.
    pub(crate) fn of_failed(&self, share: f64) -> Verdict {
        if share > self.mostly_failed {
            Verdict::Invalid
        } else if share > self.failed {
            Verdict::Degraded
        } else {
            Verdict::Valid
        }
    }

    /// Returns the verdict on a run that did not send this share of its due requests.
    pub(crate) fn of_missed(&self, share: f64) -> Verdict {
        let invalid = self.missed * (self.invalid / self.degraded).max(1.0);
        if share > invalid {
            Verdict::Invalid
        } else if share > self.missed {
            Verdict::Degraded
        } else {
            Verdict::Valid
        }
    }
}

/// The degree to which a run's metrics can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The client's contribution to every certified metric is small.
    #[default]
    Valid,
    /// The client's contribution is not small, or unknown: interpret with care.
    Degraded,
    /// The metrics describe the client more than the server.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Valid => "VALID",
            Verdict::Degraded => "DEGRADED",
            Verdict::Invalid => "INVALID",
        })
    }
}

/// One statement of a certificate.
#[derive(Clone, Debug, PartialEq)]
pub struct CertFinding {
    /// The metric that is affected; `None` for the run as a whole.
    pub metric: Option<Metric>,
    /// The consequence for the run; [`Verdict::Valid`] marks a remark.
    pub verdict: Verdict,
    /// The statement as text, naming what is affected.
    pub what: String,
    /// The suggested fix.
    pub remedy: Option<String>,
}

impl CertFinding {
    /// Creates a statement about the whole run that does not change the verdict.
    pub(crate) fn remark(what: String) -> Self {
        CertFinding {
            metric: None,
            verdict: Verdict::Valid,
            what,
            remedy: None,
        }
    }
}
