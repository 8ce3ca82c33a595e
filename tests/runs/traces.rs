//! Trace replay: the content and times of requests, and the results of the run, compared with the
//! lines of the trace.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json as value};

use crate::replay::{ROWS, Replay, numbers, records, texts, timed};
use crate::results::{json, latest, lines};
use crate::support::{assert_code, stderr, veeksha};

/// Returns prompts of blocks of 32 tokens that share prefixes: ids and length. The last block of
/// each is partial.
fn block_rows() -> Vec<(Vec<u64>, u64)> {
    (0..40u64)
        .map(|row| {
            // A system prompt in all, a document in one of four, and a tail that recurs every tenth
            // row.
            let mut ids = vec![1, 2];
            ids.extend([10 + row % 4, 20 + row % 4]);
            ids.push(100 + row % 10);
            ids.push(1000 + row);
            let length = 32 * 5 + 7 + row % 16;
            (ids, length)
        })
        .collect()
}

/// Returns the tokens of the longest prefix that each prompt shares with an earlier one, from its
/// ids alone.
fn hits_by_ids(rows: &[(Vec<u64>, u64)]) -> Vec<u64> {
    let shared = |a: &[u64], b: &[u64]| a.iter().zip(b).take_while(|(a, b)| a == b).count() as u64;
    (0..rows.len())
        .map(|row| {
            let ids = &rows[row].0;
            let longest = rows[..row].iter().map(|(earlier, _)| shared(ids, earlier)).max();
            longest.unwrap_or(0) * 32
        })
        .collect()
}

/// The engine's prefix cache reports the hits implied by the trace's hash ids, to the token, and
/// the host predicts them.
#[test]
fn the_cache_reports_the_hits_that_the_hash_ids_imply() {
    let rows = block_rows();
    let trace = rows
        .iter()
        .enumerate()
        .fold(String::new(), |mut text, (row, (ids, length))| {
            let line =
                value!({"timestamp": row * 10, "input_length": length, "output_length": 3, "hash_ids": ids});
            let _ = writeln!(text, "{line}");
            text
        });
    let replay = Replay::new(
        "blocks.jsonl",
        &trace,
        "session_generator: { type: trace, trace_file: blocks.jsonl, wrap_mode: false, flavor: { type: mooncake, block_size: 32 } }\n\
         traffic_scheduler: { type: concurrent, target_concurrent_sessions: 1, rampup_seconds: 0 }\n\
         # The completions interface sends the prompt as it is, without a template around it.\n\
         client: { type: openai_completions, api_base: 'sim://fast' }\n",
    );
    let expected = hits_by_ids(&rows);
    for command in ["run", "simulate"] {
        let run = replay.go(command, &[]);
        let records = records(&run);
        assert_eq!(records.len(), rows.len());
        let lengths: Vec<u64> = rows.iter().map(|(_, length)| *length).collect();
        assert_eq!(numbers(&records, "num_total_prompt_tokens"), lengths, "{command}");
        assert_eq!(numbers(&records, "usage_prompt_tokens"), lengths, "{command}");
        assert_eq!(numbers(&records, "ideal_cached_tokens"), expected, "{command}");
        assert_eq!(numbers(&records, "usage_cached_tokens"), expected, "{command}");
        let hits = &json(&run, "metrics/replay_fidelity.json")["prefix_hits"];
        let sum = |values: &[u64]| values.iter().sum::<u64>() as f64;
        assert_eq!(hits["ideal_rate"], sum(&expected) / sum(&lengths), "{hits}");
        assert_eq!(hits["measured_rate"], sum(&expected) / sum(&lengths), "{hits}");
    }
}

fn arrivals(run: &Path) -> Vec<(f64, u64)> {
    let mut arrivals: Vec<(f64, u64)> = lines(run, ROWS)
        .iter()
        .map(|row| {
            (
                row["scheduler_ready_at"].as_f64().expect("an instant"),
                row["num_total_prompt_tokens"].as_u64().expect("a length"),
            )
        })
        .collect();
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    arrivals
}

#[test]
fn recorded_arrivals_are_replayed_in_their_order() {
    let replay = timed();
    let run = replay.go("simulate", &[]);
    assert_eq!(arrivals(&run), [(0.0, 20), (0.5, 30), (1.0, 40), (2.5, 50)]);
    let fidelity = json(&run, "metrics/replay_fidelity.json");
    assert_eq!(fidelity["arrivals"]["lateness"]["max"], 0.0, "{fidelity}");
    assert_eq!(fidelity["prompt_tokens"]["exact_share"], 1.0, "{fidelity}");
    assert_eq!(fidelity["output_tokens"]["exact_share"], 1.0, "{fidelity}");
}

