//! The committed annotations are those that the schema gives. `UPDATE_ANNOTATIONS=1 cargo test -p veeksha-scenario` writes
//! them anew.

use std::collections::BTreeMap;
use std::path::Path;

use veeksha_scenario::lua_annotations;

#[test]
fn the_committed_annotations_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let schema = std::fs::read_to_string(root.join("plugins/synthetic/schema.json")).unwrap();
    let generators = BTreeMap::from([("synthetic".to_owned(), serde_json::from_str(&schema).unwrap())]);
    let expected = lua_annotations(&generators);
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
