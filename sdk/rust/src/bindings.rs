//! What `wit-bindgen` makes of `wit/0.1.0`: the shared vocabulary once, and each kind of plugin on top of it.
//!
//! The worlds are bound here and not in each plugin, so that a plugin needs neither the `.wit` files nor the macro. A
//! component still imports only what its code calls: the linker drops the rest.
#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]

pub mod capabilities {
    wit_bindgen::generate!({
        world: "capabilities",
        path: "../../wit/0.1.0",
        generate_all,
        generate_unused_types: true,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
    });
}

pub mod session_generator {
    wit_bindgen::generate!({
        world: "session-generator-plugin",
        path: "../../wit/0.1.0",
        with: {
            "veeksha:plugin/types@0.1.0": crate::bindings::capabilities::veeksha::plugin::types,
            "veeksha:plugin/log@0.1.0": crate::bindings::capabilities::veeksha::plugin::log,
            "veeksha:plugin/random@0.1.0": crate::bindings::capabilities::veeksha::plugin::random,
            "veeksha:plugin/tokens@0.1.0": crate::bindings::capabilities::veeksha::plugin::tokens,
            "veeksha:plugin/blobs@0.1.0": crate::bindings::capabilities::veeksha::plugin::blobs,
        },
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
    });
}

pub mod agent_generator {
    wit_bindgen::generate!({
        world: "agent-generator-plugin",
        path: "../../wit/0.1.0",
        with: {
            "veeksha:plugin/types@0.1.0": crate::bindings::capabilities::veeksha::plugin::types,
            "veeksha:plugin/log@0.1.0": crate::bindings::capabilities::veeksha::plugin::log,
            "veeksha:plugin/random@0.1.0": crate::bindings::capabilities::veeksha::plugin::random,
            "veeksha:plugin/tokens@0.1.0": crate::bindings::capabilities::veeksha::plugin::tokens,
            "veeksha:plugin/blobs@0.1.0": crate::bindings::capabilities::veeksha::plugin::blobs,
        },
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
    });
}

pub mod trace_flavor {
    wit_bindgen::generate!({
        world: "trace-flavor-plugin",
        path: "../../wit/0.1.0",
        with: {
            "veeksha:plugin/types@0.1.0": crate::bindings::capabilities::veeksha::plugin::types,
            "veeksha:plugin/log@0.1.0": crate::bindings::capabilities::veeksha::plugin::log,
            "veeksha:plugin/random@0.1.0": crate::bindings::capabilities::veeksha::plugin::random,
            "veeksha:plugin/tokens@0.1.0": crate::bindings::capabilities::veeksha::plugin::tokens,
            "veeksha:plugin/blobs@0.1.0": crate::bindings::capabilities::veeksha::plugin::blobs,
        },
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
    });
}

pub mod endpoint_codec {
    wit_bindgen::generate!({
        world: "endpoint-codec-plugin",
        path: "../../wit/0.1.0",
        with: {
            "veeksha:plugin/types@0.1.0": crate::bindings::capabilities::veeksha::plugin::types,
            "veeksha:plugin/log@0.1.0": crate::bindings::capabilities::veeksha::plugin::log,
            "veeksha:plugin/random@0.1.0": crate::bindings::capabilities::veeksha::plugin::random,
            "veeksha:plugin/tokens@0.1.0": crate::bindings::capabilities::veeksha::plugin::tokens,
            "veeksha:plugin/blobs@0.1.0": crate::bindings::capabilities::veeksha::plugin::blobs,
        },
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
    });
}

pub mod metric {
    wit_bindgen::generate!({
        world: "metric-plugin",
        path: "../../wit/0.1.0",
        with: {
            "veeksha:plugin/types@0.1.0": crate::bindings::capabilities::veeksha::plugin::types,
            "veeksha:plugin/log@0.1.0": crate::bindings::capabilities::veeksha::plugin::log,
            "veeksha:plugin/random@0.1.0": crate::bindings::capabilities::veeksha::plugin::random,
            "veeksha:plugin/tokens@0.1.0": crate::bindings::capabilities::veeksha::plugin::tokens,
            "veeksha:plugin/blobs@0.1.0": crate::bindings::capabilities::veeksha::plugin::blobs,
        },
        generate_all,
        additional_derives: [PartialEq],
        pub_export_macro: true,
    });
}

pub mod request_check {
    wit_bindgen::generate!({
        world: "request-check-plugin",
        path: "../../wit/0.1.0",
        with: {
            "veeksha:plugin/types@0.1.0": crate::bindings::capabilities::veeksha::plugin::types,
            "veeksha:plugin/log@0.1.0": crate::bindings::capabilities::veeksha::plugin::log,
            "veeksha:plugin/random@0.1.0": crate::bindings::capabilities::veeksha::plugin::random,
            "veeksha:plugin/tokens@0.1.0": crate::bindings::capabilities::veeksha::plugin::tokens,
            "veeksha:plugin/blobs@0.1.0": crate::bindings::capabilities::veeksha::plugin::blobs,
            "veeksha:plugin/records@0.1.0": crate::bindings::metric::veeksha::plugin::records,
        },
        generate_all,
        additional_derives: [PartialEq],
        pub_export_macro: true,
    });
}

pub mod slo_check {
    wit_bindgen::generate!({
        world: "slo-check-plugin",
        path: "../../wit/0.1.0",
        with: {
            "veeksha:plugin/types@0.1.0": crate::bindings::capabilities::veeksha::plugin::types,
            "veeksha:plugin/log@0.1.0": crate::bindings::capabilities::veeksha::plugin::log,
            "veeksha:plugin/random@0.1.0": crate::bindings::capabilities::veeksha::plugin::random,
            "veeksha:plugin/tokens@0.1.0": crate::bindings::capabilities::veeksha::plugin::tokens,
            "veeksha:plugin/blobs@0.1.0": crate::bindings::capabilities::veeksha::plugin::blobs,
        },
        generate_all,
        additional_derives: [PartialEq],
        pub_export_macro: true,
    });
}
