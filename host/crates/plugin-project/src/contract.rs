//! The contract's files, and the worlds of plugins, for tools that read WIT.

use std::fmt::Write;
use std::path::Path;

use veeksha_manifest::PluginKind;

use crate::error::ProjectError;

/// The name of the world that [`write_world`] writes.
pub(crate) const WORLD: &str = "built-plugin";

/// The released contract that projects are built for, without its worlds.
macro_rules! contract_files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../wit/0.2.0/", $name)))),*]
    };
}

const FILES: [(&str, &str); 12] = contract_files![
    "agent-generator.wit",
    "arrival-process.wit",
    "endpoint-codec.wit",
    "host.wit",
    "metric.wit",
    "records.wit",
    "request-check.wit",
    "results.wit",
    "session-generator.wit",
    "slo-check.wit",
    "trace-flavor.wit",
    "types.wit",
];

/// Writes the contract into a folder, with a world that exports these kinds and imports these
/// interfaces.
///
/// Some languages import everything that their world names, whether the plugin calls it or not. A
/// world with all capabilities would make every plugin ask for files.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn write_world(folder: &Path, kinds: &[PluginKind], imports: &[&str]) -> Result<(), ProjectError> {
    let world = world_text(kinds, imports);
    let files = FILES.into_iter().chain([("built-plugin.wit", world.as_str())]);
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| ProjectError::Unwritable {
            path,
            why: error.to_string(),
        })?;
    }
    Ok(())
}

fn world_text(kinds: &[PluginKind], imports: &[&str]) -> String {
    let mut text = format!("package veeksha:plugin@0.2.0;\n\nworld {WORLD} {{\n");
    let results = kinds.contains(&PluginKind::SloCheck).then_some("results");
    // Writing to a string does not fail.
    for import in imports.iter().copied().chain(results) {
        let _ = writeln!(text, "  import {import};");
    }
    for kind in kinds {
        let _ = writeln!(text, "  export {kind};");
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_names_what_the_plugin_uses_only() {
        assert_eq!(
            world_text(&[PluginKind::Metric, PluginKind::SloCheck], &["log"]),
            "package veeksha:plugin@0.2.0;\n\nworld built-plugin {\n  import log;\n  import results;\n  \
             export metric;\n  export slo-check;\n}\n"
        );
    }

    /// A new interface of the contract must be listed here.
    #[test]
    fn all_files_of_the_contract_but_its_worlds_are_included() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../wit/0.2.0");
        let mut expected: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "worlds.wit")
            .collect();
        expected.sort();
        assert_eq!(FILES.map(|(name, _)| name.to_owned()).to_vec(), expected);
    }
}
