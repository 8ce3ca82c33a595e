//! The only unsafe code of the project: deserialization of machine code from a file.

use wasmtime::Engine;
use wasmtime::component::Component;

use super::seal::Opened;

/// Deserializes a component from bytes with a valid seal; `None` if the engine refuses them
/// (another version or processor).
#[expect(
    unsafe_code,
    reason = "wasmtime cannot check machine code; the seal proves that it is our own compiler's"
)]
pub(super) fn component(engine: &Engine, opened: &Opened) -> Option<Component> {
    // SAFETY: the bytes must be the unaltered output of `Component::serialize`. An `Opened` exists
    // only if the keyed hash over file name and content was valid, and the key is a secret of this
    // user that has no other purpose: so these bytes were sealed by this code, which seals only
    // output of `Component::serialize` under a name ending in `.cwasm`. They were read once into
    // memory that no other process can write, and are used from there (a mapped file could change
    // after the check).
    unsafe { Component::deserialize(engine, opened.bytes()) }.ok()
}
