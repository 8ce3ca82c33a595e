//! The plugin engine: WebAssembly components of the contract `veeksha:plugin@0.2.0`.
//!
//! [`PluginEngine::load`] validates the bytes of a component, compiles it (once: the compiled form
//! is cached on disk, sealed with a key of the user) and returns a [`PluginComponent`].
//! [`PluginComponent::workload`] and [`PluginComponent::flavor`] bind a configuration and
//! [`Grants`] to it; each plugin thread then opens a separate instance. [`PluginComponent::codec`]
//! returns a decoder of a server's answers, with as many instances as threads call it.
//! [`PluginComponent::arrivals`] returns the process that decides when sessions
//! arrive. [`PluginComponent::metric`], [`PluginComponent::request_check`] and
//! [`PluginComponent::slo_check`] return the metrics and checks of a run.
//!
//! A plugin can reach the interfaces of the contract and nothing else. WASI is linked, because most
//! toolchains import it whether they use it or not, but every part of it is a deterministic
//! stand-in. [`EngineLimits`] bound the resources of a plugin: time per call, memory, bytes
//! returned, stack, log lines, standard error. A plugin that traps invalidates only its own store.
//!
//! This is the only crate that uses wasmtime.
#![deny(unsafe_code)]

mod agent_generator;
mod agent_history;
mod agent_store;
mod arrival_process;
mod bindings;
mod bound;
mod cache;
mod call_size;
mod capabilities;
mod compile;
mod completions;
mod convert;
mod definitions;
mod describe;
mod discovery;
mod endpoint_codec;
mod endpoint_shape;
mod engine;
mod granted_folder;
mod grants;
mod guest_log;
mod guest_resources;
mod host;
mod host_call;
mod host_refusal;
mod host_time;
mod instance;
mod instance_pool;
mod interface;
mod limits;
mod linker;
mod loaded;
mod memory;
mod metric;
mod output_size;
mod parts;
mod plugin;
mod refused_access;
mod request_check;
mod resource;
mod results;
mod ring;
mod rows;
mod samples;
mod session_generator;
mod slo_check;
mod state;
mod text;
mod ticker;
mod trace_flavor;
mod trap;
mod validate;
mod wasi;
mod workload;

pub use compile::CompileProgress;
pub use describe::Descriptor;
pub use discovery::Kinds;
pub use endpoint_codec::PluginEndpoint;
pub use engine::{PluginEngine, WasmError};
pub use granted_folder::GrantedFolder;
pub use grants::{Grants, LogLevel, LogLine, LogSink, NoLog, PluginTokenizer};
pub use limits::{CallBudget, EngineLimits, EngineOptions};
pub use plugin::PluginComponent;
