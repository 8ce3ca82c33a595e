//! Tool runs of agents.

use std::sync::Arc;

use veeksha_model::{Edge, RequestId, Segment, TIMER, ToolRun, ToolRunRecord, Trigger};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure, ToolRunEnd, tool_result_text};

use crate::common::{S, agent, answer, node, parents};

const MS: u64 = 1_000_000;

/// Ends a tool run that waited for 250 ms and took 2 s.
fn ran(agents: &mut dyn AgentSource, run: u32, failed: bool) -> Result<AgentStep, PluginFailure> {
    let record = ToolRunRecord {
        id: RequestId {
            session: S,
            node: node(run),
        },
        class: Arc::from("sandbox"),
        parents: Vec::new(),
        ready_at: 1_000 * MS,
        started_at: 1_250 * MS,
        completed_at: 3_250 * MS,
        is_cold: false,
        failed,
        result_tokens: 17,
        measured: true,
        labels: Arc::from([]),
    };
    agents.tool_ended(S, ToolRunEnd::Served(&record))
}

fn go(agents: &mut dyn AgentSource, number: u32) -> AgentStep {
    agents.answered(S, node(number), &answer(""), 1).unwrap()
}

fn ended(parent: u32, delay: u64) -> Edge {
    Edge {
        delay,
        ..node(parent).into()
    }
}

#[test]
fn a_tool_run_returns_its_result() {
    let mut agents = agent(
        "local plan = session:request { user = 'plan' }
         session:sleep('30ms')
         local r = session:tool('sandbox', { time = '2s', result_tokens = 17, labels = { call = 1 }, after = 1 })
         assert(r.ok and r.node == 2 and r.tokens == 17)
         assert(r.waiting_time == 0.25 and r.service_time == 2 and r.completed_at == 3.25)
         local again = session:tool('sandbox', { after = { node = r, delay = '5ms' } })
         assert(not again.ok and again.node == 3)
         session:request { user = { 'found ', result_of(r), result_of(3) }, history = plan, after = { r, again } }",
    )
    .agents(1);
    agents.start(S).unwrap();
    let step = go(&mut *agents, 1);
    let keys = [step.added.tool_runs[0].key];
    let expected = ToolRun {
        fails: None,
        key: keys[0],
        node: node(2),
        parents: vec![ended(1, 30 * MS)],
        class: "sandbox".into(),
        service_time: Some(2_000 * MS),
        result_tokens: Some(17),
        labels: vec![("call".into(), "1".into())],
    };
    assert_eq!(
        (step.added.requests.len(), &step.added.tool_runs[..]),
        (0, &[expected][..])
    );
    let step = ran(&mut *agents, 2, false).unwrap();
    assert_eq!(step.added.tool_runs[0].parents, [ended(2, 5 * MS)]);
    let keys = [keys[0], step.added.tool_runs[0].key];
    let step = ran(&mut *agents, 3, true).unwrap();
    let request = &step.added.requests[0];
    assert_eq!((request.node, parents(request)), (node(4), vec![1, 2, 3]));
    let text = |key| tool_result_text(S, key, 17);
    assert_ne!(text(keys[0]), text(keys[1]));
    let content = [Segment::Text("found ".into()), text(keys[0]), text(keys[1])];
    assert_eq!(request.messages[0].content, content);
    assert!(go(&mut *agents, 4).done);
}

