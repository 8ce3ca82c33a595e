//! Evaluations of a recorded run: identical metrics, other objectives, other plugins.

mod folders;
mod same_results;
mod verdicts;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::simulated::{ends_with, evaluate, evaluated, labelled, path, real, simulated};
use crate::support::{assert_code, root, scenario, stderr, stdout, veeksha};

/// A scenario with every option of an evaluation: labels, windows, plugins of both kinds,
/// conditions, decode windows. The SLO check of its component is not met.
const ASKED: &str = r#"
{ type = "performance",
  slos = { 'p99(ttfc{tier="gold"}) < 2s', "max(ttfc, window = 200ms) < 2s", "p99(longest_gap) < 2s", "p90(excess) >= 0",
           { type = "constant", metric = "tbc", percentile = 0.9, value = 0.5 } },
  goodput = { "ttfc <= 900ms" },
  text_channel = { decode_window_enabled = true },
},
{ type = "lua", name = "mine",
  metrics = { longest_gap = { unit = "s", better = "less", summary = "longest gap of an answer",
    observe = function(request)
      local worst
      for i = 2, #request.chunk_at do
        worst = math.max(worst or 0, request.chunk_at[i] - request.chunk_at[i - 1])
      end
      return worst
    end } },
  good = function(request) return request.ttfc < 0.4 end,
  check = function(results)
    local stats = results:stats("longest_gap", {})
    return {
      { name = "no long gap", met = stats.max < 2, observed = stats.max, threshold = 2, detail = "the longest of all" },
      { name = "nothing to see", met = true, threshold = -0.5 },
    }
  end },
{ type = "wasm", plugin = "ROOT/tests/guests/dist/sdk-measure.wasm", config = { limit = 1000 } },
"#;

/// Returns [`ASKED`] with the paths of its components.
fn asked() -> String {
    ASKED.replace("ROOT", root().to_str().expect("UTF-8"))
}

/// Returns the content of every metrics file below a folder, by name.
fn result_files(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["", "metrics", "metrics/plugins"] {
        let entries = match std::fs::read_dir(run.join(folder)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.ends_with("plugins") => {
                continue;
            }
            entries => entries.expect("a folder of a run"),
        };
        for entry in entries {
            let file = entry.expect("an entry").path();
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            let is_result = [".json", ".csv", ".txt"].iter().any(|end| name.ends_with(end));
            // An evaluation calls other plugins than the run: their use of resources is not a
            // result.
            let is_of_the_process = ["certificate.json", "plugin_usage.json"].contains(&&*name);
            if is_result && !is_of_the_process {
                files.insert(name, std::fs::read(&file).expect("a file"));
            }
        }
    }
    files
}

/// Asserts that two folders have the same metrics files, byte for byte.
#[track_caller]
fn assert_same_results(run: &Path, evaluated: &Path) {
    let (live, again) = (result_files(run), result_files(evaluated));
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&live), names(&again));
    assert!(
        live.len() > 40,
        "JSON and CSV of the metrics and plots: {:?}",
        names(&live)
    );
    for (name, bytes) in &live {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if bytes != &again[name] {
            let (live, again) = (text(bytes), text(&again[name]));
            let line = live
                .lines()
                .zip(again.lines())
                .find(|(live, again)| live != again);
            panic!("{name} differs; the first line that does, live and from the record: {line:#?}");
        }
    }
    // The settings of the threads are not part of the record; all computed values are.
    let trust = |run: &Path| {
        let mut trust = json(run, "certificate.json");
        trust.as_object_mut().expect("an object").remove("threads");
        trust
    };
    assert_eq!(trust(run), trust(evaluated));
}

