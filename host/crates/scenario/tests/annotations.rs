//! The committed annotations match the schema. `UPDATE_ANNOTATIONS=1 cargo test -p
//! veeksha-scenario` updates them.

use std::path::Path;

use veeksha_scenario::{Shipped, lua_annotations};

#[test]
fn committed_annotations_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut shipped = Shipped::default();
    for entry in std::fs::read_dir(root.join("plugins")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(schema) = std::fs::read_to_string(folder.join("schema.json")) else {
            continue;
        };
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let schema = serde_json::from_str(&schema).unwrap();
        // All but a few shipped components are trace flavors; the program's table has the same
        // kinds.
        let kind = match name.as_str() {
            "synthetic" => &mut shipped.generators,
            // An example that is not shipped.
            "ollama" | "tiered_slo" => continue,
            _ => &mut shipped.flavors,
        };
        kind.insert(name, schema);
    }
    let expected = lua_annotations(&shipped);
    let file = root.join("sdk/lua/veeksha.lua");
    if std::env::var_os("UPDATE_ANNOTATIONS").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == expected,
        "sdk/lua/veeksha.lua is out of date; run `UPDATE_ANNOTATIONS=1 cargo test -p veeksha-scenario --test annotations`"
    );
}