#[test]
fn a_schedule_is_shifted_cut_and_sped_up() {
    let replay = timed();
    for (more, expected) in [
        (
            &["--traffic_scheduler.offset", "3"][..],
            &[(3.0, 20), (3.5, 30), (4.0, 40), (5.5, 50)][..],
        ),
        (
            &["--traffic_scheduler.speedup", "4"],
            &[(0.0, 20), (0.125, 30), (0.25, 40), (0.625, 50)],
        ),
        (
            &[
                "--traffic_scheduler.start",
                "0.5",
                "--traffic_scheduler.end",
                "2.5",
            ],
            &[(0.0, 30), (0.5, 40)],
        ),
        (
            &[
                "--traffic_scheduler.start",
                "1",
                "--traffic_scheduler.offset",
                "1",
            ],
            &[(1.0, 40), (2.5, 50)],
        ),
    ] {
        assert_eq!(arrivals(&replay.go("simulate", more)), expected, "{more:?}");
    }
}

#[test]
fn a_real_run_replays_arrivals_too() {
    let replay = timed();
    let run = replay.go("run", &["--traffic_scheduler.speedup", "5"]);
    let arrivals = arrivals(&run);
    assert_eq!(arrivals, [(0.0, 20), (0.1, 30), (0.2, 40), (0.5, 50)]);
    for row in lines(&run, ROWS) {
        assert!(row["scheduler_dispatched_at"].as_f64() >= row["scheduler_ready_at"].as_f64());
    }
}

/// Returns five sessions of one or two turns.
fn small() -> Replay {
    let mut trace = String::new();
    for session in 0..5 {
        for turn in 0..=session % 2 {
            let length = 30 + 10 * session + turn;
            let _ = writeln!(
                trace,
                "{{\"session_id\": {session}, \"input_length\": {length}, \"output_length\": 4}}"
            );
        }
    }
    Replay::new(
        "small.jsonl",
        &trace,
        "session_generator: { type: trace, trace_file: small.jsonl, salt: 'off', flavor: { type: request_log } }\n\
         traffic_scheduler: { type: rate, interval_generator: { type: poisson, arrival_rate: 20 } }\n\
         client: { type: openai_completions, api_base: 'sim://fast' }\n\
         trace_recorder: { include_content: true }\n\
         runtime: { max_sessions: 23 }\n",
    )
}

/// The second epoch has the same sessions in another order, with other text and other ids.
#[test]
fn wrapped_trace_starts_again() {
    let replay = small();
    let run = replay.go("run", &[]);
    let rows = records(&run);
    let shape = |session: u64| -> Vec<u64> {
        let of = rows.iter().filter(|row| row["session_id"] == session);
        of.map(|row| row["target_num_delta_prompt_tokens"].as_u64().expect("a length"))
            .collect()
    };
    let epoch = |epoch: u64| (epoch * 5..epoch * 5 + 5).map(shape).collect::<Vec<_>>();
    let sorted = |mut shapes: Vec<Vec<u64>>| {
        shapes.sort();
        shapes
    };
    assert_eq!(
        epoch(0),
        [vec![30], vec![40, 41], vec![50], vec![60, 61], vec![70]],
        "the first time in the file's order"
    );
    for later in 1..4 {
        assert_eq!(sorted(epoch(later)), epoch(0), "epoch {later}");
    }
    assert!((1..4).any(|later| epoch(later) != epoch(0)), "shuffled");
    // The first request of each session has no history: its text is unique to the session.
    let first: Vec<String> = texts(&run)
        .into_iter()
        .filter(|(_, node, _)| *node == 0)
        .map(|(_, _, text)| text)
        .collect();
    assert_eq!(first.len(), 23);
    assert_eq!(
        first.iter().collect::<HashSet<_>>().len(),
        23,
        "no text is sent twice"
    );
}

