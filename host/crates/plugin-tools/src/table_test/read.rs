//! Reading of test files.

use std::path::Path;

use veeksha_app::CommandFailure;
use veeksha_lua::{LuaLimits, LuaScenario};
use veeksha_manifest::toml_to_json;
use veeksha_scenario::{Document, Node, Problems};

use super::format::TestFile;

/// Reads a test file in TOML or Lua.
///
/// # Errors
/// Everything that is wrong with it, with the nearest names.
pub(crate) fn read(path: &Path) -> Result<TestFile, CommandFailure> {
    let shown = path.display();
    let is_lua = path.extension().is_some_and(|extension| extension == "lua");
    let node = if is_lua {
        let lua = LuaScenario::load(path, LuaLimits::default()).map_err(CommandFailure::usage)?;
        lua.root().clone()
    } else {
        let text = std::fs::read_to_string(path)
            .map_err(|error| CommandFailure::usage(format!("cannot read {shown}: {error}")))?;
        let json = toml_to_json(&text).map_err(|error| CommandFailure::usage(format!("{shown}: {error}")))?;
        let document = Document::from_yaml(&json.to_string(), &shown.to_string());
        let mut root = document.map_err(CommandFailure::internal)?.root;
        // Positions in the intermediate JSON are not those of the file.
        remove_places(&mut root);
        root
    };
    decode(&node).map_err(|failure| CommandFailure {
        message: format!("{shown}: {}", failure.message),
        ..failure
    })
}

fn decode(node: &Node) -> Result<TestFile, CommandFailure> {
    let schema = schemars::schema_for!(TestFile).to_value();
    let problems = veeksha_scenario::check_value(&schema, node, "");
    if !problems.is_empty() {
        return Err(CommandFailure::usage(Problems::from(problems)));
    }
    serde_json::from_value(node.to_json()).map_err(CommandFailure::usage)
}

fn remove_places(node: &mut Node) {
    use veeksha_scenario::Value;
    node.place = None;
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(remove_places),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, node)| remove_places(node)),
        _ => {}
    }
}
