//! What is judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Evaluator {
    /// Latency, throughput, goodput, and whether they meet their objectives.
    #[schemars(extend("x-default-variant" = true))]
    Performance(Performance),
}

/// The evaluator of latency and throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Performance {
    /// Objectives: a run that misses one ends with exit code 3. There are none unless you set some (Veeksha judges every
    /// run by P99 ttfc <= 0.5 s and P90 tbc <= 0.05 s, asked or not).
    pub slos: Vec<Slo>,
    /// Whether interim figures are shown while the run goes on.
    pub stream_metrics: bool,
    /// Seconds between interim figures.
    #[schemars(range(min = 0.1, max = 86_400.0))]
    pub stream_metrics_interval: f64,
    /// The kinds of content that are measured. Text is the only one so far.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub target_channels: Vec<Channel>,
}

impl Default for Performance {
    fn default() -> Self {
        Performance {
            slos: Vec::new(),
            stream_metrics: true,
            stream_metrics_interval: 5.0,
            target_channels: vec![Channel::Text],
        }
    }
}

/// A kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Text.
    Text,
}

/// A service-level objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Slo {
    /// A percentile of a metric must be at most a value (at least, for a metric of which more is better).
    #[schemars(extend("x-default-variant" = true))]
    Constant {
        /// The metric.
        metric: SloMetric,
        /// Which percentile, as a fraction: 0.99 is P99.
        #[serde(default = "p99")]
        #[schemars(range(min = 0.0, max = 1.0))]
        percentile: f64,
        /// The worst value that is still good, in the metric's unit: seconds, or tokens per second.
        #[schemars(extend("exclusiveMinimum" = 0))]
        value: f64,
        /// A name for it in results; null makes one of metric and percentile.
        #[serde(default)]
        name: Option<String>,
    },
}

fn p99() -> f64 {
    0.99
}

/// A metric that an objective can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = with_veekshas_name)]
pub enum SloMetric {
    /// Time to the first generated chunk, from the dispatch.
    Ttfc,
    /// Time to the first generated chunk, from the instant that the schedule intended.
    TtfcFromIntended,
    /// Gaps between generated chunks.
    Tbc,
    /// Time per output token after the first.
    Tpot,
    /// From the dispatch to the last generated chunk.
    #[serde(alias = "e2e")]
    EndToEndLatency,
    /// From the instant that the schedule intended to the last generated chunk.
    E2eFromIntended,
    /// End-to-end latency divided by the number of output tokens.
    NormalizedEndToEndLatency,
    /// Output tokens of a request divided by its end-to-end latency. More is better: the objective is a least value.
    OutputThroughput,
    /// From the first dispatch of a session to its last completion.
    SessionDuration,
}

impl SloMetric {
    /// The name in scenarios and results.
    pub fn name(self) -> &'static str {
        match self {
            SloMetric::Ttfc => "ttfc",
            SloMetric::TtfcFromIntended => "ttfc_from_intended",
            SloMetric::Tbc => "tbc",
            SloMetric::Tpot => "tpot",
            SloMetric::EndToEndLatency => "end_to_end_latency",
            SloMetric::E2eFromIntended => "e2e_from_intended",
            SloMetric::NormalizedEndToEndLatency => "normalized_end_to_end_latency",
            SloMetric::OutputThroughput => "output_throughput",
            SloMetric::SessionDuration => "session_duration",
        }
    }
}

fn with_veekshas_name(schema: &mut schemars::Schema) {
    if let Some(serde_json::Value::Array(names)) = schema.get_mut("oneOf") {
        names.push(serde_json::json!({
            "const": "e2e",
            "type": "string",
            "description": "Veeksha's name of `end_to_end_latency`.",
        }));
    }
}
