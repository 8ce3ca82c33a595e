//! The keys of a scenario as written, from which its schema is derived.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::plan::certificate::Certificate;
use crate::plan::client::Client;
use crate::plan::component_use::ComponentUse;
use crate::plan::evaluator::Performance;
use crate::plan::runtime::{Runtime, TraceRecorder};
use crate::plan::secret::Secret;
use crate::plan::tool::ToolConfig;
use crate::plan::trace::{LuaLayout, TraceKeys};
use crate::plan::traffic::Traffic;

/// The `type` of the built-in evaluator.
pub(super) const PERFORMANCE: &str = "performance";

/// The keys of a scenario. The schema of `session_generator` depends on the shipped components and
/// is inserted later.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ScenarioKeys {
    /// The scenario's name, which reports show and the run folder's name ends with.
    #[schemars(length(min = 1))]
    pub(super) name: Option<String>,
    /// A description for readers of the reports.
    pub(super) description: Option<String>,
    /// Tags for grouping and searching runs.
    pub(super) tags: Vec<String>,
    /// The folder that runs are written to, each in a subfolder.
    #[schemars(length(min = 1))]
    pub(super) output_dir: String,
    /// The seed of all randomness: lengths, texts, arrivals. Two runs with the same seed send the
    /// same requests.
    #[schemars(extend("minimum" = 0))]
    pub(super) seed: i64,
    /// The source of sessions.
    pub(super) session_generator: Json,
    /// The start times of sessions.
    pub(super) traffic_scheduler: Traffic,
    /// Classes of tools by name, which sessions run between their requests.
    pub(super) tools: BTreeMap<String, ToolConfig>,
    /// Metrics, checks and objectives: the built-in metrics, plugins, functions.
    pub(super) evaluators: Vec<Json>,
    /// The server and the client's connection to it.
    pub(super) client: Client,
    /// Other clients by name, which requests choose; missing keys default to those of `client`.
    /// The client's label of a request is its name, or `default`.
    #[schemars(schema_with = "clients_schema")]
    pub(super) clients: Json,
    /// A running server: its values replace the client's.
    pub(super) endpoint: Option<RunningServer>,
    /// Duration, number of sessions and threads of the run.
    pub(super) runtime: Runtime,
    /// Contents of the trace, and the record of agents' decisions.
    pub(super) trace_recorder: TraceRecorder,
    /// Thresholds at which a run is not trusted.
    pub(super) certificate: Certificate,
}

impl Default for ScenarioKeys {
    fn default() -> Self {
        ScenarioKeys {
            name: None,
            description: None,
            tags: Vec::new(),
            output_dir: "benchmark_output".to_owned(),
            seed: 42,
            session_generator: Json::Null,
            traffic_scheduler: Traffic::default(),
            tools: BTreeMap::new(),
            evaluators: vec![serde_json::json!({"type": PERFORMANCE})],
            client: Client::default(),
            clients: Json::Object(Map::new()),
            endpoint: None,
            runtime: Runtime::default(),
            trace_recorder: TraceRecorder::default(),
            certificate: Certificate::default(),
        }
    }
}

/// A running server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Endpoint")]
pub(super) struct RunningServer {
    /// The server's address, in place of `client.api_base`.
    pub(super) api_base: String,
    /// The model, in place of `client.model`.
    #[serde(default)]
    pub(super) model: Option<String>,
    /// The key, in place of `client.api_key`.
    #[serde(default)]
    pub(super) api_key: Option<Secret>,
}

/// The entries are decoded from the tree, because their defaults are the values of `client`.
fn clients_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/ClientOverrides"},
    })
}

/// The schema of [`ScenarioKeys`], as derived.
pub(crate) fn keys_schema() -> Json {
    schemars::SchemaGenerator::default()
        .into_root_schema_for::<ScenarioKeys>()
        .to_value()
}

/// The schema of [`Performance`], as derived.
pub(crate) fn performance_schema() -> Json {
    schemars::SchemaGenerator::default()
        .into_root_schema_for::<Performance>()
        .to_value()
}

/// The schema of [`TraceKeys`], as derived.
pub(crate) fn trace_schema() -> Json {
    schemars::SchemaGenerator::default()
        .into_root_schema_for::<TraceKeys>()
        .to_value()
}

/// The schema of [`ComponentUse`], as derived.
pub(crate) fn component_schema() -> Json {
    schemars::SchemaGenerator::default()
        .into_root_schema_for::<ComponentUse>()
        .to_value()
}

/// The schema of [`LuaLayout`], as derived.
pub(crate) fn lua_layout_schema() -> Json {
    schemars::SchemaGenerator::default()
        .into_root_schema_for::<LuaLayout>()
        .to_value()
}
