//! Measures the cost of one record of 64 chunks after its request: adding it to the aggregates,
//! computing its latencies, writing its line.
//!
//! `cargo run --release -p veeksha-metrics --example record_speed`
#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::hint::black_box;

use veeksha_clock::RunClock;
use veeksha_events::{Event, RequestRecord, Status, request_line};
use veeksha_metrics::{RunEvaluator, latencies};
use veeksha_model::{Chunk, ChunkKind, NodeId, RequestId, SessionId};

const RECORDS: u64 = 20_000;
const CHUNKS: u64 = 64;

fn main() {
    let records: Vec<Event> = (0..RECORDS)
        .map(|session| Event::Finished(Box::new(record(session))))
        .collect();
    let clock = RunClock::starting_now();
    let told = |what: &str, from: u64| {
        let each = (clock.now() - from) / RECORDS;
        println!("{what:<28} {each:>7} ns a record {:>6} ns a chunk", each / CHUNKS);
    };

    let mut evaluator = RunEvaluator::new(Vec::new());
    let from = clock.now();
    records.iter().for_each(|event| evaluator.on(event));
    told("metrics", from);

    let from = clock.now();
    let evaluation = evaluator.finish();
    told("metrics, at the end", from);
    black_box(evaluation);

    let each = || {
        records.iter().filter_map(|event| match event {
            Event::Finished(record) => Some(record),
            _ => None,
        })
    };
    let from = clock.now();
    each().for_each(|record| drop(black_box(latencies(record))));
    told("latencies", from);

    let mut line = Vec::new();
    let from = clock.now();
    for record in each() {
        line.clear();
        // No record makes this fail; a truncated line would show in the measured time.
        let _ = request_line(&mut line, record);
        black_box(&line);
    }
    told("latencies and line", from);
    println!("{:<28} {:>7} bytes a record", "the line", line.len());
}

/// Returns an answer of 64 chunks, 20 ms apart, each with an odd number of nanoseconds.
fn record(session: u64) -> RequestRecord {
    let dispatched_at = session * 1_000_003;
    let chunk = |number: u64| Chunk {
        at: dispatched_at
            + 150_000_321
            + number * 20_000_000
            + (session * 7_919 + number * 104_729) % 1_000_000,
        lag: 20_000 + ((session + number) * 6_151 % 30_000) as u32,
        bytes: 230,
        kind: ChunkKind::Content,
        merged: false,
    };
    let chunks: Vec<Chunk> = (0..CHUNKS).map(chunk).collect();
    let completed_at = chunks.last().map_or(dispatched_at, |last| last.at);
    RequestRecord {
        intended: dispatched_at,
        dispatched_at,
        picked_up_at: Some(dispatched_at + 9_001),
        sent_at: Some(dispatched_at + 40_007),
        first_byte_at: Some(dispatched_at + 150_000_000),
        completed_at,
        processed_at: completed_at + 50_000,
        chunks,
        status: Status::Ok {
            finish_reason: "length".into(),
        },
        target_prompt_tokens: 512,
        prompt_tokens: 512,
        total_prompt_tokens: 512,
        target_output_tokens: Some(64),
        output_tokens: 64,
        ..RequestRecord::answered(RequestId {
            session: SessionId(session),
            node: NodeId(0),
        })
    }
}
