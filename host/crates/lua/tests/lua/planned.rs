//! Session functions: valid return values, and refusals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Folder, first, first_failure, parents, sessions};
use veeksha_lua::LuaGrants;
use veeksha_model::{Edge, MediaKind, Message, NodeId, OutputSpec, Role, Seed, Segment, Session, Trigger};
use veeksha_ports::{PluginFailureKind, SessionSource, Workload};
use veeksha_scenario::LuaKind;

fn text(s: &str) -> Segment {
    Segment::Text(s.into())
}

fn message(role: Role, content: Vec<Segment>) -> Message {
    Message::new(role, content)
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one session with every field, and the request expected of it"
)]
fn every_field_arrives() {
    let session = first(
        r#"return {
  labels = { kind = "demo", weight = 2, on = true },
  arrives_at = "1.5s",
  requests = {
    { user = "hello", system = { text("be "), "brief" }, output = 120, labels = { b = 1, a = "x" } },
    { node = 7, history = 1, after = 1, wait = 0.35, output = { tokens = 9, exact = true },
      messages = {
        { role = "assistant", content = "calling" },
        { role = "tool", content = synthetic(30, 5), tool_call_id = "call_1" },
      },
      user = { image("cat.png"), synthetic(10, "name"), synthetic(11, "name") },
      body = { temperature = 0.5, stop = { "a", "b" }, nested = { n = 3, empty = {} } } },
    { after = { 1, 7 }, user = tool_result("search", 900, 1), wait = "2m", client = "judge" },
  },
}"#,
    )
    .unwrap();
    let pairs = |labels: &[(&str, &str)]| {
        labels
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        session.labels,
        pairs(&[("kind", "demo"), ("on", "true"), ("weight", "2")])
    );
    assert_eq!(session.arrives_at, Some(1_500_000_000));
    let [a, b, c] = &session.requests[..] else {
        panic!()
    };
    assert_eq!((a.node.0, b.node.0, c.node.0), (1, 7, 3));
    assert_eq!((a.client.as_deref(), c.client.as_deref()), (None, Some("judge")));
    assert_eq!(
        a.messages,
        [
            message(Role::System, vec![text("be "), text("brief")]),
            message(Role::User, vec![text("hello")]),
        ]
    );
    assert_eq!(
        a.output,
        OutputSpec {
            target_tokens: Some(120),
            exact: false,
            form: None,
        }
    );
    assert_eq!(a.labels, pairs(&[("a", "x"), ("b", "1")]));
    assert_eq!(
        (a.parents.len(), a.history_parent, a.wait_after_ready),
        (0, None, 0)
    );
    assert_eq!((parents(b), b.history_parent.unwrap().0), (vec![1], 1));
    assert_eq!(b.wait_after_ready, 350_000_000);
    assert_eq!(
        b.output,
        OutputSpec {
            target_tokens: Some(9),
            exact: true,
            form: None,
        }
    );
    assert_eq!(b.messages[0], message(Role::Assistant, vec![text("calling")]));
    assert_eq!(b.messages[1].tool_call_id.as_deref(), Some("call_1"));
    assert_eq!(
        b.messages[1].content,
        [Segment::Synthetic {
            seed: Seed { high: 0, low: 5 },
            tokens: 30
        }]
    );
    let said = &b.messages[2].content;
    assert_eq!(
        said[0],
        Segment::Media {
            kind: MediaKind::Image,
            source: "cat.png".into()
        }
    );
    let (
        Segment::Synthetic {
            seed: one,
            tokens: 10,
        },
        Segment::Synthetic {
            seed: two,
            tokens: 11,
        },
    ) = (&said[1], &said[2])
    else {
        panic!("{said:?}")
    };
    assert_eq!(one, two, "a name is one seed");
    assert_eq!(
        b.body.as_deref(),
        Some(r#"{"nested":{"empty":{},"n":3},"stop":["a","b"],"temperature":0.5}"#)
    );
    assert_eq!(
        (parents(c), c.history_parent, c.wait_after_ready),
        (vec![1, 7], None, 120_000_000_000)
    );
    assert_eq!(
        c.messages[0].content,
        [
            text("Result of the tool `search`:\n"),
            Segment::Synthetic {
                seed: Seed { high: 0, low: 1 },
                tokens: 900
            },
        ]
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn each_wrong_value_is_named_with_its_path() {
    let cases = [
        (
            "return 3",
            "session: expected a table: { requests = { ... } }, or nil where the workload ends, found the number 3",
        ),
        ("return {}", "the session cannot run: the session has no requests"),
        (
            "return { request = {} }",
            "session: unknown field `request`; did you mean `requests`?",
        ),
        (
            "return { { user = 'x' }, labels = {} }",
            "session: the table is both a list of requests and a set of named fields; put the requests into `requests`",
        ),
        (
            "return { requests = { 'x' } }",
            "requests[1]: expected a table: a request, found the string \"x\"",
        ),
        (
            "return { requests = { { user = 'x', outputs = 3 } } }",
            "requests[1]: unknown field `outputs`; did you mean `output`?",
        ),
        (
            "return { requests = { { user = 3 } } }",
            "requests[1].user: expected a string, a segment or a list of them, found the number 3",
        ),
        (
            "return { requests = { { user = { 'a', {} } } } }",
            "requests[1].user[2]: expected a string, a segment or a list of them, found a table",
        ),
        (
            "return { requests = { { user = {} } } }",
            "requests[1].user: expected a string, a segment or a list of them, found a table without elements",
        ),
        (
            "return { requests = { { user = rng } } }",
            "requests[1].user: expected a string, a segment or a list of them, found an object of the host",
        ),
        (
            "return { requests = { { wait = 1 } } }",
            "requests[1]: the request is empty; give it `user`, `system` or `messages`",
        ),
        (
            "return { requests = { { user = 'x', wait = 'soon' } } }",
            "requests[1].wait: expected seconds as a number, or a string with a unit",
        ),
        (
            "return { requests = { { user = 'x', wait = -1 } } }",
            "requests[1].wait: expected a duration from 0 to 104 days",
        ),
        (
            "return { requests = { { user = 'x', output = 0 } } }",
            "requests[1].output: expected a whole number of tokens, at least 1",
        ),
        (
            "return { requests = { { user = 'x', output = { exact = true } } } }",
            "requests[1].output: `exact` needs `tokens`",
        ),
        (
            "return { requests = { { user = 'x', body = 'x' } } }",
            "requests[1].body: expected a table with named fields",
        ),
        (
            "return { requests = { { user = 'x', body = { a = { 1, b = 2 } } } } }",
            "requests[1].body.a: the table is both a list and a set of named fields",
        ),
        (
            "return { requests = { { user = 'x', body = { a = 0/0 } } } }",
            "requests[1].body.a: expected a finite number",
        ),
        (
            "local b = {} b.b = b return { requests = { { user = 'x', body = b } } }",
            "does it contain itself?",
        ),
        (
            "return { requests = { { user = 'x', labels = { [''] = 1 } } } }",
            "requests[1].labels: a label has an empty name",
        ),
        (
            "return { requests = { { user = 'x', labels = { ['\\xff'] = 1 } } } }",
            "requests[1].labels: the name of a label is not UTF-8",
        ),
        (
            "return { requests = { { user = 'x', labels = { a = '\\xff' } } } }",
            "requests[1].labels.a: the string is not UTF-8",
        ),
        (
            "return { requests = { { user = 'x', labels = { a = ('v'):rep(16384) } } } }",
            "requests[1].labels: 16385 bytes of labels, at most 16384 are carried",
        ),
        (
            "return { requests = { { user = 'x', labels = { a = {} } } } }",
            "requests[1].labels.a: expected a string, a number or a boolean, found a table",
        ),
        (
            "return { requests = { { messages = { { role = 'robot', content = 'x' } } } } }",
            "requests[1].messages[1].role: expected \"system\", \"user\", \"assistant\" or \"tool\", found the string \"robot\"",
        ),
        (
            "return { requests = { { messages = { { role = 'user' } } } } }",
            "requests[1].messages[1]: the message has no `content`",
        ),
        (
            "return { requests = { { user = 'x', node = 1.5 } } }",
            "requests[1].node: expected a whole number from 0 to 4294967295, found the number 1.5",
        ),
        (
            "return { requests = { { user = 'x' }, { user = 'y' }, { user = 'z', history = { 1, 2 } } } }",
            "requests[3].history: a request continues one conversation, and this one names 2 history parents; put the others into `after`",
        ),
        (
            "return { requests = { { user = 'x', after = 9 } } }",
            "node 1 names the parent 9, which the session does not have",
        ),
        (
            "return { requests = { { user = 'x', after = 2 }, { user = 'y', after = 1 } } }",
            "the nodes 1, 2 wait for one another",
        ),
        (
            "return { requests = { { user = 'x', node = 2 }, { user = 'y' } } }",
            "node 2 is defined twice",
        ),
        (
            "return { requests = { { user = 'x' }, { user = 'y', after = { trigger = 'completed' } } } }",
            "requests[2].after: expected a response, the number of a node, or a table with `node`",
        ),
        (
            "return { requests = { { user = 'x' }, { user = 'y', after = { { node = 1, trigger = 'begun' } } } } }",
            "requests[2].after[1].trigger: expected \"dispatched\", \"first_chunk\" or \"completed\", found the string \"begun\"",
        ),
        (
            "return { requests = { { user = 'x' }, { user = 'y', after = { node = 1, triggers = 'completed' } } } }",
            "requests[2].after: unknown field `triggers`; did you mean `trigger`?",
        ),
        (
            "return { requests = { { user = 'x', client = 7 } } }",
            "requests[1].client: expected a string, found the number 7",
        ),
        (
            "return { requests = { { user = 'x', clients = 'judge' } } }",
            "requests[1]: unknown field `clients`; did you mean `client`?",
        ),
        (
            "return { requests = { { user = 'x', headers = { Host = 'a' } } } }",
            "the header `Host` cannot be set by a workload; the client sets it itself",
        ),
        (
            "return { headers = { authorization = 'Bearer k' }, requests = { { user = 'x' } } }",
            "the header `authorization` cannot be set by a workload; keys of servers are set by `client.api_key`",
        ),
        (
            "return { requests = { { user = 'x', headers = { a = '1\\r\\nb: 2' } } } }",
            "the value of the header `a` is not one line of ASCII",
        ),
    ];
    for (body, expected) in cases {
        let failure = first_failure(body);
        assert!(failure.message.contains(expected), "{body}\n{failure}");
        assert_eq!(failure.kind, PluginFailureKind::Result, "{body}");
        assert_eq!(failure.plugin, "scenario.lua");
        assert_eq!(failure.function, "sessions");
        assert_eq!(failure.input.as_deref(), Some("index = 0"));
    }
}

/// Events are tables in `after`; the history keeps the details that `after` has of the same node.
#[test]
fn requests_wait_for_events_of_other_requests() {
    let session = first(
        r#"return {
  headers = { ["x-session"] = "s" },
  requests = {
    { user = "a", headers = { ["x-turn"] = 1 } },
    { user = "b", after = { node = 1, trigger = "first_chunk", delay = "200ms" } },
    { user = "c", after = { { node = 1, trigger = "dispatched" }, 2 } },
    { user = "d", history = 1, after = { 2, { node = 1, delay = 3 } } },
    { user = "e", history = 1, after = { node = 1, trigger = "first_chunk", delay = "5s" } },
    { user = "f", after = { { node = 1, delay = 3 }, { node = 1, trigger = "dispatched" }, 1 } },
  },
}"#,
    )
    .unwrap();
    let edge = |parent, trigger, delay| Edge {
        parent: NodeId(parent),
        trigger,
        delay,
    };
    let edges: Vec<&[Edge]> = session
        .requests
        .iter()
        .map(|request| request.parents.as_slice())
        .collect();
    assert_eq!(
        edges,
        [
            &[][..],
            &[edge(1, Trigger::FirstChunk, 200_000_000)],
            &[edge(1, Trigger::Dispatched, 0), edge(2, Trigger::Completed, 0)],
            &[
                edge(1, Trigger::Completed, 3_000_000_000),
                edge(2, Trigger::Completed, 0)
            ],
            // The answer is complete, and five seconds have passed since its first chunk.
            &[
                edge(1, Trigger::Completed, 0),
                edge(1, Trigger::FirstChunk, 5_000_000_000),
            ],
            // The later edge to an event counts.
            &[edge(1, Trigger::Completed, 0), edge(1, Trigger::Dispatched, 0)],
        ]
    );
    assert_eq!(session.headers, [("x-session".to_owned(), "s".to_owned())]);
    assert_eq!(
        session.requests[0].headers,
        [("x-turn".to_owned(), "1".to_owned())]
    );
}

#[test]
fn requests_are_cancelled_by_events_and_chunks() {
    let session = first(
        r#"return { requests = {
    { user = "a", cancel = 2 },
    { user = "b", cancel = { 1, { node = 3, trigger = "dispatched", delay = "5ms" } } },
    { user = "c", cancel = { delay = "2s" } },
    { user = "d", cancel = { trigger = "first_chunk" } },
    { user = "e", cancel = { { chunks = 9 }, { delay = 1 }, { chunks = 7 } } },
    { user = "f" },
} }"#,
    )
    .unwrap();
    let edge = |parent, trigger, delay| Edge {
        parent: NodeId(parent),
        trigger,
        delay,
    };
    let (done, sent) = (Trigger::Completed, Trigger::Dispatched);
    let expected = [
        Some((vec![edge(2, done, 0)], None)),
        Some((vec![edge(1, done, 0), edge(3, sent, 5_000_000)], None)),
        Some((vec![edge(3, sent, 2_000_000_000)], None)),
        Some((vec![edge(4, Trigger::FirstChunk, 0)], None)),
        Some((vec![edge(5, sent, 1_000_000_000)], Some(7))),
        None,
    ];
    for (request, expected) in session.requests.iter().zip(expected) {
        let cancellation = request.cancellation.clone().map(|it| (it.when, it.after_chunks));
        assert_eq!(cancellation, expected, "node {}", request.node);
    }
    for (cancel, expected) in [
        ("{}", "names no event"),
        ("{ chunks = 0 }", "after 0 chunks"),
        ("{ chunks = 3, delay = 1 }", "a separate table"),
        ("{ trigger = \"completed\" }", "waits for its own end"),
        (
            "7",
            "is cancelled by an event of 7, which the session does not have",
        ),
        ("{ after = 1 }", "unknown field"),
        ("true", "expected a response or the number of a node"),
    ] {
        let failure = first_failure(&format!(
            r#"return {{ requests = {{ {{ user = "x", cancel = {cancel} }} }} }}"#
        ));
        assert!(
            failure.message.contains(expected),
            "{cancel}: {}",
            failure.message
        );
    }
}

