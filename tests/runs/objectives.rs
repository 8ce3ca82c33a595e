//! Definition of good requests: goodput over all intended requests, conditions, labels, windows,
//! and the verdicts of plugins on requests and runs.

use serde_json::Value;

use crate::results::{json, lines};
use crate::simulated::{ends_with, evaluate, labelled, path, simulated};
use crate::support::{assert_code, scenario, stderr, stdout, veeksha};

fn run_metric(run: &std::path::Path, name: &str) -> f64 {
    let summary = json(run, "metrics/summary_stats.json");
    let run_metric = summary["run_metrics"][name].as_f64();
    run_metric.unwrap_or_else(|| panic!("no {name} in {}", summary["run_metrics"]))
}

fn results(run: &std::path::Path) -> Vec<Value> {
    let slos = json(run, "metrics/slo_results.json");
    slos["results"].as_array().expect("results").clone()
}

/// The times in the rows determine the good requests.
#[test]
fn goodput_is_the_share_of_good_requests_among_all_intended_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", goodput = { "ttfc <= 30ms", "p90(tbc) <= 19ms" } }"#;
    let run = simulated(folder.path(), "s.lua", &labelled(60, asked, ""), &[]);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let is_good = |row: &&Value| {
        let mut gaps: Vec<f64> = row["tbc"]
            .as_array()
            .expect("gaps")
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        gaps.sort_by(f64::total_cmp);
        let rank = 0.9 * (gaps.len() - 1) as f64;
        let (below, above) = (gaps[rank.floor() as usize], gaps[rank.ceil() as usize]);
        let p90 = below + (above - below) * rank.fract();
        row["ttfc"].as_f64().expect("a TTFC") <= 0.030 && p90 <= 0.019
    };
    let good = rows.iter().filter(is_good).count();
    assert!(good > 0 && good < rows.len(), "{good} of {}", rows.len());
    let expected = good as f64 / rows.len() as f64;
    assert!(
        (run_metric(&run, "goodput") - expected).abs() < 1e-12,
        "{}",
        run_metric(&run, "goodput")
    );
    let throughput = json(&run, "metrics/throughput_metrics.json");
    assert_eq!(throughput["goodput"].as_f64(), Some(run_metric(&run, "goodput")));
    let window = throughput["window_seconds"].as_f64().expect("a window");
    let rate = throughput["good_requests_per_second"].as_f64().expect("a rate");
    assert!((rate - good as f64 / window).abs() < 1e-9);
}

/// A failed request, and one that is never sent as a result, were both intended.
#[test]
fn failed_and_withheld_requests_count_against_goodput() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = scenario(
        folder.path(),
        "failing.yml",
        "faults: { status_500_probability: 0.3 }\n",
    );
    let asked = r#"{ type = "performance", goodput = { "ttfc <= 1h" }, slos = { "goodput > 0.99", "error_rate < 90%" } }"#;
    let more = ["--profile", &profile];
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(60, asked, ""), &more, 3);
    let summary = json(&run, "metrics/summary_stats.json");
    let count = |key: &str| summary[key].as_u64().unwrap_or_else(|| panic!("{key}"));
    assert_eq!(count("Number of Intended Requests"), 120);
    let withheld = count("Number of Never Sent Requests");
    assert!(withheld > 0, "a session whose first request failed has no second");
    let table = stdout(&output);
    let why = table
        .lines()
        .find(|line| line.trim().starts_with("cancelled after a failure"));
    assert!(
        why.is_some_and(|line| line.ends_with(&format!(" {withheld}"))),
        "{table}"
    );
    assert_eq!(count("Number of Requests") + withheld, 120);
    let expected = count("Number of Completed Requests") as f64 / 120.0;
    assert!((run_metric(&run, "goodput") - expected).abs() < 1e-12);
    let results = results(&run);
    assert_eq!(results[0]["met"], false);
    assert_eq!(results[0]["metric"], "goodput");
    assert_eq!(results[1]["met"], true);
    let rate = count("Number of Errored Requests") as f64 / count("Number of Requests") as f64;
    assert!((results[1]["observed_value"].as_f64().expect("a rate") - rate).abs() < 1e-12);
}

