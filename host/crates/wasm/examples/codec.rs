//! Measures the events per second of an endpoint codec on one core:
//! `cargo run --release -p veeksha-wasm --example codec`.
//!
//! Times `plugins/dist/ollama.wasm` on the lines of a streamed chat: joining the events, crossing
//! into the component, the plugin's JSON parser, lifting, and the checks of its result. Then
//! measures the memory of its instances, of which there is one per thread that reads answers
//! concurrently.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use veeksha_wasm::{EngineOptions, Grants, NoLog, PluginEngine};

/// Duration of each measurement.
const SPAN: Duration = Duration::from_secs(1);
/// Number of instances in the memory measurement.
const INSTANCES: usize = 64;
/// A line in Ollama's format.
const LINE: &[u8] = br#"{"model":"llama3.2","created_at":"2025-10-26T17:21:21.196249Z","message":{"role":"assistant","content":" token"},"done":false}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plugins/dist/ollama.wasm");
    let bytes = std::fs::read(path)?;
    let plugin = PluginEngine::new(EngineOptions::default())?.load("ollama", &bytes)?;
    let open = || plugin.codec("{}".into(), Grants::new(42, Arc::new(NoLog)));
    let begun = now();
    let codec = open()?.codec;
    println!(
        "open                {:>10.1} us",
        begun.elapsed().as_secs_f64() * 1e6
    );
    for events in [1, 8, 64, 256, 4096] {
        let answer = vec![LINE; events];
        let each = per_event(events, || {
            black_box(codec.decode(&answer)?);
            Ok(())
        })?;
        println!(
            "{events:>5} at once       {:>10.0} ns per event of {} bytes",
            each * 1e9,
            LINE.len()
        );
    }
    let before = resident_bytes()?;
    let codecs = (0..INSTANCES)
        .map(|_| {
            let codec = open()?.codec;
            codec.decode(&[LINE; 64])?;
            Ok(codec)
        })
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let grown = resident_bytes()?.saturating_sub(before);
    println!(
        "an instance         {:>10} KiB resident",
        grown / codecs.len() as u64 / 1024
    );
    Ok(())
}

/// Returns the seconds per event of calls with `events` each.
fn per_event(
    events: usize,
    mut call: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    for _ in 0..10 {
        call()?;
    }
    let begun = now();
    let mut calls = 0u32;
    while begun.elapsed() < SPAN {
        call()?;
        calls += 1;
    }
    Ok(begun.elapsed().as_secs_f64() / f64::from(calls) / events as f64)
}

/// Returns the resident memory of this process, in bytes.
fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibi = line.and_then(|line| line.split_whitespace().next());
    Ok(kibi.ok_or("no VmRSS in /proc/self/status")?.parse::<u64>()? * 1024)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads time")]
fn now() -> Instant {
    Instant::now()
}
