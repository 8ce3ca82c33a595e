//! Requests that were known and never sent.

/// The reason for which a request was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NeverSentReason {
    /// An earlier request of the session failed and `cancel_session_on_failure` is on.
    SessionCancelled,
    /// The run ended (timeout, grace or Ctrl-C) before it was due.
    RunEnded,
    /// Its session's plugin failed.
    PluginFailed,
    /// It was due, and a limit on sessions or requests kept it back until the run ended.
    Held,
    /// It was due, nothing kept it back, and the run ended before the host came to send it.
    Missed,
    /// Its workload cancelled it.
    CancelledByClient,
}

impl NeverSentReason {
    /// Returns true if the request was due within the measured window and its answer was wanted:
    /// not of one that the end of the run overtook, and not of one that the workload cancelled.
    pub fn was_due(self) -> bool {
        match self {
            NeverSentReason::RunEnded | NeverSentReason::CancelledByClient => false,
            NeverSentReason::SessionCancelled
            | NeverSentReason::PluginFailed
            | NeverSentReason::Held
            | NeverSentReason::Missed => true,
        }
    }

    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            NeverSentReason::SessionCancelled => "session_cancelled",
            NeverSentReason::RunEnded => "run_ended",
            NeverSentReason::PluginFailed => "plugin_failed",
            NeverSentReason::Held => "held",
            NeverSentReason::Missed => "missed",
            NeverSentReason::CancelledByClient => "cancelled_by_client",
        }
    }
}
