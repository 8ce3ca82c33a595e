//! The runs of a sweep on one server, whose cache persists between them.

use super::*;
use crate::server::Sim;

/// Carries out a sweep on a server, and returns its folder and its output.
fn swept(folder: &Path, sim: &Sim, file: &str) -> (PathBuf, Output) {
    let out = tempfile::tempdir_in(folder).expect("a folder").keep();
    let mut arguments = vec!["run", file, "--output_dir", path(&out)];
    arguments.extend(["--client.api_base", &sim.api_base, "--client.model", "sim"]);
    arguments.extend(crate::support::UNJUDGED);
    let output = veeksha(arguments);
    assert_code(&output, 0);
    (folder_of_the_only_sweep(&out), output)
}

/// Returns the result of the cache check in each run of a sweep, in order, with its first finding.
fn caches(sweep: &Path) -> Vec<(String, String)> {
    let of_run = |run: Value| {
        let folder = PathBuf::from(run["run_dir"].as_str().expect("a folder"));
        let report = json(&folder, "health_check_results.json");
        let checks = report["checks"].as_array().expect("checks").iter();
        let cache = checks.clone().find(|check| check["name"] == "Cold Cache");
        let cache = cache.expect("the check");
        let failed: Vec<&Value> = checks
            .filter(|check| check["outcome"] == "failed")
            .map(|check| &check["name"])
            .collect();
        assert_eq!(run["failed_health_checks"], serde_json::json!(failed));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&cache["outcome"]), text(&cache["findings"][0]))
    };
    let summary = json(sweep, "sweep_summary.json");
    runs(&summary).into_iter().map(of_run).collect()
}

fn outcomes(caches: &[(String, String)]) -> Vec<&str> {
    caches.iter().map(|(outcome, _)| outcome.as_str()).collect()
}

/// Returns a text without the line breaks of a table.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const SESSIONS: &str =
    "{ type: concurrent, target_concurrent_sessions: !expand [1, 2, 3], rampup_seconds: 0 }";

/// Later runs hit the cache entries of the first run: each of them reports it with the message of a
/// single run.
#[test]
fn sweep_reports_runs_with_a_warm_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let sim = Sim::start(&["--profile", "fast"]);
    let file = scenario(folder.path(), "s.yml", &text(SESSIONS, "300"));
    let (sweep, output) = swept(folder.path(), &sim, &file);
    sim.stop();
    let caches = caches(&sweep);
    assert_eq!(outcomes(&caches), ["passed", "failed", "failed"]);
    let said = on_one_line(&stdout(&output));
    let told = format!(
        "! Cold Cache 2 of 3 runs (2, 3); run 2: {}",
        on_one_line(&caches[1].1)
    );
    assert!(said.contains(&told), "no {told:?} in {said}");
    assert_eq!(said.matches("Cold Cache").count(), 1, "{said}");
    let (header, rows) = table(&sweep);
    let column = header.iter().position(|name| name == "failed_health_checks");
    let column = column.expect("a column");
    let warm: Vec<bool> = rows
        .iter()
        .map(|row| row[column].contains("Cold Cache"))
        .collect();
    assert_eq!(warm, [false, true, true]);
}

/// The recommended file of the document, with more sessions than are practical in a test.
#[test]
fn a_seed_for_each_run_keeps_the_cache_cold() {
    let document = std::fs::read_to_string(root().join("docs/sweeps.md")).expect("the document");
    let section = document.split("\n## Warm caches\n").nth(1).expect("the section");
    let yaml = section
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let folder = tempfile::tempdir().expect("a folder");
    let shared = text(CLOSED, "300").replace(&format!("traffic_scheduler: {CLOSED}\n"), "");
    scenario(folder.path(), "base.yml", &shared);
    let file = scenario(folder.path(), "s.yml", yaml.expect("a file"));
    let sim = Sim::start(&["--profile", "fast"]);
    let (sweep, output) = swept(folder.path(), &sim, &file);
    assert_eq!(outcomes(&caches(&sweep)), ["passed", "passed"]);
    assert!(!stdout(&output).contains("Cold Cache"), "{}", stdout(&output));
    let summary = json(&sweep, "sweep_summary.json");
    let settings: Vec<Value> = runs(&summary).iter().map(|run| run["settings"].clone()).collect();
    let expected = |seed: u64, sessions: u64| serde_json::json!({"seed": seed, "traffic_scheduler.target_concurrent_sessions": sessions});
    assert_eq!(settings, [expected(1, 1), expected(2, 4)]);
    // The same file sends the same prompts again.
    let (again, _) = swept(folder.path(), &sim, &file);
    sim.stop();
    assert_eq!(outcomes(&caches(&again)), ["failed", "failed"]);
}

/// A sweep in place of a run is rejected with a list of its runs.
#[test]
fn commands_for_one_run_list_the_runs_of_a_sweep() {
    let folder = tempfile::tempdir().expect("a folder");
    let traffic = SESSIONS.replace("[1, 2, 3]", "[1, 2, 3, 4, 5]");
    let file = scenario(folder.path(), "s.yml", &text(&traffic, "64"));
    assert_code(&simulate(folder.path(), &file, &[]), 0);
    // The sweep may have been moved: its runs are in its folder.
    let sweep = folder.path().join("moved");
    std::fs::rename(sweep_folder(folder.path()), &sweep).expect("moved");
    for command in ["health", "evaluate"] {
        let output = veeksha([command, path(&sweep)]);
        assert_code(&output, 2);
        let told = stderr(&output);
        let named: Vec<&str> = told.lines().filter(|line| line.starts_with("  ")).collect();
        assert!(
            told.contains("moved is a sweep") && told.contains("one of its 5 runs"),
            "{told}"
        );
        assert_eq!(named.len(), 4, "{told}");
        for (index, line) in named[..3].iter().enumerate() {
            let run = line.split_whitespace().next().expect("a folder");
            assert!(Path::new(run).starts_with(&sweep), "{line}");
            assert!(
                line.contains(&format!("target_concurrent_sessions = {}", index + 1)),
                "{line}"
            );
            assert_code(&veeksha(["health", run]), 0);
        }
        assert!(named[3].contains("and 2 more"), "{told}");
    }
    assert!(!sweep.join("evaluations").exists());
}
