//! Tools for the authors of plugins: plugins outside of a run.
//!
//! A [`PluginFile`] is a component, a core module, a Lua file or the folder of a project.
//! [`inspect`] describes one.
#![forbid(unsafe_code)]

mod bench;
mod check;
pub mod conform;
mod contract;
mod form;
mod inspect;
mod json_layout;
mod lua_plugin;
mod opened;
pub mod play;
mod plugin_file;
mod preview;
mod refusal;
mod session_graph;
pub mod table_test;

pub use bench::{BenchValue, PluginBench, bench};
pub use check::{LinkCheck, check};
pub use form::FileForm;
pub use inspect::{Inspection, inspect};
pub use opened::{OpenError, OpenedPlugin, PluginSettings};
pub use plugin_file::PluginFile;
pub use preview::{Preview, PreviewOptions, preview, scenario_sessions};
pub use session_graph::session_graph;
