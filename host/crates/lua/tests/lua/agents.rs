//! Agents: sequential code that awaits answers.

use std::collections::HashMap;

use crate::common::{Folder, S, agent, answer, node, parents, text_of};
use veeksha_model::{
    ErrorClass, FailureReason, LogProbabilities, NodeId, Request, RequestId, Response, Segment, SessionId,
    TokenProbabilities, ToolCall, Usage,
};
use veeksha_ports::{AgentSource, AgentStep, PluginFailureKind};

fn failure(session: SessionId, node: NodeId) -> FailureReason {
    FailureReason {
        request: RequestId { session, node },
        class: ErrorClass::Status,
        status: Some(503),
        retry_after: None,
        message: "busy".into(),
        at: 9,
    }
}

fn one(step: &AgentStep) -> &Request {
    assert_eq!((step.added.requests.len(), step.done), (1, false), "{step:?}");
    &step.added.requests[0]
}

fn go(agents: &mut dyn AgentSource, number: u32, text: &str) -> AgentStep {
    agents.answered(S, node(number), &answer(text), 1).unwrap()
}

const RESEARCHER: &str = r#"
local plan = session:request { user = "plan", output = 120 }
local a, b = session:parallel(
  { user = tool_result("search", 900), history = plan, output = 60 },
  { user = tool_result("database", 300), history = plan, output = 60, wait = "350ms" })
if a.finish_reason == "length" then return end
session:sleep("1s")
session:sleep(0.5)
session:request { user = "combine " .. a.text .. b.text, history = a, after = { b }, wait = "250ms", output = 300 }
"#;

#[test]
fn an_agent_plans_calls_tools_in_parallel_and_combines() {
    let mut agents = agent(RESEARCHER).agents(1);
    let step = agents.start(S).unwrap();
    let plan = one(&step);
    assert_eq!(
        (plan.node, parents(plan), plan.history_parent),
        (node(1), vec![], None)
    );
    assert_eq!(plan.output.target_tokens, Some(120));
    let step = go(&mut *agents, 1, "p");
    let [search, database] = &step.added.requests[..] else {
        panic!("{step:?}")
    };
    assert_eq!(
        (search.node, parents(search), search.history_parent),
        (node(2), vec![1], Some(node(1)))
    );
    assert_eq!((database.node, database.wait_after_ready), (node(3), 350_000_000));
    // The answers come in reverse order; the agent continues only when it has both, and receives
    // them in request order.
    let step = go(&mut *agents, 3, "B");
    assert_eq!(
        step,
        AgentStep {
            done: false,
            ..AgentStep::default()
        }
    );
    let step = go(&mut *agents, 2, "A");
    let combine = one(&step);
    assert_eq!(text_of(combine), "combine AB");
    assert_eq!(
        (parents(combine), combine.history_parent),
        (vec![2, 3], Some(node(2)))
    );
    assert_eq!(
        combine.wait_after_ready, 1_750_000_000,
        "sleep 1 s + 0.5 s, wait 250 ms"
    );
    assert_eq!(
        go(&mut *agents, 4, "done"),
        AgentStep {
            done: true,
            ..AgentStep::default()
        }
    );
}

#[test]
fn agent_branches_on_the_response() {
    let mut agents = agent(RESEARCHER).agents(1);
    agents.start(S).unwrap();
    go(&mut *agents, 1, "p");
    let cut = Response {
        finish_reason: "length".into(),
        ..Response::default()
    };
    agents.answered(S, node(2), &cut, 1).unwrap();
    assert_eq!(
        go(&mut *agents, 3, "B"),
        AgentStep {
            done: true,
            ..AgentStep::default()
        }
    );
}

#[test]
fn a_request_follows_in_time_what_the_code_waited_for() {
    let mut agents = agent(
        "local a = session:request { user = 'a' }
         local b, c = session:parallel({ user = 'b' }, { user = 'c', history = a })
         local d = session:request { user = 'd' }
         session:request { user = 'e', history = a }
         session:request { user = 'f', after = { a, b, 3 }, history = d.node }",
    )
    .agents(1);
    agents.start(S).unwrap();
    let step = go(&mut *agents, 1, "");
    assert_eq!(parents(&step.added.requests[0]), [1], "named nothing: after a");
    assert_eq!(
        step.added.requests[0].history_parent, None,
        "and begins a conversation"
    );
    go(&mut *agents, 2, "");
    let step = go(&mut *agents, 3, "");
    assert_eq!(parents(one(&step)), [2, 3], "after both");
    let step = go(&mut *agents, 4, "");
    let e = one(&step);
    assert_eq!(
        (parents(e), e.history_parent),
        (vec![1, 4], Some(node(1))),
        "an old conversation, but after d"
    );
    let step = go(&mut *agents, 5, "");
    let f = one(&step);
    assert_eq!(
        (parents(f), f.history_parent),
        (vec![4, 1, 2, 3, 5], Some(node(4)))
    );
}

