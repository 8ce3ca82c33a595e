//! Measures the sessions per second of a component on one core:
//! `cargo run --release -p veeksha-wasm --example throughput [COMPONENT]`.
//!
//! Times the fixture `planned` of `tests/guests`, whose sessions have messages of two segments,
//! think time and labels, and the host's work on them: lifting, conversion and the checks of the
//! graph. Another component with the same sessions may be named.

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use veeksha_model::{Edge, Message, NodeId, OutputSpec, Request, Role, Seed, Segment, Session};
use veeksha_ports::Workload;
use veeksha_stats::RandomStream;
use veeksha_wasm::{EngineOptions, Grants, NoLog, PluginEngine};

/// Duration of each measurement.
const SPAN: Duration = Duration::from_secs(1);
/// Sessions per call, equal to a plugin thread's batch.
const BATCH: u32 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/guests/dist/planned.wasm");
    let named = std::env::args_os().nth(1).map(PathBuf::from);
    let bytes = std::fs::read(named.unwrap_or(fixture))?;
    let begun = now();
    let engine = PluginEngine::new(EngineOptions::default())?;
    println!("engine                  {:>10.3} ms", millis(begun.elapsed()));
    let begun = now();
    let plugin = engine.load("planned", &bytes)?;
    println!(
        "compile {:>4} KiB        {:>10.3} ms",
        bytes.len() >> 10,
        millis(begun.elapsed())
    );
    let cache = std::env::temp_dir().join(format!("veeksha-throughput-{}", std::process::id()));
    for _ in 0..2 {
        let engine = PluginEngine::new(EngineOptions {
            cache_dir: Some(cache.clone()),
            ..EngineOptions::default()
        })?;
        let begun = now();
        let plugin = engine.load("planned", &bytes)?;
        plugin.describe()?;
        let from = if plugin.compiled_from_cache() {
            "from the cache"
        } else {
            "into the cache"
        };
        println!("load {from}     {:>10.3} ms", millis(begun.elapsed()));
    }
    std::fs::remove_dir_all(cache)?;
    for turns in [1, 3, 100] {
        let grants = Grants::new(42, Arc::new(NoLog));
        let factory = plugin.workload(format!("{{\"turns\": {turns}}}"), grants)?;
        let begun = now();
        let Workload::Planned(mut source) = factory.open()? else {
            return Err("not planned".into());
        };
        println!(
            "open                    {:>10.3} us",
            millis(begun.elapsed()) * 1e3
        );
        let mut first = 0;
        let component = per_session(|| {
            let sessions = source.sessions(first, BATCH)?;
            first += u64::from(BATCH);
            black_box(sessions);
            Ok(())
        })?;
        let mut first = 0;
        let native = per_session(|| {
            black_box(
                (first..first + u64::from(BATCH))
                    .map(|index| session(index, turns))
                    .collect::<Vec<_>>(),
            );
            first += u64::from(BATCH);
            Ok(())
        })?;
        println!(
            "{turns:>3} turns: component    {:>10.3} us per session, {:>9.0} sessions/s; native {:>8.3} us; {:.1} times",
            component * 1e6,
            1.0 / component,
            native * 1e6,
            component / native
        );
    }
    Ok(())
}

/// Returns the seconds per session of calls that create [`BATCH`] each.
fn per_session(mut call: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    for _ in 0..10 {
        call()?;
    }
    // The shortest of many calls: other load of the machine only adds time.
    let begun = now();
    let mut least = Duration::MAX;
    while begun.elapsed() < SPAN {
        let called = now();
        call()?;
        least = least.min(called.elapsed());
    }
    Ok(least.as_secs_f64() / f64::from(BATCH))
}

/// Returns the session of the fixture, in the host's types.
fn session(index: u64, turns: u32) -> Session {
    let mut words = vec![0; 3 * turns as usize];
    RandomStream::new(42, index, "chains").fill(0, &mut words);
    let turn = |node: u32| {
        let [high, low, length] = words.as_chunks::<3>().0[node as usize];
        let before = node.checked_sub(1).map(NodeId);
        Request {
            node: NodeId(node),
            parents: before.into_iter().map(Edge::from).collect(),
            history_parent: before,
            wait_after_ready: before.map_or(0, |_| u64::from(length % 1000) * 1_000_000),
            messages: vec![Message {
                reasoning: None,
                tool_calls: Vec::new(),
                role: Role::User,
                content: vec![
                    Segment::Text(format!("turn {node} of session {index}: ")),
                    Segment::Synthetic {
                        seed: Seed { high, low },
                        tokens: 1 + length % 500,
                    },
                ],
                tool_call_id: None,
            }],
            output: OutputSpec {
                form: None,
                target_tokens: Some(1 + low % 200),
                exact: true,
            },
            labels: vec![("turn".into(), node.to_string())],
            ..Request::default()
        }
    };
    Session {
        requests: (0..turns).map(turn).collect(),
        labels: vec![("fixture".into(), "planned".into())],
        ..Session::default()
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads time")]
fn now() -> Instant {
    Instant::now()
}
