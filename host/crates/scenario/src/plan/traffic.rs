//! Traffic: the start times of sessions.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::plan::component_use::ComponentUse;

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
    /// Open loop by a plugin: sessions arrive at the instants that it returns, regardless of the
    /// server's speed.
    ArrivalProcess(ArrivalProcess),
}

/// The facts that other modules ask of traffic. A new type of traffic answers each of them here.
impl Traffic {
    /// Returns true if a failed request ends its session.
    pub fn cancel_session_on_failure(&self) -> bool {
        match self {
            Traffic::Rate(rate) => rate.cancel_session_on_failure,
            Traffic::Concurrent(concurrent) => concurrent.cancel_session_on_failure,
            Traffic::FixedSchedule(schedule) => schedule.cancel_session_on_failure,
            Traffic::ArrivalProcess(arrivals) => arrivals.cancel_session_on_failure,
        }
    }

    /// Returns the concurrency limits.
    pub fn limits(&self) -> Limits {
        match self {
            Traffic::Rate(rate) => rate.limits,
            Traffic::Concurrent(concurrent) => concurrent.limits,
            Traffic::FixedSchedule(schedule) => schedule.limits,
            Traffic::ArrivalProcess(arrivals) => arrivals.limits,
        }
    }

    /// Returns the mean number of sessions that arrive per second; `None` if the traffic has no
    /// configured rate.
    pub fn session_rate(&self) -> Option<f64> {
        match self {
            Traffic::Rate(rate) => Some(rate.interval_generator.mean_rate()),
            Traffic::Concurrent(_) | Traffic::FixedSchedule(_) | Traffic::ArrivalProcess(_) => None,
        }
    }

    /// Returns the number of concurrent sessions of a closed loop.
    pub fn concurrent_sessions(&self) -> Option<u32> {
        match self {
            Traffic::Concurrent(concurrent) => Some(concurrent.target_concurrent_sessions),
            Traffic::Rate(_) | Traffic::FixedSchedule(_) | Traffic::ArrivalProcess(_) => None,
        }
    }

    /// Returns the replay of recorded arrivals; `None` if recorded arrivals are ignored.
    pub fn recorded_arrivals(&self) -> Option<&FixedSchedule> {
        match self {
            Traffic::FixedSchedule(schedule) => Some(schedule),
            Traffic::Rate(_) | Traffic::Concurrent(_) | Traffic::ArrivalProcess(_) => None,
        }
    }

    /// Returns the plugin that decides the arrivals, if one does.
    pub fn arrival_plugin(&self) -> Option<&ArrivalPlugin> {
        match self {
            Traffic::ArrivalProcess(arrivals) => Some(&arrivals.process),
            Traffic::Rate(_) | Traffic::Concurrent(_) | Traffic::FixedSchedule(_) => None,
        }
    }

    /// Returns true if arrivals do not depend on the server's answers, so that a session can be
    /// late.
    pub fn has_schedule(&self) -> bool {
        match self {
            Traffic::Rate(_) | Traffic::FixedSchedule(_) | Traffic::ArrivalProcess(_) => true,
            Traffic::Concurrent(_) => false,
        }
    }

    /// Returns the mean number of seconds until the last of this many sessions arrives; `None` if
    /// it is not determined by the scenario.
    pub fn arrival_seconds(&self, sessions: Option<u64>) -> Option<f64> {
        match self {
            Traffic::Rate(rate) => Some(sessions? as f64 * rate.interval_generator.mean_interval()),
            Traffic::FixedSchedule(schedule) => {
                let recorded = schedule.end? - schedule.start.unwrap_or(0.0);
                Some(schedule.offset + recorded.max(0.0) / schedule.speedup)
            }
            Traffic::Concurrent(_) | Traffic::ArrivalProcess(_) => None,
        }
    }

