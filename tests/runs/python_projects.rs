//! Projects in Python: made by `plugin new`, built with componentize-py, run. And the tests and the
//! type check of the SDK.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;
use veeksha_model::{NodeId, Response, SessionId};
use veeksha_ports::{AgentSource, Workload};
use veeksha_stats::RandomStream;
use veeksha_wasm::{EngineOptions, Grants, NoLog, PluginEngine};

use crate::skip::skip;
use crate::support::{UNJUDGED, assert_code, program, root, stderr, stdout};

/// The kinds that every SDK with a tool has.
pub(crate) const KINDS: [&str; 8] = [
    "session-generator",
    "agent-generator",
    "arrival-process",
    "trace-flavor",
    "endpoint-codec",
    "metric",
    "request-check",
    "slo-check",
];

/// The Python of the tools that `.ci/run` installs; none without componentize-py.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("VEEKSHA_TEST_PYTHON").map(PathBuf::from);
    let found = python.filter(|python| python.with_file_name("componentize-py").exists());
    if found.is_none() {
        skip(
            "python-guest",
            "VEEKSHA_TEST_PYTHON names no environment with componentize-py",
        );
    }
    found
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A folder with projects and a separate cache: two builds of one source differ, and each would
/// stay in the cache that the tests share.
struct Projects {
    folder: tempfile::TempDir,
    tools: PathBuf,
}

impl Projects {
    fn new(python: &Path) -> Self {
        Projects {
            folder: tempfile::tempdir().expect("a folder"),
            tools: python.parent().expect("a folder").to_owned(),
        }
    }

    fn run(&self, project: &Path, arguments: &[&str]) -> Output {
        let mut program = program();
        program.args(arguments).current_dir(project);
        if arguments[0] == "run" {
            program.args(UNJUDGED);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.tools.clone()).chain(std::env::split_paths(&path));
        program.env("PATH", std::env::join_paths(paths).expect("a path"));
        program.env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        program.output().expect("the program starts")
    }

    /// Makes a project of a kind.
    fn project(&self, name: &str, kind: &str) -> PathBuf {
        let arguments = ["plugin", "new", name, "--kind", kind, "--lang", "python"];
        assert_code(&self.run(self.folder.path(), &arguments), 0);
        self.folder.path().join(name)
    }

    fn build(&self, project: &Path) -> Value {
        let output = self.run(project, &["plugin", "build", "--json"]);
        assert_code(&output, 0);
        serde_json::from_str(&stdout(&output)).expect("JSON")
    }
}

#[test]
fn a_project_of_each_kind_builds_and_runs() {
    let Some(python) = python() else { return };
    let projects = Projects::new(&python);
    for kind in KINDS {
        let project = projects.project(kind, kind);
        let built = projects.build(&project);
        assert_eq!(built["kinds"], serde_json::json!([kind]));
        let imports: Vec<&str> = built["imports"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str()?.strip_prefix("veeksha:plugin/"))
            .collect();
        for capability in ["tokens@0.2.0", "blobs@0.2.0"] {
            assert!(!imports.contains(&capability), "{kind} imports {imports:?}");
        }
        // Virtual time has no bytes for a codec to read.
        let command = if kind == "endpoint-codec" {
            "run"
        } else {
            "simulate"
        };
        assert_code(&projects.run(&project, &[command, "scenario.lua"]), 0);
        assert_code(&projects.run(&project, &["plugin", "test"]), 0);
    }
}

/// The shared agent, and ten thousand sessions of it at once.
#[test]
fn ten_thousand_agents_live_in_one_process() {
    let Some(python) = python() else { return };
    let projects = Projects::new(&python);
    let project = projects.project("plan_and_combine", "agent-generator");
    let example = root().join("sdk/python/examples/plan_and_combine");
    for file in ["src/plugin.py", "scenario.lua", "tests/sessions.toml"] {
        std::fs::copy(example.join(file), project.join(file)).expect("a copy");
    }
    projects.build(&project);
    assert_code(&projects.run(&project, &["simulate", "scenario.lua"]), 0);
    assert_code(&projects.run(&project, &["plugin", "test"]), 0);

    let bytes = std::fs::read(project.join("build/plan_and_combine.wasm")).expect("a component");
    let engine = PluginEngine::new(EngineOptions::default()).expect("an engine");
    let plugin = engine.load("plan_and_combine", &bytes).expect("a plugin");
    let grants = Grants::new(42, Arc::new(NoLog));
    let factory = plugin.workload("{}".into(), grants).expect("a workload");
    let Workload::Reactive(mut agents) = factory.open().expect("agents") else {
        panic!("not an agent");
    };
    let before = private_bytes();
    for session in 0..10_000 {
        start_and_answer(agents.as_mut(), SessionId(session));
    }
    // 79 instances of 128 agents. An instance shares what it has not changed of its initial memory.
    let grown = private_bytes().saturating_sub(before) >> 20;
    assert!(grown < 1024, "{grown} MiB for 10,000 agents");
}

