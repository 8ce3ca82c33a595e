//! Measures the cost of an agent's step in a component:
//! `cargo run --release -p veeksha-wasm --example agent_steps`.
//!
//! Plays sessions of the fixture `sdk-agent` of `tests/guests`: an agent in steps, and an
//! asynchronous one with two subagents. A step is an answer that is passed to the component, and
//! the host's conversion and checks of what it returns.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use veeksha_model::{Response, SessionId};
use veeksha_ports::Workload;
use veeksha_wasm::{EngineOptions, Grants, NoLog, PluginEngine};

const SESSIONS: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/guests/dist/sdk-agent.wasm");
    let engine = PluginEngine::new(EngineOptions::default())?;
    let plugin = engine.load("sdk-agent", &std::fs::read(path)?)?;
    for (name, config) in [
        ("in steps", r#"{"steps": 4}"#),
        ("with subagents", r#"{"steps": 2, "team": true}"#),
    ] {
        let factory = plugin.workload(config.to_owned(), Grants::new(42, Arc::new(NoLog)))?;
        let Workload::Reactive(mut agents) = factory.open()? else {
            return Err("not an agent".into());
        };
        let response = Response {
            text: "an answer of a few words".into(),
            finish_reason: "stop".into(),
            ..Response::default()
        };
        let begun = now();
        let mut steps = 0u64;
        for session in (0..SESSIONS).map(SessionId) {
            let mut step = agents.start(session)?;
            let mut open: Vec<_> = step.added.nodes().collect();
            while let Some(node) = open.pop().filter(|_| !step.done) {
                step = agents.answered(session, node, &response, 0)?;
                steps += 1;
                open.extend(step.added.nodes());
            }
            agents.finish(session);
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "{name:<16} {:>8.0} sessions/s, {:.2} us per step (with the start of the session)",
            SESSIONS as f64 / seconds,
            seconds * 1e6 / (steps + SESSIONS) as f64
        );
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads time")]
fn now() -> Instant {
    Instant::now()
}
