//! Inputs of a certificate that are not part of the record.

use veeksha_certificate::{RunConditions, SelfTest, ThreadConditions, ThreadPriority, Thresholds};
use veeksha_scenario::{Client, Scenario};

use crate::thread_settings::{RealtimePriority, ThreadSettings};

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
    /// Facts that the rules of the certificate depend on.
    pub conditions: RunConditions,
    /// Result of the self-test, if one was made.
    pub self_test: Option<SelfTest>,
    /// Scheduling of the measuring threads: requested settings and refusals.
    pub threads: ThreadSettings,
}

impl AccuracyContext {
    /// Creates the inputs for a run of a scenario, without a self-test. `threads` are the settings
    /// that the run requested; `None` for a record, which does not contain them.
    pub fn new(scenario: &Scenario, clock: Clock, threads: Option<ThreadSettings>) -> Self {
        AccuracyContext {
            clock,
            thresholds: thresholds(scenario),
            conditions: conditions(scenario, threads.as_ref().map(ThreadSettings::realtime_priority)),
            self_test: None,
            threads: threads.unwrap_or_default(),
        }
    }
}

/// Returns the facts about a run of a scenario that its certificate depends on. `priority` is the
/// one that the run requested; `None` if it is not known.
pub fn conditions(scenario: &Scenario, priority: Option<RealtimePriority>) -> RunConditions {
    let runtime = &scenario.runtime;
    RunConditions {
        has_schedule: scenario.traffic_scheduler.has_schedule(),
        tokenizer_is_of_model: tokenizer_is_of_model(&scenario.client),
        threads: ThreadConditions {
            spins: runtime.spin_microseconds > 0.0,
            has_dispatcher_cores: !runtime.dispatcher_cores.is_empty(),
            has_client_cores: !runtime.client_cores.is_empty(),
            priority: thread_priority(runtime.realtime_priority, priority),
        },
    }
}

/// Returns the priority of the measuring threads: the requested one if it is known, otherwise the
/// one that the scenario sets.
fn thread_priority(set: Option<u8>, requested: Option<RealtimePriority>) -> ThreadPriority {
    match (requested, set) {
        (Some(RealtimePriority::Normal), _) | (None, Some(0)) => ThreadPriority::Normal,
        (Some(RealtimePriority::NotPermitted), _) => ThreadPriority::NotPermitted,
        (Some(RealtimePriority::Level(_)), _) | (None, Some(_)) => ThreadPriority::RealTime,
        (None, None) => ThreadPriority::Unknown,
    }
}

/// Returns true if the tokenizer of a scenario is the model's, as far as is known: the scenario
/// names it, or it was found by the name of the model. The embedded tokenizer is the simulator's.
fn tokenizer_is_of_model(client: &Client) -> bool {
    let is_simulated = client
        .api_base
        .as_deref()
        .is_some_and(|base| base.starts_with("sim://"));
    match client.tokenizer.as_deref() {
        Some("embedded") => is_simulated,
        Some(_) => true,
        None => is_simulated || client.model.is_some(),
    }
}

/// Returns the certificate thresholds of a scenario.
pub fn thresholds(scenario: &Scenario) -> Thresholds {
    Thresholds {
        degraded: scenario.certificate.degraded,
        invalid: scenario.certificate.invalid,
        ..Thresholds::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_named_or_found_tokenizer_is_of_the_model() {
        let client = |tokenizer: Option<&str>, model: Option<&str>, api_base: &str| Client {
            tokenizer: tokenizer.map(str::to_owned),
            model: model.map(str::to_owned),
            api_base: Some(api_base.to_owned()),
            ..Client::default()
        };
        let http = "http://127.0.0.1:1/v1";
        assert!(!tokenizer_is_of_model(&client(Some("embedded"), Some("m"), http)));
        assert!(!tokenizer_is_of_model(&client(None, None, http)));
        assert!(tokenizer_is_of_model(&client(None, Some("m"), http)));
        assert!(tokenizer_is_of_model(&client(Some("org/m"), Some("m"), http)));
        assert!(tokenizer_is_of_model(&client(
            Some("embedded"),
            None,
            "sim://fast"
        )));
        assert!(tokenizer_is_of_model(&client(None, None, "sim://fast")));
    }

    #[test]
    fn priority_of_a_record_is_unknown_unless_the_scenario_sets_it() {
        assert_eq!(thread_priority(None, None), ThreadPriority::Unknown);
        assert_eq!(thread_priority(Some(0), None), ThreadPriority::Normal);
        assert_eq!(thread_priority(Some(5), None), ThreadPriority::RealTime);
        let default = |requested| thread_priority(None, Some(requested));
        assert_eq!(default(RealtimePriority::Level(10)), ThreadPriority::RealTime);
        assert_eq!(default(RealtimePriority::Normal), ThreadPriority::Normal);
        assert_eq!(
            default(RealtimePriority::NotPermitted),
            ThreadPriority::NotPermitted
        );
    }
}
