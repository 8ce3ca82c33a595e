//! The benchmark tools whose metric definitions and files this crate reproduces.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A benchmark tool for inference servers, with its own metric definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// `vllm bench serve`.
    Vllm,
    /// `python -m sglang.benchmark.serving` (formerly `sglang.bench_serving`).
    Sglang,
    /// GuideLLM.
    Guidellm,
    /// NVIDIA GenAI-Perf over Perf Analyzer.
    GenaiPerf,
    /// inference-perf of the Kubernetes serving group.
    InferencePerf,
    /// NVIDIA AIPerf.
    Aiperf,
}

impl Tool {
    /// Every tool, in the order of the help text.
    pub const ALL: [Tool; 6] = [
        Tool::Vllm,
        Tool::Sglang,
        Tool::Guidellm,
        Tool::GenaiPerf,
        Tool::InferencePerf,
        Tool::Aiperf,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Vllm => "vllm",
            Tool::Sglang => "sglang",
            Tool::Guidellm => "guidellm",
            Tool::GenaiPerf => "genai-perf",
            Tool::InferencePerf => "inference-perf",
            Tool::Aiperf => "aiperf",
        }
    }

    /// Returns the tool's version or commit whose source the view reproduces.
    pub fn reference_version(self) -> &'static str {
        match self {
            Tool::Vllm => "vllm bench serve, commit 009e6d4a (peak concurrent requests as in 0.32)",
            Tool::Sglang => "sglang.benchmark.serving 0.5.23",
            Tool::Guidellm => "guidellm 0.8.1",
            Tool::GenaiPerf => "genai-perf 0.0.16",
            Tool::InferencePerf => "inference-perf 0.7.0",
            Tool::Aiperf => "aiperf 0.13.0",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown tool name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown tool `{name}`: expected one of {}", Tool::ALL.map(Tool::name).join(", "))]
pub struct UnknownTool {
    /// The name as given.
    pub name: String,
}

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Tool::ALL.into_iter().find(|tool| tool.name() == name);
        found.ok_or_else(|| UnknownTool {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back_to_its_tool() {
        for tool in Tool::ALL {
            assert_eq!(tool.name().parse(), Ok(tool));
        }
        let error = "vlm".parse::<Tool>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown tool `vlm`: expected one of vllm, sglang, guidellm, genai-perf, inference-perf, aiperf"
        );
    }
}
