//! Facts about a run that its certificate depends on and that are not in its record.

/// The advice if no setting of the run is the cause.
pub(crate) const DOCTOR: &str = "`veeksha-host doctor` lists what to improve on this machine";

/// Facts about a run that are not in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunConditions {
    /// True if the traffic has a schedule. Closed-loop traffic has none: the instants at which its
    /// requests were due follow from the server's answers, so lateness against them is not rated.
    pub has_schedule: bool,
    /// True if the scenario's tokenizer is the model's, as far as is known.
    pub tokenizer_is_of_model: bool,
    /// True if the server may apply a chat template whose tokens the host does not count.
    pub may_have_uncounted_template: bool,
    /// The scheduling of the measuring threads.
    pub threads: ThreadConditions,
}

/// The scheduling of the threads that dispatch, send and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadConditions {
    /// True if dispatchers spin before an arrival.
    pub spins: bool,
    /// True if dispatchers have dedicated cores.
    pub has_dispatcher_cores: bool,
    /// True if client threads have dedicated cores.
    pub has_client_cores: bool,
    /// The priority of both.
    pub priority: ThreadPriority,
}

/// The priority of the threads that dispatch, send and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPriority {
    /// A record does not contain it.
    #[default]
    Unknown,
    /// The normal priority.
    Normal,
    /// The normal priority, because a real-time priority is not permitted.
    NotPermitted,
    /// A real-time priority.
    RealTime,
}

impl Default for RunConditions {
    fn default() -> Self {
        RunConditions {
            has_schedule: true,
            tokenizer_is_of_model: false,
            may_have_uncounted_template: false,
            threads: ThreadConditions::default(),
        }
    }
}

impl ThreadConditions {
    /// Returns the advice against late dispatches: the settings that the run did not have.
    pub(crate) fn advice_for_dispatchers(&self) -> String {
        self.advice([
            (!self.has_dispatcher_cores)
                .then_some("keep a core for the dispatcher (`runtime.dispatcher_cores`)"),
            (!self.spins).then_some("let it spin (`runtime.spin_microseconds`)"),
        ])
    }

    /// Returns the advice against late sends and reads: the settings that the run did not have, and
    /// more threads.
    pub(crate) fn advice_for_clients(&self) -> String {
        self.advice([
            (!self.has_client_cores).then_some("keep a core for the client threads (`runtime.client_cores`)"),
            Some("use more client threads if they are busy (`runtime.num_client_threads`)"),
        ])
    }

    fn advice(&self, settings: [Option<&str>; 2]) -> String {
        let priority = match self.priority {
            ThreadPriority::Unknown | ThreadPriority::RealTime => None,
            ThreadPriority::Normal => Some("request a real-time priority (`runtime.realtime_priority`)"),
            ThreadPriority::NotPermitted => {
                Some("permit a real-time priority (`veeksha-host doctor` describes it)")
            }
        };
        let advice: Vec<&str> = settings.into_iter().chain([priority]).flatten().collect();
        match advice.split_last() {
            None => DOCTOR.to_owned(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, first)) => format!("{}, or {last}", first.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_only_settings_that_the_run_did_not_have() {
        let mut threads = ThreadConditions {
            priority: ThreadPriority::Normal,
            ..ThreadConditions::default()
        };
        let advice = threads.advice_for_dispatchers();
        for setting in ["dispatcher_cores", "spin_microseconds", "realtime_priority"] {
            assert!(advice.contains(setting), "{advice}");
        }
        assert!(threads.advice_for_clients().contains("realtime_priority"));
        threads.priority = ThreadPriority::NotPermitted;
        assert!(
            threads
                .advice_for_clients()
                .contains("permit a real-time priority")
        );
        for priority in [ThreadPriority::RealTime, ThreadPriority::Unknown] {
            threads.priority = priority;
            assert!(!threads.advice_for_dispatchers().contains("real-time"));
            assert!(!threads.advice_for_clients().contains("real-time"));
        }
        let all = ThreadConditions {
            spins: true,
            has_dispatcher_cores: true,
            has_client_cores: true,
            priority: ThreadPriority::RealTime,
        };
        assert_eq!(all.advice_for_dispatchers(), DOCTOR);
        assert_eq!(
            all.advice_for_clients(),
            "use more client threads if they are busy (`runtime.num_client_threads`)"
        );
    }
}
