//! Trace flavors: conversion of rows to sessions, and refusals that name the line, the group and
//! its rows.

use std::sync::Arc;

use veeksha_model::{
    HistoryMode, Recorded, RecordedAnswer, Replay, Request, Seed, Segment, Session, ToolCall,
};
use veeksha_ports::{
    CellType, FlavorFactory, FlavorInstance, Grouping, Layout, PluginFailure, PluginFailureKind, TraceColumn,
    TraceFacts, TraceGroup, TraceRow,
};

use crate::common::{Folder, agent, first, first_failure, parents};

fn layout() -> Layout {
    let column = |name: &str, cell| TraceColumn {
        name: name.into(),
        aliases: Vec::new(),
        cell,
        required: false,
    };
    Layout {
        columns: vec![
            column("chat", CellType::Text),
            column("prompt_tokens", CellType::Count),
            column("hash_ids", CellType::Items),
            column("extra", CellType::Anything),
        ],
        rows_in: None,
        grouping: Grouping::Column("chat".into()),
        arrival: None,
        keep: None,
        warms_up: false,
    }
}

fn facts() -> TraceFacts {
    TraceFacts {
        rows: 1000,
        groups: 40,
        first_row: r#"{"chat": "a", "prompt_tokens": 12}"#.into(),
    }
}

/// Returns a group whose rows are these cells; row 10 of the trace is the first.
fn group(index: u64, rows: &[&str]) -> TraceGroup {
    TraceGroup {
        index,
        key: format!("chat-{index}"),
        rows: (10..)
            .zip(rows)
            .map(|(number, fields)| TraceRow {
                number,
                at: (number > 10).then_some(number * 250_000_000),
                fields: (*fields).to_owned(),
            })
            .collect(),
    }
}

/// Creates a scenario whose flavor's session function has this body, on lines 2 and following.
fn scenario(body: &str) -> Folder {
    Folder::new(&format!(
        "return {{ session_generator = {{ type = \"trace\", flavor = {{ type = \"lua\", session = function(group, trace, epoch, rng) if not group then return end\n\
         {body}\nend }} }} }}"
    ))
}

fn factory(folder: &Folder, seed: u64, has_warmup: bool) -> Arc<dyn FlavorFactory> {
    let scenario = folder.load().unwrap();
    scenario
        .flavor(
            "session_generator.flavor",
            layout(),
            has_warmup,
            folder.grants(seed),
        )
        .unwrap()
}

fn open(folder: &Folder, seed: u64) -> Box<dyn FlavorInstance> {
    factory(folder, seed, false).open().unwrap()
}

/// Returns the session of one group of one row.
fn one(body: &str, cells: &str) -> Result<Session, PluginFailure> {
    let sessions = open(&scenario(body), 1).sessions(&facts(), 0, &[group(3, &[cells])]);
    sessions.map(|mut sessions| sessions.remove(0))
}

fn refused(body: &str, cells: &str) -> PluginFailure {
    one(body, cells).expect_err("the session should fail")
}

fn text(segment: &Segment) -> &str {
    match segment {
        Segment::Text(text) => text,
        other => panic!("text was expected, found {other:?}"),
    }
}

fn text_of(session: &Session) -> &str {
    text(&session.requests[0].messages[0].content[0])
}

