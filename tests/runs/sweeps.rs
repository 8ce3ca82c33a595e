//! Several scenarios in one command: their syntax, their files, and the failure of one of them.

mod one_server;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::results::json;
use crate::server::interrupt;
use crate::simulated::{labelled, path};
use crate::support::{assert_code, program, root, scenario, stderr, stdout, veeksha};

/// Returns a scenario with six requests of a fixed size and the swept values.
fn text(traffic: &str, prompt: &str) -> String {
    format!(
        r#"
session_generator:
  type: synthetic
  session_graph: {{ type: single_request }}
  channels:
    - type: text
      body_length_generator: {{ type: fixed, value: {prompt} }}
  output_spec: {{ text: {{ output_length_generator: {{ type: fixed, value: 8 }} }} }}
traffic_scheduler: {traffic}
client: {{ type: openai_chat_completions, api_base: "sim://default" }}
runtime: {{ max_sessions: 6, benchmark_timeout: 60 }}
evaluators:
  - type: performance
    slos: ["error_rate < 1%"]
"#
    )
}

const CLOSED: &str = "{ type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }";

fn simulate(folder: &Path, file: &str, more: &[&str]) -> Output {
    let out = folder.join("out");
    let mut arguments = vec!["simulate", file, "--output_dir", path(&out)];
    arguments.extend(more);
    veeksha(arguments)
}

/// Returns the folder of the only sweep below an output folder.
pub(crate) fn folder_of_the_only_sweep(output_dir: &Path) -> PathBuf {
    let entries = std::fs::read_dir(output_dir).expect("a folder");
    let is_sweep = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        !path.is_symlink() && name.to_string_lossy().starts_with("sweep_")
    };
    let mut found = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(is_sweep);
    let sweep = found.next().expect("a sweep");
    assert!(found.next().is_none(), "one sweep");
    sweep
}

fn sweep_folder(folder: &Path) -> PathBuf {
    folder_of_the_only_sweep(&folder.join("out"))
}

fn runs(summary: &Value) -> Vec<Value> {
    summary["runs"].as_array().expect("runs").clone()
}

/// Reads a table without quotes: its header, and its rows by column.
fn table(sweep: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(sweep.join("sweep_summary.csv")).expect("a table");
    let mut lines = text
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    (lines.next().expect("a header"), lines.collect())
}