fn start_and_answer(agents: &mut dyn AgentSource, session: SessionId) {
    let step = agents.start(session).expect("a first step");
    assert_eq!(step.added.requests.len(), 1);
    let answered = agents
        .answered(session, NodeId(1), &Response::default(), 5)
        .expect("a second step");
    assert_eq!(answered.added.tool_runs.len(), 2);
}

/// The memory of this process that is not shared; 0 where the system does not report it.
fn private_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) << 10
}

/// Misbehavior by its name, and what the message has besides.
const MISBEHAVIOR: [(&str, &[&str]); 19] = [
    ("exception", &["JSONDecodeError: Expecting ',' delimiter", "LINE"]),
    (
        "key",
        &["KeyError: 'absent'", "LINE", "Traceback (most recent call last)"],
    ),
    ("typed", &["there is no plan [no-plan]", "hint: make one"]),
    ("exit", &["SystemExit: 3", "LINE"]),
    (
        "text_for_number",
        &[
            "requests[0].output.target_tokens: expected an integer from 0 to 4294967295, got 'abc'",
            "RETURN",
        ],
    ),
    (
        "negative",
        &[
            "requests[0].output.target_tokens: expected an integer",
            "got -1",
            "RETURN",
        ],
    ),
    (
        "none",
        &[
            "session: expected a Session, got None; did you forget `return`?",
            "RETURN",
        ],
    ),
    (
        "surrogate",
        &["requests[0].messages[0].content[0].value: expected text that can be encoded as UTF-8"],
    ),
    (
        "wait",
        &[
            "requests[0].wait_after_ready",
            "seconds() and milliseconds() return one",
        ],
    ),
    (
        "random",
        &[
            "random.randint: plugins have no randomness in the sandbox",
            "LINE",
            "Random.stream",
        ],
    ),
    (
        "clock",
        &["time.time: plugins have no clock in the sandbox", "LINE"],
    ),
    (
        "now",
        &[
            "datetime.datetime.now: plugins have no clock in the sandbox",
            "LINE",
        ],
    ),
    (
        "environ",
        &[
            "os.environ['HOME']: plugins have no environment variables",
            "LINE",
            "configuration of the scenario",
        ],
    ),
    (
        "open",
        &[
            "open: plugins have no files in the sandbox",
            "LINE",
            "veeksha.blobs",
        ],
    ),
    ("path", &["FileNotFoundError", "LINE", "veeksha.blobs"]),
    (
        "socket",
        &[
            "socket.create_connection: plugins have no network in the sandbox",
            "LINE",
        ],
    ),
    (
        "late_import",
        &[
            "No module named 'wave'",
            "LINE",
            "import them at the top of a file",
        ],
    ),
    ("recursion", &["RecursionError"]),
    ("memory", &["MiB are allowed"]),
];

#[test]
fn misbehavior_is_an_error_with_the_line_of_the_author() {
    let Some(python) = python() else { return };
    let projects = Projects::new(&python);
    let project = projects.project("hostile", "session-generator");
    let source = root().join("tests/guests/python_hostile/src/plugin.py");
    std::fs::copy(&source, project.join("src/plugin.py")).expect("a copy");
    projects.build(&project);
    let source = text_of(&source);
    let line = |mark: &str| {
        let found = source.lines().position(|line| line.ends_with(mark));
        format!(
            "src/plugin.py:{},",
            1 + found.unwrap_or_else(|| panic!("no line {mark}"))
        )
    };
    let simulate = |mode: &str| {
        let scenario = format!(
            "session_generator: {{ type: wasm, plugin: build/hostile.wasm, config: {{ mode: {mode} }} }}\n\
             client: {{ api_base: 'sim://fast' }}\n\
             traffic_scheduler: {{ type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }}\n\
             runtime: {{ max_sessions: 3, benchmark_timeout: 30, plugin_limits: {{ memory_mib: 64 }} }}\n"
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
                "LINE" => line(&format!("# line: {mode}")),
                "RETURN" => line("return modes()[mode]()"),
                part => part.to_owned(),
            };
            assert!(message.contains(&part), "{mode}: no {part:?} in {message}");
        }
        assert!(!message.contains("call.rs"), "{mode}: {message}");
    }
    for mode in ["fine", "random_seeded", "type"] {
        assert_code(&simulate(mode), 0);
    }
    let printed = simulate("print");
    assert_code(&printed, 0);
    for line in [
        "info] printed 0",
        "info] two",
        "info] lines",
        "warn] to stderr",
        "warn] lengths: logged 0",
    ] {
        assert!(stderr(&printed).contains(line), "{line}: {}", stderr(&printed));
    }
    mistakes_of_the_source_are_explained(&projects, &project);
}