#[test]
fn a_group_becomes_a_session() {
    let folder = scenario(
        r#"
local requests = {}
for turn, row in group.rows do
  requests[turn] = {
    user = `{trace.rows} {trace.groups} {trace.first.chat} {epoch} {group.index} {group.key} {row.number} {row.cells.prompt_tokens}`,
    history = turn > 1 and turn - 1 or nil,
    history_mode = turn > 1 and "recorded" or nil,
    answer = "it was " .. turn,
    at = row.at, latency = "1.5s", prompt_tokens = row.cells.prompt_tokens, output_tokens = 7,
    output = { tokens = 7, exact = true },
  }
end
return { requests = requests, arrives_at = group.rows[2].at, labels = { key = group.key } }"#,
    );
    let mut flavor = open(&folder, 1);
    let rows = [
        r#"{"prompt_tokens": 100}"#,
        r#"{"prompt_tokens": 9007199254740992}"#,
    ];
    let groups = [
        group(3, &rows[..1]),
        group(7, &[rows[0], r#"{"prompt_tokens": 250}"#]),
    ];
    let failure = flavor.sessions(&facts(), 2, &groups).unwrap_err();
    assert!(failure.message.contains("attempt to index nil"), "{failure}");
    assert_eq!(
        failure.input.as_deref(),
        Some("epoch = 2, group 3, key `chat-3`, rows 10")
    );
    let sessions = flavor.sessions(&facts(), 2, &groups[1..]).unwrap();
    let [session] = &sessions[..] else {
        panic!("{sessions:?}")
    };
    assert_eq!(session.arrives_at, Some(2_750_000_000));
    assert_eq!(session.labels, [("key".to_owned(), "chat-7".to_owned())]);
    let [a, b] = &session.requests[..] else {
        panic!("{session:?}")
    };
    assert_eq!(text(&a.messages[0].content[0]), "1000 40 a 2 7 chat-7 10 100");
    assert_eq!(text(&b.messages[0].content[0]), "1000 40 a 2 7 chat-7 11 250");
    assert_eq!((parents(a), parents(b)), (vec![], vec![1]));
    assert_eq!(b.output.target_tokens, Some(7));
    let answer = |text: &str| {
        Some(RecordedAnswer {
            content: vec![Segment::Text(text.into())],
            tool_calls: Vec::new(),
            reasoning: None,
        })
    };
    let expected = |history, answered, at, prompt_tokens| Replay {
        history,
        answer: answer(answered),
        recorded: Recorded {
            at,
            latency: Some(1_500_000_000),
            prompt_tokens: Some(prompt_tokens),
            output_tokens: Some(7),
        },
    };
    assert_eq!(
        a.replay.as_deref(),
        Some(&expected(HistoryMode::Live, "it was 1", None, 100))
    );
    let second = expected(HistoryMode::Recorded, "it was 2", Some(2_750_000_000), 250);
    assert_eq!(b.replay.as_deref(), Some(&second));
}

/// Cells keep their JSON values: tables, absent for null, exact integers, and strings where Lua
/// cannot represent the number.
#[test]
fn cells_keep_their_values() {
    let body = "local c = group.rows[1].cells
return { { user = table.concat({ type(c.extra.n), tostring(c.extra.f), tostring(c.extra.t), tostring(c.extra.none),
  string.format('%d', c.extra.big), c.extra.huge, c.extra.min, #c.hash_ids, string.format('%d', c.hash_ids[2]), c.extra.deep[1][1].x,
  tostring(c.chat) }, ' ') } }";
    let session = one(
        body,
        r#"{"hash_ids": [1, 9007199254740992, 3], "extra": {"n": 1, "f": -2.5, "t": true, "none": null,
            "big": 9007199254740991, "huge": 9007199254740993, "min": -9223372036854775808, "deep": [[{"x": "é\n"}]]}}"#,
    )
    .unwrap();
    assert_eq!(
        text_of(&session),
        "number -2.5 true nil 9007199254740991 9007199254740993 -9223372036854775808 3 9007199254740992 é\n nil"
    );
    assert_eq!(session.requests[0].replay, None, "nothing of it was recorded");
}

