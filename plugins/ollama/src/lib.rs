//! The endpoint codec `ollama`: Ollama's own API, `/api/chat` and `/api/generate`, whose answers
//! are lines of JSON.
#![forbid(unsafe_code)]

mod answer;
mod config;
mod endpoint;

#[cfg(test)]
mod schema;

pub use endpoint::Ollama;

veeksha_plugin::export_endpoint_codec!(Ollama);
