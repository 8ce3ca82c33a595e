//! The eight interfaces that a component may export, and the functions of each.

use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use crate::bindings::types::Descriptor;
use crate::bindings::{
    agent_generator, arrival_process, endpoint_codec, metric, request_check, session_generator, slo_check,
    trace_flavor,
};
use crate::discovery::Kinds;
use crate::state::HostState;

/// The functions of one exported interface.
pub(crate) trait Interface: Sized {
    /// The interface's name in the contract.
    const NAME: &'static str;

    /// Takes the functions out of an instance.
    fn load(exported: &Exported, store: &mut Store<HostState>, instance: &Instance)
    -> wasmtime::Result<Self>;

    /// Calls `describe`, which every interface has.
    fn describe(&self, store: &mut Store<HostState>) -> wasmtime::Result<Descriptor>;
}

macro_rules! interfaces {
    ($($interface:ident: $name:literal,)*) => {
        /// Locations of a component's exports, for each interface that it exports.
        pub(crate) struct Exported {
            $(pub(crate) $interface: Option<$interface::GuestIndices>,)*
        }

        impl Exported {
            /// Finds the exports of a component and checks them against the contract's types.
            pub(crate) fn find(kinds: Kinds, pre: &InstancePre<HostState>) -> wasmtime::Result<Self> {
                Ok(Exported {
                    $($interface: kinds
                        .$interface
                        .then(|| $interface::GuestIndices::new(pre))
                        .transpose()?,)*
                })
            }
        }

        $(impl Interface for $interface::Guest {
            const NAME: &'static str = $name;

            fn load(
                exported: &Exported,
                store: &mut Store<HostState>,
                instance: &Instance,
            ) -> wasmtime::Result<Self> {
                match &exported.$interface {
                    Some(indices) => indices.load(store, instance),
                    None => wasmtime::bail!("the component does not export `{}`", Self::NAME),
                }
            }

            fn describe(&self, store: &mut Store<HostState>) -> wasmtime::Result<Descriptor> {
                self.call_describe(store)
            }
        })*
    };
}

interfaces! {
    session_generator: "session-generator",
    agent_generator: "agent-generator",
    arrival_process: "arrival-process",
    trace_flavor: "trace-flavor",
    endpoint_codec: "endpoint-codec",
    metric: "metric",
    request_check: "request-check",
    slo_check: "slo-check",
}
