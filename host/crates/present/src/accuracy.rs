//! Inputs of a certificate that are not part of the record.

use veeksha_certificate::{SelfTest, Thresholds};
use veeksha_scenario::Scenario;

use crate::thread_settings::ThreadSettings;

/// The clock that a run was measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The clock of the machine.
    Real,
    /// The clock of the simulation, in which nothing is late.
    Virtual,
}

/// Inputs of a run's certificate that are not in its record.
pub struct AccuracyContext {
    /// The clock that the run was measured with.
    pub clock: Clock,
    /// Errors above which a run is marked DEGRADED or INVALID.
    pub thresholds: Thresholds,
    /// Result of the self-test, if one was made.
    pub self_test: Option<SelfTest>,
    /// Scheduling of the measuring threads: requested settings and refusals.
    pub threads: ThreadSettings,
}

/// Returns the certificate thresholds of a scenario.
pub fn thresholds(scenario: &Scenario) -> Thresholds {
    Thresholds {
        degraded: scenario.certificate.degraded,
        invalid: scenario.certificate.invalid,
        has_schedule: scenario.traffic_scheduler.has_schedule(),
        ..Thresholds::default()
    }
}
