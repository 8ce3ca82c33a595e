//! Recorded verdicts, and recorded failures of checks, in an evaluation.

use super::*;

/// Returns checks that are functions of the scenario, with a component's check between them; two of
/// them fail the run.
fn judged() -> String {
    let component = crate::support::root().join("plugins/tiered_slo/tiered_slo.wasm");
    format!(
        r#"
{{ type = "performance", slos = {{ "p99(ttfc) < 1h" }} }},
{{ type = "lua", name = "first", check = function(results)
  local count = results:stats("ttfc", {{}}).count
  return {{ {{ name = "too few", met = count >= 1000, observed = count, threshold = 1000, detail = "a thousand at least" }} }}
end }},
{{ type = "wasm", plugin = "{}", config = {{ objectives = {{ {{ metric = "ttfc", at_most = {{ gold = 10, free = 0.001 }} }} }} }} }},
{{ type = "lua", name = "last", check = function() return {{ {{ name = "all is well", met = true, threshold = 0 }} }} end }},
"#,
        path(&component)
    )
}

/// Returns the verdicts of plugins on a run: the plugin, the name, and true if it is met.
fn verdicts(run: &Path) -> Vec<(String, String, bool)> {
    let slos = json(run, "metrics/slo_results.json");
    let results = slos["results"].as_array().expect("results").iter();
    let of_plugins = results.filter(|result| !result["plugin"].is_null());
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    of_plugins
        .map(|said| (text(&said["plugin"]), text(&said["name"]), said["met"] == true))
        .collect()
}

/// Functions of a scenario are not called again, and their verdicts remain valid: the same verdicts
/// in the same order, and the same exit code.
#[test]
fn verdicts_of_functions_are_taken_from_the_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(60, &judged(), ""), &[], 3);
    assert!(
        stderr(&output).contains("too few (observed 120, threshold 1000)"),
        "{}",
        stderr(&output)
    );
    let again = folder.path().join("again");
    let output = evaluate(&run, &["--to", path(&again)]);
    assert_code(&output, 3);
    let printed = stderr(&output);
    assert!(
        printed.contains("too few (observed 120, threshold 1000)"),
        "{printed}"
    );
    assert!(
        printed.contains("the verdicts of `first` are those of the run: its check is not called again"),
        "{printed}"
    );
    assert_same_results(&run, &again);
    let said = verdicts(&again);
    assert_eq!(said.first().map(|(plugin, ..)| plugin.as_str()), Some("first"));
    assert_eq!(
        said.last(),
        Some(&("last".to_owned(), "all is well".to_owned(), true))
    );
    assert_eq!(said.len(), 4, "{said:?}");
    let page = std::fs::read_to_string(again.join("report.html")).expect("a page");
    assert!(page.contains("a thousand at least") && page.contains("are those of the run"));
    let trace = lines(&run, "traces/trace.jsonl");
    let told = trace.iter().filter(|line| line["event"] == "run_judged").count();
    assert_eq!(told, 4, "the text of the events has them too");

    // A check on the command line replaces the one with its name.
    let file = scenario(
        folder.path(),
        "first.lua",
        r#"return { name = "first", check = function() return { { name = "enough", met = true, threshold = 1 } } end }"#,
    );
    let replaced = folder.path().join("replaced");
    let output = evaluate(&run, &["--to", path(&replaced), "--plugin", &file]);
    assert!(
        !stderr(&output).contains("`first` on the run"),
        "{}",
        stderr(&output)
    );
    let said = verdicts(&replaced);
    assert!(
        said.contains(&("first".to_owned(), "enough".to_owned(), true)),
        "{said:?}"
    );
    assert!(!said.iter().any(|(_, name, _)| name == "too few"), "{said:?}");
}

/// A run in real time calls its checks after the last answer, on another thread; the record
/// contains their verdicts nevertheless.
#[test]
fn verdicts_of_a_real_run_are_in_its_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "lua", name = "strict", check = function(results)
      return { { name = "never enough", met = false, observed = 1, threshold = 2 } }
    end }"#;
    let run = real(folder.path(), "s.lua", &labelled(10, asked, ""), 3);
    let again = evaluated(&run, &folder.path().join("again"), &[], 3);
    assert_eq!(
        verdicts(&run),
        [("strict".to_owned(), "never enough".to_owned(), false)]
    );
    assert_eq!(
        json(&run, "metrics/slo_results.json"),
        json(&again, "metrics/slo_results.json")
    );
}