#[test]
fn wrong_arguments_of_the_functions_are_named() {
    let cases = [
        (
            "synthetic(-1)",
            "synthetic(tokens, seed): expected a whole number of tokens from 0 to 16777216, found the number -1",
        ),
        ("synthetic('many')", "expected a whole number of tokens"),
        (
            "synthetic(5, {})",
            "expected a string or a whole number from 0 to 2^53 as the seed, found a table",
        ),
        ("text(5)", "text(s): expected a string, found the number 5"),
        (
            "tool_result(5, 5)",
            "tool_result(name, tokens, seed): expected a string, found the number 5",
        ),
        ("image()", "image: expected a string, found nothing (nil)"),
        ("rng:int(3, 1)", "rng:int(low, high): expected low <= high"),
        ("rng:int(1.5, 3)", "expected two integers"),
        ("rng:exponential(-1)", "rng:exponential(mean): -1 is negative"),
        (
            "rng:normal(1)",
            "rng:normal(mean, sd): expected a finite number for each argument, found nothing (nil)",
        ),
        ("rng:gamma(1, 1/0)", "expected a finite number"),
        (
            "rng:stream('')",
            "rng:stream(name): expected UTF-8 text of 1 to 256 bytes",
        ),
        (
            "rng:stream(3)",
            "rng:stream(name): expected the name of a stream, found the number 3",
        ),
        ("rng:choice({})", "rng:choice(list): the list is empty"),
        (
            "rng:choice(3)",
            "rng:choice(list): expected a list, found the number 3",
        ),
    ];
    for (call, expected) in cases {
        let failure = first_failure(&format!("\nlocal x = {call}"));
        assert!(failure.message.contains(expected), "{call}\n{failure}");
        assert_eq!(failure.frames[0].line, Some(3), "{call}");
    }
}

