//! Core modules without the debug information that no report shows.

use std::collections::HashMap;

use wasm_encoder::{CustomSection, Module, NameMap, NameSection};
use wasmparser::{BinaryReader, Name, NameSectionReader};

use crate::error::ComponentizeError;
use crate::lines;
use crate::sections::{OuterSection, damaged, is_debug_section, sections};

/// The maximum number of characters that a report shows of a function's name.
const LONGEST_NAME: usize = 200;

/// Returns the module with the same code, shorter line tables and shorter names, each at its place.
pub(crate) fn slim(module: &[u8]) -> Result<Vec<u8>, ComponentizeError> {
    let sections = sections(module)?;
    let debug: HashMap<&str, &[u8]> = sections
        .iter()
        .filter_map(|section| Some((debug_name(section)?, section.custom_data)))
        .collect();
    // Line tables that cannot be read are kept: they do no harm, and no author can repair them.
    let mut shortened = lines::shorten(|name| debug.get(name).copied().unwrap_or_default()).ok();
    let keeps_debug = shortened.is_none();
    let mut slim = Module::new();
    for section in &sections {
        if debug_name(section).is_some() && !keeps_debug {
            for (name, data) in shortened.take().unwrap_or_default() {
                slim.section(&CustomSection {
                    name: name.into(),
                    data: data.into(),
                });
            }
        } else if section.custom_name == Some("name") {
            slim.section(&short_names(section)?);
        } else {
            slim.section(&section.raw());
        }
    }
    Ok(slim.finish())
}

fn debug_name<'a>(section: &OuterSection<'a>) -> Option<&'a str> {
    section.custom_name.filter(|name| is_debug_section(name))
}

/// Returns the names of the functions as a report shows them, without those of locals and globals.
fn short_names(section: &OuterSection<'_>) -> Result<NameSection, ComponentizeError> {
    let mut functions = NameMap::new();
    let reader = BinaryReader::new(section.custom_data, 0);
    for subsection in NameSectionReader::new(reader) {
        if let Name::Function(map) = subsection.map_err(|error| damaged(&error))? {
            for naming in map {
                let naming = naming.map_err(|error| damaged(&error))?;
                let name = format!("{:#}", rustc_demangle::demangle(naming.name));
                let short: String = name.chars().take(LONGEST_NAME).collect();
                functions.append(naming.index, &short);
            }
        }
    }
    let mut section = NameSection::new();
    section.functions(&functions);
    Ok(section)
}
