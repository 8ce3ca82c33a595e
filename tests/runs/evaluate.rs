//! Evaluations of a recorded run: identical metrics, other objectives, other plugins.

mod folders;
mod same_figures;
mod verdicts;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::simulated::{ends_with, evaluate, evaluated, labelled, path, real, simulated};
use crate::support::{assert_code, scenario, stderr, stdout};

/// A scenario with every option of an evaluation: labels, windows, plugins of both kinds,
/// conditions, decode windows.
const ASKED: &str = r#"
{ type = "performance",
  slos = { 'p99(ttfc{tier="gold"}) < 2s', "max(ttfc, window = 200ms) < 2s", "p99(longest_gap) < 2s", "p90(fluidity_index) >= 0",
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
{ type = "fluidity", prefill_deadline = 0.3, decode_deadline = 0.03 },
"#;

/// Returns the content of every metrics file below a folder, by name.
fn figures(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["", "metrics"] {
        for entry in std::fs::read_dir(run.join(folder)).expect("a folder of a run") {
            let file = entry.expect("an entry").path();
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            let figures = [".json", ".csv", ".txt"].iter().any(|end| name.ends_with(end));
            if figures && name != "certificate.json" {
                files.insert(name, std::fs::read(&file).expect("a file"));
            }
        }
    }
    files
}

/// Asserts that two folders have the same metrics files, byte for byte.
#[track_caller]
fn assert_same_figures(run: &Path, anew: &Path) {
    let (live, again) = (figures(run), figures(anew));
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
    assert_eq!(trust(run), trust(anew));
}

#[test]
fn a_lua_plugin_that_did_not_exist_then_measures_and_judges() {
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
    let anew = evaluated(&run, &folder.path().join("anew"), &more, 0);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let pieces: Vec<f64> = rows
        .iter()
        .map(|row| row["tbc"].as_array().expect("gaps").len() as f64 + 1.0)
        .collect();
    let summary = json(&anew, "metrics/summary_stats.json");
    assert_eq!(summary["pieces (Count)"], pieces.len());
    let mean = pieces.iter().sum::<f64>() / pieces.len() as f64;
    let measured = summary["pieces (Mean)"].as_f64().expect("a mean");
    assert!((measured - mean).abs() < 1e-9, "{measured} is not {mean}");
    for file in ["pieces.csv", "pieces.png", "pieces.svg"] {
        assert!(anew.join("metrics").join(file).exists(), "{file}");
    }
    let slos = json(&anew, "metrics/slo_results.json");
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

/// The shipped example implements the fluidity index: it is 1 with deadlines that every token
/// meets, and almost 0 with deadlines that every token misses.
#[test]
fn a_component_measures_an_old_run_with_a_configuration_of_today() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(20, "", ""), &[]);
    let index = |config: &str, to: &str| {
        let more = [
            "--plugin",
            "plugins/dist/fluidity.wasm",
            "--plugin-config",
            config,
        ];
        let anew = evaluated(&run, &folder.path().join(to), &more, 0);
        for file in ["fluidity_index.csv", "fluidity_index.png", "fluidity_misses.csv"] {
            assert!(anew.join("metrics").join(file).exists(), "{file}");
        }
        let summary = json(&anew, "metrics/summary_stats.json");
        assert_eq!(summary["fluidity_index (Count)"], 40);
        summary["fluidity_index (Mean)"].as_f64().expect("a mean")
    };
    assert_eq!(
        index(r#"{"prefill_deadline": 60, "decode_deadline": 60}"#, "lax"),
        1.0
    );
    assert!(
        index(
            r#"{"prefill_deadline": 0.000001, "decode_deadline": 0.000001}"#,
            "strict"
        ) < 0.01
    );
    let wrong = [
        "--plugin",
        "plugins/dist/fluidity.wasm",
        "--plugin-config",
        r#"{"decode_deadlin": 1}"#,
    ];
    let output = evaluate(&run, &wrong);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let told = stderr(&output);
    assert!(
        told.starts_with("error: --plugin-config.decode_deadlin: ")
            && told.contains("did you mean `decode_deadline`?"),
        "{told}"
    );
}

#[test]
fn objectives_of_the_command_line_decide() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(30, "", ""), &[]);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let gold = rows
        .iter()
        .filter(|row| row["session_id"].as_u64().is_some_and(|id| id % 3 == 0));
    let gold = gold.count();
    let worst = rows
        .iter()
        .filter_map(|row| row["ttfc"].as_f64())
        .reduce(f64::max)
        .expect("a TTFC");
    let asked = |slo: &str| {
        let output = evaluate(&run, &["--json", "--slo", slo]);
        output.status.code()
    };
    assert_eq!(asked(&format!("count(ttfc{{tier=\"gold\"}}) >= {gold}")), Some(0));
    assert_eq!(asked(&format!("count(ttfc{{tier=\"gold\"}}) > {gold}")), Some(3));
    // No sample has such a label, and an objective without observations is not met.
    assert_eq!(asked("p99(ttfc{tier=\"silver\"}) < 1h"), Some(3));
    // The worst of all windows is the overall worst.
    assert_eq!(
        asked(&format!("max(ttfc, window = 150ms) <= {}s", worst + 1e-9)),
        Some(0)
    );
    assert_eq!(
        asked(&format!("max(ttfc, window = 150ms) < {}s", worst - 1e-9)),
        Some(3)
    );
    assert_eq!(asked("error_rate < 1%"), Some(0));
    assert_eq!(asked("error_rate > 1%"), Some(3));

    let more = ["--slo", "count(ttfc, window = 100ms) >= 1"];
    let anew = evaluated(&run, &folder.path().join("anew"), &more, 0);
    let result = &json(&anew, "metrics/slo_results.json")["results"][0];
    assert_eq!(
        result["sample_count"], result["worst_window"]["sample_count"],
        "{result}"
    );
    assert!(result["worst_window"]["windows"].as_u64() >= Some(2), "{result}");
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_place_and_a_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(4, "", ""), &[]);
    for (slo, says) in [
        ("p99(tftc) < 1s", "did you mean `ttfc`?"),
        ("p99(ttfc) < 5%", "%"),
        ("ttfc < 1s", "p99(ttfc)"),
        ("p99(error_rate) < 1%", "one figure of the whole run"),
        ("p101(ttfc) < 1s", "column"),
        ("p99(ttfc) is 1s", "column 11"),
        ("p99(mine) < 1", "there is no metric `mine`"),
    ] {
        let output = evaluate(&run, &["--slo", slo]);
        assert_code(&output, 2);
        assert!(stderr(&output).contains("--slo"), "{}", stderr(&output));
        assert!(
            stderr(&output).contains(says),
            "no {says:?} in {}",
            stderr(&output)
        );
    }
    assert!(
        !run.join("evaluations").exists(),
        "nothing is written before everything is known to be right"
    );
}

