//! The content that a trace replay sends: history, warm-up, media, templates, and the sessions that
//! a flavor makes of rows.

use std::fmt::Write as _;

use serde_json::json as value;

use crate::replay::{Replay, numbers, records, texts, timed};
use crate::results::latest;
use crate::support::{assert_code, scenario, stderr, veeksha};

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
        // The counts are those of the sent text.
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

/// Each kept document is sent once before the run; the first measured request about it hits the
/// cache.
#[test]
fn rag_warms_the_cache_before_the_run() {
    let document = |name: &str| format!("{name}: {}", format!("all about {name}. ").repeat(40));
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

/// A PNG of one pixel.
const DOT: [u8; 67] = [
    0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0x60, 0, 0, 0,
    2, 0, 1, 0x48, 0xaf, 0xa4, 0x71, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// An image of the media folder is sent, a generated one is made, and nothing outside the folder is
/// read.
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
    std::fs::write(pictures.join("dot.png"), DOT).expect("a file");
    let rows = records(&replay.go("run", &[]));
    let prompts = numbers(&rows, "usage_prompt_tokens");
    // The built-in simulator counts 256 tokens for each image or sound, and a few more.
    assert!(prompts[0] > 256 && prompts[0] < 512, "{prompts:?}");
    assert!(prompts[1] > 512 && prompts[1] < 768, "{prompts:?}");

    std::fs::write(replay.path().join("secret.png"), DOT).expect("a file");
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

/// Files that a Lua scenario grants by name are sent; others are not read.
#[test]
fn a_lua_scenario_sends_granted_pictures() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("dot.png"), DOT).expect("a file");
    let text = |name: &str| {
        format!(
            "return {{ session_generator = {{ type = \"lua\", length = 1, files = {{ dot = \"dot.png\" }},\n  \
             sessions = function(index) return {{ requests = {{ {{ user = {{ \"look\", image(\"{name}\") }}, output = 2 }} }} }} end }},\n  \
             client = {{ api_base = \"sim://fast\" }} }}\n"
        )
    };
    let output_dir = folder.path().to_str().expect("UTF-8");
    let file = scenario(folder.path(), "granted.lua", &text("dot"));
    assert_code(&veeksha(["run", &file, "--output_dir", output_dir]), 0);
    let rows = records(&latest(folder.path()));
    assert!(rows[0]["usage_prompt_tokens"].as_u64() > Some(256), "{}", rows[0]);
    let file = scenario(folder.path(), "not-granted.lua", &text("dot.png"));
    let output = veeksha(["run", &file, "--output_dir", output_dir]);
    assert_code(&output, 4);
    assert!(
        stderr(&output).contains("`dot.png` is not granted"),
        "{}",
        stderr(&output)
    );
}

/// A template file is named and applied to the sent text; a template that changes the message is
/// rejected.
#[test]
fn custom_chat_template_is_applied() {
    let replay = timed();
    let write = |text: &str| std::fs::write(replay.path().join("own.jinja"), text).expect("a file");
    write("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]");
    let more = [
        "--client.apply_chat_template",
        "true",
        "--client.chat_template",
        "own.jinja",
    ];
    let rows = records(&replay.go("run", &more));
    for (row, asked) in rows.iter().zip([20, 30, 40, 50]) {
        assert_eq!(row["num_delta_prompt_tokens"], asked, "{row}");
        assert!(row["num_template_tokens"].as_u64() > Some(0), "{row}");
        // The completions endpoint receives the rendered conversation without additional text.
        assert_eq!(
            row["usage_prompt_tokens"], row["num_total_prompt_tokens"],
            "{row}"
        );
    }
    let wrapped = [&more[..], &["--client.prompt_length", "wrapped"]].concat();
    let rows = records(&replay.go("run", &wrapped));
    assert_eq!(numbers(&rows, "usage_prompt_tokens"), [20, 30, 40, 50]);
    for (template, printed) in [
        ("hello", "omits the user's message"),
        (
            "{{ messages[0].content }}{{ messages[0].content }}",
            "repeats the user's message 2 times",
        ),
        ("{% if %}", "own.jinja"),
    ] {
        write(template);
        let output = veeksha([&["check", &replay.scenario][..], &more].concat());
        assert_code(&output, 2);
        assert!(
            stderr(&output).contains(printed),
            "{template}: {}",
            stderr(&output)
        );
    }
}

/// Third-party flavors: a function of the scenario, and the keys of the contract.
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
