//! E1 and E2: the cost of evaluating a record, and of interim results during a run.

use std::path::Path;

use veeksha_events::{Event, RequestRecord, RunInfo, SessionEnd};
use veeksha_model::{Chunk, ChunkKind, Nanos, NodeId, RequestId, SessionId, Usage};
use veeksha_record::RunRecorder;
use veeksha_stats::RandomStream;

use super::bench_result::BenchResult;
use crate::child::Serving;
use crate::error::BenchError;
use crate::options::{BenchOptions, Benchmark};
use crate::program::{
    RequestLine, ScenarioRuntime, ScenarioTraffic, evaluate_record, run_program_with, scenario,
};
use crate::report::Measurement;
use crate::server::ResponsePlan;

/// Requests of E1's record.
const REQUESTS: u64 = 1_000_000;

/// Chunks per request.
const CHUNKS: u64 = 128;

/// E1: all metrics, files and plots of a record of a million requests.
pub(super) fn record(options: &BenchOptions) -> BenchResult {
    let folder = tempfile::tempdir().map_err(BenchError::io("the folder of a record"))?;
    let run = folder.path().join("run");
    write_record(&run)?;
    let took = evaluate_record(&options.program, &run, &folder.path().join("evaluated"))?;
    let seconds = |nanos: Nanos| nanos as f64 / 1e9;
    let mut rows = Vec::new();
    rows.extend(took.cpu.map(|cpu| {
        Measurement::of(
            Benchmark::E1,
            "CPU of evaluating 1,000,000 requests of 128 chunks",
            "s",
            seconds(cpu),
        )
        .at_most(20.0)
        .note(format!(
            "all metrics, files, plots and the page; {:.1} s on the clock",
            seconds(took.wall)
        ))
    }));
    rows.extend(took.peak_resident.map(|bytes| {
        Measurement::of(
            Benchmark::E1,
            "peak memory of it",
            "MiB",
            bytes as f64 / f64::from(1 << 20),
        )
        .at_most(1024.0)
    }));
    Ok(rows)
}

fn write_record(run: &Path) -> Result<(), BenchError> {
    let failed = |error: veeksha_record::RecordError| BenchError::Record(error.to_string());
    let mut recorder = RunRecorder::create(run, "bench").map_err(failed)?;
    let started = Event::RunStarted(RunInfo {
        epoch_wall_nanos: 1,
        epoch_monotonic_nanos: 1,
        run_id: None,
    });
    recorder.push(&started, 0).map_err(failed)?;
    let mut end = 0;
    for session in 0..REQUESTS {
        for event in events(session) {
            if let Event::Finished(record) = &event {
                end = end.max(record.completed_at);
            }
            recorder.push(&event, 0).map_err(failed)?;
        }
    }
    recorder.push(&Event::RunEnded { at: end }, end).map_err(failed)?;
    recorder.finish().map_err(failed)
}

/// Returns a session of one request: 200 sessions start per second, and one-token chunks arrive
/// every 15 to 25 milliseconds.
fn events(session: u64) -> [Event; 4] {
    let mut draws = RandomStream::new(1, session, "gaps").draws();
    let intended = session * 5_000_000;
    let dispatched_at = intended + u64::from(draws.below(50_000));
    let mut at = dispatched_at + 100_000_000 + u64::from(draws.below(400_000_000));
    let chunks: Vec<Chunk> = (0..CHUNKS)
        .map(|_| {
            at += 15_000_000 + u64::from(draws.below(10_000_000));
            Chunk {
                at,
                lag: draws.below(40_000),
                bytes: 200 + draws.below(20),
                kind: ChunkKind::Content,
                merged: false,
            }
        })
        .collect();
    let id = RequestId {
        session: SessionId(session),
        node: NodeId(0),
    };
    let total_prompt_tokens = 500 + draws.below(1000);
    let record = RequestRecord {
        intended,
        dispatched_at,
        picked_up_at: Some(dispatched_at + 5_000),
        sent_at: Some(dispatched_at + 30_000),
        first_byte_at: Some(dispatched_at + 90_000_000),
        completed_at: at + 50_000,
        processed_at: at + 90_000,
        chunks,
        target_prompt_tokens: total_prompt_tokens,
        prompt_tokens: total_prompt_tokens,
        total_prompt_tokens,
        target_output_tokens: Some(CHUNKS as u32),
        output_tokens: CHUNKS as u32,
        usage: Some(Usage {
            prompt: total_prompt_tokens + 12,
            completion: CHUNKS as u32,
            cached: Some(0),
            reasoning: None,
        }),
        ..RequestRecord::answered(id)
    };
    [
        Event::SessionStarted {
            session: id.session,
            at: intended,
            requests: 1,
        },
        Event::Dispatched {
            request: id,
            intended,
            at: dispatched_at,
        },
        Event::SessionFinished {
            session: id.session,
            at: record.completed_at,
            end: SessionEnd::Completed,
            requests: 1,
        },
        Event::Finished(Box::new(record)),
    ]
}

/// E2: dispatch lateness with the live page and interim results, and without.
pub(super) fn live(options: &BenchOptions) -> BenchResult {
    const TOKENS: u32 = 16;
    // 1 % of the requests of a run decide its P99, and any other load on the machine moves it. So
    // the two variants take turns.
    const TURNS: u32 = 3;
    let ways = [
        ("dispatch lateness P99, no live output", &[][..]),
        (
            "dispatch lateness P99, page served and interim results printed",
            &["--live", "127.0.0.1:0", "--stream-metrics", "0.5"][..],
        ),
    ];
    let mut late = [const { Vec::new() }; 2];
    for _ in 0..TURNS.min(options.repeats) {
        for ((_, more), late) in ways.iter().zip(&mut late) {
            let serving = Serving::start(&options.exe, None, ResponsePlan::paced(20, 5, TOKENS))?;
            let scenario = scenario(
                serving.address,
                3_000,
                TOKENS,
                ScenarioTraffic::Poisson(300.0),
                ScenarioRuntime::default(),
            );
            let ran = run_program_with(&options.program, &scenario, more)?;
            late.extend(lateness_p99(&ran.files.requests));
        }
    }
    let rows = ways.iter().zip(&late).map(|((what, _), late)| {
        Measurement::of_repeats(Benchmark::E2, *what, "µs", late)
            .note("3,000 requests at 300/s, in turn with the other; the median of the runs")
    });
    Ok(rows.collect())
}

/// Returns the P99 in microseconds.
fn lateness_p99(requests: &[RequestLine]) -> Option<f64> {
    let late = requests
        .iter()
        .map(|request| (request.scheduler_dispatched_at - request.scheduler_ready_at) * 1e6);
    let mut late: Vec<f64> = late.collect();
    late.sort_unstable_by(f64::total_cmp);
    veeksha_stats::percentile(&late, 0.99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_in_microseconds() {
        let request = |late: f64| RequestLine {
            request_id: "0/0".to_owned(),
            success: true,
            scheduler_ready_at: 1.0,
            scheduler_dispatched_at: 1.0 + late,
            ttfc: None,
        };
        let requests: Vec<RequestLine> = (0..=100).map(|n| request(f64::from(n) * 1e-6)).collect();
        let p99 = lateness_p99(&requests).expect("requests");
        assert!((p99 - 99.0).abs() < 0.01, "{p99}");
        assert_eq!(lateness_p99(&[]), None);
    }
}