#[test]
fn tool_runs_work_in_parallel_in_races_and_in_subagents() {
    let mut agents = agent(
        "session:request { user = 'plan' }
         local sub = session:spawn(function(sub)
           sub:sleep('40ms')
           return sub:tool('search').tokens
         end)
         local run, answered, tokens = session:parallel({ tool = 'sandbox' }, { user = 'x' }, sub)
         assert(run.node == 2 and answered.node == 3 and tokens == 17)
         local winner, index = session:race({ tool = 'slow' }, { tool = 'quick' })
         assert(index == 2 and winner.tokens == 17)",
    )
    .agents(1);
    agents.start(S).unwrap();
    let step = go(&mut *agents, 1);
    let [first, second] = &step.added.tool_runs[..] else {
        panic!("two tool runs: {step:?}")
    };
    assert_eq!((first.node, &first.parents[..]), (node(2), &[ended(1, 0)][..]));
    assert!(first.labels.is_empty());
    assert_eq!(
        (second.node, &second.parents[..]),
        (node(4), &[ended(1, 40 * MS)][..])
    );
    assert_eq!(second.labels, [("subagent".into(), "1".into())]);
    go(&mut *agents, 3);
    ran(&mut *agents, 4, false).unwrap();
    let step = ran(&mut *agents, 2, false).unwrap();
    assert_eq!(step.added.tool_runs.len(), 2);
    let step = ran(&mut *agents, 6, false).unwrap();
    assert_eq!((step.cancel, step.done), (vec![node(5)], true));
}

#[test]
fn a_session_may_begin_with_a_tool_run() {
    let mut agents = agent(
        "local asleep = session:spawn(function(sub) sub:sleep(10) end)
         session:tool('sandbox')
         asleep:join()
         session:tool('sandbox')",
    )
    .agents(1);
    let step = agents.start(S).unwrap();
    assert!(step.added.tool_runs[0].parents.is_empty());
    let step = ran(&mut *agents, 1, false).unwrap();
    let started = Edge {
        parent: node(1),
        trigger: Trigger::Dispatched,
        delay: 10_000 * MS,
    };
    assert_eq!(step.added.tool_runs[0].parents, [ended(1, 0), started]);
    assert!(ran(&mut *agents, 2, false).unwrap().done);
}

/// The timer with this number, which ends at the time of its edge.
fn timer(number: u32, edge: Edge) -> ToolRun {
    ToolRun {
        node: node(number),
        parents: vec![edge],
        class: TIMER.into(),
        ..ToolRun::default()
    }
}

#[test]
fn a_sleep_limits_the_time_of_a_race() {
    let mut agents = agent(
        "session:request { user = 'plan' }
         local answer, position = session:race({ user = 'slow' }, { sleep = '20ms' })
         assert(answer == nil and position == 2)
         session:race({ user = 'never' }, session:spawn(function() return 1 end))
         local last, slept = session:parallel({ user = 'next' }, { sleep = '20ms' })
         assert(last.ok and slept == nil)
         session:request { user = 'last' }",
    )
    .agents(1);
    agents.start(S).unwrap();
    let step = go(&mut *agents, 1);
    assert_eq!(step.added.requests[0].node, node(2));
    assert_eq!(step.added.tool_runs, [timer(3, ended(1, 20 * MS))]);
    // The loser is cancelled, and a request that lost before the step ended is not sent.
    let step = ran(&mut *agents, 3, false).unwrap();
    assert_eq!(step.cancel, [node(2)]);
    assert_eq!(step.added.requests.len(), 1);
    assert_eq!(
        (step.added.requests[0].node, parents(&step.added.requests[0])),
        (node(5), vec![3])
    );
    go(&mut *agents, 2);
    let step = go(&mut *agents, 5);
    assert_eq!(step.added.requests[0].parents, [ended(3, 20 * MS), ended(5, 0)]);
    assert!(go(&mut *agents, 6).done);
}

