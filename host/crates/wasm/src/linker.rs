//! Linker of components: the contract's capabilities, and stand-ins for WASI.

use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;

use crate::bindings::Everything;
use crate::refused_access;
use crate::state::HostState;
use crate::wasi::{ClockView, StandInClocks};

/// Returns a linker with all functions that a component may import.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<HostState>> {
    let mut linker = Linker::new(engine);
    link_wasi(&mut linker)?;
    Everything::add_to_linker::<HostState, HasSelf<HostState>>(&mut linker, |state| state)?;
    Ok(linker)
}

/// Links all of WASI 0.2, with a deterministic monotonic clock in place of the real one, and with
/// notes of what a guest asks for in vain.
fn link_wasi(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_sync(linker)?;
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<HostState, StandInClocks>(linker, |state| ClockView {
        clock: &mut state.clock,
        table: &mut state.table,
    })?;
    refused_access::link(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}
