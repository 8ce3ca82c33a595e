//! Metrics, checks and objectives of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::component_use::ComponentUse;
use crate::tree::Place;

/// A source of metrics or checks.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluator {
    /// The built-in metrics: latency, throughput, goodput, and their objectives.
    Performance(Performance),
    /// A component that is not shipped. Its exports determine whether it is a metric, a request
    /// check, an SLO check, or several of these.
    Wasm(ComponentUse),
    /// Functions of the Lua scenario.
    Lua {
        /// Its name in messages.
        name: String,
        /// Its index in `evaluators`.
        index: usize,
        /// True if it has `metrics`.
        measures: bool,
        /// True if it has `good`.
        judges_requests: bool,
        /// True if it has `check`.
        judges_run: bool,
        /// Where it was written.
        place: Option<Place>,
    },
}

/// The built-in evaluator of latency and throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Performance {
    /// Objectives: a run that misses one ends with exit code 3. There are none by default (Veeksha
    /// always checks P99 ttfc <= 0.5 s and P90 tbc <= 0.05 s). An objective is a text such as
    /// `p99(ttfc) < 500ms`, `p95(tpot{tier="gold"}, window = 10s) <= 30ms`, `error_rate < 1%` or
    /// `goodput > 0.95`, or a map.
    pub slos: Vec<Slo>,
    /// Conditions of a good request, such as `ttfc <= 500ms`: goodput is the share of all intended
    /// requests that meet all of them. By default a good request is one that meets the bounds of
    /// those `slos` that apply to requests.
    #[schemars(extend("uniqueItems" = true))]
    pub goodput: Vec<String>,
    /// True to show interim metrics during the run.
    pub stream_metrics: bool,
    /// Seconds between interim metrics.
    #[schemars(range(min = 0.1, max = 86_400.0))]
    pub stream_metrics_interval: f64,
    /// Length of a time slice in seconds: metrics of each slice are written to
    /// `metrics/time_slices.json` and `.csv`. For a run of more than 2,000 slices the length is
    /// doubled until there are fewer. Null: the shortest of 0.125, 0.25, 0.5, 1, 2, ... with which
    /// the run has at most 60 slices.
    #[schemars(range(min = 0.1, max = 86_400.0))]
    pub slice_seconds: Option<f64>,
    /// Labels by whose values results are grouped: `["tier"]` gives each metric for each tier.
    /// Null: every label with 2 to 12 values, at most four labels. Of a label with more values the
    /// most frequent ones are shown, and the others together.
    #[schemars(extend("uniqueItems" = true))]
    pub group_by: Option<Vec<String>>,
    /// The deadlines of the fluidity index.
    pub fluidity: FluidityDeadlines,
    /// Measurement of text.
    pub text_channel: TextChannel,
    /// The kinds of content that are measured. Only text is supported.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub target_channels: Vec<Channel>,
}

impl Default for Performance {
    fn default() -> Self {
        Performance {
            slos: Vec::new(),
            goodput: Vec::new(),
            stream_metrics: true,
            stream_metrics_interval: 5.0,
            slice_seconds: None,
            group_by: None,
            fluidity: FluidityDeadlines::default(),
            text_channel: TextChannel::default(),
            target_channels: vec![Channel::Text],
        }
    }
}

/// The deadlines of the fluidity index: the time that a reader waits for the first token, and for
/// each further one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FluidityDeadlines {
    /// Seconds until the first token is due.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub prefill_deadline: f64,
    /// Seconds until each further token is due.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub decode_deadline: f64,
}

impl Default for FluidityDeadlines {
    fn default() -> Self {
        FluidityDeadlines {
            prefill_deadline: 0.1,
            decode_deadline: 0.05,
        }
    }
}

/// Measurement of text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TextChannel {
    /// True to measure gaps also in windows in which enough requests decode concurrently
    /// (`metrics/decode_window_metrics.json`).
    pub decode_window_enabled: bool,
    /// Selection of the windows.
    pub decode_window_config: Option<DecodeWindowConfig>,
}

