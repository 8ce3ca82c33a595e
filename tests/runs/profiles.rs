//! Profiles of the simulated server.

use crate::results::{json, latest};
use crate::simulated::{labelled, path};
use crate::support::{assert_code, program, root, scenario, stderr};

/// A path on the command line is relative to the working directory, not to the scenario's folder.
#[test]
fn profile_of_simulate_is_relative_to_the_working_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenarios = folder.path().join("scenarios");
    std::fs::create_dir(&scenarios).expect("a folder");
    let file = scenario(&scenarios, "labelled.lua", &labelled(5, "", ""));
    // The same name in both folders, with different times to the first token.
    let profile = |folder: &std::path::Path, millis: u32| {
        let text = format!("{{prefill_base_ms: {millis}, prefill_ms_per_token: 0, noise_cv: 0}}");
        scenario(folder, "engine.yml", &text);
    };
    profile(folder.path(), 300);
    profile(&scenarios, 7);
    let simulate = |profile: &str| {
        let output_dir = folder.path().join("out");
        let output = program()
            .current_dir(folder.path())
            .args(["simulate", &root().join(&file).display().to_string()])
            .args(["--profile", profile, "--output_dir", path(&output_dir)])
            .output()
            .expect("the program");
        (output, output_dir)
    };
    let (output, output_dir) = simulate("engine.yml");
    assert_code(&output, 0);
    let summary = json(&latest(&output_dir), "metrics/summary_stats.json");
    let ttfc = summary["Time to First Chunk (Min)"].as_f64();
    assert!(ttfc.is_some_and(|ttfc| ttfc >= 0.3), "{ttfc:?}");

    let (output, _) = simulate("missing.yml");
    assert_code(&output, 2);
    let message = stderr(&output);
    assert!(
        message.contains("there is no profile `missing.yml`, and no file missing.yml"),
        "{message}"
    );
}
