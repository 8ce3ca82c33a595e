//! The documentation of the simulator against the keys of a profile.

#![expect(
    clippy::unwrap_used,
    reason = "the functions that the tests share are tests too"
)]

use serde_json::Value;
use veeksha_scenario::Document;
use veeksha_simulator::{Profile, WireFault};

const DOCUMENT: &str = include_str!("../../../../docs/simulated-engine.md");

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn documents_every_key_and_wire_fault() {
    let profile = serde_json::to_value(Profile::reference(1, 1, 1)).unwrap();
    let mut words = keys(&profile);
    words.extend(keys(&profile["constant"]));
    words.extend(keys(&profile["faults"]));
    words.extend(WireFault::ALL.map(WireFault::name));
    assert!(words.len() > 50);
    for word in words {
        assert!(
            DOCUMENT.contains(&format!("`{word}`")),
            "{word} is not documented"
        );
    }
}

/// The profile in the documentation is valid.
#[test]
fn documented_example_is_a_valid_profile() {
    let text = DOCUMENT
        .split("```yaml")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let document = Document::from_yaml(text, "the example").unwrap();
    let profile: Profile = serde_json::from_value(document.root.to_json()).unwrap();
    assert_eq!(profile.check(), Ok(()));
    let faults: Vec<WireFault> = profile.faults.wire.iter().map(|rule| rule.fault).collect();
    assert_eq!(faults, [WireFault::Reset, WireFault::Drip]);
}
