//! The checked plan: typed, with every default filled in. Its types are the source of the JSON
//! schema and, through it, of the Lua annotations; their comments are the user documentation of
//! each key.

mod certificate;
mod client;
mod decode;
mod evaluator;
mod generator;
mod rules;
mod runtime;
mod secret;
mod server_rules;
mod trace;
mod traffic;

pub use certificate::Certificate;
pub use client::{
    Balance, Client, ClientKind, CodecFile, Connections, HttpVersion, PromptLength, TargetServer, Template,
    TemplateAnswer, TemplateFraming, Tls,
};
pub(crate) use decode::{check, keys_schema, lua_layout_schema, performance_schema, trace_schema};
pub use evaluator::{
    Channel, DecodeWindowConfig, Evaluator, FluidityDeadlines, MaxObserved, MinActiveRequests, Performance,
    Slo, SloMap, SloMetric, TextChannel, WindowSelection,
};
pub use generator::{Generator, LuaGuarantees, LuaKind};
pub use runtime::{Grace, PluginLimits, Runtime, TraceRecorder};
pub use secret::{Secret, is_secret_key, without_secrets};
pub use trace::{
    Cell, Flavor, LuaArrival, LuaColumn, LuaKeep, LuaLayout, LuaTree, OnBadRow, RowCheck, Salt, SaltName,
    Shuffle, TimeUnit, Trace, TraceKeys,
};
pub use traffic::{Concurrent, FixedSchedule, IntervalGenerator, Limits, Rate, Traffic};

use std::path::PathBuf;

/// A checked and complete scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The scenario's name, which reports show and the run folder's name ends with.
    pub name: Option<String>,
    /// A description for readers of the reports.
    pub description: Option<String>,
    /// Tags for grouping and searching runs.
    pub tags: Vec<String>,
    /// The folder that runs are written to, each in a subfolder.
    pub output_dir: PathBuf,
    /// The seed of all randomness: lengths, texts, arrivals.
    pub seed: u64,
    /// The source of sessions.
    pub session_generator: Generator,
    /// The start times of sessions.
    pub traffic_scheduler: Traffic,
    /// Metrics, checks and objectives.
    pub evaluators: Vec<Evaluator>,
    /// The server and the client's connection to it. An `endpoint` of the scenario is merged into
    /// it.
    pub client: Client,
    /// Duration, number of sessions and threads of the run.
    pub runtime: Runtime,
    /// Contents of the trace.
    pub trace_recorder: TraceRecorder,
    /// Thresholds at which the run is not trusted.
    pub certificate: Certificate,
    /// Remarks for the user that are not errors, such as secrets that a resolved configuration no
    /// longer contains.
    pub notes: Vec<String>,
}
