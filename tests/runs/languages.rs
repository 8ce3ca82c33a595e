//! Plugins in each language: the examples of the SDKs are built with the tools of their language,
//! and one agent makes the same sessions in all of them.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::simulated::path;
use crate::skip::skip;
use crate::support::{assert_code, program, root, scenario, stderr, veeksha};

const DECISIONS: &str = "decisions.jsonl";

/// The SDKs in which the shared agent is a component: the folder, and the name by which
/// `VEEKSHA_REQUIRE` requires its tools.
const SDKS: [(&str, &str); 4] = [
    ("rust", "rust-guest"),
    ("python", "python-guest"),
    ("js", "js-guest"),
    ("c", "c-guest"),
];

/// Runs `plugin build` with the tools that the user or `.ci/run` has installed; the folders in
/// which the program looks for them are those of the user, which the other tests replace.
fn build(project: &Path, component: &Path) -> Output {
    let mut command = program();
    command.args(["plugin", "build", path(project), "--output", path(component)]);
    match std::env::var_os("XDG_CACHE_HOME") {
        Some(cache) => command.env("XDG_CACHE_HOME", cache),
        None => command.env_remove("XDG_CACHE_HOME"),
    };
    if let Some(tools) = python_tools() {
        let before = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(tools).chain(std::env::split_paths(&before));
        command.env("PATH", std::env::join_paths(folders).expect("a path"));
    }
    // Cargo compiles the packages of all examples once, from the lock file of this workspace.
    if project.join("Cargo.toml").is_file() {
        let lock = project.join("Cargo.lock");
        std::fs::copy(root().join("Cargo.lock"), lock).expect("a writable folder");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-projects");
        command
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_NET_OFFLINE", "true");
    }
    command.output().expect("the program starts")
}

/// The folder of componentize-py, if `.ci/run` has installed it.
fn python_tools() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("VEEKSHA_TEST_PYTHON")?)
        .parent()?
        .to_owned();
    folder.join("componentize-py").exists().then_some(folder)
}

/// Builds a project. Returns none, and counts the calling test as skipped, if the tools of its
/// language are missing.
fn component(project: &Path, tool: &str, folder: &Path) -> Option<PathBuf> {
    let component = folder.join(format!("{tool}.wasm"));
    let output = build(project, &component);
    let message = stderr(&output);
    if output.status.code() == Some(2) && message.contains("install:") {
        skip(tool, message.lines().next().unwrap_or("its tools are missing"));
        return None;
    }
    assert_code(&output, 0);
    Some(component)
}

/// A scenario in which answers end by length, requests fail and tools fail.
fn scenario_of(generator: &str) -> String {
    format!(
        r#"
return {{
  seed = 11,
  session_generator = {generator},
  tools = {{
    search = {{ rate_limit = "30/s", time = {{ type = "exponential", mean = 0.05 }}, failure_rate = 0.4 }},
    sandbox = {{ servers = 2, time = {{ type = "constant", value = 0.1 }}, cold_start = 0.3, failure_rate = 0.2 }},
  }},
  traffic_scheduler = {{
    type = "concurrent", target_concurrent_sessions = 5, rampup_seconds = 0, cancel_session_on_failure = false,
  }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = 40 }},
}}
"#
    )
}

/// Most answers are cut off at their limit, and one request in five fails, by its status or in its
/// answer.
const PROFILE: &str =
    "mean_output_tokens: 300\nfaults: { status_500_probability: 0.1, midstream_error_probability: 0.1 }\n";

/// Simulates the agent and returns the folder of the run.
fn simulated(folder: &Path, generator: &str) -> PathBuf {
    let profile = folder.join("profile.yml");
    std::fs::write(&profile, PROFILE).expect("a writable folder");
    let file = scenario(folder, "agent.lua", &scenario_of(generator));
    let out = folder.join("out");
    let output = program()
        .args(["simulate", &file, "--output_dir", path(&out), "-q"])
        .args(["--profile", path(&profile)])
        // Two builds of one source may differ; the components would stay in the cache of all tests.
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .expect("the program starts");
    // Failed requests are failures of the server, not of the run.
    assert_code(&output, 0);
    latest(&out)
}

/// The recorded decisions as text, without the header, which names the plugin.
fn decisions(run: &Path) -> String {
    let text = std::fs::read_to_string(run.join(DECISIONS)).expect("the decisions");
    let (header, steps) = text.split_once('\n').expect("a header");
    assert!(header.contains("veeksha-host decisions"), "{header}");
    steps.to_owned()
}

