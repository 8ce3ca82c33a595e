//! Thresholds of other tools' goodput, as they are asked for: each for one tool, or for every tool that is shown and knows its metric.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::options::{OptionsError, Threshold};
use crate::tool::Tool;
use crate::{aiperf, genai_perf};

/// A threshold, and for whom it is: `ttft:500` or `vllm=ttft:500`.
#[derive(Clone, Debug, PartialEq)]
pub struct Goodput {
    /// The tool; `None` for every tool that is shown and knows the metric.
    pub tool: Option<Tool>,
    /// What is asked for, in the tool's words and unit.
    pub threshold: Threshold,
}

impl FromStr for Goodput {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (tool, threshold) = match text.split_once('=') {
            Some((tool, threshold)) => (Some(tool.trim().parse()?), threshold),
            None => (None, text),
        };
        Ok(Goodput {
            tool,
            threshold: threshold.parse()?,
        })
    }
}

impl Goodput {
    /// Gives every tool that is shown its thresholds. A threshold that names no tool goes to each that knows its metric, if it means the
    /// same to all of them.
    ///
    /// # Errors
    /// If a threshold is for a tool that is not shown or does not know its metric; if no tool that is shown knows it; or if two of them
    /// know it in different units.
    pub fn share_out(
        asked: &[Goodput],
        shown: &[Tool],
    ) -> Result<BTreeMap<Tool, Vec<Threshold>>, OptionsError> {
        let mut shares: BTreeMap<Tool, Vec<Threshold>> =
            shown.iter().map(|&tool| (tool, Vec::new())).collect();
        for goodput in asked {
            for tool in goodput.takers(shown)? {
                shares.entry(tool).or_default().push(goodput.threshold.clone());
            }
        }
        Ok(shares)
    }

    /// Who takes it.
    fn takers(&self, shown: &[Tool]) -> Result<Vec<Tool>, OptionsError> {
        let metric = self.threshold.metric.as_str();
        if let Some(tool) = self.tool {
            return match shown.contains(&tool) {
                // Whether the tool knows the metric is checked with its other options.
                true => Ok(vec![tool]),
                false => Err(OptionsError::NotShown { tool }),
            };
        }
        let mut takers: Vec<(Tool, &str)> = Vec::new();
        for &tool in shown {
            if let Some(unit) = unit(tool, metric)
                && !takers.iter().any(|(taker, _)| *taker == tool)
            {
                takers.push((tool, unit));
            }
        }
        let Some(&(first, of_first)) = takers.first() else {
            return Err(OptionsError::NobodyKnows {
                metric: metric.to_owned(),
                known: known_of(shown),
            });
        };
        if let Some(&(other, of_other)) = takers.iter().find(|(_, unit)| *unit != of_first) {
            return Err(OptionsError::Units {
                metric: metric.to_owned(),
                first,
                of_first: of_first.to_owned(),
                other,
                of_other: of_other.to_owned(),
            });
        }
        Ok(takers.into_iter().map(|(tool, _)| tool).collect())
    }
}

/// `vllm: ttft, tpot, e2el; ...`.
fn known_of(shown: &[Tool]) -> String {
    if shown.is_empty() {
        return "no tool is shown: --as names one".to_owned();
    }
    let each = shown.iter().map(|&tool| {
        let known: Vec<&str> = metrics(tool).into_iter().map(|(name, _)| name).collect();
        format!("{tool} knows {}", known.join(", "))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The metrics that a tool's goodput takes, each with the unit of its threshold.
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

    fn shared(asked: &[&str], shown: &[Tool]) -> Result<Vec<(Tool, Vec<String>)>, String> {
        let asked: Vec<Goodput> = asked.iter().map(|text| text.parse().unwrap()).collect();
        let shares = Goodput::share_out(&asked, shown).map_err(|error| error.to_string())?;
        let text = |threshold: &Threshold| format!("{}:{}", threshold.metric, threshold.value);
        Ok(shares
            .into_iter()
            .map(|(tool, thresholds)| (tool, thresholds.iter().map(text).collect()))
            .collect())
    }

    #[test]
    fn a_threshold_goes_to_the_tool_that_it_names() {
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
    fn one_that_names_none_goes_to_all_that_know_it() {
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
    fn what_nobody_takes_or_takes_otherwise_is_refused() {
        assert_eq!(
            shared(&["ttft:500"], &[Tool::GenaiPerf]).unwrap_err(),
            "no tool that is shown knows a goodput threshold of `ttft`: genai-perf knows time_to_first_token, time_to_second_token, \
             inter_token_latency, request_latency, output_token_throughput_per_user"
        );
        assert!(shared(&["ttft:500"], &[]).unwrap_err().contains("--as"));
        assert_eq!(
            shared(&["vllm=ttft:500"], &[Tool::Sglang]).unwrap_err(),
            "a goodput threshold is for vllm, which is not shown; --as vllm shows it"
        );
        // 500 ms to one, 500 s to the other.
        assert_eq!(
            shared(&["ttft:500"], &[Tool::Vllm, Tool::InferencePerf]).unwrap_err(),
            "the goodput threshold of `ttft` is in ms for vllm and in s for inference-perf; name the tool, such as `vllm=ttft:...`"
        );
        assert!("vlm=ttft:500".parse::<Goodput>().is_err());
        assert!("vllm=ttft".parse::<Goodput>().is_err());
    }

    #[test]
    fn every_metric_has_a_unit_and_is_known_once() {
        for tool in Tool::ALL {
            let known = metrics(tool);
            assert!(!known.is_empty(), "{tool}");
            for (place, (name, unit)) in known.iter().enumerate() {
                assert!(!unit.is_empty(), "{tool} {name}");
                assert!(known[..place].iter().all(|(earlier, _)| earlier != name));
            }
        }
    }
}