/// The files of a plugin's metric never overwrite others, whatever its name is.
#[test]
fn a_plugin_metric_may_have_the_name_of_a_result_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let plugin = r#"{ type = "lua", name = "mine",
  metrics = { time_slices = { unit = "1", better = "less", summary = "chunks",
    observe = function(request) return #request.chunk_at end } } }"#;
    let run = simulated(folder.path(), "s.lua", &labelled(20, plugin, ""), &[]);
    let read = |file: &str| std::fs::read_to_string(run.join("metrics").join(file)).expect("a file");
    assert!(
        read("time_slices.csv").starts_with("from"),
        "{}",
        read("time_slices.csv")
    );
    assert!(
        read("plugins/time_slices.csv").starts_with(",cdf,time_slices"),
        "{}",
        read("plugins/time_slices.csv")
    );
}

#[test]
fn lua_plugin_measures_and_judges_an_old_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(40, "", ""), &[]);
    let plugin = scenario(
        folder.path(),
        "pieces.lua",
        r#"return {
  name = "pieces",
  metrics = { pieces = { unit = "1", better = "higher", summary = "chunks of an answer",
    observe = function(request) return #request.chunk_at end } },
  good = function(request) return request.labels.tier == "gold" end,
  check = function(results)
    local stats = results:stats("pieces", {})
    return { { name = "some pieces", met = stats.min >= 4, observed = stats.min, threshold = 4, detail = "the least" } }
  end,
}"#,
    );
    let more = [
        "--plugin",
        &plugin,
        "--slo",
        "max(pieces) <= 12",
        "--slo",
        "goodput > 0.3",
    ];
    let evaluation = evaluated(&run, &folder.path().join("again"), &more, 0);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let pieces: Vec<f64> = rows
        .iter()
        .map(|row| row["tbc"].as_array().expect("gaps").len() as f64 + 1.0)
        .collect();
    let summary = json(&evaluation, "metrics/summary_stats.json");
    assert_eq!(summary["pieces (Count)"], pieces.len());
    let mean = pieces.iter().sum::<f64>() / pieces.len() as f64;
    let measured = summary["pieces (Mean)"].as_f64().expect("a mean");
    assert!((measured - mean).abs() < 1e-9, "{measured} is not {mean}");
    for file in ["pieces.csv", "pieces.png", "pieces.svg"] {
        assert!(evaluation.join("metrics/plugins").join(file).exists(), "{file}");
    }
    let slos = json(&evaluation, "metrics/slo_results.json");
    let result = |name: &str| {
        let results = slos["results"].as_array().expect("results");
        let found = results.iter().find(|result| result["metric"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {slos}")).clone()
    };
    assert_eq!(result("some pieces")["plugin"], "pieces");
    assert_eq!(result("some pieces")["met"], true);
    let most = pieces.iter().copied().reduce(f64::max);
    assert_eq!(result("pieces")["observed_value"].as_f64(), most);
    // Every third session is gold, and only gold sessions are good.
    let gold = rows
        .iter()
        .filter(|row| row["session_id"].as_u64().is_some_and(|id| id % 3 == 0))
        .count();
    assert_eq!(summary["pieces (Max)"].as_f64(), most);
    let goodput = result("goodput")["observed_value"].as_f64().expect("goodput");
    assert!(
        (goodput - gold as f64 / rows.len() as f64).abs() < 1e-12,
        "{goodput}"
    );
}

/// The component counts the output tokens above its limit: none above a limit that no answer
/// reaches, and some above a limit of one token.
#[test]
fn component_measures_a_recorded_run_with_a_new_configuration() {
    let component = root().join("tests/guests/dist/sdk-measure.wasm");
    let component = component.to_str().expect("UTF-8");
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(20, "", ""), &[]);
    // The component's SLO check expects half a second to the first token, which the simulator never
    // takes: exit code 3.
    let excess = |config: &str, to: &str| {
        let more = ["--plugin", component, "--plugin-config", config];
        let evaluated = evaluated(&run, &folder.path().join(to), &more, 3);
        for file in ["excess.csv", "excess.png", "most.csv"] {
            assert!(evaluated.join("metrics/plugins").join(file).exists(), "{file}");
        }
        let summary = json(&evaluated, "metrics/summary_stats.json");
        assert_eq!(summary["excess (Count)"], 40);
        summary["excess (Mean)"].as_f64().expect("a mean")
    };
    assert_eq!(excess(r#"{"limit": 1000}"#, "lax"), 0.0);
    assert!(excess(r#"{"limit": 1}"#, "strict") > 0.0);
    let wrong = ["--plugin", component, "--plugin-config", r#"{"limitt": 1}"#];
    let output = evaluate(&run, &wrong);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("unknown key `limitt`") && stderr(&output).contains("did you mean `limit`?"),
        "{}",
        stderr(&output)
    );
}
