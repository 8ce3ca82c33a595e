//! Runs of small scenarios for tests of the output: in virtual time, where they are fast and
//! reproducible, or in real time.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::results::latest;
use crate::support::{assert_code, scenario, veeksha};

/// Returns a scenario with sessions of two labelled requests at a rate, answered by the built-in
/// simulator, with these evaluators (empty for the built-in metrics) and additional keys.
pub(crate) fn labelled(sessions: u32, evaluators: &str, more: &str) -> String {
    let evaluators = match evaluators {
        "" => r#"{ type = "performance" }"#,
        evaluators => evaluators,
    };
    format!(
        r#"
local sessions = function(index, rng)
  return {{
    labels = {{ tier = if index % 3 == 0 then "gold" else "free" }},
    requests = {{
      {{ user = synthetic(rng:int(20, 60)), output = {{ tokens = rng:int(4, 12), exact = true }} }},
      {{ user = synthetic(10), history = 1, output = {{ tokens = 6, exact = true }}, wait = "20ms" }},
    }},
  }}
end
return {{
  seed = 7,
  session_generator = {{ type = "lua", sessions = sessions }},
  traffic_scheduler = {{ type = "rate", interval_generator = {{ type = "poisson", arrival_rate = 60 }} }},
  client = {{ type = "openai_chat_completions", api_base = "sim://default" }},
  runtime = {{ max_sessions = {sessions}, benchmark_timeout = 60 }},
  evaluators = {{ {evaluators} }},
  {more}
}}
"#
    )
}

/// Writes a scenario into the folder and simulates it; asserts the exit code.
#[track_caller]
pub(crate) fn ends_with(
    folder: &Path,
    name: &str,
    text: &str,
    more: &[&str],
    code: i32,
) -> (Output, PathBuf) {
    let file = scenario(folder, name, text);
    let output_dir = folder.join("out");
    let mut arguments = vec!["simulate", &file, "--output_dir", path(&output_dir)];
    arguments.extend(more);
    let output = veeksha(arguments);
    assert_code(&output, code);
    (output, latest(&output_dir))
}

/// Simulates a scenario successfully, and returns the folder of the run.
#[track_caller]
pub(crate) fn simulated(folder: &Path, name: &str, text: &str, more: &[&str]) -> PathBuf {
    ends_with(folder, name, text, more, 0).1
}

/// Runs a scenario over sockets against the simulator in the program; asserts the exit code, and
/// returns the folder of the run.
#[track_caller]
pub(crate) fn real(folder: &Path, name: &str, text: &str, code: i32) -> PathBuf {
    let file = scenario(folder, name, text);
    let output_dir = folder.join("out");
    let api = ["--client.api_base", "sim://fast"];
    let output = veeksha([&["run", &file, "--output_dir", path(&output_dir)], &api[..]].concat());
    assert_code(&output, code);
    latest(&output_dir)
}

/// Converts a path to an argument.
pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Runs `evaluate` on a run.
pub(crate) fn evaluate(run: &Path, more: &[&str]) -> Output {
    let mut arguments = vec!["evaluate", path(run)];
    arguments.extend(more);
    veeksha(arguments)
}

/// Evaluates a run into the folder `to`; asserts the exit code, and returns that folder.
#[track_caller]
pub(crate) fn evaluated(run: &Path, to: &Path, more: &[&str], code: i32) -> PathBuf {
    let mut arguments = vec!["--to", path(to)];
    arguments.extend(more);
    assert_code(&evaluate(run, &arguments), code);
    to.to_owned()
}
