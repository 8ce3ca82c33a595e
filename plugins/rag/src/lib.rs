//! The trace flavor `rag`: recorded questions about documents. Only the most frequent documents are
//! kept, and each is sent once before the run begins, so that the server has it in its cache.
#![forbid(unsafe_code)]

mod config;
mod rag;

#[cfg(test)]
mod schema;

pub use rag::Rag;

veeksha_plugin::export_trace_flavor!(Rag);
