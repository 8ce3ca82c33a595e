//! The page of a run matches the run's other files.

use std::path::Path;

use serde_json::Value;

use crate::results::{json, lines};
use crate::simulated::{labelled, simulated};

/// Returns the data of the page.
pub(crate) fn data(run: &Path) -> Value {
    let page = std::fs::read_to_string(run.join("report.html")).expect("a page");
    let (_, after) = page.split_once("id=\"data\"").expect("an element with the data");
    let (_, text) = after.split_once('>').expect("its beginning");
    let (text, _) = text.split_once("</script>").expect("its end");
    serde_json::from_str(text).expect("JSON")
}

pub(crate) fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let list = list.as_array().expect("a list");
    list.iter()
        .find(|entry| entry["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

/// A failed request cancels its successors, so that fewer requests are sent than were due.
#[test]
fn values_name_their_metric() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = labelled(200, "", "").replace("sim://default", "sim://faulty");
    let run = simulated(folder.path(), "s.lua", &text, &[]);
    let page = data(&run);
    let sent = lines(&run, "metrics/request_level_metrics.jsonl");
    let failed = sent.iter().filter(|row| row["success"] == false).count();
    let summary = json(&run, "metrics/summary_stats.json");
    assert!(failed > 0 && summary["Number of Intended Requests"].as_u64() > Some(sent.len() as u64));

    let errors = named(&page["key_metrics"], "error_rate");
    assert_eq!(errors["value"], failed as f64 / sent.len() as f64);
    assert_eq!(errors["count"], sent.len());
    assert_eq!(errors["count_of"], "requests sent");
    assert_eq!(errors["detail"], format!("{failed} failed"));

    // The new messages of a prompt, not the whole prompt, which is in the table of requests.
    let prompt = named(&page["metrics"], "num_prompt_tokens");
    assert_eq!(prompt["label"], "New Prompt Tokens (without history)");
    let most = |key: &str| sent.iter().filter_map(|row| row[key].as_u64()).max();
    assert_eq!(
        prompt["summary"]["max"].as_f64().map(|most| most as u64),
        most("num_delta_prompt_tokens")
    );
    let whole = page["requests"]["prompt_tokens"].as_array().expect("a list");
    assert_eq!(
        whole.iter().filter_map(Value::as_u64).max(),
        most("num_total_prompt_tokens")
    );
}
