//! A compiled, linked and type-checked component.

use std::sync::{Arc, OnceLock};

use wasmtime::component::{Component, InstancePre};

use crate::describe::Descriptor;
use crate::discovery::Discovered;
use crate::host::Host;
use crate::interface::Exported;
use crate::state::HostState;

/// Origin of a component's machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Cache,
    Compiler,
}

/// A component that can be instantiated.
pub(crate) struct Loaded {
    pub(crate) host: Arc<Host>,
    pub(crate) name: Arc<str>,
    /// BLAKE3 of the component, in hex.
    pub(crate) digest: String,
    pub(crate) discovered: Discovered,
    pub(crate) pre: InstancePre<HostState>,
    pub(crate) exported: Exported,
    pub(crate) origin: Origin,
    /// The result of `describe`, after the first call.
    pub(crate) descriptor: OnceLock<Descriptor>,
}

impl Loaded {
    /// Links a component. Its exports are checked against the contract's types here.
    pub(crate) fn new(
        host: Arc<Host>,
        name: &str,
        digest: String,
        discovered: Discovered,
        origin: Origin,
        component: Component,
    ) -> wasmtime::Result<Self> {
        let pre = host.linker.instantiate_pre(&component)?;
        let exported = Exported::find(discovered.kinds, &pre)?;
        Ok(Loaded {
            host,
            name: name.into(),
            digest,
            discovered,
            pre,
            exported,
            origin,
            descriptor: OnceLock::new(),
        })
    }

    /// Returns true if the component imports any of WASI, so that it can see the stand-ins.
    pub(crate) fn uses_wasi(&self) -> bool {
        self.discovered.imports.iter().any(|import| import == "wasi")
    }
}
