//! Recorded decisions of agents, and their replay without the agents.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::simulated::{ends_with, path, real, simulated};
use crate::support::{assert_code, root, scenario, stderr, stdout, veeksha};

const DECISIONS: &str = "decisions.jsonl";

/// A scenario with this generator, and tools for which sessions wait.
fn with_generator(generator: &str) -> String {
    format!(
        r#"
return {{
  seed = 7,
  session_generator = {generator},
  tools = {{
    search = {{ rate_limit = "30/s", time = {{ type = "exponential", mean = 0.05 }} }},
    sandbox = {{ servers = 2, time = {{ type = "constant", value = 0.1 }}, cold_start = 0.3, failure_rate = 0.1 }},
  }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = 9 }},
}}
"#
    )
}

fn replay_of(run: &Path) -> String {
    with_generator(&format!(r#"{{ type = "replay", run = "{}" }}"#, path(run)))
}

/// Subagents, tools in parallel and in a race, sleeps, cancelled requests, all kinds of content.
const AGENT: &str = r#"function(session)
  local plan = session:request {
    system = synthetic(50, 3), user = synthetic(session.rng:int(20, 60), 1),
    output = { tokens = 12, exact = true }, labels = { step = "plan" }, headers = { ["x-tenant"] = "a" },
  }
  local function work(turns)
    return function(sub)
      local last = plan
      for turn = 1, turns do
        local found = sub:tool("search", { after = last })
        local answer = sub:request {
          history = last, user = { "Found: ", found.content }, output = sub.rng:int(4, 16),
          body = { temperature = 0.5 }, cancel = { chunks = 9 },
        }
        if answer.ok then last = answer end
        sub:sleep(sub.rng:int(1, 30) / 1000)
      end
      return last
    end
  end
  local one, two = session:spawn(work(2)), session:spawn(work(session.rng:int(1, 3)))
  local a, b = session:parallel(one, two)
  local tool, number = session:race(
    { tool = "sandbox", time = "80ms", after = a }, { tool = "sandbox", time = "90ms", after = b })
  local function draft(tokens)
    return { history = a, after = b, user = "Draft " .. number, output = { tokens = tokens, exact = true } }
  end
  local draft, which = session:race(draft(40), draft(5 + session.index))
  session:request { history = draft, user = "Draft " .. which .. " it is.", output = 3, wait = "10ms" }
end"#;

/// Records a run in virtual time, replays it, and compares every event of both.
#[track_caller]
fn same_schedule(generator: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = simulated(folder.path(), "agent.lua", &with_generator(generator), &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let replayed = simulated(folder.path(), "replay.lua", &replay_of(&recorded), &[]);
    same_run(&recorded, &replayed);
}

/// Removes from the first step of a session that it replays the session of the same id.
fn without_origin(mut line: Value) -> Value {
    if let Some(replays) = line.as_object_mut().and_then(|line| line.remove("replays")) {
        assert_eq!(replays["session"], line["session"]);
    }
    line
}

fn same_run(recorded: &Path, replayed: &Path) {
    for file in [
        "traces/trace.jsonl",
        "metrics/request_level_metrics.jsonl",
        DECISIONS,
    ] {
        let [recorded, replayed] = [recorded, replayed].map(|run| lines(run, file));
        assert_eq!(recorded.len(), replayed.len(), "{file}");
        // The header names the plugin.
        let header = usize::from(file == DECISIONS);
        for (recorded, replayed) in recorded.iter().zip(replayed).skip(header) {
            assert_eq!(*recorded, without_origin(replayed), "{file}");
        }
    }
}

#[test]
fn replay_has_the_schedule_of_the_lua_agent() {
    same_schedule(&format!(r#"{{ type = "lua", agent = {AGENT} }}"#));
}

#[test]
fn replay_has_the_schedule_of_the_component() {
    let component = root().join("tests/guests/dist/sdk-agent.wasm");
    for config in ["steps = 3", "steps = 2, team = true", "steps = 2, tools = true"] {
        same_schedule(&format!(
            r#"{{ type = "wasm", plugin = "{}", config = {{ {config} }} }}"#,
            path(&component)
        ));
    }
}

/// The shipped example, with the generator replaced on the command line.
#[test]
fn replay_has_the_schedule_of_the_example() {
    let folder = tempfile::tempdir().expect("a folder");
    let simulate = |name: &str, more: &[&str]| -> PathBuf {
        let output_dir = folder.path().join(name);
        let mut arguments = vec![
            "simulate",
            "scenarios/coding_agent.lua",
            "--output_dir",
            path(&output_dir),
        ];
        arguments.extend(more);
        assert_code(&veeksha(arguments), 0);
        latest(&output_dir)
    };
    let recorded = simulate("agent", &[]);
    let link = folder.path().join("agent/latest");
    let generator = format!("session_generator={{type: replay, run: {}}}", path(&link));
    let replayed = simulate("replay", &["--set", &generator]);
    same_run(&recorded, &replayed);
    // The link leads to another run later.
    let config = std::fs::read_to_string(replayed.join("config.yml")).expect("config.yml");
    assert!(
        config.contains(&format!("  run: {}\n", path(&recorded))),
        "{config}"
    );
}

fn decisions(run: &Path) -> Vec<Value> {
    lines(run, DECISIONS)
}

#[test]
fn run_records_its_decisions_unless_they_are_turned_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = with_generator(&format!(r#"{{ type = "lua", agent = {AGENT} }}"#));
    let run = simulated(folder.path(), "agent.lua", &text, &[]);
    let steps = decisions(&run);
    assert_eq!(steps[0]["format"], "veeksha-host decisions");
    assert_eq!((&steps[0]["version"], &steps[0]["seed"]), (&1.into(), &7.into()));
    let start = &steps[1];
    assert_eq!((&start["session"], start.get("after")), (&0.into(), None));
    let request = &start["requests"][0];
    assert_eq!(request["messages"][0]["role"], "system");
    assert_eq!(request["headers"][0], serde_json::json!(["x-tenant", "a"]));
    // Nine sessions started, and each agent ended.
    let done = steps.iter().filter(|step| step["done"] == true);
    assert_eq!(done.count(), 9);

    let folder = tempfile::tempdir().expect("a folder");
    let off = ["--trace_recorder.decisions", "false"];
    let run = simulated(folder.path(), "agent.lua", &text, &off);
    assert!(!run.join(DECISIONS).exists());
    refuses(&run, "`trace_recorder.decisions = false`", "record a run with");
}

/// Checks that a run cannot be replayed; `why` is in the message, `hint` after it.
#[track_caller]
fn refuses(run: &Path, why: &str, hint: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "replay.lua", &replay_of(run));
    let output = veeksha(["simulate", &file, "--output_dir", path(folder.path())]);
    assert_code(&output, 2);
    let message = stderr(&output);
    let found = message
        .find(why)
        .unwrap_or_else(|| panic!("no {why:?} in {message}"));
    assert!(message[found..].contains(hint), "{message}");
    assert!(message.contains("session_generator.run: "), "{message}");
}

#[test]
fn names_the_reason_why_a_run_cannot_be_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    refuses(folder.path(), "is not the folder of a run", "`latest`");

    let planned = r#"{ type = "lua", sessions = function() return { requests = { { user = "x" } } } end }"#;
    let run = simulated(folder.path(), "planned.lua", &with_generator(planned), &[]);
    assert!(!run.join(DECISIONS).exists());
    refuses(
        &run,
        "its workload (`lua`) plans whole sessions",
        "veeksha-host run ",
    );

    let agent = r#"{ type = "lua", agent = function(s) s:request { user = "x" } end }"#;
    let run = simulated(folder.path(), "agent.lua", &with_generator(agent), &[]);
    let file = run.join(DECISIONS);
    let text = std::fs::read_to_string(&file).expect("decisions");
    let write = |text: &str| std::fs::write(&file, text).expect("a writable file");
    write(&text.replacen("\"version\":1", "\"version\":2", 1));
    refuses(
        &run,
        "its format version is 2 (contract 0.2.0); this program reads version 1 (contract 0.2.0)",
        "record the decisions again",
    );
    write(&text.replacen("\"node\":", "\"noodle\":", 1));
    refuses(&run, "line 2 is damaged: missing field `node`", "");
    write("");
    refuses(&run, "it is empty", "");
    std::fs::remove_file(&file).expect("the file");
    refuses(
        &run,
        "it was recorded by an older version",
        "record the run again",
    );
}

/// Runs `compare` on two runs. Returns the printed text and the comparison of decisions as JSON.
fn compared(folder: &Path, one: &Path, other: &Path) -> (String, Value) {
    let [file, page] = ["comparison.json", "comparison.html"].map(|name| folder.join(name));
    let output = veeksha([
        "compare",
        path(one),
        path(other),
        "--json",
        path(&file),
        "--html",
        path(&page),
    ]);
    assert_code(&output, 0);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("<h3>Decisions of agents</h3>"));
    (
        stdout(&output),
        json(folder, "comparison.json")["candidates"][0]["decisions"].clone(),
    )
}

/// Over sockets, answers come in another order each time.
#[test]
fn replay_over_sockets_makes_the_same_decisions() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let text = with_generator(&format!(r#"{{ type = "lua", agent = {AGENT} }}"#));
    let recorded = real(first.path(), "agent.lua", &text, 0);
    let replayed = real(second.path(), "replay.lua", &replay_of(&recorded), 0);
    let nodes = |run: &Path| {
        let rows = lines(run, "metrics/request_level_metrics.jsonl");
        let node = |row: &Value| (row["session_id"].as_u64(), row["node_id"].as_u64());
        let mut nodes: Vec<_> = rows.iter().map(node).collect();
        nodes.sort_unstable();
        nodes
    };
    assert!(!nodes(&recorded).is_empty());
    let done = decisions(&recorded)
        .iter()
        .filter(|step| step["done"] == true)
        .count();
    assert_eq!(done, 9);
    let (text, differences) = compared(first.path(), &recorded, &replayed);
    assert!(
        text.contains("Decisions of agents\n  9 sessions compared: 9 identical, 0 diverged\n"),
        "{text}"
    );
    assert_eq!(
        (&differences["identical"], &differences["diverged"]),
        (&9.into(), &0.into()),
        "{differences}"
    );
}

/// The recorded run lacks its first session, and the replay has another seed. Tool runs draw what
/// the recorded sessions drew, and sessions are compared with those that they send again.
#[test]
fn replay_with_gaps_and_another_seed_has_the_recorded_tool_runs() {
    let generator = r#"{ type = "lua", agent = function(session)
      local last = session:request { user = "Session " .. session.index, output = 4 }
      for turn = 1, 3 do
        local found = session:tool("search", { after = last })
        last = session:request { history = last, user = { "Found: ", found.content }, output = 4 }
      end
    end }"#;
    let text = |generator: &str| {
        let tools = r#"search = { time = { type = "exponential", mean = 0.05 }, failure_rate = 0.3,
          result_tokens = { type = "uniform", min = 1, max = 999 } }"#;
        format!(
            r#"return {{
              seed = 7, session_generator = {generator}, tools = {{ {tools} }},
              traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 2, rampup_seconds = 0 }},
              client = {{ api_base = "sim://default" }}, runtime = {{ max_sessions = 8 }},
            }}"#
        )
    };
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let recorded = simulated(first.path(), "agent.lua", &text(generator), &[]);
    let file = recorded.join(DECISIONS);
    let steps = std::fs::read_to_string(&file).expect("decisions");
    let kept = steps.lines().filter(|line| !line.starts_with(r#"{"session":0,"#));
    std::fs::write(&file, kept.map(|line| format!("{line}\n")).collect::<String>()).expect("a file");

    let replay = text(&format!(r#"{{ type = "replay", run = "{}" }}"#, path(&recorded)));
    let replayed = simulated(second.path(), "replay.lua", &replay, &["--seed", "8"]);
    let tool_runs = |run: &Path, first: u64| {
        let events = lines(run, "traces/trace.jsonl").into_iter();
        let runs = events
            .filter(|event| event["event"] == "tool_ran")
            .filter_map(|event| {
                let session = event["session_id"].as_u64()?.checked_sub(first)?;
                let seconds = |key: &str| event[key].as_f64();
                let service = ((seconds("at")? - seconds("started_at")?) * 1e6).round() as u64;
                let result = (event["success"].clone(), event["result_tokens"].clone());
                Some((session, event["node_id"].as_u64()?, service, result))
            });
        let mut runs: Vec<_> = runs.collect();
        runs.sort_by_key(|(session, node, ..)| (*session, *node));
        runs
    };
    let expected = tool_runs(&recorded, 1);
    assert_eq!(expected.len(), 21);
    assert_eq!(tool_runs(&replayed, 0), expected);
    let (text, _) = compared(first.path(), &recorded, &replayed);
    assert!(
        text.contains("7 sessions compared: 7 identical, 0 diverged\n"),
        "{text}"
    );
}

/// A shard has every second session.
#[test]
fn replay_of_a_shard_makes_the_same_decisions() {
    let agent = r#"{ type = "lua", agent = function(session)
      local a = session:request { user = "Session " .. session.index, output = 4 }
      session:request { user = "more", history = a, output = 4 }
    end }"#;
    let text = |generator: &str| {
        format!(
            r#"return {{
              seed = 1, session_generator = {generator},
              traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 2, rampup_seconds = 0 }},
              client = {{ api_base = "sim://default" }}, runtime = {{ max_sessions = 8 }},
            }}"#
        )
    };
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let recorded = simulated(first.path(), "agent.lua", &text(agent), &["--shard", "2/2"]);
    let replay = text(&format!(r#"{{ type = "replay", run = "{}" }}"#, path(&recorded)));
    let replayed = simulated(second.path(), "replay.lua", &replay, &[]);
    let (text, _) = compared(first.path(), &recorded, &replayed);
    assert!(
        text.contains("4 sessions compared: 4 identical, 0 diverged\n"),
        "{text}"
    );
}

/// Bodies with addresses and schemas are recorded as they are; those with a secret are not sent.
#[test]
fn replay_sends_recorded_bodies_or_none() {
    let agent = |body: &str| {
        with_generator(&format!(
            r#"{{ type = "lua", agent = function(session)
              session:request {{ user = "one", output = 4 }}
              session:request {{ user = "two", output = 4, body = {body} }}
            end }}"#
        ))
    };
    let [first, second, third] = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let plain = r#"{
      input = "Read https://a.b/c and then https://d.e/f?x=1 now.\n# Heading\n***More*** text.",
      response_format = { schema = { properties = { signature = { type = "string" } } } },
    }"#;
    let recorded = simulated(first.path(), "plain.lua", &agent(plain), &[]);
    let replayed = simulated(second.path(), "replay.lua", &replay_of(&recorded), &[]);
    let bodies = |run: &Path| -> Vec<Value> {
        let steps = decisions(run).into_iter();
        let body = |step: Value| step["requests"][0].get("body").cloned();
        let bodies = steps.filter_map(body);
        bodies
            .map(|body| serde_json::from_str(body.as_str().expect("a text")).expect("JSON"))
            .collect()
    };
    let expected = serde_json::json!({
        "input": "Read https://a.b/c and then https://d.e/f?x=1 now.\n# Heading\n***More*** text.",
        "response_format": { "schema": { "properties": { "signature": { "type": "string" } } } },
    });
    assert_eq!(bodies(&recorded), vec![expected.clone(); 9]);
    assert_eq!(bodies(&replayed), vec![expected; 9]);

    let secret =
        r#"{ input = "From https://me:pass-word-1@h/x?api_key=key-1 on.", password = "pass-word-2" }"#;
    let recorded = simulated(third.path(), "secret.lua", &agent(secret), &[]);
    let written = std::fs::read_to_string(recorded.join(DECISIONS)).expect("decisions");
    for secret in ["pass-word", "key-1"] {
        assert!(!written.contains(secret), "{secret} in {written}");
    }
    assert!(
        written.contains("From https://***@h/x?api_key=*** on."),
        "{written}"
    );
    refuses(
        &recorded,
        "node 2 of session 0 (and 8 requests more) of",
        "remove the key `redacted`",
    );
}

