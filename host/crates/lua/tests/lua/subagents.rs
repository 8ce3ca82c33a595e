//! Subagents: concurrent coroutines of one session.

use crate::common::{Folder, S, agent, answer, node, parents, text_of};
use veeksha_model::{Edge, NodeId, Request, SessionId, Trigger};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure, PluginFailureKind};

fn label<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let labels = request.labels.iter();
    let mut found = labels.filter(|(known, _)| known == name);
    found.next().map(|(_, value)| value.as_str())
}

/// The subagents and texts of a step's requests.
fn sent(step: &AgentStep) -> Vec<(&str, &str)> {
    let requests = step.added.requests.iter();
    requests
        .map(|request| (label(request, "subagent").unwrap_or(""), text_of(request)))
        .collect()
}

fn go(agents: &mut dyn AgentSource, number: u32, text: &str) -> AgentStep {
    agents.answered(S, node(number), &answer(text), 1).unwrap()
}

fn one(step: &AgentStep) -> &Request {
    let [request] = &step.added.requests[..] else {
        panic!("one request was expected: {step:?}")
    };
    request
}

const TWO: &str = r#"
local plan = session:request { user = "plan" }
local function work(name, turns)
  return function(sub)
    local last = plan
    for turn = 1, turns do
      last = sub:request { user = name .. " " .. turn .. " " .. last.text, history = last }
    end
    sub:sleep("2s")
    return last, name
  end
end
local a = session:spawn(work("a", 2))
local b = session:spawn(work("b", 1))
local found, name = a:join()
assert(name == "a" and a.subagent == "1" and b.subagent == "2")
local other = b:join()
session:request { user = found.text .. other.text, history = found }
"#;

#[test]
fn named_stream_of_a_subagent_is_its_own() {
    let mut agents = agent(
        "local sub = session:spawn(function(sub) return sub.rng:stream('plan'):word() end)
         session:request { user = `{sub:join()} {session.rng:stream('plan'):word()}` }",
    )
    .agents(1);
    let step = agents.start(S).unwrap();
    let word = |name| veeksha_stats::RandomStream::new(1, 0, name).word(0);
    assert_eq!(
        text_of(&step.added.requests[0]),
        format!("{} {}", word("1/plan"), word("plan"))
    );
}

#[test]
fn subagents_run_concurrently_with_several_turns() {
    let mut agents = agent(TWO).agents(1);
    agents.start(S).unwrap();
    let step = go(&mut *agents, 1, "p");
    assert_eq!(sent(&step), [("1", "a 1 p"), ("2", "b 1 p")]);
    assert!(step.added.requests.iter().all(|request| parents(request) == [1]));
    // The second subagent ends first; its sleep counts from its own answer.
    assert_eq!(go(&mut *agents, 3, "B"), AgentStep::default());
    let step = go(&mut *agents, 2, "A");
    assert_eq!(sent(&step), [("1", "a 2 A")]);
    assert_eq!((one(&step).node, parents(one(&step))), (node(4), vec![2]));
    let step = go(&mut *agents, 4, "AA");
    let last = one(&step);
    assert_eq!(sent(&step), [("", "AAB")]);
    assert_eq!((parents(last), last.history_parent), (vec![4, 3], Some(node(4))));
    assert_eq!(last.wait_after_ready, 2_000_000_000);
    assert!(go(&mut *agents, 5, "").done);
}

#[test]
fn a_sleep_of_a_subagent_delays_what_its_joiner_sends() {
    let mut agents = agent(
        "local first = session:request { user = 'first' }
         local asleep = session:spawn(function(sub) sub:sleep(10) end)
         local busy = session:spawn(function(sub)
           sub:sleep(1)
           sub:request { user = 'busy', wait = 2 }
           sub:sleep(3)
         end)
         busy:join()
         asleep:join()
         session:request { user = 'last' }",
    )
    .agents(1);
    agents.start(S).unwrap();
    let step = go(&mut *agents, 1, "");
    assert_eq!(one(&step).wait_after_ready, 3_000_000_000);
    let step = go(&mut *agents, 2, "");
    let ended = |parent: u32, seconds: u64| Edge {
        delay: seconds * 1_000_000_000,
        ..NodeId(parent).into()
    };
    assert_eq!(one(&step).parents, [ended(1, 7), ended(2, 0)]);
    assert_eq!(one(&step).wait_after_ready, 3_000_000_000);
}

#[test]
fn a_sleep_since_the_start_counts_from_the_first_request() {
    let mut agents = agent(
        "local sub = session:spawn(function(sub) sub:request { user = 'a', wait = 1 } end)
         session:sleep(10)
         sub:join()
         session:request { user = 'b', after = 1 }",
    )
    .agents(1);
    assert_eq!(one(&agents.start(S).unwrap()).wait_after_ready, 1_000_000_000);
    let step = go(&mut *agents, 1, "");
    let dispatched = Edge {
        parent: node(1),
        trigger: Trigger::Dispatched,
        delay: 9_000_000_000,
    };
    assert_eq!(one(&step).parents, [node(1).into(), dispatched]);
}