/// A check that fails has no verdict: it is unknown if the objectives are met, in the run and in
/// every evaluation of its record.
#[test]
fn failed_check_is_in_every_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "lua", name = "broken", check = function() error("no <idea>") end }"#;
    let (_, run) = ends_with(folder.path(), "s.lua", &labelled(4, asked, ""), &[], 4);
    let again = evaluated(&run, &folder.path().join("again"), &[], 0);
    for results in [&run, &again] {
        let slos = json(results, "metrics/slo_results.json");
        assert!(slos["all_slos_met"].is_null(), "{slos}");
        let failed = &slos["failed_plugins"][0];
        assert_eq!(
            (&failed["plugin"], &failed["part"]),
            (&"broken".into(), &"slo_check".into())
        );
        assert!(failed["message"].to_string().contains("no <idea>"), "{failed}");
        assert_eq!(
            json(results, "metrics/summary_stats.json")["Failed Plugins"],
            slos["failed_plugins"]
        );
        let page = std::fs::read_to_string(results.join("report.html")).expect("a page");
        assert!(page.contains("the plugin `broken` failed"));
        let health = json(results, "health_check_results.json")["failed_plugins"].clone();
        assert_eq!(
            (&health[0]["plugin"], &health[0]["part"]),
            (&"broken".into(), &"slo_check".into()),
            "{health}"
        );
    }
    let trace = lines(&run, "traces/trace.jsonl");
    assert!(trace.iter().any(|line| line["event"] == "plugin_failed"));

    let output = evaluate(&run, &["--json"]);
    assert!(
        stderr(&output).contains("note: the plugin `broken` failed in the run, in `"),
        "{}",
        stderr(&output)
    );
    // Its replacement has not failed.
    let file = scenario(
        folder.path(),
        "broken.lua",
        r#"return { name = "broken", check = function() return { { name = "mended", met = true, threshold = 1 } } end }"#,
    );
    let mended = evaluated(&run, &folder.path().join("mended"), &["--plugin", &file], 0);
    let slos = json(&mended, "metrics/slo_results.json");
    assert_eq!(
        (&slos["all_slos_met"], &slos["failed_plugins"]),
        (&true.into(), &serde_json::json!([]))
    );
}

/// Results of a metric and of a request check from before their failure remain valid, and the
/// failure is reported.
#[test]
fn plugin_failure_on_a_request_is_in_every_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "lua", name = "half", metrics = { luck = { unit = "s", better = "less", summary = "of the first ten",
        observe = function(request) if request.session_id >= 10 then error("out of it") end return 1 end } },
      good = function(request) if request.session_id >= 10 then error("no more") end return true end }"#;
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(40, asked, ""), &[], 4);
    let table = stdout(&output);
    assert!(
        table.contains("half (metric)") && table.contains("half (request_check)"),
        "{table}"
    );
    let strict = veeksha(["health", run.to_str().expect("UTF-8"), "--strict"]);
    assert_code(&strict, 6);
    assert!(
        stdout(&strict).contains("the plugin `half` (metric) failed"),
        "{}",
        stdout(&strict)
    );
    let again = evaluated(&run, &folder.path().join("again"), &[], 0);
    assert_same_results(&run, &again);
    for results in [&run, &again] {
        let certificate = json(results, "certificate.json");
        assert_eq!(certificate["verdict"], "DEGRADED", "{certificate}");
        let health = json(results, "health_check_results.json");
        assert_eq!(health["passed"], false, "{health}");
        let failed = json(results, "metrics/summary_stats.json")["Failed Plugins"].clone();
        let parts: Vec<&str> = (0..2)
            .filter_map(|index| failed[index]["part"].as_str())
            .collect();
        assert_eq!(parts, ["metric", "request_check"], "{failed}");
        let slos = json(results, "metrics/slo_results.json");
        assert_eq!(
            slos["failed_plugins"].as_array().expect("a list").len(),
            1,
            "{slos}"
        );
        // Ten requests were judged good; the others are unknown.
        let throughput = json(results, "metrics/throughput_metrics.json");
        assert_eq!(throughput["goodput"], Value::Null);
        assert!(
            slos["remarks"].to_string().contains("goodput is not known"),
            "{slos}"
        );
    }
}