#[test]
fn latest_links_to_the_newest_run_or_sweep() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.yml", &text(CLOSED, "64"));
    let latest = || std::fs::read_link(folder.path().join("out/latest")).expect("a link");
    assert_code(&simulate(folder.path(), &file, &[]), 0);
    let run = latest();
    assert!(!run.to_string_lossy().starts_with("sweep_"), "{run:?}");
    assert_code(
        &simulate(folder.path(), &file, &["--set", "seed=!expand [1, 2]"]),
        0,
    );
    let sweep = sweep_folder(folder.path());
    assert_eq!(Some(latest().as_os_str()), sweep.file_name());
    let of_sweep = std::fs::read_link(sweep.join("latest")).expect("a link");
    let runs = json(&sweep, "sweep_manifest.json");
    let last = runs["runs"][1]["run_dir"].as_str().expect("a folder");
    assert!(Path::new(last).ends_with(&of_sweep), "{last} {of_sweep:?}");
    // A command for one run lists those of the sweep.
    let output = veeksha(["health", path(&folder.path().join("out/latest"))]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("is a sweep, but this command needs one run"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_sweep_does_not_begin_if_latest_is_not_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.yml", &text(CLOSED, "!expand [64, 96]"));
    std::fs::create_dir_all(folder.path().join("out/latest")).expect("a folder");
    let output = simulate(folder.path(), &file, &[]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("latest is not a link"),
        "{}",
        stderr(&output)
    );
    let left: Vec<_> = std::fs::read_dir(folder.path().join("out"))
        .expect("a folder")
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_value_in_a_list_is_swept_and_every_combination_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let traffic = "{ type: concurrent, target_concurrent_sessions: !expand [1, 2], rampup_seconds: 0 }";
    // The length of the prompt is within a list, where Veeksha writes the list instead of the
    // value.
    let file = scenario(folder.path(), "s.yml", &text(traffic, "!expand [64, 96, 128]"));
    let output = simulate(folder.path(), &file, &[]);
    assert_code(&output, 0);
    let sweep = sweep_folder(folder.path());
    let summary = json(&sweep, "sweep_summary.json");
    assert_eq!(
        (&summary["num_runs"], &summary["num_planned"]),
        (&6.into(), &6.into())
    );
    let manifest = json(&sweep, "sweep_manifest.json");
    assert_eq!(manifest["num_runs"], 6);
    assert_eq!(manifest["sweep_dir"], path(&sweep));
    let lengths: Vec<u64> = runs(&summary)
        .iter()
        .map(|run| run["context_length"].as_u64().expect("a length"))
        .collect();
    let sizes: Vec<u64> = runs(&summary)
        .iter()
        .map(|run| run["batch_size"].as_u64().expect("a size"))
        .collect();
    // The first key changes most slowly.
    assert_eq!(lengths, [64, 64, 96, 96, 128, 128]);
    assert_eq!(sizes, [1, 2, 1, 2, 1, 2]);
    for (index, (run, of_manifest)) in runs(&summary).iter().zip(runs(&manifest)).enumerate() {
        assert_eq!(run["run_index"], index);
        assert_eq!(run["output_length"], 8);
        assert_eq!(run["exit_code"], 0);
        assert!(run["failure"].is_null());
        assert_eq!(run["verdict"], "VALID");
        assert_eq!(run["all_slos_met"], true);
        assert_eq!(run["summary_stats"]["Number of Completed Requests"], 6);
        assert_eq!(
            run["settings"].as_object().map(serde_json::Map::len),
            Some(2),
            "{}",
            run["settings"]
        );
        // The run's folder is that of an ordinary run, with the same results.
        let dir = run["run_dir"].as_str().expect("a folder");
        assert!(Path::new(dir).starts_with(&sweep), "{dir}");
        assert_eq!(of_manifest["run_dir"], dir);
        let of_run = json(Path::new(dir), "metrics/summary_stats.json");
        assert_eq!(
            run["summary_stats"]["Time to First Chunk (P99)"],
            of_run["Time to First Chunk (P99)"]
        );
        assert_eq!(
            run["key_metrics"]["ttfc_p99"],
            of_run["Time to First Chunk (P99)"]
        );
        for file in ["config_path", "metrics_dir", "prefill_stats_path"] {
            let file = of_manifest[file].as_str().expect(file);
            assert!(Path::new(file).exists(), "{file}");
        }
    }
    let (header, rows) = table(&sweep);
    let veekshas = [
        "run_index",
        "run_dir",
        "traffic_type",
        "target_concurrent_sessions",
        "arrival_rate",
        "context_length",
        "output_length",
        "max_sessions",
        "benchmark_timeout_s",
        "num_requests",
        "num_completed_requests",
        "error_rate",
        "all_slos_met",
        "tpot_based_throughput",
        "tbc_based_throughput",
    ];
    assert_eq!(header[..veekshas.len()], veekshas);
    for column in [
        "exit_code",
        "verdict",
        "ttfc_p50",
        "ttfc_p99",
        "goodput",
        "traffic_scheduler.target_concurrent_sessions",
    ] {
        assert!(
            header.iter().any(|name| name == column),
            "no {column} in {header:?}"
        );
    }
    assert_eq!(rows.len(), 6);
    let column = |name: &str| header.iter().position(|column| column == name).expect(name);
    for (row, run) in rows.iter().zip(runs(&summary)) {
        assert_eq!(row.len(), header.len());
        assert_eq!(row[column("num_requests")], "6");
        let ttfc: f64 = row[column("ttfc_p99")].parse().expect("a number");
        let of_summary = run["key_metrics"]["ttfc_p99"].as_f64().expect("a number");
        assert!((ttfc - of_summary).abs() < 1e-12, "{ttfc} is not {of_summary}");
    }
    assert!(stdout(&output).contains("sweep: "), "{}", stdout(&output));
}

#[test]
fn files_are_included_and_lists_are_lists_of_scenarios() {
    let folder = tempfile::tempdir().expect("a folder");
    scenario(
        folder.path(),
        "traffic.yml",
        "type: concurrent\ntarget_concurrent_sessions: !expand [1, 3]\nrampup_seconds: 0\n",
    );
    scenario(folder.path(), "base.yml", &text("!include traffic.yml", "100"));
    let file = scenario(
        folder.path(),
        "list.yml",
        "- !include base.yml\n- <<: !include base.yml\n  seed: 5\n",
    );
    let output = simulate(folder.path(), &file, &["--set", "runtime.max_sessions=3"]);
    assert_code(&output, 0);
    let summary = json(&sweep_folder(folder.path()), "sweep_summary.json");
    let runs = runs(&summary);
    assert_eq!(runs.len(), 4, "two of each scenario of the list");
    let sizes: Vec<u64> = runs.iter().filter_map(|run| run["batch_size"].as_u64()).collect();
    assert_eq!(sizes, [1, 3, 1, 3]);
    for run in &runs {
        assert_eq!(
            run["summary_stats"]["Number of Completed Requests"], 3,
            "the override counts for all"
        );
    }
    // An error in an included file is reported with its position in that file.
    scenario(
        folder.path(),
        "traffic.yml",
        "type: concurrent\ntarget_concurent_sessions: 1\n",
    );
    let output = simulate(folder.path(), &file, &[]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("traffic.yml:2"), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("target_concurrent_sessions"),
        "{}",
        stderr(&output)
    );
}

/// Remarks that apply to every run are printed once.
#[test]
fn note_about_all_runs_is_printed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.yml", &text(CLOSED, "!expand [64, 128]"));
    let output = simulate(
        folder.path(),
        &file,
        &["--client.api_base", "http://server.example/v1"],
    );
    assert_code(&output, 0);
    let said = stderr(&output);
    let about_tokenizer = "note: prompts are measured with the embedded tokenizer";
    assert_eq!(said.matches(about_tokenizer).count(), 1, "{said}");
}

