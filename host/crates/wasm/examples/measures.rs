//! Measures the processor time of a finished request in a metric plugin:
//! `cargo run --release -p veeksha-wasm --example measures`.
//!
//! Times `tests/guests/dist/sdk-measure.wasm`: creating a batch of records, crossing into the
//! component, the plugin's work on every token, and the checks of its samples. Each request with
//! tokens gives three samples.

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use veeksha_model::{Chunk, ChunkKind, NodeId, RequestId, RequestRecord, SessionId, Usage};
use veeksha_wasm::{EngineOptions, Grants, NoLog, PluginEngine};

/// Duration of each measurement.
const SPAN: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let path = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/guests/dist/sdk-measure.wasm"),
    };
    let plugin = PluginEngine::new(EngineOptions::default())?.load("metric", &std::fs::read(path)?)?;
    let factory = plugin.metric(r#"{"limit": 3}"#.into(), Grants::new(42, Arc::new(NoLog)))?;
    let begun = now();
    drop(factory.open()?);
    println!(
        "open                {:>10.1} us",
        (now() - begun).as_secs_f64() * 1e6
    );
    for chunks in [0, 32, 128] {
        for requests in [1, 64, 1024] {
            let records: Vec<RequestRecord> = (0..requests).map(|index| record(index, chunks)).collect();
            let batch: Vec<&RequestRecord> = records.iter().collect();
            let mut open = factory.open()?;
            let each = per_request(batch.len(), || {
                black_box(open.collector.observe(&batch)?);
                Ok(())
            })?;
            println!(
                "{requests:>5} at once, {chunks:>3} chunks {:>8.0} ns per request",
                each * 1e9
            );
        }
    }
    Ok(())
}

/// Returns a request with two labels, answered in `chunks` chunks of one token each.
fn record(index: u64, chunks: u64) -> RequestRecord {
    let chunk = |place: u64, kind| Chunk {
        at: 1_000_000 * (place + 1),
        lag: 0,
        bytes: 200,
        kind,
        merged: false,
    };
    let mut events = vec![chunk(0, ChunkKind::Role)];
    events.extend((1..=chunks).map(|place| chunk(place, ChunkKind::Content)));
    events.push(chunk(chunks + 1, ChunkKind::Finish));
    RequestRecord {
        session_requests: 2,
        parents: vec![NodeId(0).into()],
        history_parent: Some(NodeId(0)),
        intended: 100,
        dispatched_at: 200,
        picked_up_at: Some(300),
        sent_at: Some(400),
        first_byte_at: Some(500),
        completed_at: 1_000_000_000,
        processed_at: 1_000_000_100,
        chunks: events,
        target_prompt_tokens: 500,
        prompt_tokens: 500,
        total_prompt_tokens: 900,
        target_output_tokens: Some(128),
        output_tokens: u32::try_from(chunks).unwrap_or(u32::MAX),
        usage: Some(Usage {
            prompt: 900,
            completion: 128,
            cached: Some(400),
            reasoning: None,
        }),
        template_tokens: 12,
        ideal_cached_tokens: Some(400),
        body_digest: None,
        labels: vec![
            (
                "tier".into(),
                ["free", "silver", "gold"][index as usize % 3].into(),
            ),
            ("user".into(), (index % 1000).to_string()),
        ],
        ..RequestRecord::answered(RequestId {
            session: SessionId(index),
            node: NodeId(1),
        })
    }
}

/// Returns the seconds per request of calls with `requests` each.
fn per_request(
    requests: usize,
    mut call: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    for _ in 0..10 {
        call()?;
    }
    let begun = now();
    let mut calls = 0u32;
    while now() - begun < SPAN {
        call()?;
        calls += 1;
    }
    Ok((now() - begun).as_secs_f64() / f64::from(calls) / requests as f64)
}

/// Returns the processor time of this thread, which excludes other programs.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