/// A request that exceeds the client's timeout is a failure, and failures have no latency.
#[test]
fn answers_that_come_too_late_are_not_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", goodput = { "ttfc <= 1h" } }"#;
    let more = ["--client.request_timeout", "0.1", "--profile", "default"];
    let run = simulated(folder.path(), "s.lua", &labelled(40, asked, ""), &more);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let late = rows.iter().filter(|row| row["error_class"] == "timeout").count();
    let answered = rows.iter().filter(|row| row["success"] == true).count();
    assert!(late > 0 && answered > 0, "{late} late, {answered} answered");
    assert!((run_metric(&run, "goodput") - answered as f64 / 80.0).abs() < 1e-12);
}

/// Without conditions a good request meets the bounds of the objectives on request metrics.
#[test]
fn request_objectives_define_goodput_without_conditions() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", slos = { "p50(ttfc) < 30ms", "error_rate < 1%" } }"#;
    let run = simulated(folder.path(), "s.lua", &labelled(60, asked, ""), &[]);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let good = rows
        .iter()
        .filter(|row| row["ttfc"].as_f64().is_some_and(|ttfc| ttfc < 0.030))
        .count();
    assert!(good > 0 && good < rows.len());
    assert!((run_metric(&run, "goodput") - good as f64 / rows.len() as f64).abs() < 1e-12);
}

#[test]
fn labels_and_windows_select_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", slos = {
        'count(ttfc{tier="gold"}) >= 40', 'mean(ttfc{tier="gold"}) < 1s', 'max(ttfc, window = 200ms) < 1s', 'min(ttfc) > 0s',
        'p99(session_makespan) < 1m', 'requests_per_second > 1', 'p50(ttfc{tier="silver"}) < 1h' } }"#;
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(60, asked, ""), &[], 3);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let gold: Vec<f64> = rows
        .iter()
        .filter(|row| row["labels"]["tier"] == "gold" || row["labels"].to_string().contains("gold"))
        .filter_map(|row| row["ttfc"].as_f64())
        .collect();
    let results = results(&run);
    assert_eq!(gold.len(), 40);
    assert_eq!(results[0]["observed_value"].as_f64(), Some(40.0));
    let mean = gold.iter().sum::<f64>() / 40.0;
    assert!((results[1]["observed_value"].as_f64().expect("a mean") - mean).abs() < 1e-12);
    assert_eq!(results[1]["sample_count"], 40);
    let worst = rows
        .iter()
        .filter_map(|row| row["ttfc"].as_f64())
        .reduce(f64::max);
    assert_eq!(results[2]["observed_value"].as_f64(), worst);
    // The worst window contains the decisive request, and its samples are the ones counted.
    let window = &results[2]["worst_window"];
    let within = rows.iter().filter(|row| {
        let intended = row["scheduler_ready_at"].as_f64();
        window["from"].as_f64() <= intended && intended < window["to"].as_f64()
    });
    let within = within.count();
    assert!(within > 0 && within < rows.len());
    assert_eq!(results[2]["sample_count"], within);
    assert!(stdout(&output).contains("worst of "), "{}", stdout(&output));
    let decides = rows
        .iter()
        .find(|row| row["ttfc"].as_f64() == worst)
        .expect("a row");
    let intended = decides["scheduler_ready_at"].as_f64();
    assert!(
        window["from"].as_f64() <= intended && intended < window["to"].as_f64(),
        "{window} {intended:?}"
    );
    let met: Vec<bool> = results.iter().map(|result| result["met"] == true).collect();
    assert_eq!(
        met,
        [true, true, true, true, true, true, false],
        "no silver request, nothing met"
    );
    assert!(results[6]["observed_value"].is_null());
    assert!(stdout(&output).contains("no samples"), "{}", stdout(&output));
    let why = "no request has the label tier=\"silver\"";
    assert!(stdout(&output).contains(why), "{}", stdout(&output));
    let detail = results[6]["detail"].as_str().expect("a reason");
    assert!(detail.starts_with(why) && detail.ends_with("labels seen: tier=\"free\", tier=\"gold\""));
}