#[test]
fn an_error_names_its_line_and_its_stack() {
    let folder = Folder::new(
        "local function length(index)\n  if index == 2 then error('no length') end\n  return 5\nend\n\
         return { session_generator = { sessions = function(index)\n  local n = length(index)\n  return { requests = { { user = synthetic(n) } } }\nend } }",
    );
    let mut source = folder.planned(1, None);
    let failure = source.sessions(0, 8).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(folder.clean(&failure.message), "scenario.lua:2: no length");
    assert_eq!(failure.input.as_deref(), Some("index = 2"));
    let frames: Vec<_> = failure
        .frames
        .iter()
        .map(|frame| (frame.function.as_str(), frame.line.unwrap()))
        .collect();
    assert_eq!(frames, [("length", 2), ("sessions", 6)]);
    assert_eq!(
        source.sessions(3, 1).unwrap().len(),
        1,
        "other sessions are not affected"
    );
}

#[test]
fn encoded_text_can_be_sent_as_token_ids() {
    let session =
        first("return { requests = { { user = token_ids(tokens.encode('how many tokens?')) } } }").unwrap();
    assert_eq!(
        session.requests[0].messages[0].content,
        [Segment::TokenIds(vec![3, 4, 7])]
    );
}

#[test]
fn text_without_tokens_is_an_error_and_not_empty() {
    for function in ["count", "encode"] {
        let folder = sessions(&format!(
            "tokens.{function}('a')\nreturn {{ requests = {{ {{ user = 'x' }} }} }}"
        ));
        let grants = LuaGrants {
            tokens: Some(Arc::new(|_: &str| Err("no token for the unknown".to_owned()))),
            ..folder.grants(1)
        };
        let scenario = folder.load().unwrap();
        let key = "session_generator.sessions";
        let factory = scenario.workload(key, LuaKind::Sessions, None, grants).unwrap();
        let Workload::Planned(mut source) = factory.open().unwrap() else {
            panic!("a planned workload was expected");
        };
        let refused = source.sessions(0, 1).unwrap_err();
        let expected = format!("tokens.{function}(s): no token for the unknown");
        assert!(refused.message.contains(&expected), "{}", refused.message);
    }
}

