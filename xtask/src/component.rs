//! Turns a core module into a component, and leaves out what no report shows.

use std::collections::HashMap;

use anyhow::{Context, Result};
use wasm_encoder::{CustomSection, Module, NameMap, NameSection, RawSection};
use wasmparser::{CustomSectionReader, KnownCustom, Name, Parser, Payload};
use wit_component::ComponentEncoder;

use crate::lines;

/// What a report shows of a function's name.
const NAME: usize = 200;

/// The component made from a core module that carries its world in a custom section, as every
/// `wit-bindgen` does. Of the module's debug information, the component keeps what
/// trap reports need: the names of functions, and the lines of the author's files.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default()
        .module(&slim(module)?)
        .context("the module carries no world: was it built with wit-bindgen?")?
        .validate(true)
        .encode()
        .context("the module does not fit its world")
}

/// The module with the same code, shorter line tables and shorter names, each where it was.
fn slim(module: &[u8]) -> Result<Vec<u8>> {
    let payloads: Vec<Payload<'_>> = Parser::new(0)
        .parse_all(module)
        .collect::<Result<_, _>>()
        .context("the module is damaged")?;
    let debug: HashMap<&str, &[u8]> = payloads
        .iter()
        .filter_map(|payload| match payload {
            Payload::CustomSection(section) if is_debug(section) => Some((section.name(), section.data())),
            _ => None,
        })
        .collect();
    let mut lines = Some(lines::shorten(|name| {
        debug.get(name).copied().unwrap_or_default()
    })?);
    let mut slim = Module::new();
    for payload in &payloads {
        match payload {
            Payload::CustomSection(section) if is_debug(section) => {
                for (name, data) in lines.take().unwrap_or_default() {
                    custom(&mut slim, name, &data);
                }
            }
            Payload::CustomSection(section) => match section.as_known() {
                KnownCustom::Name(reader) => {
                    slim.section(&short_names(reader)?);
                }
                _ => custom(&mut slim, section.name(), section.data()),
            },
            other => {
                if let Some((id, range)) = other.as_section() {
                    let data = module.get(range).context("the module is damaged")?;
                    slim.section(&RawSection { id, data });
                }
            }
        }
    }
    Ok(slim.finish())
}

fn is_debug(section: &CustomSectionReader<'_>) -> bool {
    section.name().starts_with(".debug_")
}

fn custom(module: &mut Module, name: &str, data: &[u8]) {
    module.section(&CustomSection {
        name: name.into(),
        data: data.into(),
    });
}

/// Returns the names of the functions as a report shows them, without those of locals and globals.
fn short_names(reader: wasmparser::NameSectionReader<'_>) -> Result<NameSection> {
    let mut functions = NameMap::new();
    for subsection in reader {
        if let Name::Function(map) = subsection.context("the module's names are damaged")? {
            for naming in map {
                let naming = naming.context("the module's names are damaged")?;
                let name = format!("{:#}", rustc_demangle::demangle(naming.name));
                let short: String = name.chars().take(NAME).collect();
                functions.append(naming.index, &short);
            }
        }
    }
    let mut section = NameSection::new();
    section.functions(&functions);
    Ok(section)
}