/// Sixty sessions of two requests each: the rates of the slices, including the last one, are those
/// of the run.
#[test]
fn the_last_time_slice_has_the_rate_of_the_time_it_covers() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", slice_seconds = 0.4 }"#;
    let run = simulated(folder.path(), "s.lua", &labelled(60, asked, ""), &[]);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let file = json(&run, "metrics/time_slices.json");
    let slices = file["slices"].as_array().expect("slices");
    let last = slices.last().expect("a slice");
    let (from, to) = (
        last["from"].as_f64().expect("from"),
        last["to"].as_f64().expect("to"),
    );
    let intended: Vec<f64> = rows
        .iter()
        .filter_map(|row| row["scheduler_ready_at"].as_f64())
        .collect();
    let (first, end) = (
        intended.iter().copied().fold(f64::INFINITY, f64::min),
        intended.iter().copied().fold(0.0, f64::max),
    );
    // The schedule ended by itself, one mean interval after its last request.
    let stop = end + (end - first) / (intended.len() - 1) as f64;
    assert!((to - stop.min(from + 0.4)).abs() < 1e-6, "{to} {stop}");
    let count = intended.iter().filter(|at| **at >= from).count() as f64;
    match last["requests_per_second"].as_f64() {
        Some(rate) => assert!((rate - count / (to - from)).abs() < 1e-3, "{last}"),
        None => assert!(to - from < 0.04, "{last}"),
    }
    let csv = std::fs::read_to_string(run.join("metrics/time_slices.csv")).expect("a table");
    assert_eq!(csv.lines().count(), slices.len() + 1);
    let columns = "from,to,complete,requests,completed,errored,cancelled,cancelled_by_client,unfinished,good,error_rate,";
    assert!(csv.starts_with(columns), "{csv}");
}

#[test]
fn plugin_verdict_fails_the_run_like_an_objective() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |bound: &str| {
        format!(
            r#"{{ type = "lua", name = "judge",
  good = function(request) return request.labels.tier == "gold" end,
  check = function(results)
    local stats = results:stats("ttfc", {{ tier = "gold" }})
    return {{ {{ name = "gold is quick", met = stats.p99 < {bound}, observed = stats.p99, threshold = {bound}, detail = "P99 of gold" }} }}
  end }}"#
        )
    };
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(30, &asked("0.001"), ""), &[], 3);
    assert!(stdout(&output).contains("gold is quick"), "{}", stdout(&output));
    let verdict = &results(&run)[0];
    assert_eq!(verdict["met"], false);
    assert_eq!(verdict["plugin"], "judge");
    assert_eq!(verdict["detail"], "P99 of gold");
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let worst = rows
        .iter()
        .filter_map(|row| row["ttfc"].as_f64())
        .reduce(f64::max)
        .expect("a TTFC");
    assert!(
        verdict["observed_value"]
            .as_f64()
            .is_some_and(|p99| p99 > 0.001 && p99 <= worst)
    );
    // Ten of thirty sessions are gold, and a good request has no other condition.
    assert!((run_metric(&run, "goodput") - 1.0 / 3.0).abs() < 1e-12);
    let (_, run) = ends_with(
        folder.path(),
        "t.lua",
        &labelled(30, &asked("1"), ""),
        &["--seed", "3"],
        0,
    );
    assert_eq!(json(&run, "metrics/slo_results.json")["all_slos_met"], true);
}

/// The JavaScript example, with a bound for each tier.
#[test]
fn component_checks_slos_by_tier() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = crate::support::root().join("plugins/tiered_slo/tiered_slo.wasm");
    let asked = format!(
        r#"{{ type = "wasm", plugin = "{}", config = {{ objectives = {{ {{ metric = "ttfc", at_most = {{ gold = 10, free = 0.001 }} }} }} }} }}"#,
        path(&component)
    );
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(30, &asked, ""), &[], 3);
    let results = results(&run);
    let met = |tier: &str| {
        let verdict = results
            .iter()
            .find(|result| result["name"].as_str().is_some_and(|name| name.contains(tier)));
        verdict.unwrap_or_else(|| panic!("no {tier} in {results:?}"))["met"].clone()
    };
    assert_eq!(met("gold"), true);
    assert_eq!(met("free"), false);
    // The names are the bounded metrics, so the numbers have their unit; the better side of the
    // threshold is unknown.
    assert!(
        results
            .iter()
            .all(|result| result["unit"] == "s" && result["lower_is_better"].is_null())
    );
    let table = stdout(&output);
    for threshold in ["threshold 10 s", "threshold 1 ms"] {
        assert!(table.contains(threshold), "{table}");
    }
    assert!(!table.contains('≤'), "{table}");
    let errors = stderr(&output);
    assert!(
        errors.contains("(observed ") && errors.contains(", threshold 1 ms)"),
        "{errors}"
    );
    // In virtual time the client has no error to report.
    assert!(!table.contains("error (P99)"), "{table}");
}

