//! Arrival processes: a sound one made with the Rust SDK, and ones that misbehave.

use std::sync::Arc;
use std::time::Duration;

use veeksha_ports::{ArrivalFactory, PluginFailure, PluginFailureKind, check_arrivals};
use veeksha_stats::RandomStream;
use veeksha_wasm::{EngineLimits, Kinds};

use crate::support::{grants, load, tight};

fn poisson(config: &str) -> Arc<dyn ArrivalFactory> {
    let plugin = load(EngineLimits::default(), "sdk-arrivals");
    plugin.arrivals(config.into(), grants()).unwrap()
}

fn behaving(behaviour: &str) -> Arc<dyn ArrivalFactory> {
    let limits = EngineLimits {
        call_deadline: Duration::from_millis(500),
        ..tight()
    };
    let plugin = load(limits, "hostile-arrivals");
    let config = format!(r#"{{"behaviour": "{behaviour}"}}"#);
    plugin.arrivals(config, grants()).unwrap()
}

#[test]
fn arrivals_are_those_of_the_streams_in_batches_of_any_size() {
    let plugin = load(EngineLimits::default(), "sdk-arrivals");
    let kinds = Kinds {
        arrival_process: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(plugin.imports(), ["log", "random"]);
    let process = poisson(r#"{"rate": 5}"#);
    assert_eq!(process.info().name, "sdk-arrivals");
    assert_eq!(check_arrivals(&*process), Ok(()));
    let mut source = process.open().unwrap();
    let arrivals = [source.next(1), source.next(20), source.next(100)]
        .map(Result::unwrap)
        .concat();
    let mut at = 0;
    for (session, arrival) in (0..).zip(&arrivals) {
        assert_eq!(*arrival, at, "session {session}");
        let gap = RandomStream::new(42, session, "arrival").draws().exponential() / 5.0;
        at += (gap * 1e9).round() as u64;
    }
    assert_eq!(arrivals.len(), 121);
}

#[test]
fn a_process_ends() {
    let process = poisson(r#"{"rate": 5, "sessions": 10}"#);
    assert_eq!(check_arrivals(&*process), Ok(()));
    let mut source = process.open().unwrap();
    assert_eq!(source.next(7).unwrap().len(), 7);
    assert_eq!(source.next(7).unwrap().len(), 3);
}

fn failure(behaviour: &str) -> PluginFailure {
    check_arrivals(&*behaving(behaviour)).unwrap_err()
}

#[test]
fn hostile_processes_are_refused_before_a_run() {
    assert_eq!(check_arrivals(&*behaving("good")), Ok(()));
    let result = PluginFailureKind::Result;
    for (behaviour, kind, message) in [
        (
            "backwards",
            result.clone(),
            "session 1: its arrival at 62000000 ns is before 63000000 ns, the arrival of session 0; arrivals must not go \
             back in time",
        ),
        (
            "negative",
            result.clone(),
            "session 1: its arrival at 18446744073709551615 ns must be below 2^53 ns (was it negative?)",
        ),
        (
            "beyond",
            result.clone(),
            "session 1: its arrival at 9007199254740992 ns must be below 2^53 ns (was it negative?)",
        ),
        (
            "too-many",
            result.clone(),
            "asked for 64 arrivals from session 0 on, returned 65",
        ),
        (
            "empty",
            result.clone(),
            "the process has no arrivals, so that no session would start",
        ),
        (
            "trap",
            PluginFailureKind::Trap,
            "panicked at hostile-arrivals/src/lib.rs:",
        ),
        (
            "loop",
            PluginFailureKind::Deadline { allowed_ms: 500 },
            "it did not return within 500 ms",
        ),
        (
            "by-batch",
            result,
            "session 0: its arrival was 64 ns, and 1 ns when another instance was asked in batches of another size",
        ),
    ] {
        let failure = failure(behaviour);
        assert_eq!(failure.kind, kind, "{behaviour}: {failure}");
        assert!(failure.message.starts_with(message), "{behaviour}: {failure}");
        assert_eq!(failure.function, "process.next");
    }
    let refused = failure("refuse");
    assert_eq!(refused.function, "process.open");
    assert!(
        refused.message.contains("`refuse` is not a behaviour"),
        "{refused}"
    );
}

#[test]
fn a_later_failure_names_its_session() {
    let mut source = behaving("backwards-at-99").open().unwrap();
    assert_eq!(source.next(64).unwrap().len(), 64);
    let failure = source.next(64).unwrap_err();
    assert!(
        failure.message.starts_with("session 65: its arrival"),
        "{failure}"
    );
    assert_eq!(failure.input.as_deref(), Some("count = 64, from session 64 on"));
}

#[test]
fn another_kind_of_plugin_is_refused() {
    let refused = |name: &str| {
        let plugin = load(EngineLimits::default(), name);
        let failure = plugin.arrivals("{}".into(), grants()).err().unwrap();
        failure.message
    };
    assert_eq!(
        refused("planned"),
        "it is a session generator, which does not decide when sessions arrive; name a plugin that exports \
         `arrival-process`"
    );
    let plugin = load(EngineLimits::default(), "sdk-arrivals");
    let failure = plugin.workload("{}".into(), grants()).err().unwrap();
    assert!(failure.message.contains("`arrival_process`"), "{failure}");
}