#[test]
fn time_in_the_tokenizer_counts() {
    let folder =
        sessions("for i = 1, 100 do tokens.count('a') end\nreturn { requests = { { user = 'x' } } }")
            .hurried();
    let counted = Arc::new(AtomicU32::new(0));
    let calls = counted.clone();
    let grants = LuaGrants {
        tokens: Some(Arc::new(move |_: &str| {
            calls.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(200));
            Ok(vec![1])
        })),
        ..folder.grants(1)
    };
    let scenario = folder.load().unwrap();
    let factory = scenario
        .workload("session_generator.sessions", LuaKind::Sessions, None, grants)
        .unwrap();
    let Workload::Planned(mut source) = factory.open().unwrap() else {
        panic!("a planned workload was expected");
    };
    let late = source.sessions(0, 1).unwrap_err();
    assert_eq!(late.kind, PluginFailureKind::Deadline { allowed_ms: 300 });
    let calls = counted.load(Ordering::Relaxed);
    assert!(calls <= 2, "{calls} calls of 200 ms with a deadline of 300 ms");
}

#[test]
fn deadline_and_memory_end_one_call_only() {
    let mut source = sessions(
        "if index == 1 then while true do pcall(function() while true do end end) end end\n\
         if index == 2 then local t = {} while true do t[#t + 1] = string.rep('x', 4e6) .. #t end end\n\
         return { requests = { { user = 'x' } } }",
    )
    .hurried()
    .planned(1, None);
    assert_eq!(source.sessions(0, 1).unwrap().len(), 1);
    let late = source.sessions(1, 1).unwrap_err();
    assert_eq!(late.kind, PluginFailureKind::Deadline { allowed_ms: 300 });
    assert!(
        late.message
            .contains("scenario.lua:2: it ran longer than the 300 ms"),
        "{late}"
    );
    let large = source.sessions(2, 1).unwrap_err();
    assert_eq!(
        large.kind,
        PluginFailureKind::Memory {
            asked: 33_554_433,
            allowed: 33_554_432
        }
    );
    assert!(large.message.contains("33554432 bytes"), "{large}");
    assert_eq!(source.sessions(3, 5).unwrap().len(), 5);
}