/// The time limit in the README, as it is written there.
#[test]
fn the_time_limit_of_the_readme_works() {
    let readme = include_str!("../../../../../sdk/lua/README.md");
    let (_, limits) = readme.split_once("### Time limits").expect("the section");
    let (_, example) = limits.split_once("```lua\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let mut agents = agent(example).agents(1);
    let step = agents.start(S).unwrap();
    let limit = Edge {
        parent: node(2),
        trigger: Trigger::Dispatched,
        delay: 2_000 * MS,
    };
    // The second node is a timer that represents the session's start.
    let parents = step.added.tool_runs.iter().map(|run| run.parents.as_slice());
    assert_eq!(parents.collect::<Vec<_>>(), [&[][..], &[limit][..]]);
    ran(&mut *agents, 2, false).unwrap();
    let step = ran(&mut *agents, 3, false).unwrap();
    assert_eq!(step.cancel, [node(1)]);
    assert_eq!(step.added.requests[0].output.target_tokens, Some(1));
}

#[test]
fn a_subagent_that_sleeps_ends_a_race_after_its_sleep() {
    let mut agents = agent(
        "session:request { user = 'plan' }
         local sleeper = session:spawn(function(sub) sub:sleep('20ms') return 'late' end)
         local result, position = session:race({ user = 'slow' }, sleeper)
         assert(result == 'late' and position == 2)
         session:request { user = 'last' }",
    )
    .agents(1);
    agents.start(S).unwrap();
    let step = go(&mut *agents, 1);
    let labels = vec![("subagent".into(), "1".into())];
    let timer = ToolRun {
        labels,
        ..timer(3, ended(1, 20 * MS))
    };
    assert_eq!(
        (step.added.requests.len(), step.added.tool_runs),
        (1, vec![timer])
    );
    let step = ran(&mut *agents, 3, false).unwrap();
    assert_eq!(
        (parents(&step.added.requests[0]), step.cancel),
        (vec![3], vec![node(2)])
    );
}

#[test]
fn a_tool_run_may_follow_a_sleep_at_the_start_of_the_session() {
    let mut agents = agent("session:sleep('20ms') session:tool('sandbox')").agents(1);
    let step = agents.start(S).unwrap();
    let started = Edge {
        parent: node(1),
        trigger: Trigger::Dispatched,
        delay: 20 * MS,
    };
    let [first, second] = &step.added.tool_runs[..] else {
        panic!("a timer and a tool run: {step:?}")
    };
    assert_eq!((first.class.as_str(), first.parents.len()), (TIMER, 0));
    assert_eq!(
        (second.class.as_str(), &second.parents[..]),
        ("sandbox", &[started][..])
    );
    assert_eq!(ran(&mut *agents, 1, false).unwrap(), AgentStep::default());
    assert!(ran(&mut *agents, 2, false).unwrap().done);
}

#[test]
fn a_session_has_as_many_nodes_in_lua_as_elsewhere() {
    assert_eq!(veeksha_coroutines::MAX_NODES, veeksha_model::MAX_NODES);
}

#[test]
fn wrong_tool_runs_are_refused_where_they_are_called() {
    let cases = [
        (
            "session:tool()",
            "session:tool[1]: expected the name of a tool, found nothing",
        ),
        (
            "session:tool { tool = 'sandbox' }",
            "expected the name of a tool, found a table",
        ),
        (
            "session:tool('sandbox', 3)",
            "session:tool[2]: expected a table of options",
        ),
        ("session:tool('sandbox', { tme = 1 })", "did you mean `time`?"),
        (
            "session:request { tool = 'sandbox' }",
            "this is a tool run; call session:tool(class, options)",
        ),
        (
            "session:parallel({ tool = 'sandbox', node = 3 })",
            "session:parallel[1].node: the host numbers the nodes of an agent",
        ),
        (
            "session:race({ sleep = '1s', tool = 'sandbox' }, { user = 'x' })",
            "session:race[1]: unknown field `tool`",
        ),
        (
            "session:race({ sleep = 'soon' }, { user = 'x' })",
            "session:race[1].sleep: expected",
        ),
        (
            "local r = session:request { user = 'x' } session:request { user = result_of(r) }",
            "the session cannot run",
        ),
    ];
    for (body, expected) in cases {
        let folder = agent(body);
        let mut agents = folder.agents(1);
        let failure = match agents.start(S) {
            Err(failure) => failure,
            Ok(_) => agents.answered(S, node(1), &answer(""), 1).unwrap_err(),
        };
        assert!(failure.message.contains(expected), "{body}: {}", failure.message);
    }
}
