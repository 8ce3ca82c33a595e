//! Bindings that `wit-bindgen` generates from `wit/0.2.0`: the shared vocabulary once, and each
//! kind of plugin on top of it.
//!
//! The worlds are bound here and not in each plugin, so that a plugin needs neither the `.wit`
//! files nor the macro. A component still imports only what its code calls: the linker drops the
//! rest.
#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]

pub mod capabilities {
    wit_bindgen::generate!({
        world: "capabilities",
        path: "wit",
        generate_all,
        generate_unused_types: true,
        additional_derives: [PartialEq],
        pub_export_macro: true,
    });
}

/// Binds the world of a kind of plugin on top of the capabilities; what else it shares with another
/// kind is in braces.
macro_rules! world {
    ($kind:ident: $world:tt, derives $derives:tt $(, sharing { $($shared:tt)* })?) => {
        pub mod $kind {
            wit_bindgen::generate!({
                world: $world,
                path: "wit",
                with: {
                    "veeksha:plugin/types@0.2.0": crate::bindings::capabilities::veeksha::plugin::types,
                    "veeksha:plugin/log@0.2.0": crate::bindings::capabilities::veeksha::plugin::log,
                    "veeksha:plugin/random@0.2.0": crate::bindings::capabilities::veeksha::plugin::random,
                    "veeksha:plugin/tokens@0.2.0": crate::bindings::capabilities::veeksha::plugin::tokens,
                    "veeksha:plugin/blobs@0.2.0": crate::bindings::capabilities::veeksha::plugin::blobs,
                    $($($shared)*)?
                },
                generate_all,
                additional_derives: $derives,
                pub_export_macro: true,
            });
        }
    };
}

world!(session_generator: "session-generator-plugin", derives [PartialEq]);
world!(agent_generator: "agent-generator-plugin", derives [PartialEq]);
world!(arrival_process: "arrival-process-plugin", derives [PartialEq]);
world!(trace_flavor: "trace-flavor-plugin", derives [PartialEq]);
world!(endpoint_codec: "endpoint-codec-plugin", derives [PartialEq]);
world!(metric: "metric-plugin", derives [PartialEq]);
world!(request_check: "request-check-plugin", derives [PartialEq], sharing {
    "veeksha:plugin/records@0.2.0": crate::bindings::metric::veeksha::plugin::records,
});
world!(slo_check: "slo-check-plugin", derives [PartialEq]);
