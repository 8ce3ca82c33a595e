//! A sweep from its text to its files, read like a script that expects Veeksha's files.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "outside a test function the configuration does not know that this is a test"
)]

mod files;
mod overview;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use veeksha_experiments::{CellOutcome, KeyMetrics, Sweep, SweepError};
use veeksha_scenario::{Documents, Scenario, Setting, Shipped};

const STAMP: &str = "21_11_2026-08_05_09";

/// Returns the scenarios of a text, checked against a generator that accepts any key.
fn scenarios(yaml: &str) -> Vec<(Scenario, Vec<Setting>)> {
    let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
    let shipped = Shipped {
        generators: BTreeMap::from([("synthetic".to_owned(), open)]),
        ..Shipped::default()
    };
    let mut nothing = |_: &Path| Err("nothing is included".to_owned());
    let documents = Documents::from_yaml(yaml, Path::new("s.yml"), &mut nothing).unwrap();
    documents
        .cells()
        .unwrap()
        .into_iter()
        .map(|cell| {
            let scenario = cell.document.check(&shipped);
            (
                scenario.unwrap_or_else(|problems| panic!("{problems}")),
                cell.settings,
            )
        })
        .collect()
}

fn plan(yaml: &str) -> Sweep {
    let scenarios = scenarios(yaml);
    Sweep::plan(
        scenarios
            .iter()
            .map(|(scenario, settings)| (scenario, settings.clone())),
    )
}

/// Returns a sweep over prompt lengths in a closed loop, into `folder`.
fn lengths(folder: &Path) -> Sweep {
    plan(&format!(
        "
output_dir: {}
session_generator:
  type: synthetic
  channels:
    - type: text
      body_length_generator: {{type: fixed, value: !expand [128, 256]}}
  output_spec: {{text: {{output_length_generator: {{type: fixed, value: 32}}}}}}
traffic_scheduler: {{type: concurrent, target_concurrent_sessions: !expand [4, 8], rampup_seconds: 0}}
runtime: {{max_sessions: 40, benchmark_timeout: 60}}
",
        folder.display()
    ))
}

/// Returns the outcome of a good run.
fn good(run_dir: &Path) -> CellOutcome {
    CellOutcome {
        run_dir: Some(run_dir.to_owned()),
        exit_code: 0,
        failure: None,
        duration_seconds: Some(61.25),
        verdict: Some("VALID".to_owned()),
        summary_stats: json!({
            "Number of Requests": 40,
            "Number of Completed Requests": 39,
            "Error Rate": 0.025,
            "Time to First Chunk (P50)": 0.0125,
            "Time to First Chunk (P99)": 0.25,
            "Time Between Chunks (P50)": 0.01,
            "Time Between Chunks (P99)": 0.02,
            "Time per Output Token (P50)": 0.011,
            "Time per Output Token (P99)": 0.021,
            "End to End Latency (P50)": 0.5,
            "End to End Latency (P99)": 1.5,
            "Number of Output Tokens (Min)": 31.0,
            "Number of Output Tokens (Max)": 32.0,
        }),
        throughput_metrics: json!({
            "tpot_based_throughput": 90.5,
            "tbc_based_throughput": 50.0,
            "requests_per_second": 0.65,
            "output_tokens_per_second": 20.8,
            "total_tokens_per_second": 104.0,
            "goodput": 0.95,
        }),
        slo_results: json!({"all_slos_met": true, "results": [{"met": true, "metric": "ttfc"}]}),
        prefill_stats: Value::Null,
        decode_window_metrics: Value::Null,
        health_checks: Value::Null,
    }
}

fn interrupted() -> CellOutcome {
    CellOutcome {
        exit_code: 130,
        failure: Some("interrupted, after 3 requests".to_owned()),
        ..CellOutcome::default()
    }
}