#[test]
fn parallel_and_race_take_requests_and_subagents() {
    let body = r#"
local function asks(text)
  return function(sub)
    local r = sub:request { user = text }
    return r.text
  end
end
local a, b, c = session:parallel(session:spawn(asks("a")), { user = "b" }, session:spawn(function() return 7, 8 end))
assert(a == "A" and b.text == "B" and c == 7)
local slow = session:spawn(function(sub)
  sub:spawn(asks("inner"))
  sub:request { user = "slow" }
  error("never resumed")
end)
local result, index = session:race(slow, { user = "quick" }, { user = "other" })
assert(result.text == "Q" and index == 2)
local ok, why = pcall(slow.join, slow)
assert(not ok and why:find("lost a race"), why)
local done = session:spawn(function() return "at once" end)
done:join()
result, index = session:race({ user = "not sent" }, done)
assert(result == "at once" and index == 2)
session:request { user = "last" }
"#;
    let mut agents = agent(body).agents(1);
    let step = agents.start(S).unwrap();
    assert_eq!(sent(&step), [("", "b"), ("1", "a")]);
    go(&mut *agents, 2, "A");
    let step = go(&mut *agents, 1, "B");
    assert_eq!(
        sent(&step),
        [("", "quick"), ("", "other"), ("3", "slow"), ("3.1", "inner")]
    );
    let step = go(&mut *agents, 3, "Q");
    assert_eq!(
        step.cancel,
        [node(5), node(6), node(4)],
        "the losers, and what the loser spawned"
    );
    assert_eq!(sent(&step), [("", "last")]);
    assert_eq!(parents(one(&step)), [3]);
    // The ends of the losers change nothing.
    for loser in [4, 5, 6] {
        assert_eq!(go(&mut *agents, loser, "late"), AgentStep::default());
    }
    assert!(go(&mut *agents, 7, "").done);
}

#[test]
fn a_session_ends_with_its_last_subagent() {
    let mut agents = agent(
        "session:request { user = 'main' }
         session:spawn(function(sub)
           sub:request { user = 'one' }
           sub:request { user = 'two' }
         end)",
    )
    .agents(1);
    agents.start(S).unwrap();
    for (answered, text) in [(1, "one"), (2, "two")] {
        let step = go(&mut *agents, answered, "");
        assert_eq!((text_of(one(&step)), step.done), (text, false));
    }
    assert!(go(&mut *agents, 3, "").done);
}

/// Runs a session with the answers `no` until it fails.
fn failure(folder: &Folder) -> PluginFailure {
    let mut agents = folder.agents(1);
    let mut open: Vec<NodeId> = Vec::new();
    let mut step = agents.start(S);
    loop {
        match step {
            Err(failure) => return failure,
            Ok(step) => {
                open.extend(step.added.nodes());
                assert!(!step.done, "the session should fail");
            }
        }
        step = agents.answered(S, open.remove(0), &answer("no"), 1);
    }
}

#[test]
fn join_raises_the_error_of_a_subagent_with_its_line() {
    let folder = agent(
        "local sub = session:spawn(function(sub)\n\
           local r = sub:request { user = 'x' }\n\
           error('bad answer: ' .. r.text)\n\
         end)\n\
         local ok, why = pcall(sub.join, sub)\n\
         assert(not ok and why:find('scenario.lua:4: bad answer'), why)\n\
         sub:join()",
    );
    let failure = failure(&folder);
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(folder.clean(&failure.message), "scenario.lua:4: bad answer: no");
    assert_eq!(failure.source.as_deref(), Some("error('bad answer: ' .. r.text)"));
}

#[test]
fn the_error_of_a_subagent_that_nothing_joins_ends_the_session() {
    let folder = agent(
        "session:spawn(function(sub) sub:request { usr = 'x' } end)\n\
         session:request { user = 'x' }\n\
         session:request { user = 'y' }",
    );
    let failure = failure(&folder);
    assert_eq!(failure.kind, PluginFailureKind::Result);
    let message = "scenario.lua:2: session:request: unknown field `usr`; did you mean `user`?";
    assert_eq!(folder.clean(&failure.message), message);
}