#[test]
fn invalid_keys_are_reported_with_line_and_nearest_name() {
    let cases = [
        (
            "\nreturn { { user = 'x', output = group.rows[1].cells.promt_tokens } }",
            "scenario.lua:3: row.cells: unknown field `promt_tokens`; did you mean `prompt_tokens`?",
        ),
        (
            "return { { user = group.rows[1].col.x } }",
            "scenario.lua:2: row: unknown field `col`; known are number, at, cells",
        ),
        (
            "return { { user = group.row[1] } }",
            "scenario.lua:2: group: unknown field `row`; did you mean `rows`?",
        ),
        (
            "return { { user = trace.row } }",
            "scenario.lua:2: trace: unknown field `row`; did you mean `rows`?",
        ),
        (
            "trace.first = 1",
            "scenario.lua:2: attempt to modify a readonly table",
        ),
        (
            "return { { user = 'x', histroy_mode = 'live' } }",
            "scenario.lua:1: requests[1]: unknown field `histroy_mode`; did you mean `history_mode`?",
        ),
        (
            "return { requests = { { user = 'x', history_mode = 'none' } } }",
            "scenario.lua:1: requests[1].history_mode: expected \"live\", \"recorded\" or \"fresh\", found the string \"none\"",
        ),
        (
            "return { { user = 'x', answer = {} } }",
            "requests[1].answer: the answer is empty",
        ),
        (
            "return { { user = 'x', answer = 5 } }",
            "requests[1].answer: expected a string, a segment or a list of them",
        ),
        (
            "return { { user = 'x', answer = { text = 'y' } } }",
            "requests[1].answer: unknown field `text`; known are content, tool_calls",
        ),
        (
            "return { { user = 'x', answer = { tool_calls = { { id = 'a' } } } } }",
            "requests[1].answer.tool_calls[1]: the call has no `name`",
        ),
        (
            "return { { user = 'x', answer = { tool_calls = { { id = 'a', name = 'b', arguments = 1 } } } } }",
            "requests[1].answer.tool_calls[1].arguments: expected JSON text or a table, found the number 1",
        ),
        (
            "return { { user = 'x', at = -1 } }",
            "requests[1].at: expected a duration from 0 to 104 days",
        ),
        (
            "return { { user = 'x', latency = 'long' } }",
            "requests[1].latency: expected seconds as a number",
        ),
        (
            "return { { user = 'x', prompt_tokens = 1.5 } }",
            "requests[1].prompt_tokens: expected a whole number",
        ),
        (
            "return { { user = 'x', output_tokens = -1 } }",
            "requests[1].output_tokens: expected a whole number",
        ),
        (
            "return nil",
            "scenario.lua:1: session: expected a table: { requests = { ... } }, found nothing (nil)",
        ),
        ("return {}", "the session cannot run: the session has no requests"),
        (
            "return { { user = 'x', history = 2 } }",
            "the session cannot run: node 1 names the parent 2, which the session does not have",
        ),
    ];
    for (body, expected) in cases {
        let failure = refused(body, "{}");
        assert!(failure.message.contains(expected), "{body}\n{failure}");
        assert_eq!(failure.function, "flavor.session");
        assert_eq!(
            failure.input.as_deref(),
            Some("epoch = 0, group 3, key `chat-3`, rows 10")
        );
    }
}

#[test]
fn an_error_of_the_author_has_its_line_and_leaves_other_groups_alone() {
    let folder = scenario(
        "if group.index == 5 then error('no ids in row ' .. group.rows[1].number) end\nreturn { { user = 'x' } }",
    );
    let mut flavor = open(&folder, 1);
    let groups: Vec<_> = (4..7).map(|index| group(index, &["{}", "{}"])).collect();
    let failure = flavor.sessions(&facts(), 1, &groups).unwrap_err();
    assert_eq!(folder.clean(&failure.message), "scenario.lua:2: no ids in row 10");
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(
        failure.input.as_deref(),
        Some("epoch = 1, group 5, key `chat-5`, rows 10, 11")
    );
    assert_eq!(flavor.sessions(&facts(), 1, &groups[2..]).unwrap().len(), 1);
    assert_eq!(flavor.sessions(&facts(), 1, &[]).unwrap(), []);
}

/// An intentional refusal of a flavor can be skipped; a bug cannot.
#[test]
fn nil_with_a_reason_refuses_a_group() {
    let failure = refused("return nil, `row {group.rows[1].number} has no ids`", "{}");
    let kind = PluginFailureKind::Refused {
        code: "row".into(),
        hint: None,
        path: None,
    };
    assert_eq!(
        (failure.message.as_str(), failure.kind),
        ("row 10 has no ids", kind)
    );
    assert_eq!(
        failure.input.as_deref(),
        Some("epoch = 0, group 3, key `chat-3`, rows 10")
    );
}

#[test]
fn a_deadline_ends_one_session_only() {
    let folder =
        scenario("if group.index == 1 then while true do end end\nreturn { { user = 'x' } }").hurried();
    let mut flavor = open(&folder, 1);
    let late = flavor.sessions(&facts(), 0, &[group(1, &["{}"])]).unwrap_err();
    assert_eq!(late.kind, PluginFailureKind::Deadline { allowed_ms: 300 });
    assert_eq!(
        flavor.sessions(&facts(), 0, &[group(2, &["{}"])]).unwrap().len(),
        1
    );
}

fn seeds(request: &Request) -> Vec<(Seed, u32)> {
    let content = request.messages.iter().flat_map(|message| &message.content);
    content
        .filter_map(|segment| match segment {
            Segment::Synthetic { seed, tokens } => Some((*seed, *tokens)),
            _ => None,
        })
        .collect()
}

