//! A compiled, linked and type-checked component.

use std::sync::{Arc, OnceLock};

use wasmtime::component::{Component, InstancePre};

use crate::describe::Descriptor;
use crate::discovery::Discovered;
use crate::host::EngineState;
use crate::interface::Exported;
use crate::state::HostState;

/// Origin of a component's machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeOrigin {
    Cache,
    Compiler,
}

/// A component that can be instantiated.
pub(crate) struct LoadedComponent {
    pub(crate) host: Arc<EngineState>,
    pub(crate) name: Arc<str>,
    /// BLAKE3 of the component, in hex.
    pub(crate) digest: String,
    pub(crate) discovered: Discovered,
    pub(crate) pre: InstancePre<HostState>,
    pub(crate) exported: Exported,
    pub(crate) origin: CodeOrigin,
    /// The result of `describe`, after the first call.
    pub(crate) descriptor: OnceLock<Descriptor>,
}

impl LoadedComponent {
    /// Links a component. Its exports are checked against the contract's types here.
    pub(crate) fn new(
        host: Arc<EngineState>,
        name: &str,
        digest: String,
        discovered: Discovered,
        origin: CodeOrigin,
        component: Component,
    ) -> wasmtime::Result<Self> {
        let pre = host.linker.instantiate_pre(&component)?;
        let exported = Exported::find(discovered.kinds, &pre)?;
        Ok(LoadedComponent {
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