fn json_file(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// Reads a CSV file as rows by column.
fn csv_file(folder: &Path, name: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(folder.join(name)).unwrap();
    let heading = reader.headers().unwrap().clone();
    reader
        .records()
        .map(|row| {
            let row = row.unwrap();
            heading
                .iter()
                .zip(&row)
                .map(|(name, cell)| (name.to_owned(), cell.to_owned()))
                .collect()
        })
        .collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn runs_keep_the_scenarios_order() {
    let sweep = lengths(Path::new("out"));
    let settings: Vec<Vec<String>> = sweep
        .cells()
        .iter()
        .map(|cell| cell.settings.iter().map(Setting::text).collect())
        .collect();
    assert_eq!(settings, [["128", "4"], ["128", "8"], ["256", "4"], ["256", "8"]]);
    assert_eq!(
        sweep
            .cells()
            .iter()
            .map(|cell| cell.run_index)
            .collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert_eq!(sweep.groups().len(), 1);
    let config = &sweep.cells()[3].config;
    assert_eq!(
        (config.context_length, config.output_length, config.concurrency),
        (Some(256), Some(32), Some(8))
    );
}

#[test]
fn summary_contains_traffic_settings() {
    for (yaml, traffic) in [
        (
            "{type: concurrent, target_concurrent_sessions: 4, rampup_seconds: 2}",
            json!({"traffic_type": "concurrent", "target_concurrent_sessions": 4, "rampup_seconds": 2.0}),
        ),
        (
            "{type: rate, interval_generator: {type: poisson, arrival_rate: 3}}",
            json!({"traffic_type": "rate", "interval_generator_type": "poisson", "arrival_rate": 3.0}),
        ),
        (
            "{type: rate, interval_generator: {type: fixed, interval: 0.5}}",
            json!({"traffic_type": "rate", "interval_generator_type": "fixed", "interval_s": 0.5}),
        ),
        (
            "{type: rate, interval_generator: {type: gamma, arrival_rate: 3, cv: 2}}",
            json!({"traffic_type": "rate", "interval_generator_type": "gamma", "arrival_rate": 3.0, "cv": 2.0}),
        ),
    ] {
        let sweep = plan(&format!("traffic_scheduler: {yaml}"));
        assert_eq!(Value::Object(sweep.cells()[0].config.traffic.clone()), traffic);
    }
    let uniform = plan(
        "session_generator: {type: synthetic, channels: [{type: text, body_length_generator: {type: uniform, min: 1, max: 2}}]}",
    );
    assert_eq!(uniform.cells()[0].config.context_length, None);
}

/// The columns and keys that Veeksha documents, read as its users do.
#[test]
fn scenarios_are_grouped_by_their_output_folder() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name).display().to_string();
    let mut sweep = plan(&format!(
        "
- {{output_dir: {a}, seed: 1}}
- {{output_dir: {b}, seed: 2}}
- {{output_dir: {a}, seed: 3}}
",
        a = at("a"),
        b = at("b/c")
    ));
    assert_eq!(
        sweep
            .cells()
            .iter()
            .map(|cell| (cell.group, cell.run_index))
            .collect::<Vec<_>>(),
        [(0, 0), (1, 0), (0, 1)]
    );
    sweep.begin(STAMP).unwrap();
    let (a, b) = (
        root.path().join("a").join(format!("sweep_{STAMP}")),
        root.path().join("b/c").join(format!("sweep_{STAMP}")),
    );
    assert_eq!(sweep.run_folder(0).unwrap(), a);
    assert_eq!(sweep.run_folder(1).unwrap(), b);
    for index in 0..3 {
        sweep.record(index, good(Path::new("x"))).unwrap();
    }
    let seeds = |folder: &Path| -> Vec<String> {
        csv_file(folder, "sweep_summary.csv")
            .into_iter()
            .map(|row| row["seed"].clone())
            .collect()
    };
    assert_eq!(seeds(&a), ["1", "3"]);
    assert_eq!(seeds(&b), ["2"]);
}

#[test]
fn simultaneous_sweeps_get_separate_folders() {
    let root = tempfile::tempdir().unwrap();
    let folders: Vec<PathBuf> = (0..3)
        .map(|_| {
            let mut sweep = lengths(root.path());
            sweep.begin(STAMP).unwrap();
            sweep.run_folder(0).unwrap().to_owned()
        })
        .collect();
    let named = |end: &str| root.path().join(format!("sweep_{STAMP}{end}"));
    assert_eq!(folders, [named(""), named("-2"), named("-3")]);
}

#[test]
fn runs_with_equal_keys_are_all_kept() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = plan(&format!(
        "
output_dir: {}
seed: !expand [1, 2]
traffic_scheduler: {{type: concurrent, target_concurrent_sessions: 4}}
session_generator: {{type: synthetic, channels: [{{type: text, body_length_generator: {{type: fixed, value: 9}}}}]}}
",
        root.path().display()
    ));
    sweep.begin(STAMP).unwrap();
    for index in 0..2 {
        let outcome = CellOutcome {
            decode_window_metrics: json!({"config": {"min_active_requests": 3}, "windows": {"total_duration_s": index}}),
            ..good(Path::new("run"))
        };
        sweep.record(index, outcome).unwrap();
    }
    let folder = sweep.run_folder(0).unwrap();
    let stats = json_file(folder, "decode_stats.json");
    assert_eq!(stats["9_3"]["windows"]["total_duration_s"], 0);
    assert_eq!(stats["9_3_run1"]["windows"]["total_duration_s"], 1);
    let keys: Vec<String> = csv_file(folder, "decode_stats.csv")
        .into_iter()
        .map(|row| row["key"].clone())
        .collect();
    assert_eq!(keys, ["9_3", "9_3_run1"]);
}