/// Seeds computed independently of this code, from the definition of the contract's `seed_of`;
/// lengths from Mooncake's example: 6,955 tokens are 13 blocks of 512 and one of 299.
#[test]
fn blocks_are_those_of_the_other_sdks() {
    let body = "return { { user = { 'so: ', blocks(group.rows[1].cells.hash_ids, 512, 6955, { scope = 'mooncake', epoch = epoch }) } } }";
    let ids: Vec<String> = (46..60).map(|id| id.to_string()).collect();
    let session = one(body, &format!("{{\"hash_ids\": [{}]}}", ids.join(", "))).unwrap();
    let made = seeds(&session.requests[0]);
    let lengths: Vec<u32> = made.iter().map(|(_, tokens)| *tokens).collect();
    assert_eq!(lengths, [&[512; 13][..], &[299]].concat());
    assert_eq!(
        made[0].0,
        Seed::from(0x5d42_8a95_aa6c_7800),
        "seed_of(\"mooncake\", [0, 46])"
    );
    assert_eq!(text_of(&session), "so: ");

    let session = one(
        "return { { user = blocks({ '18446744073709551615' }, 64, 70, { last = 'full', scope = 'weka', epoch = 3, rest = 99 }) },
           { user = blocks({ 59 }, 64, 10) }, { user = blocks({}, 64, 10) } }",
        "{}",
    )
    .unwrap();
    let rest = (Seed::from(99), 6);
    assert_eq!(
        seeds(&session.requests[0]),
        [(Seed::from(0xc9b6_9351_5e01_1173), 64), rest]
    );
    assert_eq!(
        seeds(&session.requests[1]),
        [(Seed::from(0x2ff5_dd52_8094_3a73), 10)],
        "seed_of(\"blocks\", [59])"
    );
    assert_eq!(
        seeds(&session.requests[2]).len(),
        1,
        "tokens without an id are unique text"
    );
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    let cases = [
        (
            "blocks({ 1, 2, 3 }, 64, 128)",
            "3 hash ids for 128 tokens, which have 2 blocks of 64; is the block size right?",
        ),
        (
            "blocks({ 1, 2 }, 64, 127, { last = 'full' })",
            "2 hash ids for 127 tokens, which have 1 blocks of 64; is the block size right?",
        ),
        (
            "blocks({ 1 }, 0, 127)",
            "size: expected a whole number of tokens from 1 to 16777216, found the number 0",
        ),
        (
            "blocks({ 1 }, 64, 1e9)",
            "tokens: expected a whole number of tokens from 1 to 16777216, found the number 1000000000",
        ),
        (
            "blocks({ 1.5 }, 64, 64)",
            "ids[1]: expected a whole number, 0 or more, found the number 1.5",
        ),
        (
            "blocks({ -1 }, 64, 64)",
            "ids[1]: expected a whole number, 0 or more",
        ),
        (
            "blocks({ 'x' }, 64, 64)",
            "ids[1]: expected a whole number, 0 or more, found the string \"x\"",
        ),
        (
            "blocks(nil, 64, 64)",
            "ids: expected a list of ids, found nothing (nil)",
        ),
        (
            "blocks({}, 64, 64, 'full')",
            "expected a table of options, or none, found the string \"full\"",
        ),
        (
            "blocks({}, 64, 64, { lats = 'full' })",
            "unknown field `lats`; did you mean `last`?",
        ),
        (
            "blocks({}, 64, 64, { last = 'half' })",
            "last: expected \"partial\" or \"full\", found the string \"half\"",
        ),
        (
            "blocks({}, 64, 64, { epoch = -1 })",
            "epoch: expected a whole number, 0 or more",
        ),
        (
            "blocks({}, 64, 64, { rest = {} })",
            "rest: expected a string or a whole number from 0 to 2^53 as the seed",
        ),
    ];
    for (call, expected) in cases {
        let failure = first_failure(&format!("\nlocal x = {call}"));
        assert!(failure.message.contains(expected), "{call}\n{failure}");
        assert!(
            failure.message.contains("blocks(ids, size, tokens, options)"),
            "{failure}"
        );
        assert_eq!(failure.frames[0].line, Some(3), "{call}");
    }
}

