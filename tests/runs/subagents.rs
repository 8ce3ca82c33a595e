//! Agents with concurrent subagents, from the scenario to the record.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::results::lines;
use crate::simulated::{ends_with, path, real, simulated};
use crate::support::{assert_code, root, scenario as write, stderr, veeksha};

/// The session of `tests/guests/sdk-agent`, with `team` and this number of `steps`.
fn team(steps: u32) -> String {
    format!(
        r#"function(session)
  local plan = session:request {{ user = synthetic(session.rng:int(20, 60), 1), output = {{ tokens = 12, exact = true }} }}
  if not plan.ok then return end
  local function work(turns)
    return function(sub)
      local last = plan
      for turn = 1, turns do
        local answer = sub:request {{
          history = last, user = synthetic(sub.rng:int(10, 40), turn + 10),
          output = {{ tokens = sub.rng:int(4, 16), exact = true }}, labels = {{ turn = turn }},
        }}
        if answer.ok then last = answer end
        sub:sleep(sub.rng:int(1, 30) / 1000)
      end
      return last
    end
  end
  local one, two = session:spawn(work({steps})), session:spawn(work({steps} + 1))
  session:sleep("100ms")
  local a, b = session:parallel(one, two)
  local function hedge(tokens)
    return {{ history = a, after = b, user = synthetic(30, 2), output = {{ tokens = tokens, exact = true }} }}
  end
  local answer, index = session:race(hedge(40), hedge(5))
  if answer.ok then
    session:request {{ history = answer, user = "number " .. index - 1, output = {{ tokens = 3, exact = true }} }}
  end
end"#
    )
}

fn scenario(generator: &str) -> String {
    format!(
        r#"
return {{
  seed = 7,
  session_generator = {generator},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 3, rampup_seconds = 0 }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = 6 }},
}}
"#
    )
}

fn in_lua(agent: &str) -> String {
    scenario(&format!(r#"{{ type = "lua", agent = {agent} }}"#))
}

/// The requests of a run, by session and node.
fn requests(run: &Path) -> BTreeMap<(u64, u64), Value> {
    let keyed = |mut line: Value| {
        if let Some(labels) = line["labels"].as_array_mut() {
            labels.sort_by_key(Value::to_string);
        }
        let number = |key: &str| line[key].as_u64().unwrap_or_else(|| panic!("{key} of {line}"));
        ((number("session_id"), number("node_id")), line)
    };
    lines(run, "metrics/request_level_metrics.jsonl")
        .into_iter()
        .map(keyed)
        .collect()
}

#[test]
fn lua_and_rust_have_the_same_schedule() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let component = root().join("tests/guests/dist/sdk-agent.wasm");
    let in_rust = scenario(&format!(
        "{{ type = \"wasm\", plugin = \"{}\", config = {{ steps = 2, team = true }} }}",
        path(&component)
    ));
    let lua = requests(&simulated(folders[0].path(), "team.lua", &in_lua(&team(2)), &[]));
    let rust = requests(&simulated(folders[1].path(), "team.lua", &in_rust, &[]));
    assert_eq!(lua.len(), 6 * (1 + 2 + 3 + 2 + 1));
    assert_eq!(lua.keys().collect::<Vec<_>>(), rust.keys().collect::<Vec<_>>());
    for (key, request) in lua {
        assert_eq!(request, rust[&key], "{key:?}");
    }
}

/// The session of `tests/guests/sdk-agent` with `impatient`.
const IMPATIENT: &str = r#"function(session)
  for _, event in { { delay = "150ms" }, { trigger = "first_chunk", delay = "50ms" } } do
    session:request { user = "Continue.", output = { tokens = 400, exact = true }, cancel = event }
  end
end"#;

#[test]
fn requests_of_agents_in_lua_and_rust_cancel_themselves() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let component = root().join("tests/guests/dist/sdk-agent.wasm");
    let in_rust = scenario(&format!(
        "{{ type = \"wasm\", plugin = \"{}\", config = {{ steps = 1, impatient = true }} }}",
        path(&component)
    ));
    // A run without an answer certifies nothing.
    let run =
        |index: usize, text: &str| requests(&ends_with(folders[index].path(), "agent.lua", text, &[], 6).1);
    let (lua, rust) = (run(0, &in_lua(IMPATIENT)), run(1, &in_rust));
    assert_eq!(lua, rust);
    assert_eq!(rust.len(), 6 * 2);
    for ((session, node), line) in &rust {
        assert_eq!(line["cancelled_by_client"], true, "{session}/{node}");
        let begins = match node {
            1 => number(line, "scheduler_dispatched_at"),
            _ => number(line, "first_byte_at"),
        };
        let after = number(line, "client_completed_at") - begins;
        let expected = if *node == 1 { 0.15 } else { 0.05 };
        assert!((after - expected).abs() < 1e-6, "{session}/{node}: {after}");
    }
}

