//! What a view can be asked for.

use std::str::FromStr;

use thiserror::Error;

use crate::goodput;
use crate::tool::{Tool, UnknownTool};

/// What a view can be asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Thresholds of the tool's own goodput, in the tool's own metric names and units (milliseconds, for inference-perf
    /// seconds; tokens/s/user for throughputs). Empty: no goodput.
    pub goodput: Vec<Threshold>,
    /// Percentiles to report, `0.0..=100.0`, for the tools that let one choose (vllm, inference-perf). Empty: the tool's own.
    pub percentiles: Vec<f64>,
    /// Sessions a second that the load asked for; `None` for a load without a rate. The tools know a rate of requests only: those that
    /// print it repeat it where each session was one request.
    pub session_rate: Option<f64>,
    /// Which tokenizer the client's counts are from, as it reads in a sentence: `the embedded tokenizer`. `None`: nothing is said of it.
    pub tokenizer: Option<String>,
    /// The limit on requests in flight, if the load had one. The tools that print it repeat it.
    pub max_concurrency: Option<u32>,
}

/// A threshold of a tool's goodput: `ttft:500`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The tool's name of the metric.
    pub metric: String,
    /// The bound, in the tool's unit for it.
    pub value: f64,
}

/// What is wrong with the options of a view.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum OptionsError {
    /// Not `metric:number`.
    #[error(
        "`{text}` is no goodput threshold; write the tool's metric, a colon and a number, such as `ttft:500`"
    )]
    Malformed {
        /// What was given.
        text: String,
    },
    /// A metric that the tool's goodput does not know.
    #[error("the goodput of {tool} knows no metric `{metric}`; it knows {known}")]
    UnknownMetric {
        /// The tool.
        tool: Tool,
        /// What was asked for.
        metric: String,
        /// What there is.
        known: String,
    },
    /// A name that is no tool's.
    #[error(transparent)]
    UnknownTool(#[from] UnknownTool),
    /// A threshold for a tool that is not shown.
    #[error("a goodput threshold is for {tool}, which is not shown; --as {tool} shows it")]
    NotShown {
        /// The tool.
        tool: Tool,
    },
    /// A threshold without a tool, of a metric that no tool knows of those that are shown.
    #[error("no tool that is shown knows a goodput threshold of `{metric}`: {known}")]
    NobodyKnows {
        /// What was asked for.
        metric: String,
        /// What each of them knows.
        known: String,
    },
    /// A threshold without a tool that means different things to those that are shown.
    #[error(
        "the goodput threshold of `{metric}` is in {of_first} for {first} and in {of_other} for {other}; name the tool, such as `{first}={metric}:...`"
    )]
    Units {
        /// The metric.
        metric: String,
        /// One tool.
        first: Tool,
        /// Its unit.
        of_first: String,
        /// Another one.
        other: Tool,
        /// Its unit.
        of_other: String,
    },
    /// The same metric twice.
    #[error("the goodput threshold of `{metric}` is given twice")]
    Repeated {
        /// The metric.
        metric: String,
    },
    /// A threshold below zero or not a number.
    #[error("the goodput threshold of `{metric}` is {value}; it must be a number that is not negative")]
    Value {
        /// The metric.
        metric: String,
        /// The bound.
        value: f64,
    },
    /// A percentile outside of 0 to 100.
    #[error("{value} is no percentile; it must lie between 0 and 100")]
    Percentile {
        /// What was given.
        value: f64,
    },
    /// The tool reports fixed percentiles.
    #[error("{tool} reports fixed percentiles; only vllm and inference-perf let one choose")]
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

impl Options {
    /// The threshold of a metric, if one is set.
    pub(crate) fn threshold(&self, metric: &str) -> Option<f64> {
        self.goodput
            .iter()
            .find(|threshold| threshold.metric == metric)
            .map(|threshold| threshold.value)
    }

    /// Refuses what the tool does not offer.
    pub(crate) fn check(&self, tool: Tool) -> Result<(), OptionsError> {
        let known: Vec<&str> = goodput::metrics(tool).into_iter().map(|(name, _)| name).collect();
        for (at, threshold) in self.goodput.iter().enumerate() {
            let metric = || threshold.metric.clone();
            if !known.contains(&threshold.metric.as_str()) {
                return Err(OptionsError::UnknownMetric {
                    tool,
                    metric: metric(),
                    known: known.join(", "),
                });
            }
            if self.goodput[..at]
                .iter()
                .any(|earlier| earlier.metric == threshold.metric)
            {
                return Err(OptionsError::Repeated { metric: metric() });
            }
            if !threshold.value.is_finite() || threshold.value < 0.0 {
                return Err(OptionsError::Value {
                    metric: metric(),
                    value: threshold.value,
                });
            }
        }
        if let Some(&value) = self
            .percentiles
            .iter()
            .find(|value| !(0.0..=100.0).contains(*value))
        {
            return Err(OptionsError::Percentile { value });
        }
        let chosen = matches!(tool, Tool::Vllm | Tool::InferencePerf);
        if !self.percentiles.is_empty() && !chosen {
            return Err(OptionsError::FixedPercentiles { tool });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(goodput: &[&str], percentiles: &[f64]) -> Options {
        Options {
            goodput: goodput.iter().map(|text| text.parse().unwrap()).collect(),
            percentiles: percentiles.to_vec(),
            ..Options::default()
        }
    }

    #[test]
    fn a_threshold_is_a_metric_and_a_number() {
        let threshold: Threshold = "ttft: 500".parse().unwrap();
        assert_eq!((threshold.metric.as_str(), threshold.value), ("ttft", 500.0));
        for wrong in ["ttft", "ttft:", ":5", "ttft:soon"] {
            assert!(matches!(
                wrong.parse::<Threshold>(),
                Err(OptionsError::Malformed { .. })
            ));
        }
    }

    #[test]
    fn what_a_tool_does_not_offer_is_refused() {
        assert_eq!(options(&["ttft:1", "e2el:2"], &[99.0]).check(Tool::Vllm), Ok(()));
        let error = options(&["itl:1"], &[]).check(Tool::Vllm).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the goodput of vllm knows no metric `itl`; it knows ttft, tpot, e2el"
        );
        assert!(matches!(
            options(&["ttft:1", "ttft:2"], &[]).check(Tool::Sglang),
            Err(OptionsError::Repeated { .. })
        ));
        assert!(matches!(
            options(&["ttft:-1"], &[]).check(Tool::Sglang),
            Err(OptionsError::Value { .. })
        ));
        assert!(matches!(
            options(&[], &[101.0]).check(Tool::Vllm),
            Err(OptionsError::Percentile { .. })
        ));
        assert!(matches!(
            options(&[], &[99.0]).check(Tool::Aiperf),
            Err(OptionsError::FixedPercentiles { .. })
        ));
    }
}
