//! Independence of sessions from the instance that generates them.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{Guarantees, PluginFailureKind, check_purity};
use veeksha_wasm::EngineLimits;

use crate::support::{Kept, grants, load, planned};

fn failure_of(name: &str, behaviour: &str) -> Option<String> {
    let config = format!(r#"{{"behaviour": "{behaviour}"}}"#);
    let factory = load(EngineLimits::default(), name)
        .workload(config, grants())
        .unwrap();
    let failure = check_purity(factory.as_ref(), &|_, _| Ok(())).err()?;
    assert_eq!(failure.kind, PluginFailureKind::Result);
    assert_eq!(failure.function, "workload.sessions");
    Some(failure.message)
}

#[test]
fn detects_a_static_counter() {
    let message = failure_of("hostile-sessions", "static-counter").unwrap();
    assert!(message.starts_with("session 0 came out differently"), "{message}");
}

#[test]
fn accepts_sessions_that_depend_on_their_index() {
    assert_eq!(failure_of("hostile-sessions", "good"), None);
}

/// Random bytes and clocks of WASI restart for each session, so sessions do not depend on an
/// instance's batches.
#[test]
fn accepts_wasi_randomness_and_clocks() {
    assert_eq!(failure_of("wasi", "random"), None);
    assert_eq!(failure_of("wasi", "clocks"), None);
}

#[test]
fn wasi_randomness_depends_on_the_session_alone() {
    let plugin = load(EngineLimits::default(), "wasi");
    let open = || planned(&plugin, r#"{"behaviour": "random"}"#, grants());
    let batch = open().sessions(0, 6).unwrap();
    // Simulates three threads.
    let mut threads = [open(), open(), open()];
    let spread: Vec<Session> = (0..6)
        .map(|index| threads[index as usize % 3].sessions(index, 1).unwrap().remove(0))
        .collect();
    assert_eq!(batch, spread);
    assert_ne!(
        batch[0].labels, batch[1].labels,
        "each session has different bytes"
    );
}

#[test]
fn writes_no_log_lines() {
    let log = Arc::new(Kept::default());
    let mut given = grants();
    given.log = log.clone();
    let factory = load(EngineLimits::default(), "planned")
        .workload("{}".into(), given)
        .unwrap();
    assert_eq!(check_purity(factory.as_ref(), &|_, _| Ok(())), Ok(()));
    assert!(log.lines().is_empty(), "{:?}", log.lines());
}

#[test]
fn guarantees_reach_the_host() {
    let guarantees = |name: &str, config: &str| {
        let factory = load(EngineLimits::default(), name)
            .workload(config.into(), grants())
            .unwrap();
        factory.guarantees().unwrap()
    };
    let expected = Guarantees {
        max_output_tokens: Some(200),
        max_depth: Some(2),
        distinct_prompts: true,
    };
    assert_eq!(guarantees("planned", r#"{"turns": 2}"#), expected);
    assert_eq!(guarantees("agent", "{}"), Guarantees::default());
    let flavor = load(EngineLimits::default(), "flavor")
        .flavor(r#"{"grouping": "row"}"#.into(), grants())
        .unwrap();
    assert_eq!(flavor.guarantees(), Ok(Guarantees::default()));
}
