//! The trace flavor `shared_prefix`: conversations whose first prompts are named block by block, so
//! that those which began alike begin alike again, without a word of what was said.
#![forbid(unsafe_code)]

mod config;
mod shared_prefix;

#[cfg(test)]
mod schema;

pub use shared_prefix::SharedPrefix;

veeksha_plugin::export_trace_flavor!(SharedPrefix);
