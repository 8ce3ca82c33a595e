//! Projects in TypeScript: made by `plugin new`, built with esbuild and componentize-qjs, run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use veeksha_stats::RandomStream;

use crate::python_projects::KINDS;
use crate::skip::skip;
use crate::support::{UNJUDGED, assert_code, program, root, stderr, stdout};

/// A folder with projects and a separate cache of compiled components: two builds of one source
/// differ, and each would stay in the cache that the tests share.
struct Projects {
    folder: tempfile::TempDir,
}

impl Projects {
    fn new() -> Self {
        Projects {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn run(&self, project: &Path, arguments: &[&str]) -> Output {
        let mut program = program();
        program.args(arguments).current_dir(project);
        if arguments[0] == "run" {
            program.args(UNJUDGED);
        }
        // The packages of Node.js are installed once, in the cache of the user.
        if arguments.get(1) == Some(&"build") {
            match std::env::var_os("XDG_CACHE_HOME") {
                Some(cache) => program.env("XDG_CACHE_HOME", cache),
                None => program.env_remove("XDG_CACHE_HOME"),
            };
        } else {
            program.env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        }
        program.output().expect("the program starts")
    }

    /// Makes a project of a kind.
    fn project(&self, name: &str, kind: &str) -> PathBuf {
        let arguments = ["plugin", "new", name, "--kind", kind, "--lang", "typescript"];
        assert_code(&self.run(self.folder.path(), &arguments), 0);
        self.folder.path().join(name)
    }

    /// Builds a project; none, and a skipped test, without Node.js and its packages.
    fn build(&self, project: &Path) -> Option<Value> {
        let output = self.run(project, &["plugin", "build", "--json"]);
        let message = stderr(&output);
        if output.status.code() == Some(2) && message.contains("install:") {
            skip("js-guest", message.lines().next().unwrap_or("no Node.js"));
            return None;
        }
        assert_code(&output, 0);
        Some(serde_json::from_str(&stdout(&output)).expect("JSON"))
    }
}

#[test]
fn a_project_of_each_kind_builds_and_runs() {
    let projects = Projects::new();
    for kind in KINDS {
        let project = projects.project(kind, kind);
        let Some(built) = projects.build(&project) else {
            return;
        };
        assert_eq!(built["kinds"], serde_json::json!([kind]));
        let imports = built["imports"].to_string();
        for capability in ["tokens@0.2.0", "blobs@0.2.0"] {
            assert!(!imports.contains(capability), "{kind} imports {imports}");
        }
        // Virtual time has no bytes for a codec to read.
        let command = if kind == "endpoint-codec" {
            "run"
        } else {
            "simulate"
        };
        assert_code(&projects.run(&project, &[command, "scenario.lua"]), 0);
        assert_code(&projects.run(&project, &["plugin", "test"]), 0);
        assert!(project.join("sdk/tsconfig.json").is_file());
        let settings = std::fs::read_to_string(project.join("tsconfig.json")).expect("settings");
        assert!(settings.contains("./sdk/veeksha/index.ts"), "{settings}");
    }
}

/// JavaScript without types, and the interfaces that a plugin imports.
#[test]
fn a_plugin_in_javascript_imports_what_it_uses() {
    let projects = Projects::new();
    let project = projects.project("counted", "session-generator");
    std::fs::remove_file(project.join("src/plugin.ts")).expect("the source");
    let source = "import { Request, SessionGenerator } from \"veeksha\";\nimport { count } from \"veeksha/tokens\";\n\n\
                  export class Counted extends SessionGenerator {\n  session() {\n    \
                  return new Request(0).user(\"Hello\").outputExactly(count(\"Hello\") + 1);\n  }\n}\n";
    std::fs::write(project.join("src/plugin.js"), source).expect("a source");
    let manifest = project.join("plugin.toml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    std::fs::write(&manifest, text.replace("typescript", "javascript")).expect("the manifest");
    let Some(built) = projects.build(&project) else {
        return;
    };
    let imports = built["imports"].to_string();
    assert!(imports.contains("tokens@0.2.0"), "{imports}");
    assert!(!imports.contains("blobs@0.2.0"), "{imports}");
    let file = "build/counted.wasm";
    let printed = projects.run(&project, &["plugin", "run", file, "--sessions", "1", "--json"]);
    assert_code(&printed, 0);
    assert!(stdout(&printed).contains("Hello"), "{}", stdout(&printed));
}

/// Misbehavior by its name, and parts of the message. LINE is the marked line of the source.
const MISBEHAVIOR: [(&str, &[&str]); 19] = [
    ("exception", &["SyntaxError", "LINE", "[exception]"]),
    ("key", &["TypeError", "LINE"]),
    ("typed", &["there is no plan [no-plan]", "hint: make one"]),
    ("plain", &["thrown: a text"]),
    (
        "text_for_number",
        &["session.requests[0].output.targetTokens: expected an integer from 0 to 4294967295, got \"abc\""],
    ),
    ("negative", &["targetTokens: expected an integer", "got -1"]),
    ("fraction", &["got 2.5", "Math.round"]),
    (
        "none",
        &["session: expected an object, got undefined; did you forget `return`"],
    ),
    (
        "surrogate",
        &["requests[0].messages[0].content[0].val: expected text that can be encoded as UTF-8"],
    ),
    (
        "misspelled",
        &["session: unknown member `labelz`", "did you mean `labels`?"],
    ),
    (
        "role",
        &[
            "messages[0].role: expected one of system, user",
            "did you mean `user`?",
        ],
    ),
    (
        "tag",
        &["content[0]: expected an object whose `tag` is one of text, synthetic"],
    ),
    (
        "random",
        &[
            "Math.random: plugins have no randomness in the sandbox",
            "LINE",
            "random.stream",
        ],
    ),
    (
        "clock",
        &["Date.now: plugins have no clock in the sandbox", "LINE"],
    ),
    ("now", &["Date: plugins have no clock in the sandbox", "LINE"]),
    (
        "fetch",
        &["fetch: plugins have no network in the sandbox", "LINE"],
    ),
    (
        "loop",
        &["it did not return within 2000 ms; is there an endless loop?"],
    ),
    ("memory", &["MiB"]),
    ("absent", &["TypeError"]),
];

#[test]
fn misbehavior_is_an_error_with_the_line_of_the_author() {
    let projects = Projects::new();
    let project = projects.project("hostile", "session-generator");
    let source = root().join("tests/guests/js_hostile/src/plugin.ts");
    std::fs::copy(&source, project.join("src/plugin.ts")).expect("a copy");
    if projects.build(&project).is_none() {
        return;
    }
    let source = std::fs::read_to_string(&source).expect("the source");
    let line = |mode: &str| {
        let mark = format!("// line: {mode}");
        let found = source.lines().position(|line| line.ends_with(&mark));
        format!(
            "src/plugin.ts:{}",
            1 + found.unwrap_or_else(|| panic!("no {mark}"))
        )
    };
    let simulate = |mode: &str| {
        let limits = match mode {
            "loop" => "{ call_deadline_seconds: 2 }",
            _ => "{ memory_mib: 64 }",
        };
        let scenario = format!(
            "seed: 42\nsession_generator: {{ type: wasm, plugin: build/hostile.wasm, config: {{ mode: {mode} }} }}\n\
             client: {{ api_base: 'sim://fast' }}\n\
             traffic_scheduler: {{ type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }}\n\
             runtime: {{ max_sessions: 3, benchmark_timeout: 30, plugin_limits: {limits} }}\n"
        );
        std::fs::write(project.join("scenario.yml"), scenario).expect("a scenario");
        projects.run(&project, &["simulate", "scenario.yml"])
    };
    for (mode, expected) in MISBEHAVIOR {
        let output = simulate(mode);
        assert_code(&output, 4);
        let message = stderr(&output);
        for part in expected {
            let part = match *part {
                "LINE" => line(mode),
                part => part.to_owned(),
            };
            assert!(message.contains(&part), "{mode}: no {part:?} in {message}");
        }
        assert!(!message.contains("call.rs"), "{mode}: {message}");
    }
    for mode in ["fine", "literal", "date", "words"] {
        assert_code(&simulate(mode), 0);
    }
    let printed = simulate("print");
    assert_code(&printed, 0);
    for line in [
        "info] made while it is built",
        "info] printed 0 {\"a\":[1]}",
        "warn] to the log",
    ] {
        assert!(stderr(&printed).contains(line), "{line}: {}", stderr(&printed));
    }
    let drawn = stderr(&simulate("draws"));
    draws_are_those_of_the_host(&drawn);
    // The seeds of `seeds_are_those_of_the_contract` in the SDK of Rust.
    let seeds = [
        0xf52a_15e9_a9b5_e89b_u64,
        0x840e_6b43_62ae_2d5f,
        0x5d42_8a95_aa6c_7800,
    ];
    let seeds = seeds.map(|seed| serde_json::json!({ "high": seed >> 32, "low": seed & 0xffff_ffff }));
    let line = format!("info] seeds {}", serde_json::json!(seeds));
    assert!(drawn.contains(&line), "no {line} in {drawn}");
    mistakes_of_the_source_are_explained(&projects, &project);
}

/// The first lines of the log are those of session 0.
fn draws_are_those_of_the_host(log: &str) {
    let lines = log.lines().filter_map(|line| line.split_once("info] draws "));
    let mut draws = RandomStream::new(42, 0, "lengths").draws();
    let mut rows = 0;
    for (_, line) in lines.take(20) {
        let row: [f64; 5] = serde_json::from_str(line).expect("numbers");
        let expected = [
            draws.unit(),
            f64::from(draws.below(1000)),
            draws.exponential(),
            draws.normal(),
            draws.gamma(0.5),
        ];
        for (found, expected) in row.into_iter().zip(expected) {
            // The logarithms of two libraries differ in the last bit.
            let tolerance = expected.abs() * 1e-14;
            assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
        }
        rows += 1;
    }
    assert_eq!(rows, 20, "{log}");
}

/// What is wrong with a source is printed without the traces of the tools.
fn mistakes_of_the_source_are_explained(projects: &Projects, project: &Path) {
    let build = |source: &str| {
        std::fs::write(project.join("src/plugin.ts"), source).expect("a source");
        let output = projects.run(project, &["plugin", "build"]);
        assert_code(&output, 4);
        let message = stderr(&output);
        assert!(!message.contains("wasm backtrace"), "{message}");
        message
    };
    let message = build("import { Request } from \"veeksha\";\n\nconst x = new Request(\n");
    assert!(message.contains("src/plugin.ts:4:0"), "{message}");
    let message = build("export const x = 1;\n");
    assert!(
        message.contains("no class of the kind session-generator; export one, as plugin.toml states"),
        "{message}"
    );
    let message = build("import { nothing } from \"veeksha\";\nexport const x = nothing;\n");
    assert!(message.contains("nothing"), "{message}");
}

/// The compiler that checks types. Builds do not need it.
const TYPESCRIPT: &str = "typescript@5.9.3";

/// The SDK, its examples and the code of the README have no type errors.
#[test]
fn types_of_the_sdk_and_the_readme_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let installed = Command::new("npm")
        .args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            TYPESCRIPT,
        ])
        .arg("--prefix")
        .arg(folder.path())
        .output();
    if !installed.is_ok_and(|output| output.status.success()) {
        skip("js-guest", "npm is missing or cannot install typescript");
        return;
    }
    let sdk = root().join("sdk/js");
    let readme = std::fs::read_to_string(sdk.join("README.md")).expect("the README");
    for (index, block) in readme.split("```ts\n").skip(1).enumerate() {
        let (code, _) = block.split_once("```").expect("the end of a block");
        std::fs::write(folder.path().join(format!("readme_{index}.ts")), code).expect("a file");
    }
    let examples = sdk.join("examples/*/src");
    let guest = root().join("tests/guests/js_hostile/src");
    let project = serde_json::json!({
        "extends": sdk.join("tsconfig.json"),
        "compilerOptions": { "paths": {
            "veeksha": [sdk.join("veeksha/index.ts")],
            "veeksha/*": [sdk.join("veeksha/*.ts")],
        } },
        "include": ["*.ts", sdk.join("veeksha"), examples, guest],
    });
    let file = folder.path().join("tsconfig.json");
    std::fs::write(&file, project.to_string()).expect("a file");
    let output = Command::new("node")
        .arg(folder.path().join("node_modules/typescript/bin/tsc"))
        .arg("--project")
        .arg(&file)
        .output()
        .expect("node starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