/// Windows of the run in which gaps are measured separately.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DecodeWindowConfig {
    /// Minimum number of decoding requests concurrently in such a window: a number, or
    /// `max_observed`.
    pub min_active_requests: MinActiveRequests,
    /// The windows that count.
    pub selection_strategy: WindowSelection,
    /// True if times count from the pick-up by a client thread; else from the dispatch.
    pub anchor_to_client_pickup: bool,
    /// True to exclude answers that arrived in one piece.
    pub require_streaming: bool,
}

impl Default for DecodeWindowConfig {
    fn default() -> Self {
        DecodeWindowConfig {
            min_active_requests: MinActiveRequests::Number(1),
            selection_strategy: WindowSelection::Longest,
            anchor_to_client_pickup: true,
            require_streaming: true,
        }
    }
}

/// Minimum number of decoding requests concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MinActiveRequests {
    /// This number.
    Number(#[schemars(range(min = 1))] u32),
    /// The maximum observed in the run.
    Named(MaxObserved),
}

/// The maximum observed in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MaxObserved {
    /// The maximum observed in the run.
    #[serde(rename = "max_observed")]
    MaxObserved,
}

/// The windows that count, if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowSelection {
    /// The longest one.
    Longest,
    /// The first one.
    First,
    /// All of them.
    All,
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
#[serde(untagged)]
pub enum Slo {
    /// As text: `p99(ttfc) < 500ms`.
    Text(String),
    /// As a map.
    Map(SloMap),
}

/// A service-level objective as a map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SloMap {
    /// A percentile of a metric must be at most a value (at least, for a metric where higher is
    /// better).
    #[schemars(extend("x-default-variant" = true))]
    Constant {
        /// The metric.
        metric: SloMetric,
        /// The percentile as a fraction: 0.99 is P99.
        #[serde(default = "p99")]
        #[schemars(range(min = 0.0, max = 1.0))]
        percentile: f64,
        /// The worst acceptable value in the metric's unit: seconds, or tokens per second.
        #[schemars(extend("exclusiveMinimum" = 0))]
        value: f64,
        /// Its name in results; null derives one from metric and percentile.
        #[serde(default)]
        name: Option<String>,
    },
    /// An objective as text, with a name.
    Expression {
        /// The objective: `p99(ttfc) < 500ms`.
        objective: String,
        /// Its name in results; null takes the text.
        #[serde(default)]
        name: Option<String>,
    },
}

fn p99() -> f64 {
    0.99
}

/// A metric that an objective can bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = add_veeksha_alias)]
pub enum SloMetric {
    /// Time to the first generated chunk, from the dispatch.
    Ttfc,
    /// Time to the first generated chunk, from the scheduled instant.
    TtfcFromIntended,
    /// Gaps between generated chunks.
    Tbc,
    /// Time per output token after the first.
    Tpot,
    /// From the dispatch to the last generated chunk.
    #[serde(alias = "e2e")]
    EndToEndLatency,
    /// From the scheduled instant to the last generated chunk.
    E2eFromIntended,
    /// End-to-end latency divided by the number of output tokens.
    NormalizedEndToEndLatency,
    /// Output tokens of a request divided by its end-to-end latency. Higher is better: the
    /// objective is a minimum.
    OutputThroughput,
    /// From the first dispatch of a session to its last completion.
    SessionDuration,
}

impl SloMetric {
    /// Returns the name in scenarios and results.
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

fn add_veeksha_alias(schema: &mut schemars::Schema) {
    if let Some(serde_json::Value::Array(names)) = schema.get_mut("oneOf") {
        names.push(serde_json::json!({
            "const": "e2e",
            "type": "string",
            "description": "Veeksha's name of `end_to_end_latency`.",
        }));
    }
}
