//! Published traces, read completely and replayed in virtual time: the results match the files.
//!
//! The files are not part of the project. `VEEKSHA_TRACES=FOLDER cargo test --test runs published
//! -- --ignored` takes `mooncake_conversation_trace.jsonl` (kvcache-ai/Mooncake, FAST25-release)
//! and `AzureLLMInferenceTrace_code.csv` (Azure/AzurePublicDataset, 2023) from a folder.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::support::{assert_code, scenario, veeksha};

fn published(name: &str) -> PathBuf {
    let folder = std::env::var_os("VEEKSHA_TRACES").expect("VEEKSHA_TRACES names the folder of the traces");
    PathBuf::from(folder)
        .join(name)
        .canonicalize()
        .expect("the published trace")
}

/// Replays a trace at its recorded pace on an engine with capacity for all of it.
fn replay(trace: &std::path::Path, flavor: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("vast.yml"),
        "prefill_base_ms: 0\nprefill_ms_per_token: 0.0001\ndecode_base_ms: 1\ndecode_ms_per_sequence: 0\nmax_batch: 4096\n\
         max_prefill_tokens_per_step: 1000000\nkv_capacity_tokens: 1000000000\nmax_context: 1000000\nnoise_cv: 0\n",
    )
    .expect("a profile");
    let yaml = format!(
        "session_generator: {{ type: trace, trace_file: {trace:?}, flavor: {{ type: {flavor} }} }}\n\
         traffic_scheduler: {{ type: fixed_schedule }}\n\
         client: {{ type: openai_completions, api_base: 'sim://vast.yml' }}\n\
         trace_recorder: {{ enabled: false }}\n"
    );
    let file = scenario(folder.path(), "replay.yml", &yaml);
    let output_dir = folder.path().join("out");
    let output_dir = output_dir.to_str().expect("UTF-8");
    assert_code(
        &veeksha(["simulate", &file, "--output_dir", output_dir, "--quiet"]),
        0,
    );
    let run = latest(std::path::Path::new(output_dir));
    (folder, run)
}

/// (arrival in nanoseconds, prompt tokens, output tokens) of each request.
type Asked = (u64, u64, u64);

fn sent(run: &std::path::Path) -> Vec<Asked> {
    let mut rows: Vec<Asked> = lines(run, "metrics/request_level_metrics.jsonl")
        .iter()
        .map(|row| {
            let at = row["scheduler_dispatched_at"].as_f64().expect("an instant");
            let tokens = |key: &str| row[key].as_u64().expect("tokens");
            (
                (at * 1e9).round() as u64,
                tokens("num_total_prompt_tokens"),
                tokens("num_output_tokens"),
            )
        })
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
#[ignore = "needs the published traces"]
fn mooncake_is_replayed_as_it_was_recorded() {
    let trace = published("mooncake_conversation_trace.jsonl");
    let rows: Vec<Value> = std::fs::read_to_string(&trace)
        .expect("the trace")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let mut expected: Vec<Asked> = rows
        .iter()
        .map(|row| {
            (
                number(row, "timestamp") * 1_000_000,
                number(row, "input_length"),
                number(row, "output_length"),
            )
        })
        .collect();
    expected.sort_unstable();

    // Tokens of the longest prefix shared with an earlier prompt, from the ids of blocks of 512
    // tokens, of which the last is partial.
    let mut known: HashMap<Vec<u64>, u64> = HashMap::new();
    let (mut hits, mut prompts) = (0, 0);
    for row in &rows {
        let length = number(row, "input_length");
        prompts += length;
        let ids: Vec<u64> = row["hash_ids"]
            .as_array()
            .expect("ids")
            .iter()
            .map(|id| id.as_u64().expect("an id"))
            .collect();
        let mut following = true;
        for block in 0..ids.len() {
            let tokens = (length - 512 * block as u64).min(512);
            let longest = known.entry(ids[..=block].to_vec()).or_insert(0);
            if following {
                hits += tokens.min(*longest);
                following = tokens <= *longest;
            }
            *longest = tokens.max(*longest);
        }
    }

    let (_folder, run) = replay(&trace, "mooncake");
    assert_eq!(sent(&run), expected);
    let fidelity = json(&run, "metrics/replay_fidelity.json");
    assert_eq!(fidelity["prefix_hits"]["ideal_tokens"], hits, "{fidelity}");
    assert_eq!(
        fidelity["prompt_tokens"]["achieved_tokens"], prompts,
        "{fidelity}"
    );
    assert_eq!(fidelity["prompt_tokens"]["exact_share"], 1.0, "{fidelity}");
    // The engine's cache has blocks of 16 tokens and contains a prompt only after it is computed:
    // it misses prompts of the same instant and prefixes that end within a block.
    let measured = fidelity["prefix_hits"]["measured_rate"].as_f64().expect("a rate");
    let ideal = hits as f64 / prompts as f64;
    assert!(
        (ideal - 0.03..=ideal).contains(&measured),
        "{measured} of {ideal}"
    );
    println!(
        "mooncake: {} requests, ideal {ideal:.6}, measured {measured:.6}",
        rows.len()
    );
}

#[test]
#[ignore = "needs the published traces"]
fn azure_is_replayed_as_it_was_recorded() {
    let trace = published("AzureLLMInferenceTrace_code.csv");
    let text = std::fs::read_to_string(&trace).expect("the trace");
    // `2023-11-16 18:17:03.9799600,4808,10`, all on one day.
    let mut expected: Vec<Asked> = text
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.trim_end().split(',').collect();
            let clock = cells[0].split(' ').nth(1).expect("a time of day");
            let parts: Vec<&str> = clock.split(':').collect();
            let whole = |text: &str| text.parse::<u64>().expect("a number");
            let (seconds, fraction) = parts[2].split_once('.').expect("a fraction");
            let nanos = whole(&format!("{fraction:0<9}"));
            let at = ((whole(parts[0]) * 60 + whole(parts[1])) * 60 + whole(seconds)) * 1_000_000_000 + nanos;
            (at, whole(cells[1]), whole(cells[2]))
        })
        .collect();
    let first = expected.iter().map(|(at, _, _)| *at).min().expect("rows");
    expected.iter_mut().for_each(|(at, _, _)| *at -= first);
    expected.sort_unstable();
    let (_folder, run) = replay(&trace, "azure");
    assert_eq!(sent(&run), expected);
    let fidelity = json(&run, "metrics/replay_fidelity.json");
    assert_eq!(
        fidelity["prefix_hits"]["ideal_tokens"], 0,
        "nothing in it is shared: {fidelity}"
    );
    println!("azure: {} requests", expected.len());
}
