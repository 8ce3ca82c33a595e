//! The end of a run by time: timeout, then grace.

use veeksha_model::Nanos;

use crate::config::GracePeriod;

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPhase {
    /// Dispatched requests are measured.
    Measuring,
    /// The timeout has passed. Load is held until the measured requests and tool runs are complete,
    /// at the latest until `until`.
    Draining { until: Option<Nanos> },
    /// Nothing more is dispatched; what is in flight comes back.
    Stopping,
    /// Nothing more happens.
    Done,
}

/// The configured end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    timeout: Option<Nanos>,
    grace: GracePeriod,
}

impl Deadline {
    pub(crate) fn new(timeout: Option<Nanos>, grace: GracePeriod) -> Self {
        Deadline { timeout, grace }
    }

    /// The timeout, if the phase is before it and it has passed.
    pub(crate) fn passed(&self, phase: RunPhase, now: Nanos) -> Option<Nanos> {
        self.timeout
            .filter(|timeout| phase == RunPhase::Measuring && *timeout <= now)
    }

    /// The phase after the timeout.
    pub(crate) fn drain(&self, timeout: Nanos) -> RunPhase {
        match self.grace {
            GracePeriod::Unbounded => RunPhase::Draining { until: None },
            GracePeriod::Bounded(grace) => RunPhase::Draining {
                until: Some(timeout.saturating_add(grace)),
            },
        }
    }

    /// The end of the grace period, after the timeout.
    pub(crate) fn end(&self, phase: RunPhase) -> Option<Nanos> {
        match phase {
            RunPhase::Draining { until } => until,
            _ => None,
        }
    }

    /// The next instant at which the phase may change by time alone.
    pub(crate) fn next(&self, phase: RunPhase) -> Option<Nanos> {
        match phase {
            RunPhase::Measuring => self.timeout,
            RunPhase::Draining { until } => until,
            RunPhase::Stopping | RunPhase::Done => None,
        }
    }
}