/// An unavailable metric is reported before anything is sent, and no folder is made. A misspelled
/// name yields no samples in a check, which would look like an idle run: it is reported with the
/// nearest name, for functions and components.
#[test]
fn a_check_of_an_unknown_metric_fails_with_the_nearest_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(10, "", ""), &[]);
    let file = scenario(
        folder.path(),
        "slip.lua",
        r#"return { name = "slip", check = function(results)
  local p99, errors = results:percentile("ttcf", 99), results:aggregate("eror_rate")
  -- These exist, and have no samples.
  assert(results:percentile("num_reasoning_tokens", 50) == nil)
  assert(results:stats("ttfc", { tier = "none" }).count == 0)
  return { { name = "fast", met = p99 == nil or p99 < 1, threshold = 1 } }
end }"#,
    );
    let component = crate::support::root().join("plugins/tiered_slo/tiered_slo.wasm");
    let again = folder.path().join("again");
    let config = r#"{"objectives": [{"metric": "tfc", "at_most": {"gold": 1}}]}"#;
    let failure = |more: &[&str]| {
        let _ = std::fs::remove_dir_all(&again);
        let output = evaluate(&run, &[more, &["--to", path(&again)]].concat());
        assert_code(&output, 4);
        let results = json(&again, "metrics/slo_results.json");
        assert_eq!(results["all_slos_met"], Value::Null, "{results}");
        assert_eq!(results["results"].as_array().map(Vec::len), Some(0), "{results}");
        stderr(&output)
    };
    let message = failure(&["--plugin", &file]);
    let expected = "plugin `slip` failed in `check`: it asked for `eror_rate`, which does not exist (did you mean \
                    `error_rate`?), `ttcf`, which does not exist (did you mean `ttfc`?)";
    assert!(message.contains(expected), "{message}");
    let file = scenario(
        folder.path(),
        "kinds.lua",
        r#"return { name = "kinds", check = function(results)
  results:percentile("goodput", 50)
  results:aggregate("ttfc")
  return {}
end }"#,
    );
    let message = failure(&["--plugin", &file]);
    let expected =
        "it asked for samples of `goodput`, which is a run metric, the run metric `ttfc`, which is a metric";
    assert!(message.contains(expected), "{message}");
    let message = failure(&["--plugin", path(&component), "--plugin-config", config]);
    let expected = "it asked for `tfc`, which does not exist (did you mean `ttfc`?)";
    assert!(message.contains(expected), "{message}");
}

/// A check is called once without samples before a run, for functions and components.
#[test]
fn check_refuses_an_slo_check_of_an_unknown_metric() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = crate::support::root().join("plugins/tiered_slo/tiered_slo.wasm");
    let component = format!(
        r#"{{ type = "wasm", plugin = {:?}, config = {{ objectives = {{ {{ metric = "tfc", at_most = {{ gold = 1 }} }} }} }} }}"#,
        path(&component)
    );
    let function = r#"{ type = "lua", name = "slip", check = function(results)
      return { { name = "fast", met = results:stats("tfc").p99 < 1, threshold = 1 } }
    end }"#;
    for evaluator in [component.as_str(), function] {
        let text = labelled(10, evaluator, "");
        let file = scenario(folder.path(), "unknown.lua", &text);
        for command in ["check", "run"] {
            let output = veeksha([command, &file]);
            assert_code(&output, 2);
            let message = stderr(&output);
            assert!(
                message.contains("it asked for `tfc`, which does not exist (did you mean `ttfc`?)"),
                "{message}"
            );
        }
    }
}

