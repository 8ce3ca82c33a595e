//! When sessions start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When sessions start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Traffic {
    /// Open loop: sessions arrive at their own pace, whether the server keeps up or not.
    #[schemars(extend("x-default-variant" = true))]
    Rate(Rate),
    /// Closed loop: a number of sessions is kept going; one that ends is followed by the next.
    Concurrent(Concurrent),
    /// Open loop by a recording: each session starts when the trace says that it came, and none of its requests is sent
    /// before the instant recorded for it.
    FixedSchedule(FixedSchedule),
}

impl Traffic {
    /// Whether a failed request ends its session.
    pub fn cancel_session_on_failure(&self) -> bool {
        match self {
            Traffic::Rate(rate) => rate.cancel_session_on_failure,
            Traffic::Concurrent(concurrent) => concurrent.cancel_session_on_failure,
            Traffic::FixedSchedule(schedule) => schedule.cancel_session_on_failure,
        }
    }
}

impl Traffic {
    /// How many may be under way at a time.
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
    /// Whether a failed request ends its session: what it has queued is withdrawn and counted as never sent.
    pub cancel_session_on_failure: bool,
    /// The gaps between the starts of sessions.
    pub interval_generator: IntervalGenerator,
    /// How many may be under way at a time.
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
    /// Whether a failed request ends its session: what it has queued is withdrawn and counted as never sent.
    pub cancel_session_on_failure: bool,
    /// How many sessions run at a time. A session counts until its last request is done, think time included.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub target_concurrent_sessions: u32,
    /// Seconds in which the number of sessions grows from none to the target; 0 starts all at once.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub rampup_seconds: f64,
    /// How many may be under way at a time.
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
    /// Whether a failed request ends its session: what it has queued is withdrawn and counted as never sent.
    pub cancel_session_on_failure: bool,
    /// Seconds from the start of the run to the first arrival that is replayed.
    #[schemars(range(min = 0.0, max = 1e8))]
    pub offset: f64,
    /// Leaves out what arrived earlier, in seconds of the trace, counted from its first arrival. Null: nothing.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub start: Option<f64>,
    /// Leaves out what arrived at this second of the trace or later. Null: nothing.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e9))]
    pub end: Option<f64>,
    /// How much faster than recorded sessions arrive: 2 is twice the rate. Think times stay as they are.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub speedup: f64,
    /// How many may be under way at a time.
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

/// How many may be under way at a time. What has to wait keeps the instant that it was meant for, and the record says how long each
/// limit kept it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Sessions that have begun and are not over. Null: no limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sessions: Option<u32>,
    /// Requests that were sent and are not answered. Null: no limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_in_flight: Option<u32>,
    /// Requests that were sent and of whose answer nothing has come yet. Null: no limit.
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
    /// Gamma-distributed gaps: more even than Poisson below a coefficient of variation of 1, more bursty above it.
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
