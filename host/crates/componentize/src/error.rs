//! Errors of making a component.

use veeksha_manifest::section::SectionError;

/// A file that is not a component and cannot become one.
#[derive(Debug, thiserror::Error)]
pub enum ComponentizeError {
    /// The bytes are not WebAssembly.
    #[error("not WebAssembly: the file does not begin with `\\0asm`")]
    NotWasm,
    /// The text form of WebAssembly.
    #[error("WebAssembly in text form: translate it with `wasm-tools parse`")]
    TextForm,
    /// The file is damaged.
    #[error("the file is damaged or cut short: {0}")]
    Damaged(String),
    /// A core module that does not state the interfaces that it exports and imports.
    #[error(
        "the module does not state its world: build it with the SDK of its language, or with bindings of wit-bindgen"
    )]
    NoWorld,
    /// A core module that lacks what its world exports, or imports something else.
    #[error("the module does not fit its world: {0}")]
    Unfit(String),
    /// The manifest cannot be put into the component.
    #[error(transparent)]
    Manifest(#[from] SectionError),
}
