//! Output format of the doctor on the machine of the tests, independent of its verdict.

use serde_json::Value;

use crate::support::{stdout, veeksha};

#[test]
fn every_finding_has_reason_and_remedy() {
    let output = veeksha(["doctor", "--json", "--streams", "100", "--rate", "10"]);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["expected"]["streams"], 100);
    let findings = report["findings"].as_array().expect("findings");
    let named = |name: &str| findings.iter().find(|finding| finding["name"] == name);
    for name in ["open files", "local ports", "real-time priority"] {
        assert!(named(name).is_some(), "{name} is checked: {findings:?}");
    }
    let mut bad = false;
    for finding in findings {
        assert!(
            finding["found"].as_str().is_some_and(|text| !text.is_empty()),
            "{finding}"
        );
        assert!(
            finding["why"].as_str().is_some_and(|text| !text.is_empty()),
            "{finding}"
        );
        bad |= finding["state"] == "bad";
    }
    assert_eq!(output.status.code(), Some(if bad { 6 } else { 0 }));
    let table = stdout(&veeksha(["doctor"]));
    assert!(
        table.contains("open files") && table.contains("for 1000 concurrent streams"),
        "{table}"
    );
}

#[test]
fn unsustainable_load_has_a_remedy() {
    // More streams than a process may have open files, or an address has ports.
    let output = veeksha(["doctor", "--streams", "4000000000", "--rate", "10"]);
    assert_eq!(output.status.code(), Some(6));
    let table = stdout(&output);
    assert!(
        table.contains("✗ open files") && table.contains("fix: "),
        "{table}"
    );
}

#[test]
fn load_must_be_positive() {
    for wrong in ["0", "-1", "NaN", "inf", "x"] {
        let output = veeksha(["doctor", &format!("--rate={wrong}")]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}
