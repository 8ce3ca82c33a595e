//! Tools for the authors of plugins: plugins outside of a run.
//!
//! A [`PluginFile`] is a component, a core module, a Lua file or the folder of a project.
//! [`inspect`] describes one.
#![forbid(unsafe_code)]

mod form;
mod inspect;
mod plugin_file;

pub use form::FileForm;
pub use inspect::{Inspection, inspect};
pub use plugin_file::PluginFile;
