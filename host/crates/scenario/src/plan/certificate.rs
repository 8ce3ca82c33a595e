//! Thresholds of the certificate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Thresholds at which a run is not trusted. Each metric's error, measured or estimated, is
/// compared with the metric's P50.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Certificate {
    /// A run is `DEGRADED` if an error exceeds this share of a metric's P50.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub degraded: f64,
    /// A run is `INVALID` (exit code 6) if an error exceeds this share of a metric's P50.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub invalid: f64,
    /// True to measure a reference server with known timings on this machine after the run, at the
    /// run's rate; its error becomes the bound printed next to each metric. Same as the flag
    /// `--self-test`.
    pub self_test: bool,
    /// Duration of the self-test in seconds.
    #[schemars(range(min = 0.5, max = 600.0))]
    pub self_test_seconds: f64,
    /// Thresholds for the built-in simulator (`sim://`), which shares this machine's cores with the
    /// client. Each applies where it is larger than `degraded` or `invalid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulator: Option<SimulatorThresholds>,
}

/// Thresholds for runs against the built-in simulator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatorThresholds {
    /// A run is `DEGRADED` if an error exceeds this share of a metric's P50.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub degraded: f64,
    /// A run is `INVALID` (exit code 6) if an error exceeds this share of a metric's P50.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub invalid: f64,
}

impl Default for Certificate {
    fn default() -> Self {
        Certificate {
            degraded: 0.01,
            invalid: 0.05,
            self_test: false,
            self_test_seconds: 5.0,
            simulator: None,
        }
    }
}