#[test]
fn json_is_strict_and_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(10, "", ""), &[]);
    let output = evaluate(&run, &["--json"]);
    assert_code(&output, 0);
    let printed: Value = serde_json::from_str(&stdout(&output)).expect("one JSON object and nothing else");
    assert_eq!(printed, json(&run, "metrics/summary_stats.json"));
    assert!(!run.join("evaluations").exists(), "nothing is written");
}

#[test]
fn percentiles_of_too_few_samples_are_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", slos = { "p99(ttfc) < 1s", "p50(ttfc) < 1s" } }"#;
    let (output, few) = ends_with(folder.path(), "few.lua", &labelled(5, asked, ""), &[], 0);
    let marked = |run: &Path| {
        let marked = json(run, "metrics/summary_stats.json")["P99 of Fewer than 100 Samples"].clone();
        let marked = marked.as_array().expect("a list").clone();
        marked.iter().any(|name| name == "Time to First Chunk (P99)")
    };
    assert!(marked(&few));
    assert!(stdout(&output).contains("P99 of 10"), "{}", stdout(&output));
    let slos = json(&few, "metrics/slo_results.json");
    assert_eq!(slos["results"][0]["too_few_samples"], true);
    assert_eq!(slos["results"][1]["too_few_samples"], false);
    assert_eq!(slos["results"][0]["sample_count"], 10);
    let many = simulated(folder.path(), "many.lua", &labelled(50, asked, ""), &[]);
    assert!(!marked(&many), "a hundred requests are enough");
}

/// A sample that is not finite ends the metric; the rest of the run is unaffected.
#[test]
fn a_plugin_that_returns_no_number_is_named_with_request_and_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"
{ type = "performance", slos = { "p99(ttfc) < 1s" } },
{ type = "lua", name = "mine", metrics = { broken = { observe = function(request)
    return if request.session == 3 and request.node == 1 then 0 / 0 else 1
  end } } },
"#;
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(10, asked, ""), &[], 4);
    let said = stderr(&output);
    for part in ["mine", "broken", "3/", "NaN"] {
        assert!(
            said.to_lowercase().contains(&part.to_lowercase()),
            "no {part:?} in {said}"
        );
    }
    assert_eq!(
        json(&run, "metrics/summary_stats.json")["Number of Completed Requests"],
        20
    );
    assert_eq!(json(&run, "metrics/slo_results.json")["all_slos_met"], true);
    for file in [
        "metrics/ttfc.csv",
        "metrics/ttfc.png",
        "report.html",
        "health_check_results.txt",
    ] {
        assert!(run.join(file).exists(), "{file}");
    }

    // The same for a component, with a recorded run.
    let whole = simulated(
        folder.path(),
        "whole.lua",
        &labelled(10, "", ""),
        &["--set", "seed=8"],
    );
    let plugin = ["--plugin", "tests/guests/dist/hostile-measure.wasm"];
    let config = |behaviour: &str| format!(r#"{{"behaviour": "{behaviour}"}}"#);
    for (behaviour, says) in [("finish-nan", "NaN"), ("finish-trap", "it does not end")] {
        let anew = folder.path().join(behaviour);
        let config = config(behaviour);
        let output = evaluate(
            &whole,
            &[&plugin[..], &["--plugin-config", &config, "--to", path(&anew)]].concat(),
        );
        assert_code(&output, 4);
        assert!(stderr(&output).contains("hostile-measure"), "{}", stderr(&output));
        assert!(
            stderr(&output).contains(says),
            "no {says:?} in {}",
            stderr(&output)
        );
        let summary = json(&anew, "metrics/summary_stats.json");
        assert_eq!(summary["Number of Completed Requests"], 20);
        assert_eq!(summary["one (Count)"], 20, "what it said before counts");
    }
    let good = config("good");
    let output = evaluate(
        &whole,
        &[&plugin[..], &["--plugin-config", &good, "--json"]].concat(),
    );
    assert_code(&output, 0);
}
