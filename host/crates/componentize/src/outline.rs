//! The outline of a component: names of its imports and exports, sections, debug information. Read
//! from the bytes; nothing is compiled or executed.

use veeksha_manifest::PluginKind;
use wasmparser::{Parser, Payload};

use crate::error::ComponentizeError;
use crate::sections::{damaged, is_debug_section};

/// The package of the contract.
const PACKAGE: &str = "veeksha:plugin/";

/// The outline of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentOutline {
    /// Names of the imports of the outermost component, in the order of the file.
    pub imports: Vec<String>,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// True if a module in it has DWARF debug information.
    pub has_debug_info: bool,
}

impl ComponentOutline {
    /// Reads the outline of a component or a core module.
    ///
    /// # Errors
    /// If the bytes are damaged.
    pub fn read(bytes: &[u8]) -> Result<Self, ComponentizeError> {
        let damaged = |error| damaged(&error);
        let mut outline = ComponentOutline::default();
        let mut depth = 0_u32;
        let parser = Parser::new(0);
        for payload in parser.parse_all(bytes) {
            match payload.map_err(damaged)? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::CustomSection(section) if is_debug_section(section.name()) => {
                    outline.has_debug_info = true;
                }
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        outline
                            .imports
                            .push(import.map_err(damaged)?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        outline
                            .exports
                            .push(export.map_err(damaged)?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(outline)
    }

    /// Returns the versions of the contract that imports and exports name, each once.
    pub fn contract_versions(&self) -> Vec<String> {
        let names = self.exports.iter().chain(&self.imports);
        let mut versions: Vec<String> = names
            .filter_map(|name| Some(name.strip_prefix(PACKAGE)?.split_once('@')?.1.to_owned()))
            .collect();
        versions.sort();
        versions.dedup();
        versions
    }

    /// Returns the interfaces of the contract among the exports, without package and version.
    pub fn exported_interfaces(&self) -> impl Iterator<Item = &str> {
        self.exports
            .iter()
            .filter_map(|name| Some(name.strip_prefix(PACKAGE)?.split('@').next().unwrap_or_default()))
    }

    /// Returns the kinds of plugin that the component exports, of any version of the contract.
    pub fn kinds(&self) -> Vec<PluginKind> {
        let interfaces: Vec<&str> = self.exported_interfaces().collect();
        let kinds = PluginKind::ALL.into_iter();
        kinds.filter(|kind| interfaces.contains(&kind.name())).collect()
    }
}