/// Text without a seed is different in each epoch and group, and independent of the order of the
/// groups.
#[test]
fn machines_orders_and_repetition_change_nothing() {
    let folder = scenario("return { { user = synthetic(rng:int(5, 500)) }, { user = synthetic(5) } }");
    let groups: Vec<_> = (0..facts().groups).map(|index| group(index, &["{}"])).collect();
    let backwards: Vec<_> = groups.iter().rev().cloned().collect();
    let expected = open(&folder, 7).sessions(&facts(), 0, &groups).unwrap();
    let mut other = open(&folder, 7).sessions(&facts(), 0, &backwards).unwrap();
    other.reverse();
    assert_eq!(other, expected);
    let next = open(&folder, 7).sessions(&facts(), 1, &groups).unwrap();
    let all: std::collections::HashSet<Seed> = expected
        .iter()
        .chain(&next)
        .flat_map(|session| &session.requests)
        .flat_map(seeds)
        .map(|(seed, _)| seed)
        .collect();
    assert_eq!(all.len(), 2 * 2 * groups.len(), "no two texts are one");
    assert_ne!(
        open(&folder, 8).sessions(&facts(), 0, &groups).unwrap(),
        expected,
        "the run's seed matters"
    );
}

#[test]
fn a_function_that_counts_is_found_out() {
    let folder = Folder::new(
        "local n = 0\nreturn { session_generator = { flavor = { session = function(group)\nn += 1\nreturn { { user = tostring(n) } }\nend } } }",
    );
    let failure = open(&folder, 1)
        .sessions(&facts(), 0, &[group(0, &["{}"])])
        .unwrap_err();
    assert!(
        failure
            .message
            .contains("scenario.lua:2: the session came out differently when it was made again"),
        "{failure}"
    );
}

const WARM: &str = "return { session_generator = { flavor = {
  session = function() return { { user = 'x' } } end,
  warmup = function(group, trace, epoch)
    assert(epoch == nil)
    if group.index == 2 then return nil end
    return { { user = { group.key .. trace.groups, synthetic(10) } } }
  end } } }";

#[test]
fn warm_up_is_one_session_for_each_group_or_none() {
    let folder = Folder::new(WARM);
    let factory = factory(&folder, 1, true);
    let mut flavor = factory.open().unwrap();
    assert!(flavor.layout().unwrap().warms_up);
    let groups: Vec<_> = (1..4).map(|index| group(index, &["{}"])).collect();
    let sessions = flavor.warmup(&facts(), &groups).unwrap();
    let texts: Vec<_> = sessions.iter().map(text_of).collect();
    assert_eq!(texts, ["chat-140", "chat-340"]);
    assert_ne!(seeds(&sessions[0].requests[0]), seeds(&sessions[1].requests[0]));

    let mut cold = open(&folder, 1);
    assert!(!cold.layout().unwrap().warms_up);
    assert_eq!(cold.warmup(&facts(), &groups).unwrap(), []);

    let wrong = Folder::new(
        "return { session_generator = { flavor = { session = function() end, warmup = function() return 5 end } } }",
    );
    let failure = self::factory(&wrong, 1, true)
        .open()
        .unwrap()
        .warmup(&facts(), &groups)
        .unwrap_err();
    assert_eq!(failure.function, "flavor.warmup");
    assert_eq!(failure.input.as_deref(), Some("group 1, key `chat-1`, rows 10"));
    assert!(
        failure
            .message
            .contains("expected a table: { requests = { ... } }, or nil for none"),
        "{failure}"
    );
}

#[test]
fn flavor_info_is_read_and_missing_parts_are_named() {
    let folder = scenario("return { { user = 'x' } }");
    let factory = factory(&folder, 1, false);
    let info = factory.info();
    assert_eq!((info.name.as_str(), info.engine), ("scenario.lua", "lua"));
    assert_eq!(
        info.summary,
        "the Lua function `session_generator.flavor.session`"
    );
    assert_eq!(info.granted, ["log", "random", "tokens"]);
    let scenario = folder.load().unwrap();
    let refused = |place: &str, layout: Layout, has_warmup| {
        let made = scenario.flavor(place, layout, has_warmup, folder.grants(1));
        folder.clean(&made.err().unwrap().to_string())
    };
    assert_eq!(
        refused("session_generator", layout(), false),
        "scenario.lua: `session_generator.session` is nothing, not a function"
    );
    assert_eq!(
        refused("session_generator.flavor", layout(), true),
        "scenario.lua: `session_generator.flavor.warmup` is nothing, not a function"
    );
    let grouped = Layout {
        grouping: Grouping::Column("session".into()),
        ..layout()
    };
    assert_eq!(
        refused("session_generator.flavor", grouped, false),
        "scenario.lua: `session_generator.flavor`: the layout's `grouping` is the column `session`, which is not among its \
         columns"
    );
}

