//! The form of a WebAssembly file, and the modules inside a component.

use std::borrow::Cow;

use wasm_encoder::{Component, Module, RawSection};
use wasmparser::{Encoding, Parser, Payload};

use crate::error::ComponentizeError;

/// The form of a WebAssembly file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WasmForm {
    /// A core module, as compilers write it.
    CoreModule,
    /// A component.
    Component,
}

/// The sections of a component that contain a module or a component.
const NESTED_MODULE: u8 = 1;
const NESTED_COMPONENT: u8 = 4;
/// The depth of components inside components that is searched.
const DEEPEST: usize = 16;

/// Returns the form of a file.
///
/// # Errors
/// If the bytes are neither a core module nor a component.
pub fn wasm_form(bytes: &[u8]) -> Result<WasmForm, ComponentizeError> {
    let start = bytes.trim_ascii_start();
    if start.starts_with(b"(module") || start.starts_with(b"(component") {
        return Err(ComponentizeError::TextForm);
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(ComponentizeError::NotWasm);
    }
    match Parser::new(0).parse_all(bytes).next() {
        Some(Ok(Payload::Version {
            encoding: Encoding::Module,
            ..
        })) => Ok(WasmForm::CoreModule),
        Some(Ok(Payload::Version {
            encoding: Encoding::Component,
            ..
        })) => Ok(WasmForm::Component),
        Some(Err(error)) => Err(damaged(&error)),
        _ => Err(ComponentizeError::NotWasm),
    }
}

/// Returns a component without debug information. The names of functions stay.
///
/// # Errors
/// If the bytes are damaged.
pub fn without_debug_info(bytes: &[u8]) -> Result<Vec<u8>, ComponentizeError> {
    let strip = |module: &[u8]| {
        let mut stripped = Module::new();
        for section in sections(module)? {
            if !section.custom_name.is_some_and(is_debug_section) {
                stripped.section(&section.raw());
            }
        }
        Ok(stripped.finish())
    };
    match wasm_form(bytes)? {
        WasmForm::CoreModule => strip(bytes),
        WasmForm::Component => map_modules(bytes, &strip, 0),
    }
}

pub(crate) fn is_debug_section(name: &str) -> bool {
    name.starts_with(".debug_")
}

/// A function that returns another form of a core module.
pub(crate) type ModuleMap<'a> = &'a dyn Fn(&[u8]) -> Result<Vec<u8>, ComponentizeError>;

/// Applies a function to every core module in a component, and in components inside it.
pub(crate) fn map_modules(
    bytes: &[u8],
    map: ModuleMap<'_>,
    depth: usize,
) -> Result<Vec<u8>, ComponentizeError> {
    if depth > DEEPEST {
        return Err(ComponentizeError::Damaged(format!(
            "more than {DEEPEST} components inside each other"
        )));
    }
    let mut mapped = Component::new();
    for section in sections(bytes)? {
        let data = match section.id {
            NESTED_MODULE => Cow::Owned(map(section.data)?),
            NESTED_COMPONENT => Cow::Owned(map_modules(section.data, map, depth + 1)?),
            _ => Cow::Borrowed(section.data),
        };
        mapped.section(&RawSection {
            id: section.id,
            data: &data,
        });
    }
    Ok(mapped.finish())
}

/// A section of the outermost module or component.
pub(crate) struct OuterSection<'a> {
    pub(crate) id: u8,
    pub(crate) data: &'a [u8],
    /// The name, if it is a custom section.
    pub(crate) custom_name: Option<&'a str>,
    /// The content after the name, if it is a custom section.
    pub(crate) custom_data: &'a [u8],
}

impl OuterSection<'_> {
    pub(crate) fn raw(&self) -> RawSection<'_> {
        RawSection {
            id: self.id,
            data: self.data,
        }
    }
}

/// Returns the sections of a module or component, without those of what it contains.
pub(crate) fn sections(bytes: &[u8]) -> Result<Vec<OuterSection<'_>>, ComponentizeError> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| damaged(&error))?;
        match &payload {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
        // The section that contains a module is reported before the module's own sections.
        let is_outer = depth == 1;
        if let Some((id, range)) = payload.as_section().filter(|_| is_outer) {
            let data = bytes
                .get(range)
                .ok_or_else(|| ComponentizeError::Damaged("a section ends after the file".into()))?;
            let (custom_name, custom_data) = match &payload {
                Payload::CustomSection(section) => (Some(section.name()), section.data()),
                _ => (None, &[][..]),
            };
            found.push(OuterSection {
                id,
                data,
                custom_name,
                custom_data,
            });
        }
    }
    Ok(found)
}

pub(crate) fn damaged(error: &wasmparser::BinaryReaderError) -> ComponentizeError {
    ComponentizeError::Damaged(format!("{} at byte {}", error.message(), error.offset()))
}