#[test]
fn a_loop_in_lua_is_a_sweep() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
local scenarios = {}
for _, tokens in ipairs({ 4, 8 }) do
  for _, seed in ipairs({ 1, 2 }) do
    table.insert(scenarios, {
      seed = seed,
      session_generator = { type = "lua", sessions = function(index, rng)
        return { requests = { { user = synthetic(20), output = { tokens = tokens, exact = true } } } }
      end },
      traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 },
      client = { type = "openai_chat_completions", api_base = "sim://default" },
      runtime = { max_sessions = 5 },
    })
  end
end
return scenarios
"#;
    let file = scenario(folder.path(), "s.lua", text);
    let output = simulate(folder.path(), &file, &[]);
    assert_code(&output, 0);
    let summary = json(&sweep_folder(folder.path()), "sweep_summary.json");
    let outputs: Vec<f64> = runs(&summary)
        .iter()
        .filter_map(|run| run["summary_stats"]["Number of Output Tokens (Mean)"].as_f64())
        .collect();
    // Each scenario has the functions of its iteration of the loop.
    assert_eq!(outputs, [4.0, 4.0, 8.0, 8.0]);
    let seeds: Vec<u64> = runs(&summary)
        .iter()
        .filter_map(|run| run["settings"]["seed"].as_u64())
        .collect();
    assert_eq!(seeds, [1, 2, 1, 2]);
}

#[test]
fn failing_run_does_not_stop_the_sweep() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = text(CLOSED, "100")
        .replace(
            "error_rate < 1%",
            "!expand [\"error_rate < 1%\", \"mean(ttfc) < 1us\", \"p99(ttfc) < 1h\"]",
        )
        .replace("\"!expand", "!expand")
        .replace("]\"]", "]]");
    let file = scenario(folder.path(), "s.yml", &text);
    let output = simulate(folder.path(), &file, &[]);
    assert_code(&output, 3);
    let sweep = sweep_folder(folder.path());
    let summary = json(&sweep, "sweep_summary.json");
    let codes: Vec<u64> = runs(&summary)
        .iter()
        .filter_map(|run| run["exit_code"].as_u64())
        .collect();
    assert_eq!(codes, [0, 3, 0]);
    let failed = &runs(&summary)[1];
    assert_eq!(failed["all_slos_met"], false);
    assert!(
        failed["failure"].as_str().is_some_and(|why| why.contains("SLO")),
        "{failed}"
    );
    assert!(
        json(&sweep, "sweep_manifest.json")["runs"]
            .as_array()
            .is_some_and(|runs| runs.len() == 3)
    );
}

