//! Overview on the terminal.

use veeksha_report::{ColorMode, summary_table};

use super::*;

#[test]
fn table_has_a_line_for_each_run() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = lengths(root.path());
    sweep.begin(STAMP).unwrap();
    sweep.record(0, good(Path::new("a"))).unwrap();
    let degraded = CellOutcome {
        verdict: Some("DEGRADED".to_owned()),
        ..good(Path::new("b"))
    };
    sweep.record(1, degraded).unwrap();
    sweep.record(2, interrupted()).unwrap();
    insta::assert_snapshot!(summary_table(&[sweep.table()], 140, ColorMode::Plain), @r"
    Sweep    body_length  target_concurrent_sessions  ttfc P50  ttfc P99  tpot P50  e2e P99  tok/s  goodput
      run 1          128                           4   12.5 ms    250 ms     11 ms    1.5 s   20.8     95 %
    ! run 2          128                           8   12.5 ms    250 ms     11 ms    1.5 s   20.8     95 %  DEGRADED
    ✗ run 3          256                           4         -         -         -        -      -        -  interrupted, after 3 requests
    ! 1 of 4 runs did not finish.
    ");
}

#[test]
fn setting_names_are_short_and_unambiguous() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = plan(&format!(
        "
output_dir: {}
seed: !expand [1, 2]
runtime: {{max_sessions: !expand [5]}}
client: {{model: !expand [a], headers: {{x: !expand [h]}}}}
traffic_scheduler: !expand
  - {{type: rate, interval_generator: {{type: fixed, interval: 2}}}}
  - {{type: concurrent, target_concurrent_sessions: 3, limits: {{requests_in_flight: 7}}}}
",
        root.path().display()
    ));
    sweep.begin(STAMP).unwrap();
    for index in 0..2 {
        sweep.record(index, good(Path::new("x"))).unwrap();
    }
    insta::assert_snapshot!(summary_table(&[sweep.table()], 160, ColorMode::Plain), @r"
    Sweep    seed  traffic_scheduler.type  interval.type  interval.interval  ttfc P50  ttfc P99  tpot P50  e2e P99  tok/s  goodput
      run 1     1                    rate          fixed                  2   12.5 ms    250 ms     11 ms    1.5 s   20.8     95 %
      run 2     1              concurrent              -                  -   12.5 ms    250 ms     11 ms    1.5 s   20.8     95 %
        target_concurrent_sessions 3; requests_in_flight 7
    ! 2 of 4 runs did not finish.
    ");
}

/// Returns a file of health checks from names, outcomes and findings.
fn health(checks: &[(&str, &str, &[&str])]) -> Value {
    let checks: Vec<Value> = checks
        .iter()
        .map(|(name, outcome, findings)| json!({"name": name, "outcome": outcome, "findings": findings}))
        .collect();
    json!({ "checks": checks })
}

/// Four runs: one is healthy, two are not, and one has not run yet.
#[test]
fn failed_health_checks_list_their_runs() {
    let root = tempfile::tempdir().unwrap();
    let mut sweep = lengths(root.path());
    sweep.begin(STAMP).unwrap();
    assert_eq!(sweep.health(), None);
    let healthy = health(&[
        ("Prompt Length", "passed", &["as long as asked"]),
        ("Cold Cache", "skipped", &[]),
    ]);
    let warm = |findings: &[&str]| {
        health(&[
            ("Prompt Length", "passed", &[]),
            ("Cold Cache", "failed", findings),
        ])
    };
    let long = health(&[
        ("Prompt Length", "failed", &["too long"]),
        ("Cold Cache", "failed", &["all of it"]),
    ]);
    for (index, health_checks) in [healthy, warm(&["half of it", "the rest"]), long]
        .into_iter()
        .enumerate()
    {
        let outcome = CellOutcome {
            health_checks,
            ..good(Path::new("x"))
        };
        sweep.record(index, outcome).unwrap();
        assert_eq!(sweep.health().is_some(), index > 0);
    }
    sweep.record(3, interrupted()).unwrap();
    let sections = [sweep.table(), sweep.health().unwrap()];
    insta::assert_snapshot!(summary_table(&sections, 140, ColorMode::Plain), @r"
    Sweep    body_length  target_concurrent_sessions  ttfc P50  ttfc P99  tpot P50  e2e P99  tok/s  goodput
      run 1          128                           4   12.5 ms    250 ms     11 ms    1.5 s   20.8     95 %
    ! run 2          128                           8   12.5 ms    250 ms     11 ms    1.5 s   20.8     95 %
    ! run 3          256                           4   12.5 ms    250 ms     11 ms    1.5 s   20.8     95 %
    ✗ run 4          256                           8         -         -         -        -      -        -  interrupted, after 3 requests

    Health: runs that deviated from their scenarios
    ! Cold Cache
        2 of 3 runs (2, 3); run 2: half of it
    ! Prompt Length
        1 of 3 runs (3); run 3: too long
    ");

    let folder = sweep.run_folder(0).unwrap();
    let runs = &json_file(folder, "sweep_summary.json")["runs"];
    let of_runs: Vec<&Value> = (0..4).map(|run| &runs[run]["failed_health_checks"]).collect();
    assert_eq!(
        of_runs,
        [
            &json!([]),
            &json!(["Cold Cache"]),
            &json!(["Prompt Length", "Cold Cache"]),
            &Value::Null
        ]
    );
    let rows = csv_file(folder, "sweep_summary.csv");
    let cells: Vec<&str> = rows
        .iter()
        .map(|row| row["failed_health_checks"].as_str())
        .collect();
    assert_eq!(cells, ["", "Cold Cache", "Prompt Length; Cold Cache", ""]);
}
