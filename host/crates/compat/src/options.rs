//! Options of a view.

use std::str::FromStr;

use thiserror::Error;

use crate::tool::{Tool, UnknownTool};

/// Options of a view, and the facts about the load that the tools print.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewOptions {
    /// Thresholds of the tool's goodput, with the tool's metric names and units (milliseconds;
    /// seconds for inference-perf; tokens/s/user for throughputs). Empty: no goodput.
    pub goodput: Vec<Threshold>,
    /// Percentiles to report, `0.0..=100.0`, for the tools with configurable percentiles (vllm,
    /// inference-perf). Empty: the tool's defaults.
    pub percentiles: Vec<f64>,
    /// Requested sessions per second; `None` for a load without a rate. The tools have a rate of
    /// requests only, so they repeat it only if each session was one request.
    pub session_rate: Option<f64>,
    /// Name of the tokenizer behind the client's counts, as used in a sentence: `the embedded
    /// tokenizer`. `None` omits the note.
    pub tokenizer: Option<String>,
    /// Limit on concurrent requests, if the load had one. Printed by the tools that have such an
    /// option.
    pub max_concurrency: Option<u32>,
    /// Concurrent sessions of a closed-loop load. The tools have only a limit on requests, so they
    /// print it only if each session was one request.
    pub concurrent_sessions: Option<u32>,
}

/// A threshold of a tool's goodput: `ttft:500`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The tool's name of the metric.
    pub metric: String,
    /// Bound in the tool's unit of the metric.
    pub value: f64,
}

/// An invalid option of a view.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum OptionsError {
    /// The text is not `metric:number`.
    #[error("invalid goodput threshold `{text}`: expected METRIC:NUMBER, such as `ttft:500`")]
    Malformed {
        /// Text as given.
        text: String,
    },
    /// The tool's goodput does not define the metric.
    #[error("the goodput of {tool} has no metric `{metric}`: expected one of {known}")]
    UnknownMetric {
        /// The tool.
        tool: Tool,
        /// Metric as given.
        metric: String,
        /// Metrics that the tool defines.
        known: String,
    },
    /// Unknown tool name.
    #[error(transparent)]
    UnknownTool(#[from] UnknownTool),
    /// The threshold's tool is not selected.
    #[error("a goodput threshold names {tool}, which is not selected: add --as {tool}")]
    NotSelected {
        /// The tool.
        tool: Tool,
    },
    /// The threshold names no tool, and no selected tool defines its metric.
    #[error("no selected tool has a goodput metric `{metric}`: {known}")]
    NoToolDefines {
        /// Metric as given.
        metric: String,
        /// Metrics that each selected tool defines.
        known: String,
    },
    /// The threshold names no tool, and the selected tools define its metric in different units.
    #[error(
        "the goodput threshold of `{metric}` is in {of_first} for {first} and in {of_other} for {other}: name the tool, such as `{first}={metric}:...`"
    )]
    Units {
        /// The metric.
        metric: String,
        /// A tool that defines it.
        first: Tool,
        /// Unit of the first tool.
        of_first: String,
        /// Another tool that defines it.
        other: Tool,
        /// Unit of the other tool.
        of_other: String,
    },
    /// Two thresholds for one metric.
    #[error("duplicate goodput threshold for `{metric}`")]
    Repeated {
        /// The metric.
        metric: String,
    },
    /// The threshold is negative or not a number.
    #[error("the goodput threshold of `{metric}` must be 0 or more, got {value}")]
    Value {
        /// The metric.
        metric: String,
        /// Bound as given.
        value: f64,
    },
    /// The percentile is outside 0 to 100.
    #[error("percentile must be between 0 and 100, got {value}")]
    Percentile {
        /// Percentile as given.
        value: f64,
    },
    /// The tool reports fixed percentiles.
    #[error("the percentiles of {tool} are fixed: only vllm and inference-perf have configurable ones")]
    FixedPercentiles {
        /// The tool.
        tool: Tool,
    },
}

impl FromStr for Threshold {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':');
        let read = parts.and_then(|(metric, value)| Some((metric.trim(), value.trim().parse::<f64>().ok()?)));
        match read {
            Some((metric, value)) if !metric.is_empty() => Ok(Threshold {
                metric: metric.to_owned(),
                value,
            }),
            _ => Err(OptionsError::Malformed {
                text: text.to_owned(),
            }),
        }
    }
}

impl ViewOptions {
    /// Returns the threshold of a metric, if one is set.
    pub(crate) fn threshold(&self, metric: &str) -> Option<f64> {
        self.goodput
            .iter()
            .find(|threshold| threshold.metric == metric)
            .map(|threshold| threshold.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_threshold() {
        let threshold: Threshold = "ttft: 500".parse().unwrap();
        assert_eq!((threshold.metric.as_str(), threshold.value), ("ttft", 500.0));
        for wrong in ["ttft", "ttft:", ":5", "ttft:soon"] {
            assert!(matches!(
                wrong.parse::<Threshold>(),
                Err(OptionsError::Malformed { .. })
            ));
        }
    }
}
