//! The report as text and JSON.

use crate::support::{
    ACCOUNTING, ARRIVAL, CACHE, CANCELLATION, CONCURRENCY, LIFECYCLE, MS, OUTPUT, PLUGINS, PROMPT, RATE, S,
    SATURATION, SENT, cold, health, rate, sample, sessions_at, turn,
};

#[test]
fn report_is_strict_json() {
    let report = health(cold(), &turn(|second| second.dispatched_at = 1350 * MS));
    let json: serde_json::Value = serde_json::from_str(&report.json().to_string()).unwrap();
    assert_eq!(json["passed"], false);
    let names: Vec<&str> = json["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            RATE,
            ARRIVAL,
            CANCELLATION,
            CONCURRENCY,
            PROMPT,
            OUTPUT,
            LIFECYCLE,
            ACCOUNTING,
            SENT,
            SATURATION,
            CACHE,
            PLUGINS
        ]
    );
    let arrival = &json["checks"][1];
    assert_eq!(
        (&arrival["outcome"], &arrival["why"]),
        (&"failed".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        arrival["values"]["late"],
        serde_json::json!({"unit": "1", "value": 1.0})
    );
    assert_eq!(arrival["distributions"]["dispatched - due"]["p95"], 0.15);
    assert_eq!(json["checks"][10]["why"], "the server reports no cached tokens");
}

#[test]
fn text_of_a_run() {
    let mut events = turn(|second| {
        second.dispatched_at = 1350 * MS;
        second.picked_up_at = Some(1351 * MS);
        second.sent_at = Some(1352 * MS);
        second.prompt_tokens = 90;
    });
    events.extend(sessions_at(&[S, 3 * S])[4..].to_vec());
    events.insert(0, sample("client-0", S, S / 4));
    insta::assert_snapshot!(health(rate(0.5), &events).text());
}