/// An agent whose answers take 4 s and 1 s, with a limit of 2 s, after one second.
const LIMITED: &str = r#"function(session)
  session:sleep("1s")
  for _, tokens in { 4, 1 } do
    local answer, place = session:race(
      { user = "Answer soon.", output = { tokens = tokens, exact = true } },
      { sleep = "2s" })
    if answer then
      session:request { user = "Go on.", history = answer, output = { tokens = 1, exact = true } }
    end
  end
  local function slow(sub)
    local answer = sub:request { user = "x", output = { tokens = 1, exact = true } }
    sub:sleep("10s")
    return "slow"
  end
  local winner = session:race(session:spawn(slow), session:spawn(function(sub) sub:sleep("5s") return "sleeper" end))
  session:request { user = winner, output = { tokens = 1, exact = true }, labels = { winner = winner } }
end"#;

#[test]
fn a_sleep_limits_the_time_of_a_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = "constant: { first_token_ms: 1000, gap_ms: 1000 }\n";
    std::fs::write(folder.path().join("server.yml"), server).expect("a file");
    let text = in_lua(LIMITED).replace("sim://default", "sim://server.yml");
    let requests = requests(&simulated(folder.path(), "limited.lua", &text, &[]));
    for session in 0..6_u32 {
        // Three at a time. A session ends with its last request: timers that lost are cancelled.
        let start = f64::from(session / 3) * 11.0;
        let lines = of_session(&requests, u64::from(session));
        let times = lines.iter().map(|line| {
            let since = |key: &str| ((number(line, key) - start) * 1e3).round() / 1e3;
            (since("scheduler_ready_at"), since("client_completed_at"))
        });
        // The first answer would end after 5 s. The slow subagent would end after 16 s.
        let expected = [(1.0, 3.0), (3.0, 4.0), (4.0, 5.0), (5.0, 6.0), (10.0, 11.0)];
        assert_eq!(times.collect::<Vec<_>>(), expected);
        assert_eq!(label(lines[4], "winner"), Some("sleeper"));
    }
}

fn of_session(requests: &BTreeMap<(u64, u64), Value>, session: u64) -> Vec<&Value> {
    let of_session = requests.iter().filter(|((of, _), _)| *of == session);
    of_session.map(|(_, line)| line).collect()
}

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or_else(|| panic!("{key} of {line}"))
}

fn label<'a>(line: &'a Value, name: &str) -> Option<&'a str> {
    let labels = line["labels"].as_array()?;
    let found = labels.iter().find(|label| label[0] == name)?;
    found[1].as_str()
}

/// Returns the requests of a subagent in one session.
fn of_subagent<'a>(
    requests: &'a BTreeMap<(u64, u64), Value>,
    session: u64,
    subagent: &str,
) -> Vec<&'a Value> {
    requests
        .iter()
        .filter(|((of, _), _)| *of == session)
        .map(|(_, line)| line)
        .filter(|line| label(line, "subagent").unwrap_or("") == subagent)
        .collect()
}

/// Checks that two subagents are at work at once, and that what joins them follows both.
fn check_team(run: &Path) {
    let requests = requests(run);
    for session in 0..6 {
        let [main, one, two] = ["", "1", "2"].map(|subagent| of_subagent(&requests, session, subagent));
        assert_eq!([main.len(), one.len(), two.len()], [4, 2, 3]);
        let completed = |line: &Value| number(line, "client_completed_at");
        let due = |line: &Value| number(line, "scheduler_ready_at");
        let planned = completed(main[0]);
        for first in [one[0], two[0]] {
            assert!((due(first) - planned).abs() < 1e-6, "{first}");
        }
        // The think time of a tool follows each turn, also the last one.
        for turns in [&one, &two] {
            for pair in turns.windows(2) {
                assert!(due(pair[1]) >= completed(pair[0]) + 0.001 - 1e-6, "{}", pair[1]);
            }
        }
        let ended = completed(one[1]).max(completed(two[2]));
        let joined = due(main[1]);
        assert!(joined >= (ended + 0.001).max(planned + 0.1) - 1e-6, "{}", main[1]);
        assert!(joined <= (ended + 0.03).max(planned + 0.1) + 1e-6, "{}", main[1]);
    }
}

#[test]
fn subagents_run_concurrently_in_virtual_and_real_time() {
    let folder = tempfile::tempdir().expect("a folder");
    check_team(&simulated(folder.path(), "team.lua", &in_lua(&team(2)), &[]));
    let folder = tempfile::tempdir().expect("a folder");
    check_team(&real(folder.path(), "team.lua", &in_lua(&team(2)), 0));
}

#[test]
fn errors_of_subagents_name_their_line() {
    let cases = [
        (
            "session:spawn(function(sub)\n sub:request { user = 'x' }\n error('lost the thread')\n end):join()",
            "agent.lua:5: lost the thread",
        ),
        (
            "for _ = 1, 1e6 do\n session:spawn(function(sub) sub:request { user = 'x' } end)\n end",
            "agent.lua:4: session:spawn: 4096 subagents of the session are live",
        ),
        (
            "local a, b\n a = session:spawn(function() b:join() end)\n b = session:spawn(function() a:join() end)",
            "subagents of the session wait for one another",
        ),
    ];
    for (body, expected) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "\nlocal agent = function(session)\n{body}\nend\n{}",
            in_lua("agent")
        );
        let file = write(folder.path(), "agent.lua", &text);
        let output = veeksha(["simulate", &file, "--output_dir", path(folder.path())]);
        assert_code(&output, 4);
        let message = stderr(&output);
        assert!(message.contains(expected), "{message}");
    }
}