/// The agent of odd sessions asks for another length at its second step.
#[test]
fn run_reports_where_decisions_diverge() {
    let agent = |odd: u32, more: &str| {
        with_generator(&format!(
            r#"{{ type = "lua", {more} agent = function(session)
              local a = session:request {{ user = "one", output = 8 }}
              session:request {{
                user = "two", history = a, output = if session.index % 2 == 1 then {odd} else 6,
              }}
            end }}"#
        ))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = simulated(folder.path(), "one.lua", &agent(6, ""), &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let more = format!("recorded_run = \"{}\",", path(&recorded));
    let (output, run) = ends_with(folder.path(), "two.lua", &agent(5, &more), &[], 0);
    let divergence = json(&run, "metrics/decision_divergence.json");
    assert_eq!(json(&run, "metrics/summary_stats.json")["decisions"], divergence);
    // Sessions 1, 3, 5 and 7 of nine.
    let expected = serde_json::json!({
        "sessions": 9, "identical": 5, "identical_so_far": 0, "diverged": 4, "only_recorded": 0, "only_other": 0,
        "by_turn": { "2": 4 }, "by_depth": { "2": 4 }, "by_field": { "output": 4 },
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&divergence[key], value, "{key}");
    }
    assert_eq!(divergence["examples"][0]["session_id"], 1);
    let table = stdout(&output);
    assert!(
        table.contains("Decisions of agents (against the recorded run)"),
        "{table}"
    );
    assert!(table.contains("first in output"), "{table}");
    let page = std::fs::read_to_string(run.join("report.html")).expect("a page");
    assert!(page.contains("9 sessions compared: 5 identical, 4 diverged"));

    let (text, differences) = compared(folder.path(), &recorded, &run);
    assert!(text.contains("by field: output: 4 sessions"), "{text}");
    assert_eq!(differences, divergence);

    let file = scenario(folder.path(), "off.lua", &agent(5, &more));
    let off = veeksha(["simulate", &file, "--trace_recorder.decisions", "false"]);
    assert_code(&off, 2);
    assert!(
        stderr(&off).contains("session_generator.recorded_run: the decisions of this run are not recorded")
    );
}

