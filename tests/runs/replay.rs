//! Shared helpers of the trace tests: a trace and a scenario in a folder, and the records of a run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::results::{latest, lines};
use crate::support::{assert_code, scenario, veeksha};

pub(crate) const ROWS: &str = "metrics/request_level_metrics.jsonl";

/// A folder with a trace and a scenario that replays it.
pub(crate) struct Replay {
    folder: tempfile::TempDir,
    pub(crate) scenario: String,
}

impl Replay {
    pub(crate) fn new(trace_name: &str, trace: &str, yaml: &str) -> Replay {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(trace_name), trace).expect("a writable folder");
        let scenario = scenario(folder.path(), "scenario.yml", yaml);
        Replay { folder, scenario }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `run` or `simulate`, which must succeed, and returns the folder of its results.
    pub(crate) fn go(&self, command: &str, more: &[&str]) -> PathBuf {
        let output_dir = self
            .path()
            .join(format!("out-{}", more.join("").replace('/', "-")));
        let output_dir = output_dir.to_str().expect("UTF-8");
        let mut arguments = vec![command, &self.scenario, "--output_dir", output_dir];
        arguments.extend(more);
        assert_code(&veeksha(arguments), 0);
        latest(Path::new(output_dir))
    }
}

/// Returns the records of a run, ordered by session and node.
pub(crate) fn records(run: &Path) -> Vec<Value> {
    let mut rows = lines(run, ROWS);
    rows.sort_by_key(|row| (row["session_id"].as_u64(), row["node_id"].as_u64()));
    rows
}

pub(crate) fn numbers(rows: &[Value], key: &str) -> Vec<u64> {
    let number = |row: &Value| row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"));
    rows.iter().map(number).collect()
}

/// Returns the sent texts, by session and node.
pub(crate) fn texts(run: &Path) -> Vec<(u64, u64, String)> {
    let mut texts: Vec<_> = lines(run, "traces/trace.jsonl")
        .into_iter()
        .filter(|line| line["event"] == "dispatched")
        .map(|line| {
            let content = line["content"].as_str().expect("the words").to_owned();
            let id = |key: &str| line[key].as_u64().expect("an id");
            (id("session_id"), id("node_id"), content)
        })
        .collect();
    texts.sort();
    texts
}

const TIMED: &str = "{\"timestamp\": 500, \"input_length\": 30, \"output_length\": 4}\n\
                     {\"timestamp\": 0, \"input_length\": 20, \"output_length\": 3}\n\
                     {\"timestamp\": 2500, \"input_length\": 50, \"output_length\": 6}\n\
                     {\"timestamp\": 1000, \"input_length\": 40, \"output_length\": 5}\n";

/// Returns four requests that arrive at 0, 0.5, 1 and 2.5 seconds, out of order in the file, with
/// 20, 30, 40 and 50 tokens.
pub(crate) fn timed() -> Replay {
    Replay::new(
        "timed.jsonl",
        TIMED,
        "session_generator: { type: trace, trace_file: timed.jsonl, flavor: { type: mooncake } }\n\
         traffic_scheduler: { type: fixed_schedule }\n\
         client: { type: openai_completions, api_base: 'sim://fast' }\n",
    )
}
