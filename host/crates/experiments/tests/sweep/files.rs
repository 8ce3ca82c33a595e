//! Files of a sweep.

use super::*;

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "the files of one sweep, each compared as a whole"
)]
fn files_have_veekshas_keys() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = lengths(root.path());
    sweep.begin(STAMP).unwrap();
    let folder = sweep.run_folder(0).unwrap().to_owned();
    assert_eq!(folder, root.path().join(format!("sweep_{STAMP}")));
    let first = folder.join("21_11_2026-08_05_09-0badcafe");
    let mut with_windows = good(&first);
    with_windows.prefill_stats = json!({
        "metric": "ttfc",
        "group_by": "target_num_delta_prompt_tokens",
        "groups": {"128": {"count": 39, "mean": 0.02, "median": 0.0125, "p90": 0.1, "p99": 0.25, "min": 0.01, "max": 0.3, "std": 0.05}},
    });
    with_windows.decode_window_metrics = json!({
        "config": {"min_active_requests": "max_observed", "resolved_min_active_requests": 4},
        "windows": {"total_duration_s": 2.5, "num_selected_segments": 2,
            "per_window": [{"start": 1.0, "end": 2.0}, {"start": 3.0, "end": 4.5}]},
        "tbc_in_window_stats": {"count": 100, "mean": 0.01, "median": 0.01, "p90": 0.015, "p99": 0.02, "min": 0.005, "max": 0.03, "std": 0.004},
    });
    sweep.record(0, with_windows.clone()).unwrap();

    let manifest = json_file(&folder, "sweep_manifest.json");
    assert_eq!(manifest["sweep_dir"], folder.display().to_string());
    assert_eq!(
        (&manifest["num_runs"], &manifest["num_planned"]),
        (&json!(1), &json!(4))
    );
    let run = &manifest["runs"][0];
    assert_eq!(run["run_dir"], first.display().to_string());
    for (key, below) in [
        ("config_path", "config.yml"),
        ("metrics_dir", "metrics"),
        ("prefill_stats_path", "metrics/prefill_stats.json"),
        ("decode_window_metrics_path", "metrics/decode_window_metrics.json"),
    ] {
        assert_eq!(run[key], first.join(below).display().to_string());
    }

    let summary = json_file(&folder, "sweep_summary.json");
    assert_eq!(summary["base_output_dir"], folder.display().to_string());
    assert_eq!(summary["num_runs"], 1);
    let run = &summary["runs"][0];
    // Veeksha counts from 0, and the terminal from 1: both are present.
    assert_eq!((&run["run_index"], &run["run"]), (&json!(0), &json!(1)));
    assert_eq!(
        (&run["context_length"], &run["batch_size"], &run["output_length"]),
        (&json!(128), &json!(4), &json!(32))
    );
    assert_eq!(
        run["traffic"],
        json!({"traffic_type": "concurrent", "target_concurrent_sessions": 4, "rampup_seconds": 0.0})
    );
    assert_eq!(
        run["runtime"],
        json!({"max_sessions": 40, "benchmark_timeout_s": 60.0})
    );
    assert_eq!(run["summary_stats"]["Number of Requests"], 40);
    assert_eq!(run["throughput_metrics"]["tpot_based_throughput"], 90.5);
    assert_eq!(
        run["prefill_group_stats"],
        json!({"prompt_len": 128, "group_by": "target_num_delta_prompt_tokens",
            "count": 39, "mean": 0.02, "median": 0.0125, "p90": 0.1, "p99": 0.25, "min": 0.01, "max": 0.3, "std": 0.05})
    );
    assert_eq!(
        run["decode_window_stats"],
        json!({"count": 100, "mean": 0.01, "median": 0.01, "p90": 0.015, "p99": 0.02, "min": 0.005, "max": 0.03, "std": 0.004,
            "window_duration_s": 2.5, "num_windows": 2, "min_active_requests": "max_observed"})
    );
    assert_eq!(run["all_slos_met"], true);
    assert_eq!(run["slo_results"]["results"][0]["metric"], "ttfc");

    let text = fs::read_to_string(folder.join("sweep_summary.csv")).unwrap();
    assert!(text.starts_with(
        "run_index,run_dir,traffic_type,target_concurrent_sessions,arrival_rate,context_length,output_length,max_sessions,\
         benchmark_timeout_s,num_requests,num_completed_requests,error_rate,all_slos_met,tpot_based_throughput,\
         tbc_based_throughput,run,exit_code,"
    ));
    let row = &csv_file(&folder, "sweep_summary.csv")[0];
    for (column, cell) in [
        ("run_index", "0"),
        ("traffic_type", "concurrent"),
        ("target_concurrent_sessions", "4"),
        ("arrival_rate", ""),
        ("context_length", "128"),
        ("output_length", "32"),
        ("max_sessions", "40"),
        ("benchmark_timeout_s", "60.0"),
        ("num_requests", "40"),
        ("num_completed_requests", "39"),
        ("error_rate", "0.025"),
        ("all_slos_met", "True"),
        ("tpot_based_throughput", "90.5"),
        ("tbc_based_throughput", "50.0"),
        // Additional columns.
        ("run", "1"),
        ("exit_code", "0"),
        ("verdict", "VALID"),
        ("duration_s", "61.25"),
        ("ttfc_p50", "0.0125"),
        ("ttfc_p99", "0.25"),
        ("tbc_p50", "0.01"),
        ("tbc_p99", "0.02"),
        ("tpot_p50", "0.011"),
        ("tpot_p99", "0.021"),
        ("end_to_end_latency_p50", "0.5"),
        ("end_to_end_latency_p99", "1.5"),
        ("requests_per_second", "0.65"),
        ("output_tokens_per_second", "20.8"),
        ("total_tokens_per_second", "104.0"),
        ("goodput", "0.95"),
        ("failure", ""),
        ("session_generator.channels[0].body_length_generator.value", "128"),
        ("traffic_scheduler.target_concurrent_sessions", "4"),
    ] {
        assert_eq!(row[column], cell, "{column}");
    }

    assert_eq!(
        json_file(&folder, "decode_stats.json")["128_4"],
        with_windows.decode_window_metrics
    );
    let decode = &csv_file(&folder, "decode_stats.csv")[0];
    for (column, cell) in [
        ("key", "128_4"),
        ("context_length", "128"),
        ("batch_size", "4"),
        ("window_start", "1.0"),
        ("window_end", "2.0"),
        ("window_duration_s", "2.5"),
        ("tbc_count", "100"),
        ("tbc_mean", "0.01"),
        ("tbc_p99", "0.02"),
    ] {
        assert_eq!(decode[column], cell, "{column}");
    }
}

