//! Turns a core module into a component.

use anyhow::{Context, Result};
use wit_component::ComponentEncoder;

/// The component made from a core module that carries its world in a custom section, as every `wit-bindgen` does.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default()
        .module(module)
        .context("the module carries no world: was it built with wit-bindgen?")?
        .validate(true)
        .encode()
        .context("the module does not fit its world")
}
