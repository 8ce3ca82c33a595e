//! Time for which limits held a request back.

use crate::ids::Nanos;

/// Time for which each limit held a request back after its intended instant. That instant never
/// moves, so the delay stays visible and is attributed to the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// For a session to end, where the number of sessions is limited.
    pub sessions: Nanos,
    /// For a request to end, where the number of requests in flight is limited.
    pub in_flight: Nanos,
    /// For another request's first generated chunk, where the number of requests in prefill is
    /// limited.
    pub in_prefill: Nanos,
}

impl Held {
    /// The whole time: the parts follow one another.
    pub fn total(self) -> Nanos {
        self.sessions
            .saturating_add(self.in_flight)
            .saturating_add(self.in_prefill)
    }
}
