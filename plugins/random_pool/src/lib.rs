//! The trace flavor `random_pool`: AIPerf's pools. Each session draws one row of each file of a
//! folder and sends them as one request.
#![forbid(unsafe_code)]

mod config;
mod random_pool;

#[cfg(test)]
mod schema;

pub use random_pool::RandomPool;

veeksha_plugin::export_trace_flavor!(RandomPool);
