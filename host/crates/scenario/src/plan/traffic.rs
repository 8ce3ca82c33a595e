//! Traffic: the start times of sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The start times of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Traffic {
    /// Open loop: sessions arrive at a given rate, regardless of the server's speed.
    #[schemars(extend("x-default-variant" = true))]
    Rate(Rate),
    /// Closed loop: a fixed number of sessions is active; a session that ends is replaced by the
    /// next.
    Concurrent(Concurrent),
    /// Recorded arrivals: each session starts at its recorded arrival, and none of its requests is
    /// sent before its recorded instant.
    FixedSchedule(FixedSchedule),
}

impl Traffic {
    /// Returns true if a failed request ends its session.
    pub fn cancel_session_on_failure(&self) -> bool {
        match self {
            Traffic::Rate(rate) => rate.cancel_session_on_failure,
            Traffic::Concurrent(concurrent) => concurrent.cancel_session_on_failure,
            Traffic::FixedSchedule(schedule) => schedule.cancel_session_on_failure,
        }
    }
}

impl Traffic {
    /// Returns the concurrency limits.
    pub fn limits(&self) -> Limits {
        match self {
            Traffic::Rate(rate) => rate.limits,
            Traffic::Concurrent(concurrent) => concurrent.limits,
            Traffic::FixedSchedule(schedule) => schedule.limits,
        }
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic::Rate(Rate::default())
    }
}

/// Open-loop traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rate {
    /// True if a failed request ends its session: its queued requests are withdrawn and counted as
    /// never sent.
    pub cancel_session_on_failure: bool,
    /// The gaps between the starts of sessions.
    pub interval_generator: IntervalGenerator,
    /// Concurrency limits.
    pub limits: Limits,
}

impl Default for Rate {
    fn default() -> Self {
        Rate {
            cancel_session_on_failure: true,
            interval_generator: IntervalGenerator::default(),
            limits: Limits::default(),
        }
    }
}

/// Closed-loop traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Concurrent {
    /// True if a failed request ends its session: its queued requests are withdrawn and counted as
    /// never sent.
    pub cancel_session_on_failure: bool,
    /// Number of concurrent sessions. A session is active until its last request is complete,
    /// including think time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub target_concurrent_sessions: u32,
    /// Seconds in which the number of sessions grows from zero to the target; 0 starts all at once.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub rampup_seconds: f64,
    /// Concurrency limits.
    pub limits: Limits,
}

impl Default for Concurrent {
    fn default() -> Self {
        Concurrent {
            cancel_session_on_failure: true,
            target_concurrent_sessions: 3,
            rampup_seconds: 10.0,
            limits: Limits::default(),
        }
    }
}

/// Recorded arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FixedSchedule {
    /// True if a failed request ends its session: its queued requests are withdrawn and counted as
    /// never sent.
    pub cancel_session_on_failure: bool,
    /// Seconds from the start of the run to the first replayed arrival.
    #[schemars(range(min = 0.0, max = 1e8))]
    pub offset: f64,
    /// Skips earlier arrivals, in seconds since the first arrival of the trace. Null: none.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub start: Option<f64>,
    /// Skips arrivals at or after this second of the trace. Null: none.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e9))]
    pub end: Option<f64>,
    /// Factor on the recorded arrival rate: 2 is twice the rate. Think times are unchanged.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub speedup: f64,
    /// Concurrency limits.
    pub limits: Limits,
}

impl Default for FixedSchedule {
    fn default() -> Self {
        FixedSchedule {
            cancel_session_on_failure: true,
            offset: 0.0,
            start: None,
            end: None,
            speedup: 1.0,
            limits: Limits::default(),
        }
    }
}

/// Concurrency limits. Delayed requests keep their scheduled instant, and the record contains the
/// delay that each limit caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Maximum number of active sessions. Null: no limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sessions: Option<u32>,
    /// Maximum number of requests in flight. Null: no limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_in_flight: Option<u32>,
    /// Maximum number of requests in prefill: dispatched, without a chunk of the answer yet. Null:
    /// no limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_in_prefill: Option<u32>,
}

/// Gaps between events, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum IntervalGenerator {
    /// Equal gaps.
    Fixed {
        /// The gap in seconds.
        #[serde(default = "one")]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
        interval: f64,
    },
    /// A Poisson process: exponentially distributed gaps, not clipped.
    #[schemars(extend("x-default-variant" = true))]
    Poisson {
        /// Events per second, on average.
        #[serde(default = "one")]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
        arrival_rate: f64,
    },
    /// Gamma-distributed gaps: more regular than Poisson below a coefficient of variation of 1,
    /// burstier above it.
    Gamma {
        /// Events per second, on average.
        #[serde(default = "one")]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
        arrival_rate: f64,
        /// The coefficient of variation of the gaps: standard deviation divided by mean.
        #[serde(default = "half")]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 100.0))]
        cv: f64,
    },
}

impl Default for IntervalGenerator {
    fn default() -> Self {
        IntervalGenerator::Poisson { arrival_rate: one() }
    }
}

fn one() -> f64 {
    1.0
}

fn half() -> f64 {
    0.5
}
