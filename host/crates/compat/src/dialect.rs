//! The tools whose definitions a run can be shown in.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A tool that measures inference servers, and its definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
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

impl Dialect {
    /// All of them, in the order of the help text.
    pub const ALL: [Dialect; 6] = [
        Dialect::Vllm,
        Dialect::Sglang,
        Dialect::Guidellm,
        Dialect::GenaiPerf,
        Dialect::InferencePerf,
        Dialect::Aiperf,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Vllm => "vllm",
            Dialect::Sglang => "sglang",
            Dialect::Guidellm => "guidellm",
            Dialect::GenaiPerf => "genai-perf",
            Dialect::InferencePerf => "inference-perf",
            Dialect::Aiperf => "aiperf",
        }
    }

    /// The version whose source the view follows.
    pub fn follows(self) -> &'static str {
        match self {
            Dialect::Vllm => "vllm bench serve, commit 009e6d4a",
            Dialect::Sglang => "sglang.benchmark.serving 0.5.23",
            Dialect::Guidellm => "guidellm 0.8.1",
            Dialect::GenaiPerf => "genai-perf 0.0.16",
            Dialect::InferencePerf => "inference-perf 0.7.0",
            Dialect::Aiperf => "aiperf 0.13.0",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no tool's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no dialect is named `{name}`; there are {}", Dialect::ALL.map(Dialect::name).join(", "))]
pub struct UnknownDialect {
    /// What was asked for.
    pub name: String,
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Dialect::ALL.into_iter().find(|dialect| dialect.name() == name);
        found.ok_or_else(|| UnknownDialect {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.name().parse(), Ok(dialect));
        }
        let error = "vlm".parse::<Dialect>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no dialect is named `vlm`; there are vllm, sglang, guidellm, genai-perf, inference-perf, aiperf"
        );
    }
}
