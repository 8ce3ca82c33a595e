//! Scenario files: read, checked and resolved into a typed plan.
//!
//! A loader makes a tree of [`Node`]s, each with its file and line: [`Documents::from_yaml`] here,
//! the Lua loader in its own crate. A file may contain a sweep: [`Documents::cells`] returns each
//! of its scenarios. [`Document::set`] and [`dotted_flags`] apply the command line's overrides.
//! [`Document::check`] validates the tree against the schema and against the rules that a schema
//! cannot express, and returns a [`Scenario`] with every default filled in, or all [`Problems`],
//! each with its path, line and nearest valid name.
//!
//! The types of the plan are the single source: their comments are the user documentation,
//! [`json_schema`] is derived from them, [`Document::check`] validates against that schema, and
//! [`lua_annotations`] is generated from it.
//!
//! This crate reads no files, no environment and no clock.
#![forbid(unsafe_code)]

mod annotations;
mod check;
mod document;
mod documents;
mod error;
mod expand;
mod flags;
mod include;
mod path;
mod plan;
mod problem;
mod schema;
mod secret_keys;
mod text;
mod tree;
mod word;
mod yaml;

pub use annotations::lua_annotations;
pub use check::check_value;
pub use document::Document;
pub use documents::{Documents, SweepCell};
pub use error::ScenarioError;
pub use expand::Setting;
pub use flags::{Split, dotted_flags};
pub use include::ReadFile;
pub use plan::{
    ArrivalPlugin, ArrivalProcess, Balance, Cell, Certificate, Channel, Client, ClientKind, ComponentUse,
    Concurrent, Connections, DecodeWindowConfig, Evaluator, FixedSchedule, Flavor, FluidityDeadlines,
    Generator, Grace, HttpVersion, InstanceChoice, IntervalGenerator, Limits, LuaArrival, LuaColumn,
    LuaGuarantees, LuaKeep, LuaKind, LuaLayout, LuaTree, MaxObserved, MinActiveRequests, NamedClient,
    OnBadRow, Performance, PluginCallBudget, PluginLimits, PrefixCacheKeys, PromptLength, QuantityConfig,
    Rate, RowCheck, Runtime, Salt, SaltName, Scenario, Secret, SessionHeaderSet, SessionHeaders, Shuffle,
    SimulatorThresholds, Slo, SloMap, SloMetric, TargetServer, Template, TemplateAnswer, TemplateFraming,
    TextChannel, TimeUnit, Tls, ToolConfig, Trace, TraceKeys, TraceRecorder, Traffic, TrapChoice,
    WindowSelection,
};
pub use problem::{Problem, Problems};
pub use schema::{Shipped, file_schema, json_schema};
pub use secret_keys::{body_without_secrets, is_secret_key, is_secret_path, secret_texts, without_secrets};
pub use tree::{Node, Place, UNPLACED_FUNCTION, Value, function_place, function_text};