/// Two subagents, each with its server and a tool run after an answer.
const TWO_SERVERS: &str = r#"
local function worker(client)
  return function(sub)
    local answer = sub:request { client = client, user = "Begin.", output = { tokens = 10, exact = true } }
    local run = sub:tool("sandbox", {})
    sub:request {
      client = client, user = { "Output: ", result_of(run) }, history = answer,
      output = { tokens = 10, exact = true },
    }
  end
end
return {
  seed = 3,
  session_generator = { type = "lua", RECORDED agent = function(session)
    session:parallel(session:spawn(worker("a")), session:spawn(worker("b")))
  end },
  tools = { sandbox = {
    time = { type = "exponential", mean = 1 }, result_tokens = { type = "uniform", min = 10, max = 500 },
  } },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 },
  client = { api_base = "sim://default" },
  clients = { a = { api_base = "sim://A" }, b = { api_base = "sim://B" } },
  runtime = { max_sessions = 5 },
}
"#;

#[test]
fn tools_of_concurrent_subagents_do_not_depend_on_the_servers() {
    let with = |recorded: &str, a: &str, b: &str| {
        let scenario = TWO_SERVERS.replace("RECORDED", recorded);
        scenario.replace("sim://A", a).replace("sim://B", b)
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (fast, slow) = ("sim://fast", "sim://slow");
    let recorded = simulated(folder.path(), "one.lua", &with("", fast, slow), &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let more = format!("recorded_run = \"{}\",", path(&recorded));
    let run = simulated(folder.path(), "two.lua", &with(&more, slow, fast), &[]);
    let first_of = |run: &Path| -> Vec<Value> {
        let requests = lines(run, "metrics/request_level_metrics.jsonl");
        let ended = requests.iter().filter(|request| request["session_id"] == 0);
        ended.map(|request| request["node_id"].clone()).collect()
    };
    assert_ne!(
        first_of(&recorded),
        first_of(&run),
        "the answers come in another order"
    );
    let divergence = json(&run, "metrics/decision_divergence.json");
    assert_eq!(divergence["identical"], 5, "{divergence}");
}

/// A recording of a run that was killed: its replay states what is missing.
#[test]
fn replay_of_a_cut_recording_is_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = simulated(
        folder.path(),
        "agent.lua",
        &with_generator(&format!(r#"{{ type = "lua", agent = {AGENT} }}"#)),
        &[],
    );
    let file = scenario(folder.path(), "replay.lua", &replay_of(&recorded));
    let checked = || stdout(&veeksha(["check", &file])) + &stderr(&veeksha(["check", &file]));
    assert!(!checked().contains("is incomplete"), "{}", checked());
    let path = recorded.join(DECISIONS);
    let whole = std::fs::read_to_string(&path).expect("decisions");
    let lines: Vec<&str> = whole.lines().collect();
    let kept = lines[..lines.len() / 2].join("\n");
    std::fs::write(&path, format!("{kept}\n{{\"session\":")).expect("a cut file");
    let note = checked();
    assert!(
        note.contains("is incomplete: ") && note.contains("was cut"),
        "{note}"
    );
}
