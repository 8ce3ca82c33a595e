//! Repetition of a run from its folder.

use std::path::{Path, PathBuf};

use crate::results::{json, latest};
use crate::simulated::path;
use crate::support::{assert_code, scenario, stderr, veeksha};

const KEY: &str = "canary-key-5b1e";

/// A Lua scenario with a required file, a metric and a secret.
fn lua_scenario(folder: &Path) -> PathBuf {
    std::fs::create_dir_all(folder.join("lib")).expect("a folder");
    scenario(
        &folder.join("lib"),
        "sizes.lua",
        "return { prompt = 21, answer = 3 }",
    );
    let text = format!(
        r#"
local sizes = require("lib/sizes")
return {{
  session_generator = {{
    type = "lua",
    sessions = function(index, rng)
      local prompt = sizes.prompt + rng:int(0, 40)
      return {{ requests = {{ {{ user = synthetic(prompt), output = sizes.answer }} }} }}
    end,
  }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 2, rampup_seconds = 0 }},
  client = {{ api_base = "sim://fast", api_key = "{KEY}" }},
  evaluators = {{
    {{ type = "performance" }},
    {{
      type = "lua",
      name = "lengths",
      metrics = {{
        lengths = {{
          unit = "1", better = "less", summary = "tokens of the prompt",
          observe = function(request) return request.prompt_tokens end,
        }},
      }},
    }},
  }},
  runtime = {{ max_sessions = 8, benchmark_timeout = 0 }},
}}
"#
    );
    PathBuf::from(scenario(folder, "s.lua", &text))
}

fn prompt_lengths(run: &Path) -> Vec<u64> {
    let rows = crate::results::lines(run, "metrics/request_level_metrics.jsonl");
    let mut lengths: Vec<(u64, u64)> = rows
        .iter()
        .map(|row| {
            let number = |key: &str| row[key].as_u64().expect("a number");
            (number("session_id"), number("num_delta_prompt_tokens"))
        })
        .collect();
    lengths.sort_unstable();
    lengths.into_iter().map(|(_, length)| length).collect()
}

/// The places of functions in such a table are not known.
#[test]
fn a_run_of_a_table_made_by_a_function_is_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = lua_scenario(folder.path());
    let text = std::fs::read_to_string(&file).expect("the script");
    let text = text.replacen("\nreturn {", "\nlocal function made() return {", 1);
    std::fs::write(&file, format!("{text} end\nreturn made()\n")).expect("the script");
    let run = |source: &Path, to: &str| {
        let output_dir = folder.path().join(to);
        let flags = ["--output_dir", path(&output_dir), "-q"];
        assert_code(&veeksha(["run", path(source)].into_iter().chain(flags)), 0);
        latest(&output_dir)
    };
    let first = run(&file, "first");
    let again = run(&first, "again");
    assert_eq!(prompt_lengths(&again), prompt_lengths(&first));
}

#[test]
fn a_lua_run_is_repeated_from_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = lua_scenario(folder.path());
    let first_output = folder.path().join("first");
    // A setting of the command line is also repeated.
    let flags = ["--output_dir", path(&first_output), "--seed", "7", "-q"];
    let first = veeksha(["run", path(&file)].into_iter().chain(flags));
    assert_code(&first, 0);
    let run = latest(&first_output);
    std::fs::remove_file(&file).expect("the script");
    std::fs::remove_dir_all(folder.path().join("lib")).expect("the required file");

    let second_output = folder.path().join("second");
    let flags = ["--output_dir", path(&second_output), "-q"];
    let second = veeksha(["run", path(&run)].into_iter().chain(flags));
    assert_code(&second, 0);
    let again = latest(&second_output);
    let lengths = prompt_lengths(&run);
    assert_eq!(lengths.len(), 8);
    assert!(lengths.iter().any(|length| *length != lengths[0]), "{lengths:?}");
    assert_eq!(prompt_lengths(&again), lengths);
    let mean = |run: &Path| json(run, "metrics/summary_stats.json")["lengths"]["mean"].clone();
    assert_eq!(mean(&again), mean(&run));
    assert!(
        !stderr(&second).contains("differs from that of the recorded run"),
        "{}",
        stderr(&second)
    );

    // A repeated run can be repeated.
    let third_output = folder.path().join("third");
    let flags = ["--output_dir", path(&third_output), "-q"];
    let third = veeksha(["simulate", path(&again)].into_iter().chain(flags));
    assert_code(&third, 0);
    assert_eq!(prompt_lengths(&latest(&third_output)), lengths);
}

#[test]
fn the_copy_of_a_script_has_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = lua_scenario(folder.path());
    let output = folder.path().join("out");
    let flags = ["--output_dir", path(&output), "-q"];
    let run = veeksha(["simulate", path(&file)].into_iter().chain(flags));
    assert_code(&run, 0);
    let copy = std::fs::read_to_string(latest(&output).join("scenario/s.lua")).expect("the copy");
    assert!(copy.contains("api_key = \"***\""), "{copy}");
    assert!(!copy.contains(KEY), "{copy}");
}

#[test]
fn changed_plugin_is_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = lua_scenario(folder.path());
    let output = folder.path().join("out");
    let flags = ["--output_dir", path(&output), "-q"];
    let run = veeksha(["simulate", path(&file)].into_iter().chain(flags));
    assert_code(&run, 0);
    let run = latest(&output);
    std::fs::write(
        run.join("scenario/lib/sizes.lua"),
        "return { prompt = 99, answer = 3 }",
    )
    .expect("the required file");
    let repeated = veeksha(["simulate", path(&run)].into_iter().chain(flags));
    assert_code(&repeated, 0);
    assert!(
        stderr(&repeated).contains("differs from that of the recorded run"),
        "{}",
        stderr(&repeated)
    );
}

#[test]
fn a_folder_without_the_script_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = lua_scenario(folder.path());
    let output = folder.path().join("out");
    let flags = ["--output_dir", path(&output), "-q"];
    let run = veeksha(["simulate", path(&file)].into_iter().chain(flags));
    assert_code(&run, 0);
    let run = latest(&output);
    std::fs::remove_dir_all(run.join("scenario")).expect("the copy");
    let refused = veeksha(["check", path(&run)]);
    assert_code(&refused, 2);
    let message = stderr(&refused);
    assert!(
        message.contains("session_generator.sessions: the Lua function is not in the folder `scenario`"),
        "{message}"
    );
}
