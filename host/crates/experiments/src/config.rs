//! Settings of a scenario that a sweep's summary contains.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use veeksha_scenario::{Generator, IntervalGenerator, Scenario, Traffic};

/// Settings of a scenario that a sweep's summary contains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellConfig {
    /// Output folder of its runs.
    pub output_dir: PathBuf,
    /// `traffic`: `traffic_type` and its settings, under Veeksha's names.
    pub traffic: Map<String, Value>,
    /// `runtime`: `max_sessions` and `benchmark_timeout_s`.
    pub runtime: Map<String, Value>,
    /// New prompt tokens per request, if fixed.
    pub context_length: Option<u64>,
    /// Requested tokens per answer, if fixed.
    pub output_length: Option<u64>,
    /// Concurrent sessions of closed-loop traffic.
    pub concurrency: Option<u64>,
}

impl CellConfig {
    /// Extracts the settings of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let config = match &scenario.session_generator {
            Generator::Shipped { config, .. } => Some(config),
            _ => None,
        };
        let fixed = |pointer: &str| fixed_length(config?.pointer(pointer)?);
        CellConfig {
            output_dir: scenario.output_dir.clone(),
            traffic: traffic(&scenario.traffic_scheduler),
            runtime: object(json!({
                "max_sessions": scenario.runtime.max_sessions,
                "benchmark_timeout_s": scenario.runtime.benchmark_timeout,
            })),
            context_length: fixed("/channels/0/body_length_generator"),
            // Veeksha's own summary looks for it where it was until 2026, below the channel, and so
            // never finds it.
            output_length: fixed("/output_spec/text/output_length_generator")
                .or_else(|| fixed("/channels/0/output_length_generator")),
            concurrency: scenario.traffic_scheduler.concurrent_sessions().map(u64::from),
        }
    }
}

/// Returns the value of a constant length.
fn fixed_length(generator: &Value) -> Option<u64> {
    match generator.get("type")?.as_str()? {
        "fixed" => generator.get("value")?.as_u64(),
        _ => None,
    }
}

fn traffic(traffic: &Traffic) -> Map<String, Value> {
    object(match traffic {
        Traffic::Concurrent(concurrent) => json!({
            "traffic_type": "concurrent",
            "target_concurrent_sessions": concurrent.target_concurrent_sessions,
            "rampup_seconds": concurrent.rampup_seconds,
        }),
        Traffic::Rate(rate) => match rate.interval_generator {
            IntervalGenerator::Fixed { interval } => json!({
                "traffic_type": "rate",
                "interval_generator_type": "fixed",
                "interval_s": interval,
            }),
            IntervalGenerator::Poisson { arrival_rate } => json!({
                "traffic_type": "rate",
                "interval_generator_type": "poisson",
                "arrival_rate": arrival_rate,
            }),
            IntervalGenerator::Gamma { arrival_rate, cv } => json!({
                "traffic_type": "rate",
                "interval_generator_type": "gamma",
                "arrival_rate": arrival_rate,
                "cv": cv,
            }),
        },
        Traffic::FixedSchedule(schedule) => json!({
            "traffic_type": "fixed_schedule",
            "speedup": schedule.speedup,
            "offset": schedule.offset,
        }),
        Traffic::ArrivalProcess(arrivals) => json!({
            "traffic_type": "arrival_process",
            "process": arrivals.process.label(),
        }),
    })
}

/// Returns the members of a JSON object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
