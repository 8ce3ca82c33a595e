//! The inputs of a certificate that are not part of the record.

use veeksha_certificate::{SelfTest, Thresholds};
use veeksha_scenario::{Scenario, Traffic};

use crate::thread_settings::ThreadSettings;

/// The clock that a run was measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The clock of the machine.
    Real,
    /// The clock of the simulation, in which nothing is late.
    Virtual,
}

/// What the certificate of a run depends on besides its record.
pub struct AccuracyContext {
    /// The clock of the run.
    pub clock: Clock,
    /// The error above which a run is marked DEGRADED or INVALID.
    pub thresholds: Thresholds,
    /// The result of the self-test, if one was made.
    pub self_test: Option<SelfTest>,
    /// The scheduling of the measuring threads: what was requested and what was refused.
    pub threads: ThreadSettings,
}

/// Returns the certificate thresholds of a scenario.
pub fn thresholds(scenario: &Scenario) -> Thresholds {
    Thresholds {
        degraded: scenario.certificate.degraded,
        invalid: scenario.certificate.invalid,
        has_schedule: !matches!(scenario.traffic_scheduler, Traffic::Concurrent(_)),
        ..Thresholds::default()
    }
}