/// In the first run a check of the run fails: the overview and the run's own file both report the
/// objectives as unknown.
#[test]
fn overview_after_a_plugin_failure_does_not_report_all_met() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "lua", name = "v", check = function(results)
      if results:stats("ttfc", {}).count < 30 then error("too few") end
      return { { name = "enough", met = true, threshold = 30 } }
    end }"#;
    let one = labelled(10, asked, "");
    let text = format!(
        "local function one() {one} end\nlocal few, many = one(), one()\nmany.runtime.max_sessions = 20\nreturn {{ few, many }}\n"
    );
    let output = simulate(folder.path(), &scenario(folder.path(), "s.lua", &text), &[]);
    assert_code(&output, 4);
    let sweep = sweep_folder(folder.path());
    let runs = runs(&json(&sweep, "sweep_summary.json"));
    assert_eq!(runs[0].get("all_slos_met"), Some(&Value::Null));
    assert_eq!(runs[1]["all_slos_met"], true);
    let (header, rows) = table(&sweep);
    let met = header
        .iter()
        .position(|column| column == "all_slos_met")
        .expect("a column");
    assert_eq!((rows[0][met].as_str(), rows[1][met].as_str()), ("", "True"));
    // The number on the terminal is in the files.
    assert!(
        stdout(&output).contains("run 1") && runs[0]["run"] == 1,
        "{}",
        stdout(&output)
    );
    assert_eq!((&runs[1]["run_index"], &runs[1]["run"]), (&1.into(), &2.into()));
}

/// A run that cannot be carried out also has a row.
#[test]
fn sweep_continues_after_a_run_that_cannot_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.yml", &text(CLOSED, "100"));
    let out = folder.path().join("out");
    let output = veeksha([
        "run",
        &file,
        "--output_dir",
        path(&out),
        "--set",
        "client.api_base=!expand [\"http://127.0.0.1:1/v1\", \"sim://fast\"]",
        "--client.model",
        "m",
    ]);
    assert_code(&output, 5);
    let sweep = sweep_folder(folder.path());
    let summary = json(&sweep, "sweep_summary.json");
    let codes: Vec<u64> = runs(&summary)
        .iter()
        .filter_map(|run| run["exit_code"].as_u64())
        .collect();
    assert_eq!(codes, [5, 0], "{}", stderr(&output));
    assert!(runs(&summary)[0]["failure"].is_string());
    let (header, rows) = table(&sweep);
    let column = header
        .iter()
        .position(|name| name == "exit_code")
        .expect("a column");
    assert_eq!([&rows[0][column], &rows[1][column]], ["5", "0"]);
}

#[test]
fn stopped_sweep_keeps_its_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(
        folder.path(),
        "s.yml",
        &text(
            "{ type: concurrent, target_concurrent_sessions: !expand [1, 2, 3], rampup_seconds: 0 }",
            "100",
        ),
    );
    let out = folder.path().join("out");
    let mut command = program();
    command.args([
        "run",
        &file,
        "--output_dir",
        path(&out),
        "--client.api_base",
        "sim://slow",
    ]);
    command
        .args(["--set", "runtime.max_sessions=100000"])
        .args(crate::support::UNJUDGED);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut begun = false;
    for _ in 0..300 {
        std::thread::sleep(Duration::from_millis(100));
        let sweep = std::fs::read_dir(&out)
            .ok()
            .and_then(|mut entries| entries.next())
            .and_then(Result::ok);
        let run = sweep.map(|sweep| sweep.path().join("latest/metrics/request_level_metrics.jsonl"));
        begun =
            run.is_some_and(|rows| std::fs::read_to_string(rows).is_ok_and(|rows| rows.lines().count() >= 2));
        if begun {
            break;
        }
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert!(begun, "no requests after half a minute");
    assert_code(&output, 130);
    let sweep = sweep_folder(folder.path());
    let summary = json(&sweep, "sweep_summary.json");
    assert_eq!(
        (&summary["num_runs"], &summary["num_planned"]),
        (&1.into(), &3.into())
    );
    let run = &runs(&summary)[0];
    assert_eq!(run["exit_code"], 130);
    assert!(
        run["summary_stats"]["Number of Completed Requests"].as_u64() >= Some(2),
        "{run}"
    );
}

