//! WASI stand-ins: linked, without side effects, deterministic.

use std::collections::BTreeMap;

use veeksha_ports::PluginFailureKind;
use veeksha_wasm::{EngineLimits, Grants};

use crate::support::{grants, load, planned, tight};

fn seen(behaviour: &str, seed: u64) -> BTreeMap<String, String> {
    let plugin = load(EngineLimits::default(), "wasi");
    let config = format!(r#"{{"behaviour": "{behaviour}"}}"#);
    let mut source = planned(&plugin, &config, Grants { seed, ..grants() });
    source
        .sessions(0, 1)
        .unwrap()
        .remove(0)
        .labels
        .into_iter()
        .collect()
}

#[test]
fn wasi_is_named_among_the_imports() {
    assert_eq!(load(tight(), "wasi").imports(), ["wasi"]);
}

/// Sleeping for a day returns immediately, and the clocks return the defined values.
#[test]
fn clocks_stand_in() {
    let clocks = seen("clocks", 1);
    assert_eq!(
        clocks["slept"],
        (86_400_000_000_000u64 + 1_000).to_string(),
        "a day, and one reading"
    );
    assert_eq!(clocks["wall"], "1767225600", "2026-01-01T00:00:00Z");
}

#[test]
fn randomness_follows_the_seed() {
    let one = seen("random", 1);
    assert_eq!(one, seen("random", 1));
    let other = seen("random", 2);
    assert_ne!(one["bytes"], other["bytes"]);
    assert_ne!(one["word"], other["word"]);
}

#[test]
fn there_is_no_environment() {
    let environment = seen("environment", 1);
    assert_eq!(
        (
            environment["environment"].as_str(),
            environment["arguments"].as_str()
        ),
        ("0", "0")
    );
}

/// 20 MB through a buffer of 16 KiB do not cause an error in the guest.
#[test]
fn a_flood_on_standard_error_is_swallowed() {
    assert_eq!(seen("flood", 1), BTreeMap::new());
}

#[test]
fn last_output_is_in_the_report() {
    let plugin = load(tight(), "wasi");
    let mut source = planned(&plugin, r#"{"behaviour": "panic"}"#, grants());
    let failure = source.sessions(0, 1).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(failure.message, "panicked at plan.py:7: no plan");
    assert_eq!(
        failure.stderr.as_deref(),
        Some("thread 'main' panicked at plan.py:7:\nno plan\nnote: run with RUST_BACKTRACE=1")
    );
}

#[test]
fn a_plugin_cannot_end_the_host() {
    let plugin = load(tight(), "wasi");
    let failure = planned(&plugin, r#"{"behaviour": "exit"}"#, grants())
        .sessions(0, 1)
        .unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(
        failure.message,
        "it ended itself with exit(1), which a plugin must not do"
    );
}

#[test]
fn random_bytes_are_bounded() {
    let plugin = load(tight(), "wasi");
    let failure = planned(&plugin, r#"{"behaviour": "too-random"}"#, grants())
        .sessions(0, 1)
        .unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap, "{failure}");
}
