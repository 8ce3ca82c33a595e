//! A successful request in inference-perf's terms.

use crate::sample::{GapPool, ToolSample};

/// A successful request; times in seconds.
#[derive(Debug)]
pub(super) struct Success {
    pub(super) latency: f64,
    pub(super) ttft: Option<f64>,
    pub(super) tpot: Option<f64>,
    pub(super) itl: Option<f64>,
    pub(super) ntpot: f64,
    pub(super) prompt: f64,
    pub(super) client_output: f64,
    pub(super) server_output: f64,
}

/// Samples of all successes.
pub(super) struct SuccessSamples {
    pub(super) count: usize,
    /// Latencies in seconds, in the order of the result file.
    pub(super) request_latency: ToolSample,
    pub(super) normalized_time_per_output_token: ToolSample,
    pub(super) time_per_output_token: ToolSample,
    pub(super) time_to_first_token: ToolSample,
    pub(super) inter_token_latency: ToolSample,
    pub(super) prompt: ToolSample,
    pub(super) client_output: ToolSample,
    pub(super) server_output: ToolSample,
}

impl SuccessSamples {
    pub(super) fn of(answered: &[Success], gaps: GapPool) -> SuccessSamples {
        let of =
            |value: fn(&Success) -> Option<f64>| ToolSample::of(answered.iter().filter_map(value).collect());
        SuccessSamples {
            count: answered.len(),
            request_latency: of(|success| Some(success.latency)),
            normalized_time_per_output_token: of(|success| Some(success.ntpot)),
            time_per_output_token: of(|success| success.tpot),
            time_to_first_token: of(|success| success.ttft),
            inter_token_latency: gaps.into_sample(1e9),
            prompt: of(|success| Some(success.prompt)),
            client_output: of(|success| Some(success.client_output)),
            server_output: of(|success| Some(success.server_output)),
        }
    }

    /// Returns the latencies with their names in the result file.
    pub(super) fn latencies(&self) -> [(&'static str, &ToolSample); 5] {
        [
            ("request_latency", &self.request_latency),
            (
                "normalized_time_per_output_token",
                &self.normalized_time_per_output_token,
            ),
            ("time_per_output_token", &self.time_per_output_token),
            ("time_to_first_token", &self.time_to_first_token),
            ("inter_token_latency", &self.inter_token_latency),
        ]
    }
}
