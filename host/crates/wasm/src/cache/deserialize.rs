//! The one unsafe place of the project: machine code from a file becomes a component.

use wasmtime::Engine;
use wasmtime::component::Component;

use super::seal::Opened;

/// A component from bytes whose seal was right. `None`, if the engine refuses them (another version
/// or processor).
#[expect(
    unsafe_code,
    reason = "wasmtime cannot check machine code; the seal proves that it is our own compiler's"
)]
pub(super) fn component(engine: &Engine, opened: &Opened) -> Option<Component> {
    // SAFETY: the bytes must be what `Component::serialize` gave, unaltered. An `Opened` exists
    // only if the keyed hash over file name and content was right, and the key is a secret of this
    // user that is used for nothing else: so these bytes were sealed by this code, which seals only
    // what `Component::serialize` gave under a name ending in `.cwasm`. They were read once into
    // memory that nobody else can write, and are used from there (a mapped file could change after
    // the check).
    unsafe { Component::deserialize(engine, opened.bytes()) }.ok()
}