#[test]
fn unconfigured_lengths_are_observed() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = plan(&format!(
        "output_dir: {}\nseed: !expand [1, 2]",
        root.path().display()
    ));
    sweep.begin(STAMP).unwrap();
    let mut equal = good(Path::new("a"));
    equal.summary_stats["Number of Output Tokens (Min)"] = json!(32.0);
    equal.prefill_stats = json!({"group_by": "x", "groups": {"700": {"count": 1}}});
    sweep.record(0, equal).unwrap();
    let mut unequal = good(Path::new("b"));
    unequal.prefill_stats = json!({"group_by": "x", "groups": {"700": {"count": 1}, "800": {"count": 1}}});
    sweep.record(1, unequal).unwrap();
    let rows = csv_file(sweep.run_folder(0).unwrap(), "sweep_summary.csv");
    assert_eq!(
        (
            rows[0]["output_length"].as_str(),
            rows[0]["context_length"].as_str()
        ),
        ("32", "700")
    );
    assert_eq!(
        (
            rows[1]["output_length"].as_str(),
            rows[1]["context_length"].as_str()
        ),
        ("", "")
    );
}

/// Without objectives nothing is met or missed.
#[test]
fn run_without_objectives_omits_their_keys() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = lengths(root.path());
    sweep.begin(STAMP).unwrap();
    let without = CellOutcome {
        slo_results: json!({"all_slos_met": true, "results": []}),
        ..good(Path::new("a"))
    };
    let missed = CellOutcome {
        slo_results: json!({"all_slos_met": false, "results": [{"met": false}]}),
        ..good(Path::new("b"))
    };
    // The SLO plugin failed, so its result is unknown.
    let not_known = CellOutcome {
        slo_results: json!({"all_slos_met": null, "results": [], "failed_plugins": [{"plugin": "v"}]}),
        exit_code: 4,
        ..good(Path::new("c"))
    };
    sweep.record(0, without).unwrap();
    sweep.record(1, missed).unwrap();
    sweep.record(2, not_known).unwrap();
    let folder = sweep.run_folder(0).unwrap();
    let runs = json_file(folder, "sweep_summary.json")["runs"].clone();
    assert_eq!(
        (runs[0].get("all_slos_met"), runs[0].get("slo_results")),
        (None, None)
    );
    assert_eq!(runs[1]["all_slos_met"], false);
    assert_eq!(runs[2].get("all_slos_met"), Some(&Value::Null));
    assert_eq!(runs[2]["slo_results"]["failed_plugins"][0]["plugin"], "v");
    let met: Vec<String> = csv_file(folder, "sweep_summary.csv")
        .iter()
        .map(|row| row["all_slos_met"].clone())
        .collect();
    assert_eq!(met, ["", "False", ""]);
}

/// Text with commas, quotes and line breaks stays one cell.
#[test]
fn any_setting_is_one_cell() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = plan(&format!(
        "output_dir: {}\nclient: {{model: !expand ['a,b', 'c \"d\"', \"e\\nf\"]}}",
        root.path().display()
    ));
    sweep.begin(STAMP).unwrap();
    for index in 0..3 {
        sweep.record(index, good(Path::new("x, y"))).unwrap();
    }
    let rows = csv_file(sweep.run_folder(0).unwrap(), "sweep_summary.csv");
    let models: Vec<&str> = rows.iter().map(|row| row["client.model"].as_str()).collect();
    assert_eq!(models, ["a,b", "c \"d\"", "e\nf"]);
    assert_eq!(rows[0]["run_dir"], "x, y");
}

#[test]
fn rejects_misuse() {
    let mut sweep = lengths(Path::new("out"));
    assert!(matches!(sweep.run_folder(0), Err(SweepError::NotBegun)));
    assert!(matches!(
        sweep.record(0, interrupted()),
        Err(SweepError::NotBegun)
    ));
    assert_eq!(
        sweep.record(4, interrupted()).unwrap_err().to_string(),
        "the sweep has no run 4 (number of runs: 4)"
    );
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let error = lengths(&file).begin(STAMP).unwrap_err().to_string();
    assert!(error.starts_with("cannot create the folder "), "{error}");
}

#[test]
fn exit_code_is_that_of_the_first_bad_run() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = lengths(root.path());
    sweep.begin(STAMP).unwrap();
    assert_eq!(sweep.exit_code(), 0);
    for (index, (code, of_all)) in [(0, 0), (3, 3), (6, 3), (130, 130)].into_iter().enumerate() {
        let outcome = CellOutcome {
            exit_code: code,
            ..good(Path::new("x"))
        };
        sweep.record(index, outcome).unwrap();
        assert_eq!(sweep.exit_code(), of_all);
    }
}

#[test]
fn metrics_equal_those_of_the_files() {
    let metrics = KeyMetrics::of(&good(Path::new("x")));
    assert_eq!(metrics.ttfc_p50, Some(0.0125));
    assert_eq!(metrics.end_to_end_latency_p99, Some(1.5));
    assert_eq!(metrics.goodput, Some(0.95));
    assert_eq!(KeyMetrics::of(&interrupted()), KeyMetrics::default());
}
