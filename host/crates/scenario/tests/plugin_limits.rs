//! The table of limits in `docs/plugins.md`.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use serde_json::Value;
use veeksha_scenario::PluginLimits;

const BEGIN: &str = "<!-- generated from PluginLimits: UPDATE_DOCS=1 cargo test -p veeksha-scenario -->\n";
const END: &str = "<!-- end of PluginLimits -->";

/// Checks the table. `UPDATE_DOCS=1` regenerates it.
#[test]
fn the_documented_limits_are_those_of_the_scenario() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/plugins.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the table begins with its mark");
    let (found, after) = rest.split_once(END).expect("the table ends with its mark");
    let expected = table();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, expected,
        "docs/plugins.md is out of date: UPDATE_DOCS=1 cargo test -p veeksha-scenario"
    );
}

fn table() -> String {
    let schema = schemars::schema_for!(PluginLimits).to_value();
    let defaults = serde_json::to_value(PluginLimits::default()).unwrap();
    let mut table = "\n| key | default | limit |\n|---|---|---|\n".to_owned();
    for (key, property) in schema["properties"].as_object().unwrap() {
        let description = property["description"].as_str().unwrap().replace('\n', " ");
        let default = match &defaults[key] {
            Value::String(text) => text.clone(),
            number => number.to_string(),
        };
        table += &format!(
            "| `{key}` | {} | {description} |\n",
            default.trim_end_matches(".0")
        );
    }
    table + "\n"
}
