//! Inputs of a certificate that are not part of the record.

use veeksha_certificate::{
    CertFinding, RunConditions, SelfTest, ThreadConditions, ThreadPriority, Thresholds, Verdict,
};
use veeksha_report::share;
use veeksha_scenario::{Client, ClientKind, Runtime, Scenario};

use crate::thread_settings::{CoreSetting, RealtimePriority, ThreadSettings};

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
    /// Outcome of the self-test.
    pub self_test: SelfTestOutcome,
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
            conditions: conditions(scenario, threads.as_ref()),
            self_test: SelfTestOutcome::NotRequested,
            threads: threads.unwrap_or_default(),
        }
    }

    /// Returns the remarks of the certificate that do not follow from the record.
    pub(crate) fn remarks(&self) -> Vec<CertFinding> {
        let test = match &self.self_test {
            SelfTestOutcome::Missing(reason) => Some(format!("self-test: not made, because {reason}")),
            SelfTestOutcome::NotRequested | SelfTestOutcome::Measured(_) => None,
        };
        let limits = |thresholds: &Thresholds| (thresholds.degraded, thresholds.invalid);
        let (used, default) = (limits(&self.thresholds), limits(&Thresholds::default()));
        let thresholds = (self.clock == Clock::Real && used != default).then(|| {
            format!(
                "the scenario sets its own thresholds: DEGRADED above an error of {}, INVALID above {} (default: {} and {})",
                share(used.0),
                share(used.1),
                share(default.0),
                share(default.1)
            )
        });
        let remark = |what| CertFinding {
            metric: None,
            verdict: Verdict::Valid,
            what,
            remedy: None,
        };
        test.into_iter().chain(thresholds).map(remark).collect()
    }
}

/// The outcome of the self-test of a run.
#[derive(Clone, Debug, Default)]
pub enum SelfTestOutcome {
    /// No self-test was requested.
    #[default]
    NotRequested,
    /// The measured errors.
    Measured(Box<SelfTest>),
    /// The reason why the requested self-test has no result.
    Missing(String),
}

impl SelfTestOutcome {
    /// Returns the measured errors, if there are any.
    pub(crate) fn measured(&self) -> Option<&SelfTest> {
        match self {
            SelfTestOutcome::Measured(test) => Some(test),
            SelfTestOutcome::NotRequested | SelfTestOutcome::Missing(_) => None,
        }
    }
}

/// Returns the facts about a run of a scenario that its certificate depends on. `threads` are the
/// settings of the run's threads; `None` if they are not known: then the scenario's count.
pub fn conditions(scenario: &Scenario, threads: Option<&ThreadSettings>) -> RunConditions {
    RunConditions {
        has_schedule: scenario.traffic_scheduler.has_schedule(),
        tokenizer_is_of_model: scenario
            .all_clients()
            .all(|named| tokenizer_is_of(named.client, &scenario.client)),
        may_have_uncounted_template: scenario
            .all_clients()
            .any(|named| may_have_uncounted_template(named.client)),
        threads: thread_conditions(&scenario.runtime, threads),
    }
}