#[test]
fn objectives_are_checked_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        (r#"slos = { "p99(tftc) < 1s" }"#, "did you mean `ttfc`?"),
        (r#"slos = { "p99(ttfc) < 5%" }"#, "p99(ttfc)"),
        (
            r#"slos = { "p99(longest_gap) < 1s" }"#,
            "there is no metric `longest_gap`",
        ),
        (
            r#"slos = { "goodput > 0.9" }"#,
            "no condition defines a good request",
        ),
        (
            r#"goodput = { "error_rate < 1%" }"#,
            "the condition `error_rate < 1%`",
        ),
        (r#"goodput = { "ttfc, window = 1s < 1s" }"#, "goodput"),
        (r#"slos = { "p99(ttfc) is 1s" }"#, "column 11"),
        (
            r#"slos = { "goodput > 95" }, goodput = { "ttfc < 1s" }"#,
            "did you mean `goodput > 95%`?",
        ),
        (
            r#"slos = { "error_rate < 150%" }"#,
            "give a bound above 0%, up to 100%",
        ),
        (r#"goodput = { "ttfc < -1s" }"#, "`max(ttfc)` is never below 0"),
    ];
    for (asked, printed) in cases {
        let asked = format!(r#"{{ type = "performance", {asked} }}"#);
        let file = scenario(folder.path(), "s.lua", &labelled(4, &asked, ""));
        let out = folder.path().join("out");
        for command in ["simulate", "run"] {
            let output = veeksha([command, &file, "--output_dir", path(&out)]);
            assert_code(&output, 2);
            assert!(
                stderr(&output).contains(printed),
                "no {printed:?} in {}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains("evaluators"),
                "the place: {}",
                stderr(&output)
            );
            assert!(!out.exists(), "{command} made a folder");
        }
    }
}

/// A replacement for a scenario's Lua evaluator is called; for one that failed, the record has the
/// earlier results.
#[test]
fn only_functions_that_are_not_called_again_are_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    let plugins = r#"
{ type = "lua", name = "v", metrics = { v = { unit = "1", better = "less", summary = "one", observe = function() return 1 end } } },
{ type = "lua", name = "w", metrics = { w = { unit = "1", better = "less", summary = "none", observe = function() error("no") end } } },
"#;
    let (_, run) = ends_with(folder.path(), "s.lua", &labelled(10, plugins, ""), &[], 4);
    let printed = stderr(&evaluate(&run, &["--json"]));
    let of = |name: &str| format!("the Lua functions of `{name}` are not called again");
    assert!(
        printed.contains(&format!(
            "{}: what they measured and checked is in the record",
            of("v")
        )),
        "{printed}"
    );
    assert!(
        printed.contains(&format!(
            "{}: what they measured and checked until it failed is in the record",
            of("w")
        )),
        "{printed}"
    );
    let file = scenario(
        folder.path(),
        "v.lua",
        r#"return { name = "v", metrics = { v = { unit = "1", better = "less", summary = "two", observe = function() return 2 end } } }"#,
    );
    let printed = stderr(&evaluate(&run, &["--json", "--plugin", &file]));
    assert!(
        !printed.contains(&of("v")) && printed.contains(&of("w")),
        "{printed}"
    );
}

/// In some windows every request fails: a lower bound on every window is missed, and a metric
/// without samples is reported as such.
#[test]
fn outage_misses_a_lower_bound_and_leaves_windows_unjudged() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", slos = {
      "count(ttfc, window = 20ms) >= 1", "sum(num_output_tokens, window = 20ms) >= 1", "p99(ttfc, window = 20ms) < 1h",
    } }"#;
    let fails = ["--profile", "faulty"];
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(300, asked, ""), &fails, 3);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let seconds = |row: &Value| row["scheduler_ready_at"].as_f64().expect("an instant");
    let begin = rows.iter().map(seconds).fold(f64::INFINITY, f64::min);
    let mut windows = std::collections::BTreeMap::<u64, u64>::new();
    for row in &rows {
        let window = ((seconds(row) - begin) / 0.02) as u64;
        *windows.entry(window).or_default() += u64::from(row["success"] == true);
    }
    let dark = windows.values().filter(|answered| **answered == 0).count();
    assert!(dark > 0, "some window has no answer: {windows:?}");
    let results = results(&run);
    for floor in &results[..2] {
        assert_eq!(
            (&floor["met"], &floor["observed_value"]),
            (&Value::from(false), &Value::from(0.0)),
            "{floor}"
        );
    }
    let told = format!(
        "in {dark} of {} windows no request was answered: they are not judged",
        windows.len()
    );
    assert_eq!(results[2]["detail"], told.as_str());
    assert!(stdout(&output).contains(&told), "{}", stdout(&output));
    let page = std::fs::read_to_string(run.join("report.html")).expect("a page");
    assert!(page.contains(&told));
}
