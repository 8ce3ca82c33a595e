//! The trace flavor `inputs_json`: AIPerf's `inputs.json`, whole request bodies, sent again as they
//! are.
#![forbid(unsafe_code)]

mod config;
mod inputs_json;
mod payload;

#[cfg(test)]
mod schema;

pub use inputs_json::InputsJson;

veeksha_plugin::export_trace_flavor!(InputsJson);