#[test]
fn wrong_calls_name_their_line() {
    let cases = [
        (
            "session:spawn()",
            "session:spawn: expected a function, found nothing",
        ),
        (
            "session:spawn(function(sub) session:request { user = 'x' } end):join()",
            "session:request: this is the object of another subagent",
        ),
        (
            "local s s = session:spawn(function(sub) s:join() end) s:join()",
            "join: a subagent cannot wait for itself or for an agent that spawned it",
        ),
        (
            "session:spawn(function(sub) session:join() end):join()",
            "join: a subagent cannot wait for itself or for an agent that spawned it",
        ),
        ("session.join()", "join: expected a subagent"),
        (
            "session.race({ user = 'x' })",
            "session:race: call it with a colon",
        ),
        (
            "session:race()",
            "session:race: expected at least one request, tool run, sleep or subagent",
        ),
        (
            "for i = 1, 1e6 do session:spawn(function() end) end",
            "session:spawn: 4096 subagents of the session are live, which is the maximum",
        ),
        (
            "for i = 1, 1e6 do session:spawn(function() end):join() end",
            "session:spawn: a session may have 65536 subagents",
        ),
        (
            "local function nest(sub) sub:spawn(nest):join() end nest(session)",
            "session:spawn: subagents may be nested 256 deep",
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
    }
}

#[test]
fn refuses_a_subagent_of_another_session() {
    let folder = Folder::new(
        "local kept = nil
         return { session_generator = { type = 'lua', agent = function(session)
           session:request { user = 'x' }
           if session.index == 1 then kept:join() end
           kept = session:spawn(function(sub) sub:request { user = 'y' } end)
         end } }",
    );
    let mut agents = folder.agents(1);
    for session in [SessionId(0), SessionId(1)] {
        agents.start(session).unwrap();
    }
    go(&mut *agents, 1, "");
    let failure = agents
        .answered(SessionId(1), node(1), &answer(""), 1)
        .unwrap_err();
    assert!(
        failure
            .message
            .contains("join: this is the object of another session"),
        "{failure}"
    );
}

#[test]
fn subagents_that_wait_for_one_another_are_an_error() {
    let folder = agent(
        "session:request { user = 'x' }
         local a, b
         a = session:spawn(function() b:join() end)
         b = session:spawn(function() a:join() end)",
    );
    let failure = failure(&folder);
    assert!(failure.message.contains("wait for one another"), "{failure}");
}

#[test]
fn endless_and_greedy_subagents_are_limited() {
    let endless =
        agent("session:spawn(function(sub) while true do end end) session:request { user = 'x' }").hurried();
    let late = endless.agents(1).start(S).unwrap_err();
    assert_eq!(late.kind, PluginFailureKind::Deadline { allowed_ms: 300 });
    let greedy = agent(
        "session:spawn(function(sub)
           local t = {}
           while true do t[#t + 1] = string.rep('x', 4e6) .. #t end
         end)
         session:request { user = 'x' }",
    );
    let large = greedy.agents(1).start(S).unwrap_err();
    assert!(matches!(large.kind, PluginFailureKind::Memory { .. }), "{large}");
    // The memory of the session that failed does not count for the next.
    let mut agents = greedy.agents(1);
    assert!(agents.start(S).is_err());
    assert!(agents.start(SessionId(1)).is_err());
}

#[test]
fn draws_and_texts_of_a_subagent_do_not_depend_on_the_order_of_answers() {
    let folder = agent(
        "local function work(sub)
           for turn = 1, 2 do
             sub:request { user = synthetic(sub.rng:int(5, 500)), labels = { turn = turn } }
           end
           sub:spawn(function(inner) inner:request { user = synthetic(inner.rng:int(5, 500)), labels = { turn = 3 } } end)
         end
         session:spawn(work)
         session:spawn(work)
         work(session)",
    );
    let run = |order: fn(usize) -> usize| {
        let mut agents = folder.agents(1);
        let mut open: Vec<Request> = agents.start(S).unwrap().added.requests;
        let mut made = Vec::new();
        while !open.is_empty() {
            let request = open.remove(order(open.len()));
            let step = agents.answered(S, request.node, &answer(""), 1).unwrap();
            open.extend(step.added.requests);
            made.push((request.labels.clone(), request.messages[0].content.clone()));
        }
        made.sort_by(|(one, _), (other, _)| one.cmp(other));
        made
    };
    let first = run(|_| 0);
    assert_eq!(first.len(), 9);
    assert_eq!(first, run(|open| open - 1));
    assert_eq!(first, run(|open| open / 2));
    let texts: Vec<_> = first.iter().map(|(_, content)| content).collect();
    let is_new = |(i, text): (usize, _)| !texts[..i].contains(&text);
    assert!(
        texts.iter().copied().enumerate().all(is_new),
        "each text is unique"
    );
}

#[test]
fn a_workload_may_set_the_label_itself() {
    let step = agent(
        "session:spawn(function(sub) sub:request { user = 'x', labels = { subagent = 'search' } } end)",
    )
    .agents(1)
    .start(S)
    .unwrap();
    assert_eq!(sent(&step), [("search", "x")]);
}
