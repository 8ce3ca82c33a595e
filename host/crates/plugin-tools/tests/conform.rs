//! Conformance of well-behaved and of hostile guests.

#![expect(clippy::unwrap_used, reason = "a test prints what is wrong by panicking")]

use std::path::{Path, PathBuf};

use veeksha_app::StandaloneHost;
use veeksha_plugin_tools::conform::{ConformReport, ConformState, conform};
use veeksha_plugin_tools::{OpenedPlugin, PluginFile, PluginSettings, bench};

fn file(path: &str) -> PluginFile {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    PluginFile::read(&root.join(path)).unwrap()
}

fn settings(config: &str) -> PluginSettings {
    PluginSettings {
        config: config.to_owned(),
        silent: true,
        ..PluginSettings::default()
    }
}

fn checked(path: &str, config: &str) -> ConformReport {
    let host = StandaloneHost::new(PathBuf::new(), &[], true).unwrap();
    let plugin = OpenedPlugin::open(host, &file(path)).unwrap();
    conform(&plugin, &settings(config))
}

/// Returns the names of the checks that failed.
fn failed(report: &ConformReport) -> Vec<&str> {
    let checks = report.checks().iter();
    let failed = checks.filter(|(_, state)| matches!(state, ConformState::Failed(_)));
    failed.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn well_behaved_plugins_conform() {
    for (path, config) in [
        ("plugins/dist/synthetic.wasm", "{}"),
        ("plugins/dist/ollama.wasm", "{}"),
        ("plugins/dist/burstgpt.wasm", "{}"),
        ("tests/guests/dist/agent.wasm", "{}"),
        ("tests/guests/dist/sdk-arrivals.wasm", r#"{"rate": 5}"#),
        ("sdk/lua/stalls.lua", "{}"),
    ] {
        let report = checked(path, config);
        assert!(report.conforms(), "{path}\n{}", report.text());
        assert!(report.checks().len() >= 2, "{path}");
    }
}

#[test]
fn hostile_generators_do_not_conform() {
    const PURITY: &str = "session-generator: the same sessions in any order, batch and instance";
    const BATCHES: &str = "session-generator: batches of any size";
    const MEMORY: &str = "session-generator: stays below the memory limit";
    for behaviour in ["trap", "memory", "too-few", "cyclic", "error"] {
        let report = checked(
            "tests/guests/dist/hostile-sessions.wasm",
            &format!("{{\"do\": \"{behaviour}\"}}"),
        );
        assert_eq!(
            failed(&report),
            [PURITY, BATCHES, MEMORY],
            "{behaviour}\n{}",
            report.text()
        );
    }
    let report = checked(
        "tests/guests/dist/hostile-sessions.wasm",
        r#"{"do": "static-counter"}"#,
    );
    assert_eq!(failed(&report), [PURITY, BATCHES], "{}", report.text());
}

#[test]
fn a_refused_configuration_is_one_failed_check() {
    let report = checked("tests/guests/dist/hostile-sessions.wasm", r#"{"do": "refuse"}"#);
    assert_eq!(
        failed(&report),
        ["session-generator: opens with its configuration"]
    );
    assert!(report.text().contains("is not a behaviour"), "{}", report.text());
    assert!(report.text().ends_with("1 failed"));
}

#[test]
fn a_bench_measures_loading_and_calls() {
    let bench = bench(&file("plugins/dist/synthetic.wasm"), &settings("{}"), &mut |_| {}).unwrap();
    let names: Vec<&str> = bench.values.iter().map(|value| value.name.as_str()).collect();
    for name in [
        "compile and link",
        "open an instance",
        "workload.sessions, each session",
        "requests",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(
        bench
            .values
            .iter()
            .all(|value| value.value.is_finite() && value.value >= 0.0)
    );
}
