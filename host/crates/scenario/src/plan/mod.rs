//! The checked plan: typed, with every default filled in. Its types are the source of the JSON
//! schema and, through it, of the Lua annotations; their comments are the user documentation of
//! each key.

mod certificate;
pub(crate) mod client;
mod client_rules;
mod component_use;
mod decode;
mod evaluator;
mod findings;
mod generator;
pub(crate) mod keys;
pub(crate) mod named_clients;
mod plugin_limits;
mod rules;
mod runtime;
mod scenario;
mod secret;
mod server_rules;
mod session_headers;
mod tool;
mod trace;
mod traffic;

pub use certificate::{Certificate, SimulatorThresholds};
pub use client::{
    Balance, Client, ClientKind, Connections, HttpVersion, PrefixCacheKeys, PromptLength, TargetServer,
    Template, TemplateAnswer, TemplateFraming, Tls,
};
pub use component_use::{ComponentUse, InstanceChoice, TrapChoice};
pub(crate) use decode::check;
pub use evaluator::{
    Channel, DecodeWindowConfig, Evaluator, FluidityDeadlines, MaxObserved, MinActiveRequests, Performance,
    Slo, SloMap, SloMetric, TextChannel, WindowSelection,
};
pub use generator::{Generator, LuaGuarantees, LuaKind};
pub use named_clients::NamedClient;
pub use plugin_limits::{PluginCallBudget, PluginLimits};
pub use runtime::{Grace, Runtime, TraceRecorder};
pub use scenario::Scenario;
pub use secret::Secret;
pub use session_headers::{SessionHeaderSet, SessionHeaders};
pub use tool::{QuantityConfig, ToolConfig};
pub use trace::{
    Cell, Flavor, LuaArrival, LuaColumn, LuaKeep, LuaLayout, LuaTree, OnBadRow, RowCheck, Salt, SaltName,
    Shuffle, TimeUnit, Trace, TraceKeys,
};
pub use traffic::{
    ArrivalPlugin, ArrivalProcess, Concurrent, FixedSchedule, IntervalGenerator, Limits, Rate, Traffic,
};