#[test]
fn check_plans_every_run_of_a_sweep_with_durations() {
    let output = veeksha(["check", "scenarios/sweep.yml"]);
    assert_code(&output, 0);
    let said = stdout(&output);
    // Three runs of at most a minute.
    for words in [
        "Runs",
        "traffic_scheduler.target_concurrent_sessions",
        "1, 4, 16",
        "at most about 3 min",
        "run 3",
        "at most about 60 s",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    let paced = "{ type: rate, interval_generator: { type: fixed, interval: !expand [0.5, 2] } }";
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.yml", &text(paced, "64"));
    let output = veeksha(["check", &file]);
    assert_code(&output, 0);
    // Six sessions: 3 s and 12 s.
    for words in ["about 15 s", "about 3 s", "about 12 s"] {
        assert!(
            stdout(&output).contains(words),
            "no {words:?} in {}",
            stdout(&output)
        );
    }
    let one = veeksha([
        "check",
        "scenarios/sweep.yml",
        "--set",
        "traffic_scheduler.target_concurrent_sessions=4",
    ]);
    assert_code(&one, 0);
    assert!(!stdout(&one).contains("Its runs"), "{}", stdout(&one));
}

/// The message of an error in one run names the run; an error in all of them is reported once. Both
/// precede the first run.
#[test]
fn error_in_one_run_of_a_sweep_names_its_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.yml", &text(CLOSED, "!expand [64, 0, 128, -5]"));
    for command in ["check", "simulate"] {
        let out = folder.path().join("out");
        let output = veeksha([command, &file, "--output_dir", path(&out)]);
        let code = output.status.code();
        assert!(
            code == Some(2) || code == Some(4),
            "{code:?}: {}",
            stderr(&output)
        );
        let said = stderr(&output);
        for words in ["run 2 (", "body_length_generator.value = 0", "run 4 (", "of 4"] {
            assert!(said.contains(words), "{command}: no {words:?} in {said}");
        }
        assert!(!said.contains("run 1 ("), "{said}");
        assert!(!out.exists(), "nothing is run");
    }
    // Errors that are found only when plugins are opened: objectives, tokenizers, plugins.
    let slos = r#"slos: !expand [["error_rate < 1%"], ["p99(ttcf) < 1s"]]"#;
    let metric = text(CLOSED, "64").replace(r#"slos: ["error_rate < 1%"]"#, slos);
    let tokenizer = format!("seed: !expand [1, 2]{}", text(CLOSED, "64"))
        .replace("client: {", "client: {tokenizer: nowhere.json, ");
    let profile = text(CLOSED, "64").replace(
        "\"sim://default\"",
        "!expand [\"sim://default\", \"sim://nowhere.yml\"]",
    );
    for (name, scenario_text, words) in [
        ("profile.yml", &profile, "in run 2 ("),
        ("metric.yml", &metric, "in run 2 ("),
        ("tokenizer.yml", &tokenizer, "in all 2 runs"),
    ] {
        let file = scenario(folder.path(), name, scenario_text);
        let told = ["check", "simulate", "run"].map(|command| {
            let out = folder.path().join("unmade");
            let output = veeksha([command, &file, "--output_dir", path(&out)]);
            assert_code(&output, 2);
            assert!(!out.exists(), "{command} of {name} makes nothing");
            stderr(&output)
        });
        assert!(told[0].contains(words), "{}", told[0]);
        assert!(told.iter().all(|said| *said == told[0]), "{told:?}");
    }
    let all = text(CLOSED, "!expand [64, 128]").replace("max_sessions", "max_session");
    let file = scenario(folder.path(), "all.yml", &all);
    let output = veeksha(["check", &file]);
    assert_code(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("in all 2 runs"), "{said}");
    assert_eq!(said.matches("max_sessions").count(), 1, "{said}");
}

/// Every setting in a manifest is a key of its run's configuration, and every path is an existing
/// file.
#[test]
fn a_manifest_names_keys_and_files_that_exist() {
    let windows = "    text_channel: { decode_window_enabled: !expand [true, false] }\n";
    let sweeps = [
        text(CLOSED, "!expand [64, 96]"),
        text(
            "{ type: concurrent, target_concurrent_sessions: !expand [1, 2], rampup_seconds: 0 }",
            "64",
        ) + windows,
        text(CLOSED, "64") + "seed: !expand [1, 2]\n",
        text(
            "!expand [{ type: concurrent, target_concurrent_sessions: 1 }, { type: rate, interval_generator: { type: fixed, interval: 0.1 } }]",
            "64",
        ),
    ];
    for (index, sweep) in sweeps.iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = scenario(folder.path(), "s.yml", sweep);
        assert_code(&simulate(folder.path(), &file, &[]), 0);
        let manifest = json(&sweep_folder(folder.path()), "sweep_manifest.json");
        let mut windows = 0;
        for run in runs(&manifest) {
            let folder = Path::new(run["run_dir"].as_str().expect("a folder"));
            for (key, value) in run.as_object().expect("an object") {
                if !key.ends_with("_path") && !key.ends_with("_dir") {
                    continue;
                }
                match value.as_str() {
                    Some(path) => assert!(Path::new(path).exists(), "{key} of sweep {index}: {path}"),
                    None => assert!(key == "decode_window_metrics_path" && value.is_null(), "{key}"),
                }
            }
            let there = folder.join("metrics/decode_window_metrics.json").exists();
            assert_eq!(run["decode_window_metrics_path"].is_string(), there);
            windows += usize::from(there);
            let config = std::fs::read_to_string(folder.join("config.yml")).expect("a configuration");
            let settings = run["settings"].as_object().expect("settings");
            assert!(!settings.is_empty());
            for path in settings.keys() {
                // The keys of the path, each nested more deeply than the one before.
                let mut rest = config.as_str();
                for key in path
                    .split(['.', '[', ']'])
                    .filter(|key| key.parse::<u32>().is_err() && !key.is_empty())
                {
                    let at = rest.find(&format!("{key}:"));
                    rest = &rest[at.unwrap_or_else(|| panic!("no {key} of {path} in {config}"))..];
                }
            }
        }
        assert_eq!(windows, if index == 1 { 2 } else { 0 });
    }
}