/// The same fields in a session function without a trace.
#[test]
fn session_functions_may_script_a_past() {
    let session = first(
        r#"return {
  { user = "what is the weather?", answer = { tool_calls = { { id = "c1", name = "weather", arguments = { city = "Bern" } },
      { id = "c2", name = "time" } } }, at = "250ms" },
  { messages = { { role = "tool", content = "sunny", tool_call_id = "c1" } }, history = 1, history_mode = "recorded",
    answer = { content = { "It is ", synthetic(3, 5) } } },
  { user = "again", after = 2, history_mode = "fresh" },
}"#,
    )
    .unwrap();
    let replays: Vec<&Replay> = session
        .requests
        .iter()
        .map(|request| request.replay.as_deref().unwrap())
        .collect();
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    assert_eq!(
        replays[0].answer.as_ref().unwrap().tool_calls,
        [
            call("c1", "weather", r#"{"city":"Bern"}"#),
            call("c2", "time", "{}")
        ]
    );
    assert_eq!(replays[0].recorded.at, Some(250_000_000));
    assert_eq!(session.requests[1].history_mode(), HistoryMode::Recorded);
    let said = &replays[1].answer.as_ref().unwrap().content;
    assert_eq!(
        said[1],
        Segment::Synthetic {
            seed: Seed::from(5),
            tokens: 3
        }
    );
    assert_eq!(
        (
            session.requests[2].history_mode(),
            session.requests[2].history_parent
        ),
        (HistoryMode::Fresh, None)
    );
}

#[test]
fn an_agent_chooses_what_it_sends_but_has_no_past() {
    let mut agents = agent("session:request { user = 'x', history_mode = 'fresh' }").agents(1);
    let step = agents.start(veeksha_model::SessionId(0)).unwrap();
    assert_eq!(step.added.requests[0].history_mode(), HistoryMode::Fresh);
    for field in [
        "answer = 'y'",
        "at = 1",
        "latency = 1",
        "prompt_tokens = 1",
        "output_tokens = 1",
    ] {
        let mut agents = agent(&format!("session:request {{ user = 'x', {field} }}")).agents(1);
        let failure = agents.start(veeksha_model::SessionId(0)).unwrap_err();
        assert!(
            failure
                .message
                .contains("an agent's requests were never recorded"),
            "{field}\n{failure}"
        );
    }
}

/// The scenario in the README is complete: it loads, and converts two rows as documented.
#[test]
fn the_example_of_the_readme_runs() {
    let readme = include_str!("../../../../../sdk/lua/README.md");
    let examples = readme
        .split("```lua\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let example = examples
        .into_iter()
        .find(|example| example.contains("type = \"trace\""))
        .unwrap();
    let folder = Folder::new(example);
    let columns = ["chat", "time", "prompt", "answer", "hash_ids"].map(|name| TraceColumn {
        name: name.into(),
        aliases: Vec::new(),
        cell: CellType::Anything,
        required: true,
    });
    let layout = Layout {
        columns: columns.into(),
        ..layout()
    };
    let scenario = folder.load().unwrap();
    let factory = scenario
        .flavor("session_generator.flavor", layout, false, folder.grants(1))
        .unwrap();
    let mut flavor = factory.open().unwrap();
    let row = |prompt: u32| {
        format!(r#"{{"chat": "a", "time": 1.5, "prompt": {prompt}, "answer": 20, "hash_ids": [7, 8]}}"#)
    };
    let sessions = flavor
        .sessions(&facts(), 0, &[group(0, &[&row(100), &row(128)])])
        .unwrap();
    let [first, second] = &sessions[0].requests[..] else {
        panic!("{sessions:?}")
    };
    let lengths = |request: &Request| {
        seeds(request)
            .iter()
            .map(|(_, tokens)| *tokens)
            .collect::<Vec<_>>()
    };
    assert_eq!((lengths(first), lengths(second)), (vec![64, 36], vec![64, 64]));
    assert_eq!(seeds(first)[0], seeds(second)[0], "one id, one text");
    assert_eq!((parents(second), second.history_parent), (vec![1], None));
    let refused = flavor.sessions(&facts(), 0, &[group(0, &[&row(0)])]).unwrap_err();
    assert_eq!(refused.message, "row 10: a prompt has at least one token");
}