/// What is wrong with a source is printed without the traces of the tool.
fn mistakes_of_the_source_are_explained(projects: &Projects, project: &Path) {
    let build = |source: &str| {
        std::fs::write(project.join("src/plugin.py"), source).expect("a source");
        let output = projects.run(project, &["plugin", "build"]);
        assert_code(&output, 4);
        let message = stderr(&output);
        assert!(!message.contains("wasm backtrace"), "{message}");
        message
    };
    let message = build("import veeksha\n\nx = veeksha.Request(\n");
    assert!(message.contains("File \"src/plugin.py\", line 3"), "{message}");
    assert!(message.contains("SyntaxError: '(' was never closed"), "{message}");
    let message = build("import veeksha\n");
    assert!(
        message.contains(
            "plugin.toml states the kind session-generator, but src/plugin.py registers no such class"
        ),
        "{message}"
    );
    let message = build("from veeksha import Agent, plugin\n@plugin\nclass A(Agent):\n    pass\n");
    assert!(message.contains("A has no method `start`"), "{message}");
    let message = build("import random\nSEED = random.random()\n");
    assert!(message.contains("line 2"), "{message}");
    assert!(
        message.contains("plugins have no randomness in the sandbox"),
        "{message}"
    );
}

/// The program's output, which must succeed.
fn output_of(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert_code(&output, 0);
    stdout(&output)
}

#[test]
fn the_sdk_passes_its_tests_and_the_type_check() {
    let Some(python) = python() else { return };
    let sdk = root().join("sdk/python");
    let folder = tempfile::tempdir().expect("a folder");
    let bindings = folder.path().join("bindings");
    let mut componentize = Command::new(python.with_file_name("componentize-py"));
    componentize.arg("-d").arg(root().join("wit/0.2.0"));
    output_of(componentize.args(["-w", "everything", "bindings"]).arg(&bindings));
    let mut tests = Command::new(&python);
    tests
        .args(["-B", "-W", "error", "-m", "unittest", "discover", "-s", "tests"])
        .current_dir(&sdk)
        .env("PYTHONPATH", &sdk)
        .env("VEEKSHA_BINDINGS", &bindings);
    output_of(&mut tests);
    if !python.with_file_name("mypy").exists() {
        skip("python-guest", "mypy is not installed");
        return;
    }
    let check = |paths: &[&Path]| {
        let mut mypy = Command::new(python.with_file_name("mypy"));
        mypy.arg("--strict")
            .arg("--cache-dir")
            .arg(folder.path().join("mypy"));
        output_of(mypy.args(paths).env("MYPYPATH", &sdk).current_dir(folder.path()));
    };
    check(&[&sdk.join("veeksha"), &sdk.join("tests")]);
    for example in std::fs::read_dir(sdk.join("examples")).expect("examples") {
        check(&[&example.expect("an example").path().join("src/plugin.py")]);
    }
    // The code of the README: it runs, and its types fit.
    let readme = text_of(&sdk.join("README.md"));
    let blocks = readme.split("```python\n").skip(1);
    for (index, block) in blocks.enumerate() {
        let path = folder.path().join(format!("readme_{index}.py"));
        let (code, _) = block.split_once("```").expect("the end of a block");
        std::fs::write(&path, code).expect("a file");
        output_of(Command::new(&python).arg("-B").arg(&path).env("PYTHONPATH", &sdk));
        check(&[&path]);
    }
}

/// The words come from the host's generator; the draws must be those of the host, which the Rust
/// SDK has as well.
#[test]
fn draws_are_those_of_the_host() {
    let Some(python) = python() else { return };
    const SCRIPT: &str = "
import json, sys
from veeksha import Random
words = json.load(sys.stdin)
draws = Random(7, lambda session, stream, first, count: words[first:first + count]).stream('lengths')
rows = [[draws.unit(), draws.below(1000), draws.exponential(), draws.normal(), draws.gamma(0.5)] for _ in range(100)]
print(json.dumps(rows))
";
    let folder = tempfile::tempdir().expect("a folder");
    let mut words = vec![0; 16_384];
    RandomStream::new(42, 7, "lengths").fill(0, &mut words);
    let input = folder.path().join("words.json");
    std::fs::write(&input, serde_json::to_vec(&words).expect("JSON")).expect("a file");
    let mut script = Command::new(python);
    script
        .args(["-B", "-c", SCRIPT])
        .env("PYTHONPATH", root().join("sdk/python"))
        .stdin(std::fs::File::open(&input).expect("the words"));
    let rows: Vec<[f64; 5]> = serde_json::from_str(&output_of(&mut script)).expect("rows");
    let mut draws = RandomStream::new(42, 7, "lengths").draws();
    for (index, row) in rows.into_iter().enumerate() {
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
            assert!(
                (found - expected).abs() <= tolerance,
                "row {index}: {found} is not {expected}"
            );
        }
    }
}