/// Checks that the answers of a run reach every branch of the agent.
fn reaches_every_branch(run: &Path) {
    let steps = decisions(run);
    let attempts = |attempt: &str| steps.matches(&format!(r#"["attempt","{attempt}"]"#)).count();
    assert!(
        attempts("1") > attempts("2") && attempts("2") > attempts("3"),
        "{steps}"
    );
    assert!(attempts("3") > 0 && attempts("4") == 0, "two retries at most");
    assert_eq!(steps.matches(r#""done":true"#).count(), 40, "each agent ends");
    let failed = |of: &[Value], success: &str| {
        let failed = of.iter().filter(|value| value[success] == false);
        failed
            .map(|value| value["node_id"].as_u64().unwrap_or(0))
            .collect::<Vec<_>>()
    };
    let requests = failed(&lines(run, "metrics/request_level_metrics.jsonl"), "success");
    assert!(requests.contains(&1), "a plan failed: {requests:?}");
    assert!(
        requests.iter().any(|node| *node >= 4),
        "a combination failed: {requests:?}"
    );
    let events = lines(run, "traces/trace.jsonl");
    let ran: Vec<Value> = events
        .into_iter()
        .filter(|event| event["event"] == "tool_ran")
        .collect();
    let tools = failed(&ran, "success");
    assert!(
        tools.contains(&2) && tools.contains(&3),
        "both tools failed: {tools:?}"
    );
}

/// Every SDK has the agent, and its sessions are those of Lua, byte for byte.
#[test]
fn one_agent_makes_the_same_sessions_in_every_language() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = root().join("sdk/lua/examples/plan_and_combine/src/plugin.lua");
    std::fs::copy(source, folder.path().join("plugin.lua")).expect("the agent in Lua");
    let config = "{ plan_tokens = 300, retries = 2 }";
    let of_lua = simulated(
        folder.path(),
        &format!(r#"{{ type = "lua", agent = require("plugin")({config}) }}"#),
    );
    reaches_every_branch(&of_lua);
    let expected = decisions(&of_lua);
    for (sdk, tool) in SDKS {
        let folder = tempfile::tempdir().expect("a folder");
        let project = root().join("sdk").join(sdk).join("examples/plan_and_combine");
        // Without it, the build would download it.
        if sdk == "python" && python_tools().is_none() {
            skip(
                tool,
                "VEEKSHA_TEST_PYTHON names no environment with componentize-py",
            );
            continue;
        }
        if !project.is_dir() {
            skip(tool, &format!("{} does not exist", project.display()));
            continue;
        }
        let Some(component) = component(&project, tool, folder.path()) else {
            continue;
        };
        let run = simulated(
            folder.path(),
            &format!(
                r#"{{ type = "wasm", plugin = "{}", config = {config} }}"#,
                path(&component)
            ),
        );
        let found = decisions(&run);
        let differs = expected
            .lines()
            .zip(found.lines())
            .find(|(one, other)| one != other);
        assert!(found == expected, "{sdk}: the first difference: {differs:#?}");
    }
}

/// The examples in a folder, in the order of their names.
fn examples(sdk: &str) -> Vec<PathBuf> {
    let folder = root().join("sdk").join(sdk).join("examples");
    let entries = std::fs::read_dir(&folder).expect("the examples");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("plugin.toml").is_file())
        .collect();
    found.sort();
    found
}

/// Copies an example, without what was built in it, and returns its folder in the copy.
fn copy(example: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join(example.file_name().expect("a name"));
    copy_folder(example, &copy);
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a writable folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        if path.is_file() {
            std::fs::copy(&path, to.join(name)).expect("a writable folder");
        } else if name != "build" && name != "benchmark_output" {
            copy_folder(&path, &to.join(name));
        }
    }
}

/// Simulates the scenario of an example and checks its results: every request is answered, a plugin
/// that measures or judges has done so, and the tests of the example pass.
#[track_caller]
fn runs(example: &Path) -> PathBuf {
    let kind = example.file_name().expect("a name").to_string_lossy();
    let out = example.join("out");
    let file = example.join("scenario.lua");
    // Virtual time has no bytes for a codec to read.
    let command = if kind == "endpoint-codec" {
        "run"
    } else {
        "simulate"
    };
    let output = veeksha([command, path(&file), "--output_dir", path(&out), "-q"]);
    assert_code(&output, 0);
    if example.join("tests").is_dir() {
        assert_code(&veeksha(["plugin", "test", path(example)]), 0);
    }
    let run = latest(&out);
    let summary = json(&run, "metrics/summary_stats.json");
    assert_eq!(summary["Error Rate"], 0.0, "{kind}");
    assert!(
        summary["Number of Completed Requests"].as_u64() >= Some(5),
        "{kind}"
    );
    let shown = match &*kind {
        "metric" => "longest_gap",
        "slo-check" => "P99 of ttfc, gold",
        _ => return run,
    };
    let slos = std::fs::read_to_string(run.join("metrics/slo_results.json")).unwrap_or_default();
    assert!(
        summary.to_string().contains(shown) || slos.contains(shown),
        "{kind}"
    );
    run
}

#[test]
fn examples_in_lua_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = examples("lua");
    assert_eq!(found.len(), 8, "seven kinds and the shared agent");
    for example in found {
        runs(&copy(&example, folder.path()));
    }
}

/// The examples build without a warning, import no WASI, and run; the Makefile builds the same
/// plugin without this program.
#[test]
fn examples_in_c_build_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let sdk = folder.path().join("c");
    copy_folder(&root().join("sdk/c"), &sdk);
    let found = examples("c");
    assert_eq!(found.len(), 9, "eight kinds and the shared agent");
    for example in &found {
        let kind = example
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let project = sdk.join("examples").join(&kind);
        let manifest = std::fs::read_to_string(project.join("plugin.toml")).expect("a manifest");
        let name = manifest.split('"').nth(1).expect("a name");
        let output = build(&project, &project.join(format!("build/{name}.wasm")));
        let message = stderr(&output);
        if output.status.code() == Some(2) && message.contains("install:") {
            skip("c-guest", message.lines().next().unwrap_or("no compiler"));
            return;
        }
        assert_code(&output, 0);
        assert!(!message.contains("warning"), "{kind}: {message}");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!printed.contains("wasi:"), "{kind} imports WASI: {printed}");
        let run = runs(&project);
        if kind == "session-generator" {
            draws_are_those_of_lua(
                &run,
                &copy(&root().join("sdk/lua/examples").join(&kind), folder.path()),
            );
        }
    }
    makefile_builds(&sdk.join("examples/metric"));
}