#[test]
fn nil_ends_the_workload_and_so_does_length() {
    let body = "if index < 5 then return { requests = { { user = 'x' } } } end";
    let mut open = sessions(body).planned(1, None);
    assert_eq!(open.length().unwrap(), None);
    assert_eq!(open.sessions(0, 64).unwrap().len(), 5);
    assert_eq!(open.length().unwrap(), Some(5));
    assert!(open.sessions(5, 3).unwrap().is_empty());
    let mut short = sessions(body).planned(1, Some(3));
    assert_eq!(short.length().unwrap(), Some(3));
    assert_eq!(short.sessions(2, 64).unwrap().len(), 1);
    assert!(short.sessions(u64::MAX - 1, 64).unwrap().is_empty());
}

const MIXED: &str = "local requests = {}
for turn = 1, rng:int(1, 4) do
  requests[turn] = { user = { synthetic(rng:int(10, 99)), `turn {turn} of {index}` }, history = turn > 1 and turn - 1 or nil,
    wait = rng:exponential(0.5), output = rng:choice({ 10, 20, 30 }), body = { t = rng:unit(), k = { rng:normal(0, 1) } },
    labels = { g = rng:gamma(2, 0.5), a = 1, b = 2 } }
end
return { requests = requests }";

fn all(source: &mut dyn SessionSource, order: impl IntoIterator<Item = u64>) -> Vec<Session> {
    let mut sessions: Vec<_> = order
        .into_iter()
        .map(|index| (index, source.sessions(index, 1).unwrap().remove(0)))
        .collect();
    sessions.sort_by_key(|(index, _)| *index);
    sessions.into_iter().map(|(_, session)| session).collect()
}

