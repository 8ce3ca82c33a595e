//! Traces and recorded arrivals: keys, defaults, and refused combinations.
#![expect(
    clippy::panic,
    reason = "outside a test function the configuration does not know that this is a test"
)]

mod common;

use common::{bad, generators, good};
use serde_json::json;
use veeksha_scenario::{
    Cell, Document, Flavor, Generator, LuaColumn, OnBadRow, PromptLength, RowCheck, Salt, SaltName, Scenario,
    Shuffle, Trace, Traffic,
};

fn trace(yaml: &str) -> Trace {
    match good(yaml).session_generator {
        Generator::Trace(trace) => *trace,
        other => panic!("not a trace: {other:?}"),
    }
}

/// A Veeksha user's trace: only file, wrap mode and flavor.
#[test]
fn accepts_veeksha_keys() {
    let trace = trace(
        "session_generator:\n  type: trace\n  trace_file: traces/log.jsonl\n  wrap_mode: false\n  flavor:\n    type: request_log\n",
    );
    assert_eq!(trace.keys.trace_file.to_str(), Some("traces/log.jsonl"));
    assert_eq!(trace.keys.wrap_mode, Some(false));
    assert_eq!(
        trace.flavor,
        Flavor::Shipped {
            name: "request_log".to_owned(),
            config: json!({})
        }
    );
}

#[test]
fn all_other_keys_have_defaults() {
    let trace = trace("session_generator: {type: trace, trace_file: t.jsonl}");
    let keys = &trace.keys;
    assert_eq!((keys.wrap_mode, keys.shuffle), (None, Shuffle::Wrapped));
    assert_eq!((keys.on_bad_row, keys.check), (OnBadRow::Error, RowCheck::Auto));
    assert_eq!((keys.max_row_mib, keys.warmup), (64, true));
    assert_eq!(keys.salt, Salt::Named(SaltName::Run));
    assert_eq!(
        trace.flavor,
        Flavor::Shipped {
            name: "timed_synthetic_session".to_owned(),
            config: json!({"page_size": 16})
        },
        "Veeksha's default flavor, with the defaults of its schema"
    );
}

#[test]
fn salt_is_a_name_or_a_number() {
    for (typed, salt) in [
        ("off", Salt::Named(SaltName::Off)),
        ("run", Salt::Named(SaltName::Run)),
        ("7", Salt::Fixed(7)),
    ] {
        let yaml = format!("session_generator: {{type: trace, trace_file: t, salt: {typed}}}");
        assert_eq!(trace(&yaml).keys.salt, salt, "{typed}");
        let mut document =
            Document::from_yaml("session_generator: {type: trace, trace_file: t}", "s.yml").unwrap();
        document.set("session_generator.salt", typed).unwrap();
        let Generator::Trace(trace) = document.check(&generators()).unwrap().session_generator else {
            panic!("not a trace");
        };
        assert_eq!(trace.keys.salt, salt, "--session_generator.salt {typed}");
    }
}

#[test]
fn lua_flavor_declares_its_layout() {
    let yaml = "session_generator:\n  type: trace\n  trace_file: t.csv\n  flavor:\n    type: lua\n    session: 1\n    \
                columns: {a: count, b: {cell: text, required: false, aliases: [bee]}}\n    group_by: b\n    \
                arrival: {column: a, unit: milliseconds}\n    keep: {column: b, count: 3}\n";
    let problem = bad(yaml);
    assert!(
        problem.contains("session_generator.flavor.session: expected a function"),
        "{problem}"
    );
    let mut document = Document::from_yaml(yaml, "s.yml").unwrap();
    let veeksha_scenario::Value::Map(root) = &mut document.root.value else {
        panic!("a table");
    };
    let flavor = ["flavor", "session"].iter().fold(&mut root[0].1, |node, key| {
        let veeksha_scenario::Value::Map(entries) = &mut node.value else {
            panic!("a table");
        };
        &mut entries.iter_mut().find(|(name, _)| name == key).unwrap().1
    });
    flavor.value = veeksha_scenario::Value::Function;
    let Generator::Trace(trace) = document.check(&generators()).unwrap().session_generator else {
        panic!("not a trace");
    };
    let Flavor::Lua {
        layout, has_warmup, ..
    } = trace.flavor
    else {
        panic!("not a Lua flavor");
    };
    assert!(!has_warmup);
    assert_eq!(layout.columns["a"], LuaColumn::Cell(Cell::Count));
    assert_eq!(
        layout.columns["b"],
        LuaColumn::Full {
            cell: Cell::Text,
            required: false,
            aliases: vec!["bee".to_owned()]
        }
    );
    assert_eq!(layout.group_by.as_deref(), Some("b"));
    assert_eq!(layout.keep.unwrap().count, 3);
}