/// Makes a project and returns its folder.
fn new_project(folder: &Path, name: &str, kind: &str, language: &str) -> PathBuf {
    let project = folder.join(name);
    let arguments = [
        "plugin",
        "new",
        path(&project),
        "--kind",
        kind,
        "--lang",
        language,
    ];
    assert_code(&veeksha(arguments), 0);
    project
}

/// The name of a project replaces that of the example, also where it is an identifier.
#[test]
fn projects_in_lua_run_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in [
        "session-generator",
        "agent-generator",
        "arrival-process",
        "trace-flavor",
        "metric",
        "request-check",
        "slo-check",
    ] {
        let project = new_project(folder.path(), &format!("my-{kind}"), kind, "lua");
        assert!(project.join("sdk/veeksha.lua").is_file(), "{kind}");
        let editor = std::fs::read_to_string(project.join(".luarc.json")).expect("settings of the editor");
        assert!(
            editor.contains(r#""workspace.library": ["sdk"]"#),
            "{kind}: {editor}"
        );
        assert_code(&veeksha(["check", path(&project.join("scenario.lua"))]), 0);
    }
}

/// The commands of the README.
#[test]
fn project_in_c_builds_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = new_project(folder.path(), "my-questions", "session-generator", "c");
    let output = build(&project, &project.join("build/my-questions.wasm"));
    let message = stderr(&output);
    if output.status.code() == Some(2) && message.contains("install:") {
        skip("c-guest", message.lines().next().unwrap_or("no compiler"));
        return;
    }
    assert_code(&output, 0);
    runs(&project);

    let source = project.join("src/plugin.c");
    let text = std::fs::read_to_string(&source).expect("the source");
    std::fs::write(&source, text.replace("veeksha_between", "veeksha_betwen")).expect("the source");
    let output = build(&project, &project.join("build/my-questions.wasm"));
    assert_code(&output, 4);
    let message = stderr(&output);
    assert!(
        message.contains("plugin.c:") && message.contains("the plugin does not build"),
        "{message}"
    );
}

/// The example draws its lengths from the stream that the example in Lua draws from.
fn draws_are_those_of_lua(run: &Path, lua: &Path) {
    let lengths = |run: &Path| -> Vec<Value> {
        let requests = lines(run, "metrics/request_level_metrics.jsonl");
        let mut lengths: Vec<_> = requests
            .iter()
            .map(|request| {
                (
                    request["session_id"].as_u64(),
                    request["target_num_delta_prompt_tokens"].clone(),
                )
            })
            .collect();
        lengths.sort_by_key(|(session, _)| *session);
        lengths.into_iter().map(|(_, length)| length).collect()
    };
    let found = lengths(run);
    assert!(found.len() == 20 && found[0] != found[1], "{found:?}");
    assert_eq!(found, lengths(&runs(lua)));
}

/// Needs `make` and a clang with a C library, not zig.
fn makefile_builds(project: &Path) {
    let make = std::process::Command::new("make")
        .args(["-f", "../../Makefile"])
        .current_dir(project)
        .output();
    match make {
        Ok(output) if output.status.success() => {
            let module = project.join("build/module.wasm");
            let component = project.join("build/made.wasm");
            assert_code(&build(&module, &component), 0);
        }
        Ok(output) => skip("c-guest", &format!("make: {}", stderr(&output))),
        Err(error) => skip("c-guest", &format!("make cannot be started: {error}")),
    }
}