#[test]
fn machines_orders_and_repetition_change_nothing() {
    let folder = sessions(MIXED);
    let expected = folder.planned(7, None).sessions(0, 40).unwrap();
    assert_eq!(all(&mut *folder.planned(7, None), 0..40), expected);
    let mut backwards = folder.planned(7, None);
    assert_eq!(all(&mut *backwards, (0..40).rev()), expected);
    assert_eq!(all(&mut *backwards, 0..40), expected);
    assert_ne!(
        folder.planned(8, None).sessions(0, 40).unwrap(),
        expected,
        "the seed matters"
    );
    assert_ne!(expected[0], expected[1]);
}

/// The same words as the host's stream, by the formulas in the README.
#[test]
fn draws_are_those_of_the_host() {
    let session = first(
        "return { requests = { { user = 'x', labels = { a = rng:int(1, 6), b = rng:unit(), c = rng:exponential(3),
         d = rng:normal(5, 2), e = rng:gamma(4, 0.5), f = rng:choice({ 'x', 'y', 'z' }), g = rng:gamma(4, 0), h = rng:int(-3, -3) } } } }",
    )
    .unwrap();
    // Fields of a constructor are evaluated in source order.
    let mut draws = veeksha_stats::RandomStream::new(1, 0, "lua").draws();
    let expected = [
        (draws.below(6) + 1).to_string(),
        draws.unit().to_string(),
        (3.0 * draws.exponential()).to_string(),
        (5.0 + 2.0 * draws.normal()).to_string(),
        // cv 0.5: shape 4, so the mean 4 needs scale 1.
        draws.gamma(4.0).to_string(),
        ["x", "y", "z"][draws.below(3) as usize].to_owned(),
        "4".to_owned(),
        "-3".to_owned(),
    ];
    let found: Vec<_> = session.requests[0]
        .labels
        .iter()
        .map(|(_, value)| value.clone())
        .collect();
    assert_eq!(found, expected);
}

