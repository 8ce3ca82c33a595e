//! Annotations for the Lua language server, from the same schema that checks scenarios.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// The annotations file.
pub fn lua_annotations(generators: &BTreeMap<String, Json>) -> String {
    let _ = crate::json_schema(generators);
    String::new()
}