#[test]
fn schedule_has_offset_window_and_speedup() {
    let scenario = good(
        "traffic_scheduler: {type: fixed_schedule, offset: 1.5, start: 60, end: 120, speedup: 4}\n\
         session_generator: {type: trace, trace_file: t}",
    );
    let Traffic::FixedSchedule(schedule) = scenario.traffic_scheduler else {
        panic!("not a schedule");
    };
    assert!(schedule.cancel_session_on_failure);
    assert_eq!((schedule.offset, schedule.speedup), (1.5, 4.0));
    assert_eq!((schedule.start, schedule.end), (Some(60.0), Some(120.0)));
}

/// Veeksha's limits of 25 sessions and 300 s apply to workloads without an end.
#[test]
fn trace_without_wrap_is_replayed_to_its_end() {
    let limits = |yaml: &str| {
        let runtime = good(yaml).runtime;
        (
            runtime.session_limit(),
            runtime.timeout().map(|timeout| timeout.as_secs()),
        )
    };
    let trace = "session_generator: {type: trace, trace_file: t";
    let once = format!("{trace}, wrap_mode: false}}");
    assert_eq!(limits(&once), (None, None));
    let scheduled = format!("{trace}}}\ntraffic_scheduler: {{type: fixed_schedule}}");
    assert_eq!(limits(&scheduled), (None, None));
    assert_eq!(limits(&format!("{trace}}}")), (Some(25), Some(300)), "it wraps");
    assert_eq!(
        limits(&format!(
            "{once}\nruntime: {{max_sessions: 7, benchmark_timeout: 9}}"
        )),
        (Some(7), Some(9))
    );
    assert_eq!(limits(""), (Some(25), Some(300)), "not a trace");
}

#[test]
fn names_invalid_combinations() {
    for (yaml, line) in [
        (
            "session_generator: {type: trace}",
            "s.yml:1: session_generator: `trace_file` is missing",
        ),
        (
            "session_generator: {type: trace, trace_file: t, wrap_mod: true}",
            "s.yml:1: session_generator.wrap_mod: unknown key; did you mean `wrap_mode`?",
        ),
        (
            "session_generator: {type: trace, trace_file: t, flavor: {type: moncake}}",
            "s.yml:1: session_generator.flavor.type: unknown type `moncake`; it must be `mooncake`, `request_log`, `timed_synthetic_session`, `wasm` or `lua`; did you mean `mooncake`?",
        ),
        (
            "session_generator: {type: trace, trace_file: t, flavor: {type: mooncake, blok_size: 16}}",
            "s.yml:1: session_generator.flavor.blok_size: unknown key; did you mean `block_size`?",
        ),
        (
            "session_generator: {type: trace, trace_file: t, shuffle: always}\ntraffic_scheduler: {type: fixed_schedule}",
            "s.yml:1: session_generator.shuffle: `fixed_schedule` replays sessions in the order of their arrival",
        ),
        (
            "traffic_scheduler: {type: fixed_schedule, start: 5}",
            "s.yml:1: traffic_scheduler.start: applies to traces only; other generators decide which sessions they make",
        ),
        (
            "session_generator: {type: trace, trace_file: t}\ntraffic_scheduler: {type: fixed_schedule, start: 5, end: 5}",
            "s.yml:2: traffic_scheduler.start: must be before `end`: nothing arrives from second 5 to second 5",
        ),
        (
            "client: {prompt_length: wrapped}",
            "s.yml:1: client.prompt_length: `wrapped` needs `apply_chat_template: true`",
        ),
        (
            "client: {chat_template: t.jinja}",
            "s.yml:1: client.chat_template: has no effect unless `apply_chat_template` is true",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn resolved_scenario_round_trips() {
    let read = |scenario: &Scenario| -> Scenario {
        Document::from_yaml(&scenario.to_yaml(), "config.yml")
            .unwrap()
            .check(&generators())
            .unwrap()
    };
    for yaml in [
        "session_generator: {type: trace, trace_file: t.jsonl, salt: 12, columns: {a: b}, media_folder: m, on_bad_row: skip}",
        "session_generator: {type: trace, trace_file: t.jsonl, flavor: {type: wasm, plugin: f.wasm, files: {x: y}, config: {z: 1}}}\n\
         traffic_scheduler: {type: fixed_schedule, end: 10}",
        "client: {apply_chat_template: true, prompt_length: wrapped, chat_template: t.jinja}",
    ] {
        let scenario = good(yaml);
        assert_eq!(read(&scenario), scenario, "{yaml}");
    }
    assert_eq!(
        good("client: {apply_chat_template: true, prompt_length: wrapped}")
            .client
            .prompt_length,
        PromptLength::Wrapped
    );
}
