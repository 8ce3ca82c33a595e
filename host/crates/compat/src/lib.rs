//! Metrics of a run in the definitions of other tools, and AIPerf's result files. Pure.
//!
//! Tools define "time to first token", "inter-token latency" and "throughput" differently. The
//! record of a run contains every event of every response, so each tool's numbers can be computed
//! from it: [`View`] does so for `vllm bench serve`, sglang's `bench_serving`, GuideLLM,
//! GenAI-Perf, inference-perf and AIPerf, and [`AiperfExport`] writes AIPerf's files. The
//! definitions of each tool are in `docs/other-tools.md`.
//!
//! ```
//! use veeksha_compat::{Tool, ViewOptions, View};
//!
//! let tool: Tool = "vllm".parse()?;
//! let options = ViewOptions {
//!     goodput: vec!["ttft:500".parse()?],
//!     ..ViewOptions::default()
//! };
//! let mut view = View::new(tool, options)?;
//! # let events: Vec<veeksha_events::Event> = Vec::new();
//! for event in &events {
//!     view.on(event);
//! }
//! let report = view.finish();
//! println!("{}", report.text());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod aiperf;
mod answer;
#[cfg(test)]
#[path = "../tests/compat/fixture.rs"]
mod fixture;
mod genai_perf;
mod goodput;
mod guidellm;
mod inference_perf;
mod options;
mod report;
mod sample;
mod served;
mod served_report;
mod sglang;
mod table;
mod tokens;
mod tool;
mod view;
mod vllm;

pub use aiperf::{AiperfExport, AiperfFiles, AiperfInfo, AiperfSlices};
pub use goodput::GoodputThreshold;
pub use options::{OptionsError, Threshold, ViewOptions};
pub use report::{ToolMetric, ViewReport};
pub use tool::{Tool, UnknownTool};
pub use view::View;