/// A stream of another name begins at its first word whenever it is taken, and leaves `rng` as it
/// was.
#[test]
fn named_streams_are_those_of_components() {
    let session = first(
        "local own = rng:unit()
         local plan = rng:stream('plan')
         local words = { plan:word(), plan:word(), rng:stream('plan'):word(), plan:stream('plan'):word() }
         return { requests = { { user = 'x', labels = { a = words[1], b = words[2], c = words[3], d = words[4],
           e = rng:unit(), f = own } } } }",
    )
    .unwrap();
    let stream = |name| veeksha_stats::RandomStream::new(1, 0, name);
    let mut draws = stream("lua").draws();
    let own = draws.unit().to_string();
    let word = |index| stream("plan").word(index).to_string();
    let expected = [word(0), word(1), word(0), word(0), draws.unit().to_string(), own];
    let labels = &session.requests[0].labels;
    assert_eq!(
        labels.iter().map(|(_, value)| value).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
}

fn seeds(session: &Session) -> Vec<Seed> {
    let content = session
        .requests
        .iter()
        .flat_map(|request| &request.messages)
        .flat_map(|message| &message.content);
    content
        .filter_map(|segment| match segment {
            Segment::Synthetic { seed, .. } => Some(*seed),
            _ => None,
        })
        .collect()
}

#[test]
fn text_of_the_top_level_is_shared_and_text_of_a_session_is_its_own() {
    let folder = Folder::new(
        "local prefix = synthetic(500)\nlocal other = synthetic(500)\nreturn { session_generator = { sessions = function()\n\
         return { requests = { { system = { prefix, other }, user = { synthetic(5), synthetic(5) } } } }\nend } }",
    );
    let sessions = folder.planned(3, None).sessions(0, 2).unwrap();
    let (one, two) = (seeds(&sessions[0]), seeds(&sessions[1]));
    assert_eq!(one[..2], two[..2], "shared");
    let own: std::collections::HashSet<_> = one.iter().chain(&two[2..]).collect();
    assert_eq!(own.len(), 6, "all others differ");
    assert_ne!(
        seeds(&folder.planned(4, None).sessions(0, 1).unwrap()[0])[..2],
        one[..2],
        "another run, another text"
    );
}

#[test]
fn tokens_and_log_are_the_hosts() {
    let folder =
        sessions("log.debug('count', tokens.count('a b c'))\nreturn { requests = { { user = 'x' } } }");
    folder.planned(1, None).sessions(0, 2).unwrap();
    let line = ("debug".to_owned(), "count\t3".to_owned());
    assert_eq!(
        *folder.log.lock().unwrap(),
        [line.clone(), line],
        "once for each session, not for its second making"
    );
    let error = Folder::new("tokens.count('x')").load_error();
    assert!(
        error.contains("no tokenizer is available here; call it in a session"),
        "{error}"
    );
}

#[test]
fn refuses_to_count_tokens_of_a_text_above_the_limit() {
    let count = |bytes: usize| {
        format!("local x = tokens.count(string.rep('a', {bytes}))\nreturn {{ {{ user = 'x' }} }}")
    };
    let limit = veeksha_ports::MAX_COUNT_BYTES;
    let sessions = sessions(&count(limit)).planned(1, None).sessions(0, 1);
    assert_eq!(sessions.unwrap().len(), 1);
    let failure = first_failure(&count(limit + 1));
    assert!(
        failure.message.contains(
            "tokens.count(s): the text has 1048577 bytes, at most 1048576 are allowed; pass it in parts"
        ),
        "{failure}"
    );
}

/// As for components (`veeksha_model::check_session`).
#[test]
fn refuses_an_empty_message() {
    for content in ["''", "synthetic(0)", "{ '', synthetic(0, 'seed') }"] {
        let failure = first_failure(&format!("return {{ {{ system = 'x', user = {content} }} }}"));
        assert!(
            failure
                .message
                .contains("node 1: message 2 (`user`) is empty; give it text, or leave it out"),
            "{content}\n{failure}"
        );
    }
    let made = sessions("return { { user = { synthetic(0), 'x' } } }");
    assert_eq!(made.planned(1, None).sessions(0, 1).unwrap().len(), 1);
}

#[test]
fn nil_for_the_first_session_is_an_error() {
    let failure = first_failure("if index > 0 then return { { user = 'x' } } end");
    assert!(
        failure.message.contains(
            "it returned nothing for the first session (index 0), so there is nothing to send; end the function with \
             `return { requests = { ... } }`"
        ),
        "{failure}"
    );
    assert!(
        failure.message.contains("scenario.lua:1: it returned nothing"),
        "{failure}"
    );
}

/// The line is that of the function, also in a required file.
#[test]
fn a_function_without_return_is_refused_at_its_line() {
    let body = "  local requests = {}\n  for i = 1, 3 do requests[i] = (function() return { user = 'x' } end)() end\n";
    let source = format!(
        "local function plan(index, rng)\n{body}end\nreturn {{ session_generator = {{ type = \"lua\", sessions = plan }} }}"
    );
    let folder = Folder::new(&source);
    let refusal = |folder: &Folder| {
        let loaded = folder.load().unwrap();
        let opened = loaded.workload(
            "session_generator.sessions",
            LuaKind::Sessions,
            None,
            folder.grants(1),
        );
        folder.clean(&opened.err().expect("a refusal").to_string())
    };
    assert_eq!(
        refusal(&folder),
        "scenario.lua:1: `session_generator.sessions`: the function has no `return`; end it with `return` and { requests \
         = { ... } }"
    );
    let folder = Folder::new("return { session_generator = { type = 'lua', sessions = require('plan') } }")
        .with("plan.lua", format!("\nreturn function(index)\n{body}end"));
    assert!(
        refusal(&folder)
            .starts_with("plan.lua:2: `session_generator.sessions`: the function has no `return`"),
        "{}",
        refusal(&folder)
    );
}

#[test]
fn info_describes_the_workload() {
    let folder = sessions("return nil");
    let scenario = folder.load().unwrap();
    let path = "session_generator.sessions";
    let factory = scenario
        .workload(path, LuaKind::Sessions, None, folder.grants(1))
        .unwrap();
    let info = factory.info();
    assert_eq!((info.name.as_str(), info.engine), ("scenario.lua", "lua"));
    assert_eq!((info.digest.len(), &info.digest), (64, &scenario.digest()));
    assert_eq!(info.granted, ["log", "random", "tokens"]);
    assert!(matches!(factory.open(), Ok(Workload::Planned(_))));
    for path in ["session_generator.agent", "session_generator.type", "x.y"] {
        let error = scenario
            .workload(path, LuaKind::Sessions, None, folder.grants(1))
            .err()
            .unwrap();
        assert!(error.to_string().contains("not a function"), "{error}");
    }
}

/// Luau converts the number of repetitions to 32 bits, and repeats nothing if it is larger.
#[test]
fn more_repetitions_than_memory_allows_are_an_error() {
    for body in [
        "return { requests = { { user = 'x' .. string.rep('x', 2^40) } } }",
        "return { requests = { { user = 'x' .. ('x'):rep('1e10') } } }",
        "return { requests = { { user = 'x' .. ('x'):rep(2^31) } } }",
    ] {
        let failure = first_failure(body);
        assert!(
            matches!(failure.kind, PluginFailureKind::Memory { .. }),
            "{body}\n{failure}"
        );
    }
    let empty = "if ('').rep('', 2^40) ~= '' or ('x'):rep(-1) ~= '' then error('not empty') end\n\
                 return { requests = { { user = ('x'):rep(3) } } }";
    assert_eq!(sessions(empty).planned(1, None).sessions(0, 1).unwrap().len(), 1);
}

/// Each coroutine that an error leaves adds the place of its caller.
#[test]
fn place_of_a_recursion_through_coroutines_is_printed_once() {
    let failure = first_failure(
        "local function f(n) return coroutine.wrap(function() return 1 + f(n + 1) end)() end\nf(1)",
    );
    assert_eq!(failure.message.matches("scenario.lua:").count(), 1, "{failure}");
    assert!(failure.message.contains("overflow"), "{failure}");
}

/// Each of these references one value so often that a copy would be far larger than the machine's
/// limit.
#[test]
fn repeated_references_are_not_copied_without_end() {
    let cases = [
        "local s = string.rep('x', 4000000) return { requests = { { user = table.create(1000, s) } } }",
        "local m = { role = 'user', content = string.rep('x', 4000000) } return { requests = { { messages = table.create(1000, m) } } }",
        "local r = { user = image(string.rep('x', 4000000)) } return { requests = table.create(60000, r) }",
        "local t = { 1 } for i = 1, 30 do t = { t, t } end return { requests = { { user = 'x', body = { t = t } } } }",
        "local r = { user = 'x', labels = { a = string.rep('x', 16000) } } return { requests = table.create(60000, r) }",
        "return { requests = { { user = table.create(1500000, synthetic(1)) } } }",
    ];
    for body in cases {
        let failure = first_failure(body);
        assert!(
            failure
                .message
                .contains("the session is larger than 67108864 bytes"),
            "{body}\n{failure}"
        );
    }
}

/// The text of segments remains in the virtual machine, where the limit counts it.
#[test]
fn segments_count_towards_the_limit() {
    for made in ["text", "image"] {
        let failure = first_failure(&format!(
            "local t = {{}} while true do t[#t + 1] = {made}(string.rep('x', 1000000) .. #t) end"
        ));
        assert!(
            matches!(failure.kind, PluginFailureKind::Memory { .. }),
            "{failure}"
        );
    }
}

/// The host makes sessions of a silent instance twice, before a run.
#[test]
fn silent_instances_write_no_lines() {
    let folder = sessions("log.info('made')\nreturn { requests = { { user = 'x' } } }");
    let scenario = folder.load().unwrap();
    let key = "session_generator.sessions";
    let factory = scenario
        .workload(key, LuaKind::Sessions, None, folder.grants(1))
        .unwrap();
    let make = |workload: Workload| {
        let Workload::Planned(mut source) = workload else {
            panic!("a planned workload was expected");
        };
        source.sessions(0, 3).unwrap();
        folder.log.lock().unwrap().len()
    };
    assert_eq!(make(factory.open_silent().unwrap()), 0);
    assert_eq!(make(factory.open().unwrap()), 3);
}
