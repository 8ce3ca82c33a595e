//! Bindings of the contract, generated from `wit/0.2.0`.
//!
//! A later major version of the contract gets a separate module.

wasmtime::component::bindgen!({
    path: "../../../wit/0.2.0",
    world: "everything",
    imports: { default: trappable },
    with: {
        "veeksha:plugin/blobs.blob": crate::guest_resources::OpenBlob,
        "veeksha:plugin/results.results": crate::guest_resources::OpenResults,
    },
});

pub(crate) use exports::veeksha::plugin::agent_generator;
pub(crate) use exports::veeksha::plugin::arrival_process;
pub(crate) use exports::veeksha::plugin::endpoint_codec;
pub(crate) use exports::veeksha::plugin::metric;
pub(crate) use exports::veeksha::plugin::request_check;
pub(crate) use exports::veeksha::plugin::session_generator;
pub(crate) use exports::veeksha::plugin::slo_check;
pub(crate) use exports::veeksha::plugin::trace_flavor;
pub(crate) use veeksha::plugin::{blobs, log, random, records, results, tokens, types};