/// Two processes with `--shard` send the same as one: the same sessions at the same instants with
/// the same text, each once.
#[test]
fn shards_together_are_the_whole() {
    let replay = small();
    let whole = replay.go("run", &[]);
    let parts: Vec<PathBuf> = ["1/3", "2/3", "3/3"]
        .iter()
        .map(|part| replay.go("run", &["--shard", part]))
        .collect();
    let sent = |run: &Path| -> Vec<(u64, u64, String)> {
        texts(run).into_iter().filter(|(_, node, _)| *node == 0).collect()
    };
    let planned = |run: &Path| -> Vec<(u64, u64, u64)> {
        let rows = records(run);
        let of = |row: &Value| {
            let intended = row["scheduler_ready_at"].as_f64().expect("an instant");
            let id = |key: &str| row[key].as_u64().expect("an id");
            // A second turn is due when the first is answered, an instant that differs between
            // runs.
            let at = if id("node_id") == 0 {
                (intended * 1e9) as u64
            } else {
                0
            };
            (id("session_id"), id("node_id"), at)
        };
        rows.iter().map(of).collect()
    };
    for (index, part) in parts.iter().enumerate() {
        assert!(
            records(part)
                .iter()
                .all(|row| row["session_id"].as_u64().expect("an id") % 3 == index as u64)
        );
    }
    let mut together: Vec<_> = parts.iter().flat_map(|part| sent(part)).collect();
    together.sort();
    assert_eq!(together, sent(&whole));
    let mut together: Vec<_> = parts.iter().flat_map(|part| planned(part)).collect();
    together.sort_unstable();
    assert_eq!(together, planned(&whole));
}

#[test]
fn shard_out_of_range_is_a_usage_error() {
    let output = veeksha(["simulate", "scenarios/quickstart.lua", "--shard", "3/2"]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("there is no shard 3 of 2"),
        "{}",
        stderr(&output)
    );
}

/// Text differs from run to run unless the salt is fixed, and `config.yml` contains the salt that
/// repeats it.
#[test]
fn a_salt_keeps_runs_apart_and_can_be_repeated() {
    let replay = small();
    let short = ["--runtime.max_sessions", "3"];
    let text = |salt: &str| {
        let mut more = vec!["--session_generator.salt", salt];
        more.extend(short);
        let run = replay.go("run", &more);
        (texts(&run), run)
    };
    let (first, run) = text("run");
    let (second, _) = text("run");
    assert_ne!(first, second, "each run has its own salt");
    assert_eq!(text("off").0, text("off").0);
    assert_eq!(text("7").0, text("7").0);
    assert_ne!(text("7").0, text("8").0);
    let again = replay.path().join("again");
    let config = run.join("config.yml");
    let again = again.to_str().expect("UTF-8");
    assert_code(
        &veeksha(["run", config.to_str().expect("UTF-8"), "--output_dir", again]),
        0,
    );
    // The second turns contain the model's answers, which do not depend on the engine's noise.
    assert_eq!(texts(&latest(Path::new(again))), first);
}

/// Always shuffled: another order already in the first epoch, with the same sessions.
#[test]
fn a_trace_can_be_shuffled_from_the_start_or_never() {
    let replay = small();
    let lengths = |shuffle: &str| {
        let more = [
            "--session_generator.shuffle",
            shuffle,
            "--runtime.max_sessions",
            "10",
        ];
        let rows = records(&replay.go("simulate", &more));
        let first = |row: &&Value| row["node_id"] == 0;
        let of = rows
            .iter()
            .filter(first)
            .map(|row| row["target_num_delta_prompt_tokens"].as_u64());
        of.map(|length| length.expect("a length")).collect::<Vec<_>>()
    };
    let file = [30, 40, 50, 60, 70];
    assert_eq!(lengths("never"), [file, file].concat());
    let always = lengths("always");
    assert_ne!(always[..5], file);
    let sorted = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part
    };
    assert_eq!(
        (sorted(&always[..5]), sorted(&always[5..])),
        (file.to_vec(), file.to_vec())
    );
}

/// With `check: rows`, errors that only the flavor can find end the run when it reaches them;
/// otherwise they are found before it.
#[test]
fn number_of_checked_rows_is_configurable() {
    let trace = "{\"input_length\": 9, \"output_length\": 2}\n{\"input_length\": 0, \"output_length\": 2}\n";
    let replay = Replay::new(
        "zero.jsonl",
        trace,
        "session_generator: { type: trace, trace_file: zero.jsonl, wrap_mode: false, flavor: { type: request_log } }\n\
         client: { api_base: 'sim://fast' }\n",
    );
    let output_dir = replay.path().join("out");
    let run = |check: &str| {
        let output_dir = output_dir.to_str().expect("UTF-8");
        let output = veeksha([
            "simulate",
            &replay.scenario,
            "--output_dir",
            output_dir,
            "--session_generator.check",
            check,
        ]);
        (output.status.code(), stderr(&output))
    };
    for check in ["whole", "auto"] {
        let (code, said) = run(check);
        assert!(code == Some(2) && said.contains("row 2"), "{check}: {said}");
        assert!(!output_dir.exists(), "nothing has started");
    }
    let (code, said) = run("rows");
    assert!(code == Some(4) && said.contains("row 2"), "{said}");
    assert_eq!(
        records(&latest(&output_dir)).len(),
        1,
        "the row before it was sent"
    );
}
