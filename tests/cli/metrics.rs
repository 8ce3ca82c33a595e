//! What can be measured: the list, the explanations, and the names that do not exist.

use serde_json::Value;

use crate::support::{assert_code, stderr, stdout, veeksha};

#[test]
fn the_list_and_its_explanations() {
    let list = veeksha(["metrics"]);
    assert_code(&list, 0);
    insta::assert_snapshot!("metrics-list", stdout(&list));
    for name in ["tpot", "fluidity", "goodput", "session_slowdown"] {
        let output = veeksha(["metrics", name]);
        assert_code(&output, 0);
        insta::assert_snapshot!(format!("metrics-{name}"), stdout(&output));
    }
    let unknown = veeksha(["metrics", "tftc"]);
    assert_code(&unknown, 2);
    insta::assert_snapshot!("metrics-unknown", stderr(&unknown));
    let like_nothing = veeksha(["metrics", "quite_something_else"]);
    assert_code(&like_nothing, 2);
    insta::assert_snapshot!("metrics-like-nothing", stderr(&like_nothing));
}

/// Every metric and figure says what it is, in which unit, and which way it is good; each name is explained alone as in the list.
#[test]
fn every_metric_is_defined() {
    let list = veeksha(["metrics", "--json"]);
    assert_code(&list, 0);
    let list: Value = serde_json::from_str(&stdout(&list)).expect("JSON");
    let list = list.as_array().expect("a list");
    assert!(list.len() >= 40, "{} metrics and figures", list.len());
    for metric in list {
        for key in ["name", "unit", "definition", "scope", "kind"] {
            assert!(
                metric[key].as_str().is_some_and(|text| !text.is_empty()),
                "no {key} in {metric}"
            );
        }
        let better = metric["better"].as_str().expect("a side");
        assert!(["higher", "less", "neither"].contains(&better), "{metric}");
        if metric["kind"] == "metric" {
            assert!(
                metric["source"].as_str().is_some_and(|source| !source.is_empty()),
                "whose definition: {metric}"
            );
        }
    }
    let names: Vec<&str> = list.iter().filter_map(|metric| metric["name"].as_str()).collect();
    for wanted in [
        "ttfc",
        "ttfc_from_intended",
        "tbc",
        "itl",
        "tpot",
        "end_to_end_latency",
        "fluidity",
        "fluidity_tokens",
        "session_makespan",
        "session_critical_path_llm_time",
        "session_slowdown",
        "error_rate",
        "goodput",
        "output_tokens_per_second",
    ] {
        assert!(names.contains(&wanted), "no {wanted} in {names:?}");
    }
    let alone = veeksha(["metrics", "ttfc", "--json"]);
    let alone: Value = serde_json::from_str(&stdout(&alone)).expect("JSON");
    assert!(list.contains(&alone), "{alone}");
}
