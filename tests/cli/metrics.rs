//! The list of metrics, their explanations, and unknown names.

use std::collections::BTreeSet;

use serde_json::Value;
use veeksha_metrics::{Metric, RunMetric};

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

/// Every metric has a description, a unit and a better direction, the same in the list and in its
/// own explanation.
#[test]
fn every_metric_is_defined() {
    let list = veeksha(["metrics", "--json"]);
    assert_code(&list, 0);
    let list: Value = serde_json::from_str(&stdout(&list)).expect("JSON");
    let list = list.as_array().expect("a list");
    let listed: BTreeSet<&str> = list.iter().filter_map(|metric| metric["name"].as_str()).collect();
    let metrics = Metric::all().map(Metric::name);
    let defined: BTreeSet<&str> = metrics.chain(RunMetric::all().map(RunMetric::name)).collect();
    assert_eq!(listed, defined);
    assert_eq!(list.len(), defined.len(), "a name is listed twice");
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
    let alone = veeksha(["metrics", "ttfc", "--json"]);
    let alone: Value = serde_json::from_str(&stdout(&alone)).expect("JSON");
    assert!(list.contains(&alone), "{alone}");
}

/// A plugin's metric is listed and explained like a built-in one, for plugins on the command line
/// and in a scenario.
#[test]
fn metrics_of_plugins_are_explained_too() {
    let plugin = ["--plugin", "sdk/lua/stalls.lua"];
    let list = veeksha([&["metrics"][..], &plugin].concat());
    assert_code(&list, 0);
    assert!(stdout(&list).contains("Plugin metrics"), "{}", stdout(&list));
    let one = veeksha([&["metrics", "stall_time"][..], &plugin].concat());
    assert_code(&one, 0);
    insta::assert_snapshot!("metrics-of-a-plugin", stdout(&one));
    let component = ["--plugin", "tests/guests/dist/hostile-measure.wasm"];
    let config = ["--plugin-config", r#"{"behaviour": "good"}"#];
    let json = veeksha([&["metrics", "one", "--json"][..], &component, &config].concat());
    assert_code(&json, 0);
    let json: Value = serde_json::from_str(&stdout(&json)).expect("JSON");
    assert_eq!(json["kind"], "metric");
    assert_eq!(json["plugin"], "hostile-measure");
    for (config, printed) in [("[]", "expected an object"), ("{", "not valid JSON")] {
        let refused = veeksha([&["metrics"][..], &component, &["--plugin-config", config]].concat());
        assert_code(&refused, 2);
        assert!(stderr(&refused).contains(printed), "{}", stderr(&refused));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = crate::support::scenario(
        folder.path(),
        "s.lua",
        r#"
return {
  client = { api_base = "sim://default" },
  evaluators = {
    { type = "performance" },
    {
      type = "lua",
      name = "mine",
      metrics = {
        words = { unit = "words", better = "neither", summary = "words of the answer", observe = function(request) return 1 end },
      },
    },
  },
}
"#,
    );
    let of_scenario = veeksha(["metrics", "words", "--scenario", &file]);
    assert_code(&of_scenario, 0);
    assert!(
        stdout(&of_scenario).contains("words of the answer"),
        "{}",
        stdout(&of_scenario)
    );
    // Without the plugin the name is unknown.
    assert_code(&veeksha(["metrics", "words"]), 2);
    assert_code(&veeksha(["metrics", "--plugin", "nothing.wasm"]), 2);
}
