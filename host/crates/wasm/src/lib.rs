//! The plugin engine: WebAssembly components of the contract `veeksha:plugin@0.1.0` as workloads.
//!
//! [`PluginEngine::load`] takes the bytes of a component, says in plain words why it cannot be one of ours, compiles it
//! (once: the compiled form is cached on disk, sealed with a key of the user's) and gives a [`Plugin`].
//! [`Plugin::workload`] and [`Plugin::flavor`] bind a configuration and [`Grants`] to it; each plugin thread then opens an
//! instance of its own. [`Plugin::codec`] gives what reads a server's answers; it keeps as many instances as threads call it.
//! [`Plugin::metric`], [`Plugin::request_check`] and [`Plugin::slo_check`] give what measures and judges a run.
//!
//! What a plugin can reach is what the contract names, and nothing else: WASI is linked, because most toolchains
//! import it whether they use it or not, but every part of it is a deterministic stand-in. What a plugin can use up is
//! bounded by [`Limits`]: time per call, memory, bytes returned, stack, log lines, standard error. A plugin that stops on
//! a bug takes only its own store with it.
//!
//! This is the only crate that knows wasmtime.
#![deny(unsafe_code)]

mod admit;
mod agents;
mod answering;
mod bindings;
mod cache;
mod capabilities;
mod codec;
mod collector;
mod completions;
mod convert;
mod definitions;
mod describe;
mod discovery;
mod endpoint;
mod engine;
mod flavor;
mod grants;
mod instance;
mod judge;
mod limits;
mod loaded;
mod memory;
mod opened;
mod parts;
mod planned;
mod plugin;
mod replay;
mod results;
mod ring;
mod rows;
mod samples;
mod shard;
mod state;
mod text;
mod ticker;
mod trap;
mod turns;
mod verdicts;
mod wasi;
mod workload;

pub use codec::PluginEndpoint;
pub use describe::Descriptor;
pub use discovery::Kinds;
pub use engine::{PluginEngine, WasmError};
pub use grants::{Grants, LogLevel, LogSink, NoLog, TokenCounter};
pub use limits::{EngineOptions, Limits};
pub use plugin::Plugin;
