//! Replaying traces: what is sent, when, and what the run says of it, against what the trace's own lines say.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json as value};

use crate::results::{json, latest, lines};
use crate::support::{assert_code, scenario, stderr, veeksha};

const ROWS: &str = "metrics/request_level_metrics.jsonl";

/// A folder with a trace and a scenario that replays it.
struct Replay {
    folder: tempfile::TempDir,
    scenario: String,
}

impl Replay {
    fn new(trace_name: &str, trace: &str, yaml: &str) -> Replay {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(trace_name), trace).expect("a writable folder");
        let scenario = scenario(folder.path(), "scenario.yml", yaml);
        Replay { folder, scenario }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `run` or `simulate`, which must end well, and returns the folder of its results.
    fn go(&self, command: &str, more: &[&str]) -> PathBuf {
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

/// The records of a run in the order of their sessions and nodes.
fn records(run: &Path) -> Vec<Value> {
    let mut rows = lines(run, ROWS);
    rows.sort_by_key(|row| (row["session_id"].as_u64(), row["node_id"].as_u64()));
    rows
}

fn numbers(rows: &[Value], key: &str) -> Vec<u64> {
    let number = |row: &Value| row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"));
    rows.iter().map(number).collect()
}

/// What was sent, by session and node.
fn texts(run: &Path) -> Vec<(u64, u64, String)> {
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

/// Prompts of blocks of 32 tokens that share beginnings: ids, length. The last block of each is partial.
fn block_rows() -> Vec<(Vec<u64>, u64)> {
    (0..40u64)
        .map(|row| {
            // A system prompt of all, a document of one in four, and a tail that recurs every tenth row.
            let mut ids = vec![1, 2];
            ids.extend([10 + row % 4, 20 + row % 4]);
            ids.push(100 + row % 10);
            ids.push(1000 + row);
            let length = 32 * 5 + 7 + row % 16;
            (ids, length)
        })
        .collect()
}

/// Tokens of the longest beginning that each prompt shares with an earlier one, by its ids alone.
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

/// The engine's prefix cache reports the hits that the trace's hash ids imply, to the token; and the host knew it before.
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

const TIMED: &str = "{\"timestamp\": 500, \"input_length\": 30, \"output_length\": 4}\n\
                     {\"timestamp\": 0, \"input_length\": 20, \"output_length\": 3}\n\
                     {\"timestamp\": 2500, \"input_length\": 50, \"output_length\": 6}\n\
                     {\"timestamp\": 1000, \"input_length\": 40, \"output_length\": 5}\n";

fn timed() -> Replay {
    Replay::new(
        "timed.jsonl",
        TIMED,
        "session_generator: { type: trace, trace_file: timed.jsonl, flavor: { type: mooncake } }\n\
         traffic_scheduler: { type: fixed_schedule }\n\
         client: { type: openai_completions, api_base: 'sim://fast' }\n",
    )
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

/// Five sessions of one or two turns.
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

/// The second epoch has the same sessions, in another order, with other text and other numbers.
#[test]
fn a_wrapped_trace_begins_anew() {
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
    // The first request of each session has no history: its text is its own.
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

/// Two processes with `--shard` send what one sends: the same sessions at the same instants with the same text, each once.
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
            // A second turn is due when the first is answered, which no two runs do at the same instant.
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
fn a_part_that_does_not_exist_is_a_usage_error() {
    let output = veeksha(["simulate", "scenarios/quickstart.lua", "--shard", "3/2"]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("there is no part 3 of 2"),
        "{}",
        stderr(&output)
    );
}

/// Text differs from run to run unless the salt is fixed, and `config.yml` has the salt that repeats it.
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
    assert_ne!(first, second, "each run has a salt of its own");
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
    // The second turns contain the model's answers, which the engine's noise does not change.
    assert_eq!(texts(&latest(Path::new(again))), first);
}

const CONVERSATION: &str = r#"{"conversations": [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "one"}, {"from": "gpt", "value": "recorded answer one"}, {"from": "human", "value": "two"}, {"from": "gpt", "value": "recorded answer two"}]}
"#;

#[test]
fn history_is_recorded_live_or_absent() {
    let replay = Replay::new(
        "talk.jsonl",
        CONVERSATION,
        "session_generator: { type: trace, trace_file: talk.jsonl, wrap_mode: false, flavor: { type: untimed_content_multi_turn } }\n\
         traffic_scheduler: { type: concurrent, target_concurrent_sessions: 1, rampup_seconds: 0 }\n\
         client: { api_base: 'sim://fast' }\n\
         trace_recorder: { include_content: true }\n",
    );
    let second = |mode: &str| {
        let run = replay.go("run", &["--session_generator.flavor.history", mode]);
        let texts = texts(&run);
        assert_eq!(texts.len(), 2, "two turns");
        assert!(texts[0].2.contains("Be brief.") && texts[0].2.ends_with("user: one"));
        let rows = records(&run);
        assert_eq!(rows[1]["history_mode"], mode);
        // The counts are those of what was really sent.
        assert!(rows[1]["usage_prompt_tokens"].as_u64() >= rows[1]["num_total_prompt_tokens"].as_u64());
        texts[1].2.clone()
    };
    let recorded = second("recorded");
    assert_eq!(
        recorded,
        "system: Be brief.\nuser: one\nassistant: recorded answer one\nuser: two"
    );
    let live = second("live");
    assert!(live.starts_with("system: Be brief.\nuser: one\nassistant: ") && live.ends_with("\nuser: two"));
    assert!(!live.contains("recorded answer"), "{live}");
    let fresh = second("fresh");
    assert!(
        fresh.ends_with("user: two") && !fresh.contains("user: one"),
        "{fresh}"
    );
}

/// Each kept document is sent once before the run; the first measured request about it finds it in the cache.
#[test]
fn rag_warms_the_cache_before_the_run() {
    let document = |name: &str| format!("{name} says: {}", format!("all about {name}. ").repeat(40));
    let mut trace = String::new();
    for row in 0..6 {
        let doc = ["alpha", "beta", "gamma"][row % 3];
        let line = value!({
            "doc_id": doc,
            "prompt_text": format!("{}\nQuestion {row}?", document(doc)),
            "input_length": 100,
            "output_length": 3,
        });
        let _ = writeln!(trace, "{line}");
    }
    let replay = Replay::new(
        "rag.jsonl",
        &trace,
        "session_generator: { type: trace, trace_file: rag.jsonl, wrap_mode: false, shuffle: never, flavor: { type: rag, num_documents: 2 } }\n\
         traffic_scheduler: { type: concurrent, target_concurrent_sessions: 1, rampup_seconds: 0 }\n\
         client: { api_base: 'sim://fast' }\n",
    );
    for command in ["run", "simulate"] {
        let warm = records(&replay.go(command, &[]));
        assert_eq!(
            warm.len(),
            4,
            "two rows of each of the two most frequent documents, and no warm-up"
        );
        let cached = numbers(&warm, "usage_cached_tokens");
        assert!(cached.iter().all(|tokens| *tokens >= 64), "{command}: {cached:?}");
        let cold = records(&replay.go(command, &["--session_generator.warmup", "false"]));
        let cached = numbers(&cold, "usage_cached_tokens");
        assert!(cached[0] == 0 && cached[2] >= 64, "{command}: {cached:?}");
    }
}

/// A picture of the media folder is sent, a generated one is made, and nothing outside the folder is read.
#[test]
fn media_come_from_their_folder_or_are_made() {
    let replay = Replay::new(
        "media.jsonl",
        "{\"text\": \"What is this?\", \"image\": \"dot.png\", \"output_length\": 3}\n\
         {\"text\": \"And this?\", \"image\": \"generated:image?width=64&height=48&seed=3\", \"audio\": \"generated:audio?seconds=0.1&seed=3\", \"output_length\": 3}\n",
        "session_generator: { type: trace, trace_file: media.jsonl, wrap_mode: false, media_folder: pictures, flavor: { type: single_turn } }\n\
         traffic_scheduler: { type: concurrent, target_concurrent_sessions: 1, rampup_seconds: 0 }\n\
         client: { api_base: 'sim://fast' }\n",
    );
    let pictures = replay.path().join("pictures");
    std::fs::create_dir(&pictures).expect("a folder");
    // A PNG of one pixel.
    let dot = [
        0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1,
        8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0x60,
        0, 0, 0, 2, 0, 1, 0x48, 0xaf, 0xa4, 0x71, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
    ];
    std::fs::write(pictures.join("dot.png"), dot).expect("a file");
    let rows = records(&replay.go("run", &[]));
    let prompts = numbers(&rows, "usage_prompt_tokens");
    // The simulated engine counts 256 tokens for each picture or sound, and a few more.
    assert!(prompts[0] > 256 && prompts[0] < 512, "{prompts:?}");
    assert!(prompts[1] > 512 && prompts[1] < 768, "{prompts:?}");

    std::fs::write(replay.path().join("secret.png"), dot).expect("a file");
    for outside in ["../secret.png", "/etc/hostname", "missing.png"] {
        let line = value!({"text": "x", "image": outside, "output_length": 3});
        std::fs::write(replay.path().join("media.jsonl"), format!("{line}\n")).expect("a file");
        let output = veeksha([
            "run",
            &replay.scenario,
            "--output_dir",
            replay.path().to_str().expect("UTF-8"),
        ]);
        assert_ne!(output.status.code(), Some(0), "{outside}");
        assert!(stderr(&output).contains(outside), "{}", stderr(&output));
    }
}

/// Flavors of a third party: a function of the scenario, and the keys of the contract.
#[test]
fn a_lua_flavor_reads_a_csv() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("visits.csv"),
        "who,asked,answered,when\nann,30,4,2024-01-01 00:00:00\nbob,40,5,2024-01-01 00:00:02\nann,50,6,2024-01-01 00:00:01\n",
    )
    .expect("a file");
    let file = scenario(
        folder.path(),
        "visits.lua",
        r#"return {
  session_generator = {
    type = "trace", trace_file = "visits.csv", wrap_mode = false,
    flavor = {
      type = "lua",
      columns = { who = "text", asked = "count", answered = "count", when = "text" },
      group_by = "who",
      arrival = { column = "when", unit = "date_time" },
      session = function(group, trace, epoch)
        local requests = {}
        for i, row in ipairs(group.rows) do
          requests[i] = {
            node = i - 1,
            user = synthetic(row.cells.asked, group.key .. "-" .. i .. "-" .. epoch),
            history = i > 1 and i - 2 or nil,
            output = row.cells.answered,
            prompt_tokens = row.cells.asked,
            at = row.at,
          }
        end
        return { requests = requests }
      end,
    },
  },
  traffic_scheduler = { type = "fixed_schedule" },
  client = { api_base = "sim://fast" },
}"#,
    );
    let output_dir = folder.path().to_str().expect("UTF-8");
    assert_code(&veeksha(["simulate", &file, "--output_dir", output_dir]), 0);
    let rows = records(&latest(folder.path()));
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["session_id"].as_u64(),
                row["target_num_delta_prompt_tokens"].as_u64(),
                row["num_requested_output_tokens"].as_u64(),
                row["scheduler_ready_at"].as_f64(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (Some(0), Some(30), Some(4), Some(0.0)),
            (Some(0), Some(50), Some(6), Some(1.0)),
            (Some(1), Some(40), Some(5), Some(2.0)),
        ]
    );
}
