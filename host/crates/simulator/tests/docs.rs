//! The document of the simulated engine against the keys that a profile has.

use serde_json::Value;
use veeksha_simulator::{Profile, WireFault};

const DOCUMENT: &str = include_str!("../../../../docs/simulated-engine.md");

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_key_and_every_fault_of_the_wire_is_told() {
    let profile = serde_json::to_value(Profile::twin(1, 1, 1)).unwrap();
    let mut words = keys(&profile);
    words.extend(keys(&profile["constant"]));
    words.extend(keys(&profile["faults"]));
    words.extend(WireFault::ALL.map(WireFault::name));
    assert!(words.len() > 50);
    for word in words {
        assert!(DOCUMENT.contains(&format!("`{word}`")), "{word} is not told");
    }
}

/// The profile that the document shows is one.
#[test]
fn the_example_is_a_valid_profile() {
    let text = DOCUMENT.split("```").nth(1).unwrap();
    assert!(text.contains("reset, every: 10") && text.contains("drip, probability: 0.05"));
    let profile: Profile = serde_json::from_str(
        r#"{"faults": {"stall_ms": 200, "wire": [{"fault": "reset", "every": 10}, {"fault": "drip", "probability": 0.05}]}}"#,
    )
    .unwrap();
    assert_eq!(profile.check(), Ok(()));
}
