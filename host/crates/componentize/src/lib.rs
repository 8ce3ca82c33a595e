//! Core modules to components: adapter, manifest, debug information. Pure.
//!
//! [`componentize`] takes the output of a language's toolchain. A core module that states its world
//! becomes a component; if it imports WASI preview 1, as C programs do, an adapter to WASI 0.2 is
//! linked. A component stays one. Of the debug information, only the names of functions and the
//! lines of the author's files are kept, because a trap report shows nothing else.
//!
//! The separate file of [`DebugInfo::Split`] is the whole component with its debug information:
//! [`without_debug_info`] of it is the component without it, byte for byte.
#![forbid(unsafe_code)]

mod encode;
mod error;
mod lines;
mod outline;
mod sections;
mod slim;

pub use encode::{BuiltComponent, ComponentOptions, DebugInfo, componentize};
pub use error::ComponentizeError;
pub use outline::ComponentOutline;
pub use sections::{WasmForm, wasm_form, without_debug_info};
