//! The checked plan: typed, every default filled in. The types here are the source of the JSON schema and, through it, of
//! the Lua annotations; their comments are the user's documentation of each key.

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
pub(crate) use decode::{check, lua_layout_schema, performance_schema, sheet_schema, trace_schema};
pub use evaluator::{
    Channel, DecodeWindowConfig, Evaluator, FluidityDeadlines, MaxObserved, MinActiveRequests, Performance,
    Slo, SloMap, SloMetric, TextChannel, WindowSelection,
};
pub use generator::{Generator, LuaKind};
pub use runtime::{Grace, PluginLimits, Runtime, TraceRecorder};
pub use secret::Secret;
pub(crate) use secret::without_secrets;
pub use trace::{
    Cell, Flavor, LuaArrival, LuaColumn, LuaKeep, LuaLayout, LuaTree, OnBadRow, RowCheck, Salt, SaltName,
    Shuffle, TimeUnit, Trace, TraceKeys,
};
pub use traffic::{Concurrent, FixedSchedule, IntervalGenerator, Limits, Rate, Traffic};

use std::path::PathBuf;

/// What a run is to do, checked and complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Where runs are written, each in a folder of its own.
    pub output_dir: PathBuf,
    /// The seed of everything random: lengths, texts, arrivals.
    pub seed: u64,
    /// Where sessions come from.
    pub session_generator: Generator,
    /// When sessions start.
    pub traffic_scheduler: Traffic,
    /// What is judged, and against which objectives.
    pub evaluators: Vec<Evaluator>,
    /// The server, and how it is spoken to. An `endpoint` of the scenario is merged into it.
    pub client: Client,
    /// How long, how many, on how many threads.
    pub runtime: Runtime,
    /// What the trace holds.
    pub trace_recorder: TraceRecorder,
    /// When the run does not trust itself.
    pub certificate: Certificate,
    /// What the user should know though it is no error: secrets that a resolved configuration no longer holds.
    pub notes: Vec<String>,
}