fn thread_conditions(runtime: &Runtime, threads: Option<&ThreadSettings>) -> ThreadConditions {
    let has_cores = |setting, requested: &[u32]| {
        !threads
            .map_or(requested, |threads| threads.applied_cores(setting))
            .is_empty()
    };
    ThreadConditions {
        spins: runtime.spin_microseconds > 0.0,
        has_dispatcher_cores: has_cores(CoreSetting::Dispatcher, &runtime.dispatcher_cores),
        has_client_cores: has_cores(CoreSetting::Client, &runtime.client_cores),
        priority: thread_priority(
            runtime.realtime_priority,
            threads.map(ThreadSettings::realtime_priority),
        ),
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
    let is_simulated = client.is_simulated();
    match client.tokenizer.as_deref() {
        Some("embedded") => is_simulated,
        Some(_) => true,
        None => is_simulated || client.model.is_some(),
    }
}

/// Returns true if the tokenizer, which is that of the model of `default`, is also that of the
/// model of a client.
fn tokenizer_is_of(client: &Client, default: &Client) -> bool {
    let has_same_model = client.model == default.model && client.is_simulated() == default.is_simulated();
    tokenizer_is_of_model(client) && (has_same_model || client.is_simulated())
}

/// Returns true if the server may apply a chat template whose tokens the host does not count. The
/// simulator applies none, and the endpoints for a single text send it as it is.
fn may_have_uncounted_template(client: &Client) -> bool {
    let takes_text = matches!(
        client.kind,
        ClientKind::OpenaiCompletions | ClientKind::TgiGenerateStream
    );
    !client.apply_chat_template && !client.is_simulated() && !takes_text
}

/// Returns the certificate thresholds of a scenario for its target.
pub fn thresholds(scenario: &Scenario) -> Thresholds {
    let certificate = &scenario.certificate;
    let (mut degraded, mut invalid) = (certificate.degraded, certificate.invalid);
    if let Some(limits) = &certificate.simulator
        && scenario.has_simulated_client()
    {
        degraded = degraded.max(limits.degraded);
        invalid = invalid.max(limits.invalid);
    }
    Thresholds {
        degraded,
        invalid,
        ..Thresholds::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread_settings::RefusedSettings;

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
        for simulator in ["sim://fast", "SIM://fast"] {
            assert!(
                tokenizer_is_of_model(&client(None, None, simulator)),
                "{simulator}"
            );
        }
    }

    #[test]
    fn template_is_uncounted_if_a_server_of_messages_may_apply_it() {
        let client = |kind, apply_chat_template, api_base: &str| Client {
            kind,
            apply_chat_template,
            api_base: Some(api_base.to_owned()),
            ..Client::default()
        };
        let (chat, http) = (ClientKind::OpenaiChatCompletions, "http://127.0.0.1:1/v1");
        assert!(may_have_uncounted_template(&client(chat, false, http)));
        assert!(!may_have_uncounted_template(&client(chat, true, http)));
        assert!(!may_have_uncounted_template(&client(chat, false, "sim://fast")));
        let text = ClientKind::OpenaiCompletions;
        assert!(!may_have_uncounted_template(&client(text, false, http)));
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

    #[test]
    fn refused_cores_are_not_conditions_of_a_run() {
        let runtime = Runtime {
            dispatcher_cores: vec![0],
            client_cores: vec![1],
            ..Runtime::default()
        };
        let cores = |refused: &[CoreSetting]| {
            let refused = RefusedSettings {
                cores: refused.iter().copied().collect(),
                ..RefusedSettings::default()
            };
            let threads = ThreadSettings::new(&runtime, RealtimePriority::Normal, refused);
            let threads = thread_conditions(&runtime, Some(&threads));
            (threads.has_dispatcher_cores, threads.has_client_cores)
        };
        assert_eq!(cores(&[]), (true, true));
        assert_eq!(cores(&[CoreSetting::Client]), (true, false));
        assert_eq!(cores(&[CoreSetting::Dispatcher]), (false, true));
        let of_record = thread_conditions(&runtime, None);
        assert!(of_record.has_dispatcher_cores && of_record.has_client_cores);
    }

    fn remarks(thresholds: Thresholds, self_test: SelfTestOutcome) -> Vec<String> {
        let context = AccuracyContext {
            clock: Clock::Real,
            thresholds,
            conditions: RunConditions::default(),
            self_test,
            threads: ThreadSettings::default(),
        };
        let remarks = context.remarks().into_iter();
        remarks.map(|remark| remark.what).collect()
    }

    #[test]
    fn states_thresholds_that_are_not_the_defaults() {
        assert!(remarks(Thresholds::default(), SelfTestOutcome::NotRequested).is_empty());
        let relaxed = Thresholds {
            degraded: 0.5,
            ..Thresholds::default()
        };
        assert_eq!(
            remarks(relaxed, SelfTestOutcome::NotRequested),
            [
                "the scenario sets its own thresholds: DEGRADED above an error of 50 %, INVALID above 5 % (default: 1 % and 5 %)"
            ]
        );
    }

    #[test]
    fn states_why_there_is_no_self_test() {
        assert_eq!(
            remarks(
                Thresholds::default(),
                SelfTestOutcome::Missing("no request was answered".to_owned())
            ),
            ["self-test: not made, because no request was answered"]
        );
    }
}