    /// Returns a phrase for a table of facts.
    pub fn description(&self) -> String {
        match self {
            Traffic::Rate(_) => "open loop".to_owned(),
            Traffic::Concurrent(concurrent) => {
                format!("{} sessions at a time", concurrent.target_concurrent_sessions)
            }
            Traffic::FixedSchedule(_) => "arrivals as recorded".to_owned(),
            Traffic::ArrivalProcess(_) => "open loop, arrivals of a plugin".to_owned(),
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

/// Arrivals of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalProcess {
    /// True if a failed request ends its session: its queued requests are withdrawn and counted as
    /// never sent.
    #[serde(default = "yes")]
    pub cancel_session_on_failure: bool,
    /// The plugin that decides when sessions arrive.
    pub process: ArrivalPlugin,
    /// Concurrency limits.
    #[serde(default)]
    pub limits: Limits,
}

/// A plugin that decides when sessions arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ArrivalPlugin {
    /// A WebAssembly component.
    Wasm(ComponentUse),
    /// A function of this Lua scenario.
    Lua {
        /// Opens the process: returns a function that is called again and again with a number of
        /// sessions, and returns a list of their arrivals in seconds since the start of the run. A
        /// shorter list is the end.
        #[schemars(schema_with = "arrivals_schema")]
        arrivals: String,
    },
}

impl ArrivalPlugin {
    /// Returns the component's file or the place of the function, as text.
    pub fn label(&self) -> String {
        match self {
            ArrivalPlugin::Wasm(component) => component.plugin.clone(),
            ArrivalPlugin::Lua { arrivals } => arrivals.clone(),
        }
    }
}

fn arrivals_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-function": "fun(rng: veeksha.Rng): fun(count: integer): (number|string)[]",
    })
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

impl IntervalGenerator {
    /// Returns the name in `type`.
    pub fn name(&self) -> &'static str {
        match self {
            IntervalGenerator::Fixed { .. } => "fixed",
            IntervalGenerator::Poisson { .. } => "poisson",
            IntervalGenerator::Gamma { .. } => "gamma",
        }
    }

    /// Returns the mean number of events per second.
    pub fn mean_rate(&self) -> f64 {
        match self {
            IntervalGenerator::Fixed { interval } => 1.0 / interval,
            IntervalGenerator::Poisson { arrival_rate } | IntervalGenerator::Gamma { arrival_rate, .. } => {
                *arrival_rate
            }
        }
    }

    /// Returns the mean gap in seconds.
    pub fn mean_interval(&self) -> f64 {
        match self {
            IntervalGenerator::Fixed { interval } => *interval,
            IntervalGenerator::Poisson { .. } | IntervalGenerator::Gamma { .. } => 1.0 / self.mean_rate(),
        }
    }

    /// Returns the coefficient of variation of the gaps: 0 if they are equal, 1 for a Poisson
    /// process.
    pub fn variation(&self) -> f64 {
        match self {
            IntervalGenerator::Fixed { .. } => 0.0,
            IntervalGenerator::Poisson { .. } => 1.0,
            IntervalGenerator::Gamma { cv, .. } => *cv,
        }
    }
}

impl Default for IntervalGenerator {
    fn default() -> Self {
        IntervalGenerator::Poisson { arrival_rate: one() }
    }
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

fn half() -> f64 {
    0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_state_their_rate_and_variation() {
        for (generator, name, rate, variation) in [
            (IntervalGenerator::Fixed { interval: 0.25 }, "fixed", 4.0, 0.0),
            (
                IntervalGenerator::Poisson { arrival_rate: 2.0 },
                "poisson",
                2.0,
                1.0,
            ),
            (
                IntervalGenerator::Gamma {
                    arrival_rate: 8.0,
                    cv: 3.0,
                },
                "gamma",
                8.0,
                3.0,
            ),
        ] {
            assert_eq!(generator.mean_rate(), rate, "{name}");
            assert_eq!(generator.mean_interval(), 1.0 / rate, "{name}");
            assert_eq!(generator.variation(), variation, "{name}");
            let written = serde_json::to_value(&generator).unwrap();
            assert_eq!(written["type"], generator.name());
            assert_eq!(generator.name(), name);
        }
    }

    #[test]
    fn arrivals_of_a_part_of_a_trace_end_with_the_part() {
        let part = Traffic::FixedSchedule(FixedSchedule {
            offset: 3.0,
            start: Some(10.0),
            end: Some(30.0),
            speedup: 2.0,
            ..FixedSchedule::default()
        });
        assert_eq!(part.arrival_seconds(None), Some(13.0));
        assert_eq!(
            Traffic::Concurrent(Concurrent::default()).arrival_seconds(Some(9)),
            None
        );
        assert_eq!(Traffic::default().arrival_seconds(Some(9)), Some(9.0));
        assert_eq!(Traffic::default().arrival_seconds(None), None);
    }
}