/// An objective on an unknown value is neither met nor missed.
#[test]
fn objective_on_unknown_goodput_is_reported_as_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(20, "", ""), &[]);
    let file = scenario(
        folder.path(),
        "half.lua",
        r#"return { name = "half", good = function(request) if request.session_id >= 10 then error("no more") end return true end }"#,
    );
    let again = folder.path().join("again");
    let output = evaluate(
        &run,
        &["--plugin", &file, "--slo", "goodput > 40%", "--to", path(&again)],
    );
    assert_code(&output, 4);
    let told = stderr(&output);
    assert!(
        told.contains(
            "goodput is unknown (the plugin `half` failed while it judged requests); required > 40 %"
        ),
        "{told}"
    );
    let slos = json(&again, "metrics/slo_results.json");
    assert_eq!(
        (&slos["all_slos_met"], &slos["results"][0]["met"]),
        (&Value::Null, &Value::Null),
        "{slos}"
    );
    assert!(stdout(&output).contains("not known"), "{}", stdout(&output));
}

/// Failures in the run are distinguished from failures in the evaluation: only for the former does
/// the message state that the plugin is not called again.
#[test]
fn a_plugin_that_fails_in_the_evaluation_did_not_fail_in_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "lua", name = "then",
      metrics = { gone = { unit = "s", better = "less", observe = function() error("no more") end } } }"#;
    let (_, run) = ends_with(folder.path(), "s.lua", &labelled(4, asked, ""), &[], 4);
    let now = scenario(
        folder.path(),
        "now.lua",
        r#"return { name = "now", metrics = { nan = { unit = "s", better = "less", observe = function() return 0 / 0 end } } }"#,
    );
    let output = evaluate(&run, &["--plugin", &now]);
    assert_code(&output, 4);
    let told = stderr(&output);
    assert!(
        told.contains("note: the plugin `then` failed in the run"),
        "{told}"
    );
    assert!(!told.contains("`now` failed in the run"), "{told}");
    let error = told.lines().find(|line| line.starts_with("error:"));
    assert!(error.is_some_and(|error| error.contains("`now`")), "{told}");
}

/// The SLOs of a run whose scenario cannot be read are unknown. No result may look as if they were
/// met.
#[test]
fn slos_of_an_unreadable_scenario_are_reported_as_not_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", slos = { "p99(ttfc) < 1h" } }"#;
    let run = simulated(folder.path(), "s.lua", &labelled(10, asked, ""), &[]);
    let config = run.join("config.yml");
    std::fs::write(&config, "seed: [1,").expect("a damaged scenario");
    for reason in ["not a scenario of this version", "cannot be read"] {
        let again = folder.path().join("again");
        let output = evaluate(&run, &["--to", path(&again)]);
        assert_code(&output, 0);
        let printed = stderr(&output);
        let told = "warning: no SLO is judged, because those of the scenario are unknown: config.yml";
        assert!(printed.contains(told) && printed.contains(reason), "{printed}");
        assert!(
            stdout(&output).contains("no SLO is judged"),
            "{}",
            stdout(&output)
        );
        let slos = json(&again, "metrics/slo_results.json");
        assert!(slos["all_slos_met"].is_null(), "{slos}");
        assert!(slos["remarks"].to_string().contains("no SLO is judged"), "{slos}");
        let row = crate::page::data(&again)["slos"][0].clone();
        assert_eq!(
            (&row["met"], &row["expression"]),
            (&Value::Null, &"not judged".into())
        );
        let own = evaluate(&run, &["--slo", "p99(ttfc) < 1h"]);
        assert!(!stderr(&own).contains("no SLO is judged"), "{}", stderr(&own));
        std::fs::remove_dir_all(&again).expect("removed results");
        std::fs::remove_file(&config).ok();
    }
}
