//! Checks of the field table of a finished request against everything that cannot derive from it.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    reason = "the repository's files are there, or the test fails"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use veeksha_definitions::{REQUEST_FIELDS, RequestField};

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(in_repository(path)).unwrap()
}

#[test]
fn names_are_unique_in_each_form() {
    let forms: [fn(&RequestField) -> Option<&'static str>; 3] =
        [|field| field.key, |field| field.column, |field| field.name];
    for form in forms {
        let names: Vec<&str> = REQUEST_FIELDS.iter().filter_map(form).collect();
        let unique: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), unique.len(), "{names:?}");
    }
    assert!(REQUEST_FIELDS.iter().all(|field| !field.about.is_empty()));
}

/// The contract packs a batch of requests by columns, so some fields have different names in it.
#[test]
fn contract_has_every_field_of_lua() {
    let contract = read("wit/0.2.0/records.wit");
    let packed = [
        ("error_class", "failures: list<failed-request>"),
        ("error_message", "failures: list<failed-request>"),
        ("usage", "usage-prompt: list<u32>"),
        ("resolve", "connections: list<new-connection>"),
        ("connect", "connections: list<new-connection>"),
        ("tls", "connections: list<new-connection>"),
        ("recorded", "replays: list<replayed-request>"),
        ("labels", "label-names: list<u32>"),
        // Computed by the SDKs from the chunks.
        ("ttfc", "chunk-at: list<nanos>"),
        ("tpot", "chunk-at: list<nanos>"),
        ("end_to_end_latency", "chunk-at: list<nanos>"),
    ];
    let further: Vec<_> = RequestField::further().filter_map(|field| field.name).collect();
    assert!(further.contains(&"response_id"), "{further:?}");
    assert!(contract.contains("    further: list<further-column>"));
    for name in RequestField::names().filter(|name| !further.contains(name)) {
        let known = packed.iter().find(|(packed, _)| *packed == name);
        let declared = known.map_or_else(
            || format!("{}: list<", name.replace('_', "-")),
            |(_, declared)| (*declared).to_owned(),
        );
        assert!(
            contract.contains(&format!("    {declared}")),
            "{name}: `{declared}` is missing"
        );
    }
}

#[test]
fn annotations_have_every_field_of_lua() {
    let annotations = read("host/crates/scenario/src/api.lua");
    for name in RequestField::names() {
        let found = ["", "?"]
            .iter()
            .any(|optional| annotations.contains(&format!("---@field {name}{optional} ")));
        assert!(found, "`---@field {name}` is missing");
    }
}

const BEGIN: &str =
    "<!-- generated from REQUEST_FIELDS: UPDATE_DOCS=1 cargo test -p veeksha-definitions -->\n";
const END: &str = "<!-- end of the generated table -->\n";

/// Checks the table in docs/results.md. `UPDATE_DOCS=1` regenerates it.
#[test]
fn documentation_is_the_table() {
    let mut table = String::from("\n| key | column | in Lua | meaning |\n|---|---|---|---|\n");
    let cell = |name: Option<&str>| name.map_or_else(String::new, |name| format!("`{name}`"));
    for field in REQUEST_FIELDS {
        let (key, column, name) = (cell(field.key), cell(field.column), cell(field.name));
        table.push_str(&format!("| {key} | {column} | {name} | {} |\n", field.about));
    }
    table.push('\n');
    let text = read("docs/results.md");
    let begin = text.find(BEGIN).unwrap() + BEGIN.len();
    let end = text.find(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let updated = format!("{}{table}{}", &text[..begin], &text[end..]);
        fs::write(in_repository("docs/results.md"), updated).unwrap();
        return;
    }
    assert!(
        text[begin..end] == table,
        "docs/results.md is out of date: UPDATE_DOCS=1 cargo test -p veeksha-definitions"
    );
}
