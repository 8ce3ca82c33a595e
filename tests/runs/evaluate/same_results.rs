//! A run and its record give identical metrics.

use super::*;

#[test]
fn a_simulated_run_and_its_record_give_the_same_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, run) = ends_with(folder.path(), "s.lua", &labelled(60, &asked(), ""), &[], 3);
    let again = evaluated(&run, &folder.path().join("again"), &[], 3);
    assert_same_results(&run, &again);
    assert!(!again.join("traces").exists(), "no empty folder of a trace");
    // Results of the plugins of the run are in the record.
    let summary = json(&again, "metrics/summary_stats.json");
    let answered = lines(&run, "metrics/request_level_metrics.jsonl").len();
    assert_eq!(answered, 120);
    assert_eq!(summary["longest_gap (Count)"], answered);
    assert_eq!(summary["excess (Count)"], answered);
}

#[test]
fn a_real_run_and_its_record_give_the_same_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = real(folder.path(), "s.lua", &labelled(60, &asked(), ""), 3);
    let again = evaluated(&run, &folder.path().join("again"), &[], 3);
    assert_same_results(&run, &again);
    assert_eq!(
        json(&again, "metrics/summary_stats.json")["Number of Requests"],
        120
    );
}

/// Failures, cancelled sessions, a timeout: the counts are also identical.
#[test]
fn a_run_with_failures_and_its_record_give_the_same_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", goodput = { "ttfc <= 900ms" }, slos = { "goodput > 0.1" } }"#;
    let more = ["--profile", "faulty", "--runtime.benchmark_timeout", "3"];
    let run = simulated(folder.path(), "s.lua", &labelled(300, asked, ""), &more);
    let failed = lines(&run, "metrics/request_level_metrics.jsonl");
    assert!(failed.iter().any(|row| row["success"] == false));
    let again = evaluated(&run, &folder.path().join("again"), &[], 0);
    assert_same_results(&run, &again);
}

/// The functions of a Lua scenario are unavailable, but not the fact that it replayed a trace, nor
/// its consequences.
#[test]
fn a_replayed_trace_and_its_record_give_the_same_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: String = (0..12)
        .map(|row| {
            let (chat, at) = (row / 2, f64::from(row) * 0.05);
            format!(
                "{{\"chat\": \"{chat}\", \"at\": {at}, \"prompt\": {}}}\n",
                20 + row
            )
        })
        .collect();
    std::fs::write(folder.path().join("chats.jsonl"), rows).expect("a file");
    let text = r#"
return {
  session_generator = {
    type = "trace", trace_file = "chats.jsonl", wrap_mode = false,
    flavor = {
      type = "lua",
      columns = { chat = "text", at = "number", prompt = "count" },
      group_by = "chat",
      arrival = { column = "at", unit = "seconds" },
      session = function(group)
        local requests = {}
        for turn, row in group.rows do
          requests[turn] = {
            user = synthetic(row.cells.prompt), output = { tokens = 5, exact = true },
            after = turn > 1 and turn - 1 or nil, at = row.at, output_tokens = 5,
          }
        end
        return { requests = requests, arrives_at = group.rows[1].at }
      end,
    },
  },
  traffic_scheduler = { type = "fixed_schedule" },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
}
"#;
    let run = simulated(folder.path(), "s.lua", text, &[]);
    let fidelity = json(&run, "metrics/replay_fidelity.json");
    assert_eq!(fidelity["requests"], 12);
    assert_same_results(&run, &evaluated(&run, &folder.path().join("again"), &[], 0));
}
