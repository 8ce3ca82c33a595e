//! Goodput thresholds of other tools, and their assignment to the selected tools.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::options::{OptionsError, Threshold, ViewOptions};
use crate::tool::Tool;
use crate::{aiperf, genai_perf};

/// A threshold with an optional tool: `ttft:500` or `vllm=ttft:500`.
#[derive(Clone, Debug, PartialEq)]
pub struct GoodputThreshold {
    /// The tool; `None` for every selected tool that defines the metric.
    pub tool: Option<Tool>,
    /// The threshold, with the tool's metric name and unit.
    pub threshold: Threshold,
}

impl FromStr for GoodputThreshold {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (tool, threshold) = match text.split_once('=') {
            Some((tool, threshold)) => (Some(tool.trim().parse()?), threshold),
            None => (None, text),
        };
        Ok(GoodputThreshold {
            tool,
            threshold: threshold.parse()?,
        })
    }
}

impl GoodputThreshold {
    /// Assigns the thresholds to the selected tools. A threshold without a tool applies to each one
    /// that defines its metric, if all of them use the same unit.
    ///
    /// # Errors
    /// Returns an error if a threshold's tool is not selected, if no selected tool defines the
    /// metric, or if two of them define it in different units.
    pub fn assign(
        asked: &[GoodputThreshold],
        selected: &[Tool],
    ) -> Result<BTreeMap<Tool, Vec<Threshold>>, OptionsError> {
        let mut shares: BTreeMap<Tool, Vec<Threshold>> =
            selected.iter().map(|&tool| (tool, Vec::new())).collect();
        for goodput in asked {
            for tool in goodput.tools(selected)? {
                shares.entry(tool).or_default().push(goodput.threshold.clone());
            }
        }
        Ok(shares)
    }

    /// Returns the tools that the threshold applies to.
    fn tools(&self, selected: &[Tool]) -> Result<Vec<Tool>, OptionsError> {
        let metric = self.threshold.metric.as_str();
        if let Some(tool) = self.tool {
            return if selected.contains(&tool) {
                // `ViewOptions::check` verifies later that the tool defines the metric.
                Ok(vec![tool])
            } else {
                Err(OptionsError::NotSelected { tool })
            };
        }
        let mut tools: Vec<(Tool, &str)> = Vec::new();
        for &tool in selected {
            if let Some(unit) = unit(tool, metric)
                && !tools.iter().any(|(taker, _)| *taker == tool)
            {
                tools.push((tool, unit));
            }
        }
        let Some(&(first, of_first)) = tools.first() else {
            return Err(OptionsError::NoToolDefines {
                metric: metric.to_owned(),
                known: defined_metrics(selected),
            });
        };
        if let Some(&(other, of_other)) = tools.iter().find(|(_, unit)| *unit != of_first) {
            return Err(OptionsError::Units {
                metric: metric.to_owned(),
                first,
                of_first: of_first.to_owned(),
                other,
                of_other: of_other.to_owned(),
            });
        }
        Ok(tools.into_iter().map(|(tool, _)| tool).collect())
    }
}

