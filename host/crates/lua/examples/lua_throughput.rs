//! Measures the sessions per second of one virtual machine, the cost of an agent's step, and the
//! memory of live agents.
//!
//! `cargo run --release -p veeksha-lua --example lua_throughput`

use std::error::Error;
use std::fs;
use std::sync::Arc;

use veeksha_clock::RunClock;
use veeksha_lua::{LuaGrants, LuaLimits, LuaScenario};
use veeksha_model::{NodeId, Response, SessionId};
use veeksha_ports::{AgentSource, AgentStep, Workload};
use veeksha_scenario::LuaKind;

const SESSIONS: u32 = 20_000;
/// The number of agents that are alive at once.
const LIVE: u64 = 10_000;

/// A conversation of three turns, an agent of four requests, and one with two subagents.
const SCENARIO: &str = r#"
local prefix = synthetic(500)
local function sessions(index, rng)
  local requests = {}
  for turn = 1, 3 do
    requests[turn] = {
      system = turn == 1 and prefix or nil, user = synthetic(rng:int(50, 150)), history = turn > 1 and turn - 1 or nil,
      wait = rng:exponential(0.1), output = rng:int(16, 48), labels = { turn = turn },
    }
  end
  return { requests = requests }
end
local function agent(session)
  local plan = session:request { user = synthetic(400), output = 120 }
  local a, b = session:parallel(
    { user = tool_result("search", 900), history = plan, output = 60 },
    { user = tool_result("database", 300), history = plan, output = 60, wait = "350ms" })
  session:request { user = "Combine.", history = a, after = { b }, output = 300 }
end
local function team(session)
  local plan = session:request { user = synthetic(400), output = 120 }
  local function work(sub)
    local last = plan
    for turn = 1, 3 do
      last = sub:request { user = tool_result("search", 900), history = last, output = 60 }
      sub:sleep("20ms")
    end
    return last
  end
  local a, b = session:parallel(session:spawn(work), session:spawn(work))
  session:request { user = "Combine.", history = a, after = b, output = 300 }
end
return { plan = sessions, act = agent, team = team }
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("throughput.lua");
    fs::write(&path, SCENARIO)?;
    let clock = RunClock::starting_now();
    let seconds = |since: u64| clock.now().saturating_sub(since) as f64 / 1e9;

    let scenario = LuaScenario::load(&path, LuaLimits::default())?;
    println!("load:           {:8.2} ms", clock.now() as f64 / 1e6);
    let grants = LuaGrants {
        seed: 1,
        tokens: None,
        log: Arc::new(|_, _| {}),
        meter: Arc::default(),
    };

    let began = clock.now();
    let opened = scenario
        .workload("plan", LuaKind::Sessions, None, grants.clone())?
        .open()?;
    println!("open:           {:8.2} ms", seconds(began) * 1e3);
    if let Workload::Planned(mut source) = opened {
        let began = clock.now();
        let mut made = 0;
        for first in (0..SESSIONS).step_by(64) {
            made += source.sessions(u64::from(first), 64)?.len();
        }
        let took = seconds(began);
        println!(
            "planned:        {:8.0} sessions/s, {:.1} us each",
            made as f64 / took,
            took / made as f64 * 1e6
        );
    }

    for name in ["act", "team"] {
        let factory = scenario.workload(name, LuaKind::Agent, None, grants.clone())?;
        if let Workload::Reactive(mut agents) = factory.open()? {
            let began = clock.now();
            let steps = play(&mut *agents)?;
            let took = seconds(began);
            println!(
                "agent `{name}`: {:8.0} sessions/s, {:.1} us per step",
                f64::from(SESSIONS) / took,
                took / f64::from(steps) * 1e6
            );
        }
    }
    let factory = scenario.workload("act", LuaKind::Agent, None, grants)?;
    if let Workload::Reactive(mut agents) = factory.open()? {
        let before = resident_kib();
        for index in 0..LIVE {
            agents.start(SessionId(index))?;
        }
        let each = (resident_kib() - before) / LIVE as f64;
        let began = clock.now();
        let answers = answer_all(&mut *agents, &[1, 2, 3, 4])?;
        println!(
            "live:           {LIVE} agents at once, {each:.1} KiB each; {:.0} steps/s",
            f64::from(answers) / seconds(began)
        );
    }
    Ok(())
}

/// Answers each node of every live session, and returns the number of answers.
fn answer_all(agents: &mut dyn AgentSource, nodes: &[u32]) -> Result<u32, Box<dyn Error>> {
    let mut answers = 0;
    for node in nodes {
        for index in 0..LIVE {
            agents.answered(SessionId(index), NodeId(*node), &Response::default(), 0)?;
            answers += 1;
        }
    }
    Ok(answers)
}

/// The resident memory of this process; 0 where the system does not report it.
fn resident_kib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0.0)
}

/// Plays sessions to their end and returns the number of steps, their starts included.
fn play(agents: &mut dyn AgentSource) -> Result<u32, Box<dyn Error>> {
    let response = Response {
        text: "an answer".into(),
        finish_reason: "stop".into(),
        ..Response::default()
    };
    let mut steps = 0;
    for index in 0..SESSIONS {
        let session = SessionId(u64::from(index));
        let mut open: Vec<NodeId> = nodes(&agents.start(session)?);
        steps += 1;
        while let Some(node) = open.pop() {
            steps += 1;
            open.extend(nodes(&agents.answered(session, node, &response, 0)?));
        }
        agents.finish(session);
    }
    Ok(steps)
}

fn nodes(step: &AgentStep) -> Vec<NodeId> {
    step.added.requests.iter().map(|request| request.node).collect()
}
