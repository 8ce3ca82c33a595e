//! Results grouped by labels, and the scenario's name, description and tags.

use crate::page::data;
use crate::results::json;
use crate::simulated::{ends_with, evaluate, labelled, simulated};
use crate::support::{assert_code, stderr, stdout};

/// Sessions 0, 3, 6, ... are gold, the others free; each has two requests.
#[test]
fn results_are_grouped_by_a_label_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(30, "", ""), &[], 0);
    let table = stdout(&output);
    assert!(table.contains("By label \"tier\""), "{table}");
    let groups = &json(&run, "metrics/summary_stats.json")["groups"];
    assert_eq!(groups.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&groups[0]["label"], &groups[0]["values"]),
        (&"tier".into(), &2.into())
    );
    let [free, gold] = [0, 1].map(|place| &groups[0]["groups"][place]);
    assert_eq!((&free["value"], &free["requests"]), (&"free".into(), &40.into()));
    assert_eq!((&gold["value"], &gold["requests"]), (&"gold".into(), &20.into()));
    assert_eq!(gold["metrics"]["ttfc"]["count"], 20);
    let csv = std::fs::read_to_string(run.join("metrics/groups.csv")).expect("a table");
    assert!(csv.starts_with("label,value,requests,completed,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
    for metric in ["ttfc", "tpot", "end_to_end_latency"] {
        for extension in ["png", "svg", "csv"] {
            let file = run.join(format!("metrics/{metric}_by_tier.{extension}"));
            assert!(file.exists(), "{}", file.display());
        }
    }
    let page = data(&run);
    assert_eq!(page["groups"][0]["label"], "tier");
    assert_eq!(page["groups"][0]["rows"][1]["value"], "gold");
    assert_eq!(page["groups"][0]["rows"][1]["values"][0], 20.0);
}

#[test]
fn evaluate_groups_by_any_label() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = labelled(30, "", "").replace("labels = {", "labels = { user = \"user \" .. index,");
    let run = simulated(folder.path(), "s.lua", &text, &[]);
    // 30 users are too many for an automatic table.
    let labels = |summary: &serde_json::Value| -> Vec<String> {
        let groups = summary["groups"].as_array().expect("groups").iter();
        groups
            .map(|groups| groups["label"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(labels(&json(&run, "metrics/summary_stats.json")), ["tier"]);
    let output = evaluate(&run, &["--json", "--by", "user", "--by", "tier"]);
    assert_code(&output, 0);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(labels(&summary), ["user", "tier"]);
    let users = summary["groups"][0]["groups"].as_array().expect("groups");
    assert_eq!((users.len(), &users[11]["merged_values"]), (12, &19.into()));
    let output = evaluate(&run, &["--by", "user"]);
    assert_code(&output, 0);
    let remark = "label \"user\" has 30 values: the 11 with the most requests have groups";
    assert!(stdout(&output).contains(remark), "{}", stdout(&output));
    let output = evaluate(&run, &["--by", "teir"]);
    assert_code(&output, 2);
    let message = stderr(&output);
    assert!(
        message.contains("no request has the label \"teir\"; did you mean \"tier\"?")
            && message.contains("labels: tier, user"),
        "{message}"
    );
}

#[test]
fn scenario_key_selects_the_labels() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = r#"{ type = "performance", group_by = {} }"#;
    let run = simulated(folder.path(), "s.lua", &labelled(9, none, ""), &[]);
    assert!(json(&run, "metrics/summary_stats.json").get("groups").is_none());
    let output = evaluate(&run, &["--json", "--by", "tier"]);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(summary["groups"][0]["label"], "tier");
}

#[test]
fn terminal_and_page_show_name_description_and_tags() {
    let folder = tempfile::tempdir().expect("a folder");
    let more =
        r#"name = "gold-and-free", description = "Two tiers on one server.", tags = { "tiers", "nightly" },"#;
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(9, "", more), &[], 0);
    let page = data(&run);
    assert_eq!(page["run"]["name"], "gold-and-free");
    assert_eq!(page["run"]["summary"], "Two tiers on one server.");
    let fact = |name: &str| {
        let facts = page["run"]["facts"].as_array().expect("facts").iter();
        let mut named = facts.filter(|fact| fact["name"] == name);
        named.next().map(|fact| fact["value"].clone())
    };
    assert_eq!(fact("Tags"), Some("tiers, nightly".into()));
    let table = stdout(&output);
    for text in ["gold-and-free", "Two tiers on one server.", "tiers, nightly"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    // An evaluation shows them too.
    assert!(stdout(&evaluate(&run, &[])).contains("Two tiers on one server."));
}

#[test]
fn page_lists_failed_workload_plugins() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = "local sessions = function(index, rng)\n  if index >= 3 then error(\"no more\") end";
    let text = labelled(9, "", "").replace("local sessions = function(index, rng)", broken);
    let (_, run) = ends_with(folder.path(), "s.lua", &text, &[], 4);
    let failed = data(&run)["failed_plugins"][0].clone();
    let message = failed["first_message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("no more"), "{failed}");
    assert!(failed["count"].as_u64() >= Some(1), "{failed}");
}
