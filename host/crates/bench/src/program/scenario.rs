//! Scenarios for runs of the program.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// Session arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScenarioTraffic {
    /// Poisson arrivals, with this mean rate per second.
    Poisson(f64),
    /// This number of concurrent sessions.
    Concurrent(u32),
}

/// Runtime settings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ScenarioRuntime {
    /// Microseconds of spinning before a dispatch.
    pub(crate) spin: f64,
    /// Dispatcher threads; 0: the default.
    pub(crate) dispatchers: u32,
}

/// Returns a scenario of one-request sessions of about a hundred tokens, answered with `tokens`
/// tokens by the server at `address`.
pub(crate) fn scenario(
    address: SocketAddr,
    sessions: u64,
    tokens: u32,
    traffic: ScenarioTraffic,
    runtime: ScenarioRuntime,
) -> Value {
    let traffic = match traffic {
        ScenarioTraffic::Poisson(rate) => {
            json!({ "type": "rate", "interval_generator": { "type": "poisson", "arrival_rate": rate } })
        }
        ScenarioTraffic::Concurrent(sessions) => {
            json!({ "type": "concurrent", "target_concurrent_sessions": sessions, "rampup_seconds": 0 })
        }
    };
    let mut settings = json!({ "max_sessions": sessions, "benchmark_timeout": 120 });
    if runtime.spin > 0.0 {
        settings["spin_microseconds"] = json!(runtime.spin);
    }
    if runtime.dispatchers > 0 {
        settings["num_dispatcher_threads"] = json!(runtime.dispatchers);
    }
    json!({
        "session_generator": {
            "type": "synthetic",
            "session_graph": { "type": "single_request" },
            "channels": [{ "type": "text", "body_length_generator": { "type": "fixed", "value": 100 } }],
            "output_spec": { "text": { "output_length_generator": { "type": "fixed", "value": tokens } } },
        },
        "traffic_scheduler": traffic,
        "client": { "api_base": format!("http://{address}/v1"), "model": "bench" },
        "runtime": settings,
        "evaluators": [{ "type": "performance", "stream_metrics": false }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_has_the_requested_settings() {
        let address = "127.0.0.1:8000".parse().expect("an address");
        let spin = ScenarioRuntime {
            spin: 200.0,
            dispatchers: 2,
        };
        let one = scenario(address, 7, 64, ScenarioTraffic::Poisson(100.0), spin);
        assert_eq!(one["client"]["api_base"], "http://127.0.0.1:8000/v1");
        assert_eq!(
            one["traffic_scheduler"]["interval_generator"]["arrival_rate"],
            100.0
        );
        assert_eq!(one["runtime"]["spin_microseconds"], 200.0);
        assert_eq!(one["runtime"]["num_dispatcher_threads"], 2);
        let two = scenario(
            address,
            7,
            64,
            ScenarioTraffic::Concurrent(5),
            ScenarioRuntime::default(),
        );
        assert_eq!(two["traffic_scheduler"]["target_concurrent_sessions"], 5);
        assert!(two["runtime"].get("spin_microseconds").is_none());
    }
}