#[test]
fn a_response_has_all_its_fields() {
    let body = r#"
local r = session:request { user = "x" }
assert(r.ok == true and r.error == nil)
assert(r.node == 1 and r.text == "hi" and r.reasoning == "why" and r.finish_reason == "tool_calls")
assert(#r.tool_calls == 1 and r.tool_calls[1].id == "c1" and r.tool_calls[1].name == "f" and r.tool_calls[1].arguments == "{}")
assert(r.usage.prompt == 5 and r.usage.completion == 6 and r.usage.cached == 3 and r.usage.reasoning == nil)
assert(r.output_tokens == 6 and r.completed_at == 2.5)
assert(#r.log_probabilities == 1 and r.log_probabilities[1] == -0.5 and r.greedy[1] == true)
assert(#r.prompt_log_probabilities == 2 and r.prompt_log_probabilities[2] == -2.5 and #r.prompt_greedy == 0)
local s = session:request { user = "y" }
assert(s.usage == nil and #s.tool_calls == 0)
"#;
    let mut agents = agent(body).agents(1);
    agents.start(S).unwrap();
    let response = Response {
        log_probabilities: Some(Box::new(LogProbabilities {
            prompt: TokenProbabilities {
                logarithms: vec![-0.25, -2.5],
                greedy: Vec::new(),
            },
            answer: TokenProbabilities {
                logarithms: vec![-0.5],
                greedy: vec![true],
            },
        })),
        reasoning_signature: None,
        text: "hi".into(),
        reasoning: "why".into(),
        tool_calls: vec![ToolCall {
            id: "c1".into(),
            name: "f".into(),
            arguments: "{}".into(),
        }],
        finish_reason: "tool_calls".into(),
        usage: Some(Usage {
            prompt: 5,
            completion: 6,
            cached: Some(3),
            reasoning: None,
        }),
        output_tokens: 6,
        cancelled: false,
    };
    let step = agents.answered(S, node(1), &response, 2_500_000_000).unwrap();
    assert!(!step.done);
    assert!(go(&mut *agents, 2, "").done);
}

/// Both requests of a race may have been answered before the agent's last step is carried out.
#[test]
fn answer_after_the_end_of_the_agent_is_ignored() {
    let body = "session:race({ user = 'x' }, { user = 'y' })";
    let mut agents = agent(body).agents(1);
    agents.start(S).unwrap();
    let last = go(&mut *agents, 2, "");
    assert_eq!((last.done, last.cancel.as_slice()), (true, &[node(1)][..]));
    let late = go(&mut *agents, 1, "");
    assert!(late.done && late.added.requests.is_empty() && late.cancel.is_empty());
    agents.finish(S);
    assert!(
        agents.answered(S, node(1), &answer(""), 3).is_err(),
        "the session is over"
    );
}

#[test]
fn a_failure_is_a_response_that_is_not_ok() {
    let body = r#"
local r = session:request { user = "x" }
assert(not r.ok and r.text == "" and r.finish_reason == "" and #r.tool_calls == 0)
assert(r.completed_at == 9e-9)
session:request { user = r.error.code .. " " .. r.error.status .. " " .. r.error.message, after = r }
"#;
    let mut agents = agent(body).agents(1);
    agents.start(S).unwrap();
    let step = agents.failed(S, &failure(S, node(1))).unwrap();
    assert_eq!(text_of(one(&step)), "status 503 busy");
    assert_eq!(parents(one(&step)), [1]);
}

#[test]
fn one_session_fails_alone_with_its_place() {
    let folder = agent(
        "local function use(r)\n  if session.index == 1 then error('bad answer: ' .. r.text) end\nend\n\
         local r = session:request { user = 'x' }\nuse(r)\nsession:request { user = 'y' }",
    );
    let mut agents = folder.agents(1);
    for index in 0..3 {
        agents.start(SessionId(index)).unwrap();
    }
    let failure = agents
        .answered(SessionId(1), node(1), &answer("no"), 1)
        .unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(folder.clean(&failure.message), "scenario.lua:3: bad answer: no");
    assert_eq!(failure.function, "agent");
    assert_eq!(
        failure.source.as_deref(),
        Some("if session.index == 1 then error('bad answer: ' .. r.text) end")
    );
    assert_eq!(failure.input.as_deref(), Some("session = 1, after node = 1"));
    let frames: Vec<_> = failure
        .frames
        .iter()
        .map(|frame| (frame.function.as_str(), frame.line.unwrap()))
        .collect();
    assert_eq!(frames, [("use", 3), ("agent", 6)]);
    for index in [0, 2] {
        assert_eq!(
            agents
                .answered(SessionId(index), node(1), &answer("ok"), 1)
                .unwrap()
                .added
                .requests
                .len(),
            1
        );
    }
    let gone = agents
        .answered(SessionId(1), node(1), &answer("no"), 1)
        .unwrap_err();
    assert!(gone.message.contains("no such session is live"), "{gone}");
}

#[test]
fn wrong_requests_name_the_line_that_makes_them() {
    let cases = [
        (
            "session:request { usr = 'x' }",
            "session:request: unknown field `usr`; did you mean `user`?",
        ),
        (
            "session:request()",
            "session:request: expected a table: a request, found nothing (nil)",
        ),
        (
            "session:request { user = 'x', node = 3 }",
            "session:request.node: the host numbers the nodes of an agent",
        ),
        (
            "session:parallel()",
            "session:parallel: expected at least one request",
        ),
        (
            "session:parallel({ user = 'x' }, { user = 3 })",
            "session:parallel[2].user: expected a string",
        ),
        (
            "session:sleep('soon')",
            "session:sleep: expected seconds as a number",
        ),
        (
            "session:request { user = 'x', history = { text = 'a' } }",
            "found a table that is not a response",
        ),
        (
            "session:request { user = 'x', history = { { node = 1 }, { node = 2 } } }",
            "names 2 history parents",
        ),
        (
            "session:request { user = 'x', after = { {} } }",
            "session:request.after[1]: expected a response",
        ),
    ];
    for (call, expected) in cases {
        let folder = agent(&format!("\n{call}"));
        let failure = folder.agents(1).start(S).unwrap_err();
        assert!(failure.message.contains(expected), "{call}\n{failure}");
        assert!(
            folder.clean(&failure.message).starts_with("scenario.lua:3: "),
            "{call}\n{failure}"
        );
        assert_eq!(failure.kind, PluginFailureKind::Result, "{call}");
        assert_eq!(
            failure.frames.len(),
            1,
            "the host's own frames are left out: {failure}"
        );
    }
    let dangling = agent("session:request { user = 'x', after = 9 }")
        .agents(1)
        .start(S)
        .unwrap_err();
    assert!(
        dangling.message.contains("node 1 names the parent 9"),
        "{dangling}"
    );
    let silent = agent("local x = 1").agents(1).start(S).unwrap_err();
    assert!(silent.message.contains("ended without a request"), "{silent}");
}

#[test]
fn a_refused_request_can_be_caught() {
    let mut agents = agent(
        "local ok, why = pcall(function() return session:parallel({ user = 'a' }, { user = 3 }) end)
         assert(not ok and tostring(why):find('parallel%[2%]'))
         local ok, r = pcall(session.request, session, { user = 'b' })
         assert(ok and r.text == 'through pcall')",
    )
    .agents(1);
    let step = agents.start(S).unwrap();
    assert_eq!(
        (one(&step).node, text_of(one(&step))),
        (node(1), "b"),
        "nothing of the refused call remains"
    );
    assert!(go(&mut *agents, 1, "through pcall").done);
}

#[test]
fn deadline_and_memory_end_one_session_only() {
    let mut agents = agent(
        "local r = session:request { user = 'x' }
         if r.text == 'loop' then while true do pcall(function() while true do end end) end end
         if r.text == 'eat' then local t = {} while true do t[#t + 1] = string.rep('x', 4e6) .. #t end end
         session:request { user = 'y' }",
    )
    .hurried()
    .agents(1);
    for index in 0..3 {
        agents.start(SessionId(index)).unwrap();
    }
    let late = agents
        .answered(SessionId(0), node(1), &answer("loop"), 1)
        .unwrap_err();
    assert_eq!(late.kind, PluginFailureKind::Deadline { allowed_ms: 300 });
    assert!(late.message.contains("scenario.lua:3:"), "{late}");
    let large = agents
        .answered(SessionId(1), node(1), &answer("eat"), 1)
        .unwrap_err();
    assert!(
        matches!(
            large.kind,
            PluginFailureKind::Memory {
                allowed: 33_554_432,
                ..
            }
        ),
        "{large}"
    );
    assert_eq!(
        agents
            .answered(SessionId(2), node(1), &answer("ok"), 1)
            .unwrap()
            .added
            .requests
            .len(),
        1
    );
    agents.start(SessionId(3)).unwrap();
}

#[test]
fn refuses_answers_without_a_pending_request() {
    let mut agents = agent("session:parallel({ user = 'x' }, { user = 'y' })").agents(1);
    agents.start(S).unwrap();
    go(&mut *agents, 1, "");
    for number in [1, 9] {
        let failure = agents.answered(S, node(number), &answer(""), 1).unwrap_err();
        assert!(
            failure.message.contains("does not wait for this node"),
            "{failure}"
        );
    }
    assert!(go(&mut *agents, 2, "").done, "the session goes on");
    agents.finish(S);
    agents.finish(SessionId(77));
}

#[test]
fn a_finished_session_is_forgotten() {
    let mut agents = agent("session:request { user = 'x' }\nsession:request { user = 'y' }").agents(1);
    agents.start(S).unwrap();
    agents.finish(S);
    assert!(agents.answered(S, node(1), &answer(""), 1).is_err());
    assert_eq!(
        agents.start(S).unwrap().added.requests.len(),
        1,
        "and can be begun again"
    );
}

/// Runs sessions to their end; `order` selects the open request that is answered next.
fn run_all(
    folder: &Folder,
    sessions: u64,
    mut order: impl FnMut(usize) -> usize,
) -> HashMap<SessionId, Vec<Request>> {
    let mut agents = folder.agents(5);
    let mut seen: HashMap<SessionId, Vec<Request>> = HashMap::new();
    let mut open = Vec::new();
    for index in 0..sessions {
        let session = SessionId(index);
        let step = agents.start(session).unwrap();
        open.extend(step.added.requests.iter().map(|request| (session, request.node)));
        seen.entry(session).or_default().extend(step.added.requests);
    }
    while !open.is_empty() {
        let (session, node) = open.swap_remove(order(open.len()));
        let step = agents
            .answered(session, node, &answer(&format!("{session}/{node}")), 1)
            .unwrap();
        open.extend(step.added.requests.iter().map(|request| (session, request.node)));
        seen.entry(session).or_default().extend(step.added.requests);
    }
    seen
}

#[test]
fn sessions_in_any_order_are_equal() {
    let folder = agent(
        "local first = session:request { user = { synthetic(session.rng:int(5, 50)), 'plan' }, wait = session.rng:exponential(1) }
         local results = { session:parallel({ user = synthetic(7), history = first }, { user = tool_result('db', 8), history = first }) }
         for _, result in results do
           session:sleep(session.rng:unit())
           session:request { user = { synthetic(9), result.text }, history = result, output = session.rng:int(1, 99) }
         end",
    );
    let expected = run_all(&folder, 12, |open| open - 1);
    assert_eq!(expected[&S].len(), 5);
    assert_eq!(run_all(&folder, 12, |_| 0), expected);
    let mut state = 1usize;
    let shuffled = run_all(&folder, 12, |open| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % open
    });
    assert_eq!(shuffled, expected);
    let seeds: Vec<_> = expected[&S]
        .iter()
        .filter_map(|request| {
            request.messages[0]
                .content
                .iter()
                .find(|segment| matches!(segment, Segment::Synthetic { .. }))
        })
        .collect();
    assert_eq!(
        seeds.iter().collect::<std::collections::HashSet<_>>().len(),
        5,
        "each segment has unique text"
    );
}

#[test]
fn an_agent_changes_the_client_between_turns() {
    let mut agents = agent(
        r#"
local claim = session:request { user = "claim" }
session:request { user = "decide", history = claim, client = "judge" }
"#,
    )
    .agents(1);
    let first = agents.start(S).unwrap();
    assert_eq!(one(&first).client, None);
    let second = go(&mut *agents, 1, "p");
    let judge = one(&second);
    assert_eq!(
        (judge.client.as_deref(), judge.history_parent),
        (Some("judge"), Some(node(1)))
    );
}

#[test]
fn many_sessions_live_at_once() {
    let folder = agent("for turn = 1, 3 do session:request { user = 'turn ' .. turn } end");
    let seen = run_all(&folder, 2_000, |open| open / 2);
    assert_eq!(seen.len(), 2_000);
    assert!(seen.values().all(|requests| requests.len() == 3));
}

/// `scenarios/agent.lua` passes the scenario's check, and runs to its end on both branches.
#[test]
fn the_agent_of_the_scenarios_folder_runs() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/agent.lua");
    let scenario = veeksha_lua::LuaScenario::load(&path, veeksha_lua::LuaLimits::default()).unwrap();
    let folder = agent("");
    let factory = scenario
        .workload(
            "session_generator.agent",
            veeksha_scenario::LuaKind::Agent,
            None,
            folder.grants(42),
        )
        .unwrap();
    let veeksha_ports::Workload::Reactive(mut agents) = factory.open().unwrap() else {
        panic!()
    };
    let mut steps_of = |session: SessionId, reason: &str| {
        let response = Response {
            finish_reason: reason.into(),
            ..Response::default()
        };
        let mut open: Vec<_> = agents.start(session).unwrap().added.requests;
        let mut steps = Vec::new();
        while let Some(request) = open.pop() {
            steps.push(request.labels[0].1.clone());
            let step = agents.answered(session, request.node, &response, 1).unwrap();
            open.extend(step.added.requests);
        }
        steps
    };
    assert_eq!(
        steps_of(SessionId(0), "stop"),
        ["plan", "database", "search", "combine"]
    );
    assert_eq!(
        steps_of(SessionId(1), "length"),
        ["plan", "database", "search", "combine", "continue"]
    );
    let document = scenario.documents.single().unwrap();
    document.check(&Default::default()).unwrap();
}

/// A cancelled request is neither an answer nor a failure; the part of its answer is there.
#[test]
fn an_agent_sets_headers_and_labels_of_its_session() {
    let body = r#"
session:header("x-tenant", "a")
session:header("X-Tenant", "b")
session:label("tenant", 7)
session:spawn(function(sub) sub:label("late", true) sub:request { user = "x", labels = { own = 1 } } end):join()
session:request { user = "y" }
local ok, why = pcall(session.header, session, "x-late", "1")
assert(not ok and tostring(why):find("before it first waits for an answer"), why)
"#;
    let mut agents = agent(body).agents(1);
    let first = agents.start(S).unwrap();
    let second = go(&mut *agents, 1, "");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for step in [&first, &second] {
        assert_eq!(step.added.headers, [pair("X-Tenant", "b")]);
        assert_eq!(step.added.labels, [pair("tenant", "7"), pair("late", "true")]);
    }
    assert_eq!(one(&first).labels[0], pair("own", "1"));
    assert!(go(&mut *agents, 2, "").done);

    for (call, expected) in [
        (
            "session:header()",
            "session:header: expected a name for each header, found nothing",
        ),
        (
            "session:header('x')",
            "session:header.x: expected a string, a number or a boolean",
        ),
        (
            "session:header('host', 'x') session:request { user = 'x' }",
            "host",
        ),
        ("session:label('x', ('y'):rep(20000))", "bytes of labels"),
        ("session.label('x', 'y')", "session:label: call it with a colon"),
    ] {
        let failure = agent(call).agents(1).start(S).unwrap_err();
        assert!(failure.message.contains(expected), "{call}\n{failure}");
    }
}

#[test]
fn an_agent_receives_the_part_of_a_cancelled_request() {
    let body = r#"
local r = session:request { user = "x", cancel = { chunks = 3 } }
assert(not r.ok and r.cancelled and r.text == "half of it")
assert(r.error.code == "cancelled_by_client" and #r.error.message > 0)
local s = session:request { user = "y", history = r }
assert(s.ok and s.cancelled == nil)
"#;
    let mut agents = agent(body).agents(1);
    let step = agents.start(S).unwrap();
    let cancellation = one(&step).cancellation.clone().unwrap();
    assert_eq!((cancellation.when.len(), cancellation.after_chunks), (0, Some(3)));
    let part = Response {
        text: "half of it".into(),
        cancelled: true,
        ..Response::default()
    };
    let step = agents.answered(S, node(1), &part, 1).unwrap();
    assert_eq!(one(&step).history_parent, Some(node(1)));
    assert!(go(&mut *agents, 2, "whole").done);
}

/// The memory of a machine bounds its agents: 10,000 that wait for an answer take less than 8 KiB
/// each.
#[test]
fn ten_thousand_agents_live_in_80_mib() {
    let mut folder = agent(
        "local plan = session:request { user = synthetic(session.rng:int(50, 150)), output = 120 }
         local a, b = session:parallel({ user = 'a', history = plan }, { user = 'b', history = plan })
         session:request { user = `{plan.text} {a.text} {b.text}`, history = a, after = b }",
    );
    folder.limits.memory_bytes = 80 * 1024 * 1024;
    let mut agents = folder.agents(1);
    let sessions = || (0..10_000).map(SessionId);
    for session in sessions() {
        assert_eq!(agents.start(session).unwrap().added.requests.len(), 1);
    }
    for number in 1..=4 {
        for session in sessions() {
            let step = agents.answered(session, node(number), &answer("ok"), 1).unwrap();
            assert_eq!(step.done, number == 4);
        }
    }
}
