//! The accounting of cached tokens, compared with what simulated servers reused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::server::Sim;
use crate::simulated::{evaluated, path, simulated};
use crate::support::{assert_code, scenario, stdout, veeksha};
use crate::truth::request_of;

/// Memory for 24 blocks, or for everything.
const SMALL: &str = "model: m\nmax_context: 256\nkv_capacity_tokens: 384\n";
const AMPLE: &str = "model: m\nmax_context: 256\nkv_capacity_tokens: 400000\n";

/// Sessions of three prompts of token ids, each with the beginning of the one before it: four
/// blocks that all sessions share, then three, six and nine blocks of one of three documents.
/// Twelve sessions in turn, each to the next server: each server gets each document twice, and
/// together they take 4 + 3 * 9 = 31 blocks.
fn documents(client: &str) -> String {
    format!(
        r#"
local function prompt(document, turns)
  local ids = {{}}
  for id = 1, 64 do
    ids[id] = id
  end
  for id = 1, 48 * turns do
    ids[64 + id] = 100 + 200 * document + id
  end
  return token_ids(ids)
end
local function sessions(index)
  local output = {{ tokens = 4, exact = true }}
  return {{ requests = {{
    {{ user = prompt(index % 3, 1), output = output }},
    {{ user = prompt(index % 3, 2), output = output, after = 1 }},
    {{ user = prompt(index % 3, 3), output = output, after = 2 }},
  }} }}
end
return {{
  session_generator = {{ type = "lua", sessions = sessions }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  client = {{ type = "openai_completions", model = "m", {client} }},
  runtime = {{ max_sessions = 12, benchmark_timeout = 120 }},
}}
"#
    )
}

/// The requests of a run by id.
fn requests(run: &Path) -> BTreeMap<String, Value> {
    let id = |row: &Value| row["request_id"].as_str().expect("an id").to_owned();
    let rows = lines(run, "metrics/request_level_metrics.jsonl").into_iter();
    rows.map(|row| (id(&row), row)).collect()
}

const CLASSES: [&str; 5] = ["reused", "evicted", "rerouted", "changed", "new"];

fn classes(row: &Value) -> [u64; 5] {
    CLASSES.map(|class| {
        let tokens = &row[format!("cache_{class}_tokens")];
        tokens.as_u64().unwrap_or_else(|| panic!("{class} of {row}"))
    })
}

/// Runs the documents against this number of new servers with this profile. Returns the run and the
/// cached tokens of each request by the truth logs of the servers.
fn run(folder: &Path, name: &str, servers: usize, profile: &str) -> (PathBuf, BTreeMap<String, u64>) {
    let folder = folder.join(name);
    std::fs::create_dir(&folder).expect("a folder");
    let profile = scenario(&folder, "profile.yml", profile);
    let truth: Vec<PathBuf> = (0..servers)
        .map(|server| folder.join(format!("truth-{server}.jsonl")))
        .collect();
    let sims: Vec<Sim> = truth
        .iter()
        .map(|truth| Sim::start(&["--profile", &profile, "--truth", path(truth)]))
        .collect();
    let targets: Vec<String> = sims
        .iter()
        .map(|sim| format!("{{ api_base = \"{}\" }}", sim.api_base))
        .collect();
    let client = format!(
        "targets = {{ {} }}, prefix_cache = {{ block_tokens = 16, keeps_answers = false }}",
        targets.join(", ")
    );
    let file = scenario(&folder, "s.lua", &documents(&client));
    assert_code(&veeksha(["run", &file, "--output_dir", path(&folder)]), 0);
    sims.into_iter().for_each(Sim::stop);
    let mut cached = BTreeMap::new();
    for truth in &truth {
        let text = std::fs::read_to_string(truth).expect("a truth log");
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let Some(id) = request_of(&line) else { continue };
            cached.insert(id.to_owned(), line["usage"]["cached"].as_u64().expect("a count"));
        }
    }
    (latest(&folder), cached)
}

