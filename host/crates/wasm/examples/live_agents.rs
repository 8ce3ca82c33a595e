//! Measures many live agents of a component in one process:
//! `cargo run --release -p veeksha-wasm --example live_agents -- COMPONENT CONFIG [AGENTS]`.
//!
//! Prints the time of a cold start (load from the cache of compiled components, open, first
//! session), then starts the agents, answers each of them a few times while all are alive, and
//! prints memory and speed. Without arguments it measures the fixture `sdk-agent` of
//! `tests/guests`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use veeksha_model::{NodeId, Response, SessionId};
use veeksha_ports::{AgentSource, Workload};
use veeksha_wasm::{EngineOptions, Grants, NoLog, PluginEngine};

/// Answers to each agent while all are alive.
const ROUNDS: u32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/guests/dist/sdk-agent.wasm");
    let path = arguments.next().map_or(fixture, PathBuf::from);
    let config = arguments.next().unwrap_or_else(|| r#"{"steps": 8}"#.to_owned());
    let agents: u64 = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let bytes = fs::read(&path)?;
    let cache = std::env::temp_dir().join("veeksha-live-agents");
    cold_start(&cache, &bytes, &config)?; // Fills the cache.
    let mut source = cold_start(&cache, &bytes, &config)?;
    let before = private();
    let begun = now();
    let mut open = Vec::new();
    for session in (1..=agents).map(SessionId) {
        let step = source.start(session)?;
        open.push((session, step.added.nodes().next()));
    }
    report("starts", agents, begun);
    let response = Response {
        text: "an answer of a few words".into(),
        finish_reason: "length".into(),
        ..Response::default()
    };
    let begun = now();
    let mut steps = 0;
    for _ in 0..ROUNDS {
        for (session, node) in &mut open {
            let Some(awaited) = *node else { continue };
            *node = next_node(source.as_mut(), *session, awaited, &response)?;
            steps += 1;
        }
    }
    report("steps", steps, begun);
    let grown = private().saturating_sub(before);
    println!(
        "memory         {:.0} MiB more with {agents} live agents, {:.1} KiB each; resident {:.0} MiB",
        mebibytes(grown),
        grown as f64 / 1024.0 / agents as f64,
        mebibytes(status("VmRSS:"))
    );
    for (session, _) in open {
        source.finish(session);
    }
    println!("at the end     {:.0} MiB", mebibytes(private()));
    Ok(())
}

/// Loads the component and starts its first session.
fn cold_start(cache: &Path, bytes: &[u8], config: &str) -> Result<Box<dyn AgentSource>, Box<dyn Error>> {
    let engine = PluginEngine::new(EngineOptions {
        cache_dir: Some(cache.to_owned()),
        ..EngineOptions::default()
    })?;
    let begun = now();
    let plugin = engine.load("agent", bytes)?;
    let loaded = begun.elapsed();
    let factory = plugin.workload(config.to_owned(), Grants::new(42, Arc::new(NoLog)))?;
    let Workload::Reactive(mut agents) = factory.open()? else {
        return Err("not an agent".into());
    };
    let opened = begun.elapsed();
    agents.start(SessionId(0))?;
    let started = begun.elapsed();
    agents.finish(SessionId(0));
    println!(
        "cold start     {:.1} ms (loaded after {:.1} ms, opened after {:.1} ms)",
        started.as_secs_f64() * 1e3,
        loaded.as_secs_f64() * 1e3,
        opened.as_secs_f64() * 1e3
    );
    Ok(agents)
}

/// Passes an answer, and returns a node that the step added; requests only are answered.
fn next_node(
    source: &mut dyn AgentSource,
    session: SessionId,
    node: NodeId,
    response: &Response,
) -> Result<Option<NodeId>, Box<dyn Error>> {
    let step = source.answered(session, node, response, 0)?;
    Ok(step.added.requests.first().map(|request| request.node))
}

fn report(what: &str, count: u64, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{what:<14} {:.0} per second, {:.1} us each",
        count as f64 / seconds,
        seconds * 1e6 / count as f64
    );
}

/// Returns a value of `/proc/self/status` in bytes; 0 where there is none.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// Returns the memory that this process does not share. Resident memory counts the initial memory
/// of a component once for each instance, although all of them share its unchanged pages.
fn private() -> u64 {
    status("RssAnon:")
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads time")]
fn now() -> Instant {
    Instant::now()
}