#[test]
fn table_cells_are_not_formulas() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = text(CLOSED, "64").replace(
        "sim://default\"",
        "sim://default\", model: !expand [\"=1+1\", \"@SUM(A1)\"]",
    );
    let file = scenario(folder.path(), "s.yml", &text);
    assert_code(&simulate(folder.path(), &file, &[]), 0);
    let (header, rows) = table(&sweep_folder(folder.path()));
    let column = header
        .iter()
        .position(|name| name == "client.model")
        .expect("a column");
    assert_eq!([&rows[0][column], &rows[1][column]], ["'=1+1", "'@SUM(A1)"]);
}

#[test]
fn a_sweep_of_one_is_a_run_and_a_sweep_of_too_many_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "one.yml", &text(CLOSED, "!expand [100]"));
    assert_code(&simulate(folder.path(), &file, &[]), 0);
    assert!(
        folder
            .path()
            .join("out/latest/metrics/summary_stats.json")
            .exists()
    );
    let many: Vec<String> = (1..=101).map(|number| number.to_string()).collect();
    let many = many.join(", ");
    let text = text(CLOSED, &format!("!expand [{many}]")) + &format!("seed: !expand [{many}]\n");
    let file = scenario(folder.path(), "many.yml", &text);
    let output = simulate(folder.path(), &file, &[]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("10,000") || stderr(&output).contains("10000"),
        "{}",
        stderr(&output)
    );
    let empty = scenario(folder.path(), "none.yml", "seed: !expand []\n");
    assert_code(&simulate(folder.path(), &empty, &[]), 2);
    assert!(root().join("scenarios/sweep.yml").exists());
}
