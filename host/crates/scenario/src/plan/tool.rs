//! Classes of tools that sessions run between their requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A class of tools: servers that calls wait for, and the time that a call takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolConfig {
    /// Calls that are served at once; further ones wait, first come, first served. Null: any
    /// number.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub servers: Option<u32>,
    /// Service time in seconds, of calls that do not state theirs.
    pub time: QuantityConfig,
    /// Seconds added to a call that finds no warm server, such as the start of a sandbox. A server
    /// is cold until its first call.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub cold_start: f64,
    /// Seconds after which an idle server is cold again. Null: never.
    #[schemars(range(min = 0.0, max = 1e8))]
    pub keep_warm: Option<f64>,
    /// The most calls that start per second, minute or hour, evenly spaced: `20/s`, `100/min`,
    /// `1000/h`. Null: no limit.
    pub rate_limit: Option<String>,
    /// The probability that a call fails. It takes its service time all the same.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub failure_rate: f64,
    /// Tokens of the result, of calls that do not state theirs; rounded.
    pub result_tokens: QuantityConfig,
}

impl Default for ToolConfig {
    fn default() -> Self {
        ToolConfig {
            servers: None,
            time: QuantityConfig::Constant { value: 1.0 },
            cold_start: 0.0,
            keep_warm: None,
            rate_limit: None,
            failure_rate: 0.0,
            result_tokens: QuantityConfig::Constant { value: 100.0 },
        }
    }
}

impl ToolConfig {
    /// Returns the seconds between the starts of two calls; `None` without a limit, or if the limit
    /// is not valid.
    pub fn spacing_seconds(&self) -> Option<f64> {
        spacing(self.rate_limit.as_deref()?)
    }
}

/// Returns the seconds between two events of a rate such as `20/s`.
pub(super) fn spacing(rate: &str) -> Option<f64> {
    let (count, unit) = rate.split_once('/')?;
    let count: f64 = count.trim().parse().ok()?;
    let seconds = match unit.trim() {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    (count > 0.0 && count.is_finite()).then(|| seconds / count)
}

/// A distribution of a quantity that is not negative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum QuantityConfig {
    /// Always the same value.
    #[schemars(extend("x-default-variant" = true))]
    Constant {
        /// The value.
        #[schemars(range(min = 0.0, max = 1e8))]
        value: f64,
    },
    /// Uniform between two values.
    Uniform {
        /// The smallest value.
        #[schemars(range(min = 0.0, max = 1e8))]
        min: f64,
        /// The largest value.
        #[schemars(range(min = 0.0, max = 1e8))]
        max: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e8))]
        mean: f64,
    },
    /// Gamma.
    Gamma {
        /// The mean.
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e8))]
        mean: f64,
        /// Standard deviation divided by the mean.
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 100.0))]
        cv: f64,
    },
    /// Log-normal: the mean is `median * exp(sigma^2 / 2)`.
    #[serde(rename = "lognormal")]
    LogNormal {
        /// The median.
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e8))]
        median: f64,
        /// The standard deviation of the logarithm.
        #[schemars(range(min = 0.0, max = 10.0))]
        sigma: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::spacing;

    #[test]
    fn rates_have_a_unit() {
        for (rate, seconds) in [
            ("20/s", 0.05),
            ("120 / min", 0.5),
            ("3600/h", 1.0),
            ("0.5/s", 2.0),
        ] {
            assert_eq!(spacing(rate), Some(seconds), "{rate}");
        }
        for rate in ["20", "20/d", "0/s", "-1/s", "x/s", "inf/s", "", "/s"] {
            assert_eq!(spacing(rate), None, "{rate}");
        }
    }
}
