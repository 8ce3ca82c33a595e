//! The schema for editors, and the annotations derived from it.

use crate::support::{assert_code, root, stdout, veeksha};

#[test]
fn the_schema_is_json_and_knows_the_shipped_component() {
    let output = veeksha(["schema"]);
    assert_code(&output, 0);
    let schema: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    // A scenario, or a list of scenarios.
    assert_eq!(schema["anyOf"][0]["$ref"], "#/$defs/Scenario");
    assert_eq!(schema["anyOf"][1]["items"]["$ref"], "#/$defs/Scenario");
    for key in [
        "session_generator",
        "traffic_scheduler",
        "client",
        "runtime",
        "evaluators",
        "seed",
        "output_dir",
    ] {
        assert!(
            schema["$defs"]["Scenario"]["properties"][key].is_object(),
            "{key}"
        );
    }
    assert!(stdout(&output).contains("body_length_generator"));
}

#[test]
fn the_annotations_in_the_sdk_are_those_of_this_program() {
    let output = veeksha(["schema", "--format", "lua"]);
    assert_code(&output, 0);
    let shipped = std::fs::read_to_string(root().join("sdk/lua/veeksha.lua")).expect("sdk/lua/veeksha.lua");
    assert_eq!(
        stdout(&output),
        shipped,
        "regenerate it with `veeksha-host schema --format lua > sdk/lua/veeksha.lua`"
    );
}