/// Servers with memory for everything state what the same server had computed, and a single one
/// what any server had computed. The difference to what the small servers reuse was evicted, or
/// routed elsewhere.
#[test]
fn two_replicas_agree_with_their_truth_logs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (small, reused) = run(folder.path(), "small", 2, SMALL);
    let (_, by_same) = run(folder.path(), "ample", 2, AMPLE);
    let (_, by_any) = run(folder.path(), "single", 1, AMPLE);
    let rows = requests(&small);
    assert_eq!((rows.len(), reused.len()), (36, 36));
    let mut total = [0; 5];
    let mut by_session: BTreeMap<u64, [u64; 5]> = BTreeMap::new();
    for (id, row) in &rows {
        let (reused, same, any) = (reused[id], by_same[id], by_any[id]);
        let prompt = row["usage_prompt_tokens"].as_u64().expect("a count");
        let expected = [reused, same - reused, any - same, 0, prompt - any];
        assert_eq!(classes(row), expected, "{id}");
        assert_eq!(expected.iter().sum::<u64>(), prompt);
        let session = by_session.entry(row["session_id"].as_u64().expect("an id"));
        for (sums, tokens) in [session.or_default(), &mut total].into_iter().zip([expected; 2]) {
            for (sum, tokens) in sums.iter_mut().zip(tokens) {
                *sum += tokens;
            }
        }
    }
    assert!(total[0] > 0 && total[1] > 0 && total[2] > 0, "{total:?}");

    let metrics = json(&small, "metrics/session_metrics.json");
    for session in metrics["sessions"].as_array().expect("a list") {
        let expected = by_session[&session["session_id"].as_u64().expect("an id")];
        let sums = CLASSES.map(|class| session["cache"][class].as_u64().expect("a count"));
        assert_eq!(sums, expected, "{session}");
    }
    let table = std::fs::read_to_string(small.join("metrics/cache_accounting.csv")).expect("a table");
    let all: Vec<String> = [36, total.iter().sum()]
        .into_iter()
        .chain(total)
        .map(|count| count.to_string())
        .collect();
    assert_eq!(table.lines().nth(1), Some(&*format!("run,,,,{}", all.join(","))));
    // The record has everything.
    let to = evaluated(&small, &folder.path().join("again"), &[], 0);
    let again = std::fs::read_to_string(to.join("metrics/cache_accounting.csv")).expect("a table");
    assert_eq!(again, table);
}

/// The built-in simulator's block size is known, and virtual time has the same prompts.
#[test]
fn virtual_time_and_real_time_have_the_same_classes() {
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), "small.yml", SMALL);
    scenario(folder.path(), "ample.yml", AMPLE);
    let text = |profile: &str| documents(&format!("api_base = \"sim://{profile}.yml\""));
    let small = requests(&simulated(folder.path(), "small.lua", &text("small"), &[]));
    let ample = requests(&simulated(folder.path(), "ample.lua", &text("ample"), &[]));
    let file = scenario(folder.path(), "real.lua", &text("small"));
    let output_dir = folder.path().join("real");
    let output = veeksha(["run", &file, "--output_dir", path(&output_dir)]);
    assert_code(&output, 0);
    let printed = stdout(&output);
    assert!(printed.contains("Prompt tokens by cache state"), "{printed}");
    let real = requests(&latest(&output_dir));
    let mut evicted = 0;
    for (id, row) in &small {
        let cached = |row: &Value| row["usage_cached_tokens"].as_u64().expect("a count");
        let difference = cached(&ample[id]) - cached(row);
        evicted += difference;
        let prompt = row["usage_prompt_tokens"].as_u64().expect("a count");
        let new = prompt - cached(&ample[id]);
        assert_eq!(classes(row), [cached(row), difference, 0, 0, new], "{id}");
        assert_eq!(classes(&real[id]), classes(row), "{id}");
    }
    assert!(evicted > 0);
}

/// The blocks of the simulator have 16 tokens. The system prompt has ten of them, the users' texts
/// four each.
const AGENT: &str = r#"
local instructions, task, detail, salt = synthetic(160), synthetic(64), synthetic(64), synthetic(16)
local output = { tokens = 8, exact = true }
local function agent(session)
  local first = session:request { system = instructions, user = task, output = output }
  session:request { system = { salt, instructions }, user = task, output = output }
  session:request { history = first, user = detail, output = output }
  local sub = session:spawn(function(sub)
    sub:request { system = instructions, user = detail, output = output }
  end)
  sub:join()
end
return {
  session_generator = { type = "lua", agent = agent },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 1 },
}
"#;

#[test]
fn agents_have_classes_by_edge() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "agent.lua", AGENT, &[]);
    let rows = requests(&run);
    let of = |turn: u32| classes(&rows[&format!("0/{}", turn + 1)]);
    assert_eq!(of(0), [0, 0, 0, 0, 224]);
    // Behind the salt, all text is known.
    assert_eq!(of(1), [0, 0, 0, 224, 16]);
    // 224 tokens of the conversation are cached, but not its answer: it was generated, and the
    // simulator keeps prompts only.
    assert_eq!(of(2), [224, 0, 0, 0, 72]);
    // The detail was computed behind the conversation.
    assert_eq!(of(3), [160, 0, 0, 64, 0]);
    let table = std::fs::read_to_string(run.join("metrics/cache_accounting.csv")).expect("a table");
    let expected = "\
scope,edge,from,to,requests,prompt_tokens,reused,evicted,rerouted,changed,new
run,,,,4,984,384,0,0,288,312
subagent,,,1,1,224,160,0,0,64,0
subagent,,,main,3,760,224,0,0,224,312
edge,start,,main,1,224,0,0,0,0,224
edge,history,main,main,1,296,224,0,0,0,72
edge,no_history,main,1,1,224,160,0,0,64,0
edge,no_history,main,main,1,240,0,0,0,224,16
";
    assert_eq!(table, expected);
}