impl ViewOptions {
    /// Validates the options against what the tool supports.
    pub(crate) fn check(&self, tool: Tool) -> Result<(), OptionsError> {
        let known: Vec<&str> = metrics(tool).into_iter().map(|(name, _)| name).collect();
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

/// Lists the metrics of each tool: `vllm: ttft, tpot, e2el; ...`.
fn defined_metrics(selected: &[Tool]) -> String {
    if selected.is_empty() {
        return "select a tool with --as".to_owned();
    }
    let each = selected.iter().map(|&tool| {
        let known: Vec<&str> = metrics(tool).into_iter().map(|(name, _)| name).collect();
        format!("{tool} has {}", known.join(", "))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Returns the metrics that a tool's goodput accepts, with the units of their thresholds.
pub(crate) fn metrics(tool: Tool) -> Vec<(&'static str, &'static str)> {
    let all_in = |unit: &'static str, names: &[&'static str]| {
        let with_unit = names.iter().map(|name| (*name, unit));
        with_unit.collect()
    };
    match tool {
        Tool::Vllm | Tool::Sglang | Tool::Guidellm => all_in("ms", &["ttft", "tpot", "e2el"]),
        Tool::GenaiPerf => genai_perf::GOODPUT_METRICS.to_vec(),
        Tool::InferencePerf => all_in("s", &["ttft", "tpot", "itl", "ntpot", "request_latency"]),
        Tool::Aiperf => aiperf::goodput_metrics(),
    }
}

fn unit(tool: Tool, metric: &str) -> Option<&'static str> {
    let known = metrics(tool).into_iter();
    known
        .filter(|(name, _)| *name == metric)
        .map(|(_, unit)| unit)
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(asked: &[&str], selected: &[Tool]) -> Result<Vec<(Tool, Vec<String>)>, String> {
        let asked: Vec<GoodputThreshold> = asked.iter().map(|text| text.parse().unwrap()).collect();
        let shares = GoodputThreshold::assign(&asked, selected).map_err(|error| error.to_string())?;
        let text = |threshold: &Threshold| format!("{}:{}", threshold.metric, threshold.value);
        Ok(shares
            .into_iter()
            .map(|(tool, thresholds)| (tool, thresholds.iter().map(text).collect()))
            .collect())
    }

    #[test]
    fn threshold_with_tool_goes_to_that_tool() {
        assert_eq!(
            shared(
                &["vllm=ttft:500", "inference-perf=ttft:0.5", "vllm=tpot:50"],
                &[Tool::Vllm, Tool::InferencePerf, Tool::Aiperf]
            ),
            Ok(vec![
                (Tool::Vllm, vec!["ttft:500".to_owned(), "tpot:50".to_owned()]),
                (Tool::InferencePerf, vec!["ttft:0.5".to_owned()]),
                (Tool::Aiperf, vec![]),
            ])
        );
    }

    #[test]
    fn threshold_without_tool_goes_to_all_that_define_it() {
        assert_eq!(
            shared(
                &["ttft:500", "time_to_first_token:400"],
                &[Tool::Vllm, Tool::Sglang, Tool::Aiperf]
            ),
            Ok(vec![
                (Tool::Vllm, vec!["ttft:500".to_owned()]),
                (Tool::Sglang, vec!["ttft:500".to_owned()]),
                (Tool::Aiperf, vec!["time_to_first_token:400".to_owned()]),
            ])
        );
    }

    #[test]
    fn rejects_undefined_and_ambiguous_thresholds() {
        assert_eq!(
            shared(&["ttft:500"], &[Tool::GenaiPerf]).unwrap_err(),
            "no selected tool has a goodput metric `ttft`: genai-perf has time_to_first_token, time_to_second_token, \
             inter_token_latency, request_latency, output_token_throughput_per_user"
        );
        assert!(shared(&["ttft:500"], &[]).unwrap_err().contains("--as"));
        assert_eq!(
            shared(&["vllm=ttft:500"], &[Tool::Sglang]).unwrap_err(),
            "a goodput threshold names vllm, which is not selected: add --as vllm"
        );
        // 500 ms for one tool, 500 s for the other.
        assert_eq!(
            shared(&["ttft:500"], &[Tool::Vllm, Tool::InferencePerf]).unwrap_err(),
            "the goodput threshold of `ttft` is in ms for vllm and in s for inference-perf: name the tool, such as `vllm=ttft:...`"
        );
        assert!("vlm=ttft:500".parse::<GoodputThreshold>().is_err());
        assert!("vllm=ttft".parse::<GoodputThreshold>().is_err());
    }

    #[test]
    fn goodput_metrics_have_units_and_are_unique() {
        for tool in Tool::ALL {
            let known = metrics(tool);
            assert!(!known.is_empty(), "{tool}");
            for (place, (name, unit)) in known.iter().enumerate() {
                assert!(!unit.is_empty(), "{tool} {name}");
                assert!(known[..place].iter().all(|(earlier, _)| earlier != name));
            }
        }
    }

    fn options(goodput: &[&str], percentiles: &[f64]) -> ViewOptions {
        ViewOptions {
            goodput: goodput.iter().map(|text| text.parse().unwrap()).collect(),
            percentiles: percentiles.to_vec(),
            ..ViewOptions::default()
        }
    }

    #[test]
    fn rejects_unsupported_options() {
        assert_eq!(options(&["ttft:1", "e2el:2"], &[99.0]).check(Tool::Vllm), Ok(()));
        let error = options(&["itl:1"], &[]).check(Tool::Vllm).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the goodput of vllm has no metric `itl`: expected one of ttft, tpot, e2el"
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
