//! Lifecycle timing delays.

use crate::support::{LIFECYCLE, MS, check, failed, health, near, one, passed, rate, skipped};

#[test]
fn ordered_stages_pass() {
    let report = health(rate(1.0), &one(|_| ()));
    let check = check(&report, LIFECYCLE);
    passed(check);
    let names: Vec<&str> = check
        .distributions
        .iter()
        .map(|sample| sample.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "due to dispatched",
            "dispatched to picked up",
            "picked up to sent",
            "completed to processed"
        ]
    );
    for sample in &check.distributions {
        near(sample.summary.mean, 0.001);
    }
}

#[test]
fn stage_before_its_predecessor_fails() {
    let report = health(rate(1.0), &one(|record| record.intended = 5 * MS));
    failed(check(&report, LIFECYCLE), "dispatched before they were due: 0/0");
    let report = health(rate(1.0), &one(|record| record.picked_up_at = Some(0)));
    failed(check(&report, LIFECYCLE), "begin before the preceding stage");
    let report = health(rate(1.0), &one(|record| record.processed_at = 0));
    failed(check(&report, LIFECYCLE), "begin before the preceding stage");
    skipped(check(&health(rate(1.0), &[]), LIFECYCLE), "no measured request");
}