/// A prompt of 176 tokens and its continuation by 40, for each of two clients in turn.
fn two_clients(clients: &str) -> String {
    format!(
        r#"
local function prompt(tokens)
  local ids = {{}}
  for id = 1, tokens do
    ids[id] = id
  end
  return token_ids(ids)
end
local output = {{ tokens = 4, exact = true }}
local function sessions()
  return {{ requests = {{
    {{ user = prompt(176), output = output, client = "a" }},
    {{ user = prompt(176), output = output, client = "b", after = 1 }},
    {{ user = prompt(216), output = output, client = "a", after = 2 }},
    {{ user = prompt(216), output = output, client = "b", after = 3 }},
  }} }}
end
return {{
  session_generator = {{ type = "lua", sessions = sessions }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  {clients}
  runtime = {{ max_sessions = 1, benchmark_timeout = 120 }},
}}
"#
    )
}

/// The cache of `a` keeps blocks of 16 tokens, that of `b` blocks of 32: of 176 tokens, eleven
/// blocks or five. Neither has anything of the other, so nothing is routed elsewhere, and the
/// incomplete block of `b` could not be cached, so nothing is evicted.
#[test]
fn each_client_has_its_own_caches() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = |blocks: u32| format!("model: m\nblock_size: {blocks}\n");
    let files = [16, 32].map(|blocks| scenario(folder.path(), &format!("p{blocks}.yml"), &profile(blocks)));
    let client = |base: &str, more: &str| {
        format!(r#"{{ type = "openai_completions", model = "m", api_base = "{base}", {more} }}"#)
    };
    let simulators = format!(
        "client = {0}, clients = {{ a = {0}, b = {1} }},",
        client("sim://p16.yml", ""),
        client("sim://p32.yml", "")
    );
    let virtual_time = simulated(folder.path(), "virtual.lua", &two_clients(&simulators), &[]);

    let sims = files.map(|file| Sim::start(&["--profile", &file]));
    let keys = |blocks: u32| format!("prefix_cache = {{ block_tokens = {blocks}, keeps_answers = false }}");
    let servers = format!(
        "client = {}, clients = {{ a = {}, b = {} }},",
        client(&sims[0].api_base, ""),
        client(&sims[0].api_base, &keys(16)),
        client(&sims[1].api_base, &keys(32))
    );
    let file = scenario(folder.path(), "real.lua", &two_clients(&servers));
    let output_dir = folder.path().join("real");
    assert_code(&veeksha(["run", &file, "--output_dir", path(&output_dir)]), 0);
    sims.into_iter().for_each(Sim::stop);

    for run in [virtual_time, latest(&output_dir)] {
        let rows = requests(&run);
        let of = |node: u32| classes(&rows[&format!("0/{node}")]);
        assert_eq!(of(1), [0, 0, 0, 0, 176]);
        assert_eq!(of(2), [0, 0, 0, 0, 176]);
        assert_eq!(of(3), [176, 0, 0, 0, 40]);
        assert_eq!(of(4), [160, 0, 0, 0, 56]);
    }
}

/// A server that reports no cached tokens: nothing is classified, and nothing is 0.
#[test]
fn unreported_tokens_have_no_class() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = documents(r#"api_base = "sim://default", type = "tgi_generate_stream""#)
        .replace(r#"type = "openai_completions", model = "m", "#, "")
        .replace("token_ids(ids)", "synthetic(#ids)");
    let file = scenario(folder.path(), "s.lua", &text);
    let output_dir = folder.path().join("out");
    assert_code(&veeksha(["run", &file, "--output_dir", path(&output_dir)]), 0);
    let run = latest(&output_dir);
    for row in requests(&run).values() {
        assert!(row["usage_cached_tokens"].is_null(), "{row}");
        for class in CLASSES {
            assert!(row[format!("cache_{class}_tokens")].is_null(), "{row}");
        }
    }
    assert!(!run.join("metrics/cache_accounting.csv").exists());
}
