//! When a run does not trust itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a run does not trust itself. Each metric's error, measured or estimated, is compared with the metric's own P50.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Certificate {
    /// An error of more than this share of a metric's P50 makes the run `DEGRADED`.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub degraded: f64,
    /// An error of more than this share of a metric's P50 makes the run `INVALID`: exit code 6.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub invalid: f64,
    /// Whether a twin on this machine, whose timings are known, is measured after the run at the run's own rate; its error becomes the
    /// bound printed beside each metric. The flag `--self-test` does the same.
    pub self_test: bool,
    /// Seconds that the twin is measured.
    #[schemars(range(min = 0.5, max = 600.0))]
    pub self_test_seconds: f64,
}

impl Default for Certificate {
    fn default() -> Self {
        Certificate {
            degraded: 0.01,
            invalid: 0.05,
            self_test: false,
            self_test_seconds: 5.0,
        }
    }
}
