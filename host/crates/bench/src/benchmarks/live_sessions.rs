//! A1: a hundred thousand sessions in their think time, and a thousand streams.

use serde_json::{Value, json};

use super::bench_result::BenchResult;
use crate::child::Serving;
use crate::error::BenchError;
use crate::options::{BenchOptions, Benchmark};
use crate::program::{ProgramRun, ScenarioRuntime, ScenarioTraffic, run_program, scenario};
use crate::report::Measurement;
use crate::server::{LogMode, ResponsePlan};

const SESSIONS: u64 = 100_000;
/// Arrivals per second. With answers of half a second, a thousand of them are in flight.
const RATE: f64 = 2_000.0;
const TOKENS: u32 = 25;
/// Microseconds until the first token, and between tokens.
const APART: u64 = 20_000;
/// Seconds until the last arrival, with a reserve.
const SECONDS: u64 = 55;
/// The lateness is that of the last arrivals, when nearly all sessions are live.
const LAST: usize = 10_000;

pub(super) fn take(options: &BenchOptions) -> BenchResult {
    let live = run(options, 2)?;
    let alone = run(options, 1)?;
    let mebibytes = |ran: &ProgramRun| ran.peak_resident.map(|bytes| bytes as f64 / f64::from(1 << 20));
    let memory = "peak memory of a run, 100,000 live sessions";
    let lateness = |ran: &ProgramRun| p99_lateness(ran).map(|seconds| seconds * 1e6);
    let late = "dispatch lateness p99 at 100,000 live sessions";
    Ok(vec![
        match mebibytes(&live) {
            Some(here) => Measurement::of(Benchmark::A1, memory, "MiB", here)
                .baseline(mebibytes(&alone))
                .at_most(1024.0)
                .note(format!(
                    "all files written; {} sessions begun, about 1,000 streams at a time; baseline: the same \
                     arrivals, as sessions of one request",
                    live.files.requests.len()
                )),
            None => Measurement::absent(Benchmark::A1, memory, "the kernel does not report it"),
        },
        match lateness(&live) {
            Some(micros) => Measurement::of(Benchmark::A1, late, "us", micros)
                .baseline(lateness(&alone))
                .note("load of other programs on the machine shows here first"),
            None => Measurement::absent(Benchmark::A1, late, "too few requests were sent"),
        },
    ])
}

/// Runs sessions of this number of requests. Only the first one of each is due before the end of
/// the run.
fn run(options: &BenchOptions, requests: u32) -> Result<ProgramRun, BenchError> {
    let plan = ResponsePlan {
        keep: LogMode::Nothing,
        ..ResponsePlan::paced(APART / 1_000, APART / 1_000, TOKENS)
    };
    let serving = Serving::start(&options.exe, None, plan)?;
    let mut scenario = scenario(
        serving.address,
        SESSIONS,
        TOKENS,
        ScenarioTraffic::Poisson(RATE),
        ScenarioRuntime::default(),
    );
    scenario["session_generator"]["session_graph"] = thinking(requests);
    scenario["runtime"]["benchmark_timeout"] = json!(SECONDS);
    run_program(&options.program, &scenario)
}

fn thinking(requests: u32) -> Value {
    json!({
        "type": "linear",
        "num_request_generator": { "type": "fixed", "value": requests },
        "request_wait_generator": { "type": "fixed", "interval": 10 * SECONDS },
    })
}

/// Returns the 99th percentile of dispatched − ready over the last requests, in seconds.
fn p99_lateness(ran: &ProgramRun) -> Option<f64> {
    let mut requests: Vec<_> = ran.files.requests.iter().collect();
    requests.sort_by(|one, other| one.scheduler_ready_at.total_cmp(&other.scheduler_ready_at));
    let last = requests.len().checked_sub(LAST)?;
    let mut late: Vec<f64> = requests
        .iter()
        .skip(last)
        .map(|request| request.scheduler_dispatched_at - request.scheduler_ready_at)
        .collect();
    late.sort_by(f64::total_cmp);
    late.get(LAST * 99 / 100).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{RequestLine, RunFiles};

    #[test]
    fn lateness_is_that_of_the_last_requests() {
        let line = |index: u32| RequestLine {
            request_id: format!("{index}/0"),
            success: true,
            scheduler_ready_at: f64::from(index),
            // The first ones are 9 s late; of the others, every 50th is 1 s late.
            scheduler_dispatched_at: f64::from(index)
                + match index {
                    0..500 => 9.0,
                    _ if index.is_multiple_of(50) => 1.0,
                    _ => 0.25,
                },
            ttfc: None,
        };
        let ran = |count: u32| ProgramRun {
            spawned_at: 0,
            cpu: None,
            peak_resident: None,
            reported_invalid: false,
            files: RunFiles {
                epoch: 0.0,
                requests: (0..count).rev().map(line).collect(),
            },
        };
        assert_eq!(p99_lateness(&ran(10_500)), Some(1.0));
        assert_eq!(p99_lateness(&ran(9_999)), None);
    }
}
