//! The project in `docs/plugin-testing.md` passes its tests.

#![expect(clippy::unwrap_used, reason = "a test prints what is wrong by panicking")]

use std::path::Path;

use veeksha_plugin_tools::table_test::{TestOptions, test_project};

/// Returns the blocks of a language in a document.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let begin = format!("```{language}\n");
    let parts = text.split(begin.as_str()).skip(1);
    parts.map(|part| part.split("\n```").next().unwrap()).collect()
}

const MANIFEST: &str = r#"
[plugin]
name = "planner"
version = "0.1.0"
summary = "plans"
kinds = ["agent-generator"]
[build]
language = "lua"
"#;

const SCENARIO: &str = r#"
local plugin = require("src/plugin")
return {
  session_generator = { type = "lua", agent = plugin.agent },
  tools = { search = { time = { type = "lognormal", median = 0.2, sigma = 0.5 } } },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 2 },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
}
"#;

#[test]
fn the_documented_tests_pass() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/plugin-testing.md");
    let document = std::fs::read_to_string(document).unwrap();
    let project = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = project.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("plugin.toml", MANIFEST);
    write("scenario.lua", SCENARIO);
    write("src/plugin.lua", blocks(&document, "lua")[0]);
    let tests = blocks(&document, "toml");
    assert_eq!(tests.len(), 2);
    for (index, test) in tests.iter().enumerate() {
        write(&format!("tests/{index}.toml"), test);
    }
    let mut options = TestOptions {
        update: true,
        ..TestOptions::default()
    };
    let report = test_project(project.path(), &options, &mut |_| {}).unwrap();
    assert_eq!(report.failed(), 0, "{}", report.text());
    assert_eq!(report.outcomes.len(), 3);
    options.update = false;
    let again = test_project(project.path(), &options, &mut |_| {}).unwrap();
    assert_eq!(again.failed(), 0, "{}", again.text());
    assert!(again.outcomes.iter().all(|outcome| !outcome.updated));
}