#[test]
fn files_are_rewritten_after_each_run() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = lengths(root.path());
    sweep.begin(STAMP).unwrap();
    let folder = sweep.run_folder(0).unwrap().to_owned();
    let written = ["sweep_manifest.json", "sweep_summary.csv", "sweep_summary.json"];
    assert_eq!(names(&folder), written, "before the first run");
    assert_eq!(json_file(&folder, "sweep_summary.json")["num_runs"], 0);
    assert!(csv_file(&folder, "sweep_summary.csv").is_empty());

    for index in 0..2 {
        sweep
            .record(index, good(&folder.join(format!("run{index}"))))
            .unwrap();
        assert_eq!(csv_file(&folder, "sweep_summary.csv").len(), index + 1);
        assert_eq!(json_file(&folder, "sweep_summary.json")["num_runs"], index + 1);
        assert_eq!(json_file(&folder, "sweep_manifest.json")["num_runs"], index + 1);
    }
    // Ctrl-C in the third run: it has a row with its exit code, and the fourth has none.
    sweep.record(2, interrupted()).unwrap();
    let rows = csv_file(&folder, "sweep_summary.csv");
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (rows[2]["exit_code"].as_str(), rows[2]["run_dir"].as_str()),
        ("130", "")
    );
    assert_eq!(rows[2]["failure"], "interrupted, after 3 requests");
    assert_eq!(rows[2]["context_length"], "256");
    assert_eq!(
        (rows[2]["ttfc_p50"].as_str(), rows[2]["all_slos_met"].as_str()),
        ("", "")
    );
    let summary = json_file(&folder, "sweep_summary.json");
    assert_eq!(summary["num_planned"], 4);
    let run = &summary["runs"][2];
    assert_eq!(run["exit_code"], 130);
    assert_eq!(
        (&run["summary_stats"], &run["throughput_metrics"]),
        (&json!({}), &json!({}))
    );
    assert_eq!(
        (&run["prefill_group_stats"], &run["decode_window_stats"]),
        (&json!({}), &json!({}))
    );
    assert!(run.get("all_slos_met").is_none() && run.get("slo_results").is_none());
    assert_eq!(run["key_metrics"]["ttfc_p50"], Value::Null);
    assert_eq!(sweep.exit_code(), 130);
    assert_eq!(names(&folder), written, "no temporary file is left");
    // Others may read it, as far as the umask allows.
    fs::write(root.path().join("plain"), "").unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(
        mode(folder.join("sweep_summary.csv")),
        mode(root.path().join("plain"))
    );
}
