//! P9, P10 and P11: cost of a whole run, from the start of its process to its last file.

use super::bench_result::BenchResult;
use crate::child::Serving;
use crate::error::BenchError;
use crate::options::{BenchOptions, Benchmark};
use crate::program::{ProgramRun, ScenarioRuntime, ScenarioTraffic, run_program, scenario};
use crate::report::Measurement;
use crate::server::{LogMode, ResponsePlan, ServerCounters, WriteMode};
use crate::stats::difference;

/// P9: from just before the process is spawned until its first request has arrived.
pub(super) fn start(options: &BenchOptions) -> BenchResult {
    let mut serving = Serving::start(&options.exe, None, ResponsePlan::paced(0, 0, 1))?;
    let scenario = scenario(
        serving.address,
        1,
        1,
        ScenarioTraffic::Concurrent(1),
        ScenarioRuntime::default(),
    );
    let mut took = Vec::new();
    // The first run fills the cache of compiled plugins.
    for repeat in 0..=options.repeats {
        let ran = run_program(&options.program, &scenario)?;
        let log = serving.log()?;
        let arrived = log
            .iter()
            .map(|served| served.arrived)
            .min()
            .ok_or(BenchError::Empty("no request of the run is in the server's log"))?;
        if repeat > 0 {
            took.push(difference(arrived, ran.spawned_at) / 1e6);
        }
    }
    Ok(vec![
        Measurement::of_repeats(
            Benchmark::P9,
            "start of the process to the first request",
            "ms",
            &took,
        )
        .at_most(50.0)
        .note("with cached compiled plugins"),
    ])
}

/// P10: memory of a run with 256 busy streams.
pub(super) fn memory(options: &BenchOptions) -> BenchResult {
    const STREAMS: u32 = 256;
    const TOKENS: u32 = 64;
    let plan = ResponsePlan {
        keep: LogMode::Nothing,
        ..ResponsePlan::paced(200, 20, TOKENS)
    };
    let mut serving = Serving::start(&options.exe, None, plan)?;
    let requests = 2 * u64::from(STREAMS);
    let traffic = ScenarioTraffic::Concurrent(STREAMS);
    let ran = run_program(
        &options.program,
        &scenario(
            serving.address,
            requests,
            TOKENS,
            traffic,
            ScenarioRuntime::default(),
        ),
    )?;
    succeeded(&ran)?;
    let ServerCounters { peak_in_flight, .. } = serving.counts()?;
    let what = "peak memory of a run, 256 streams";
    Ok(vec![match ran.peak_resident {
        Some(bytes) => Measurement::of(Benchmark::P10, what, "MiB", bytes as f64 / f64::from(1 << 20))
            .at_most(64.0)
            .note(format!(
                "{peak_in_flight} concurrent streams at most; sampled every 10 ms"
            )),
        None => Measurement::absent(Benchmark::P10, what, "the kernel does not write_line"),
    }])
}

/// P11: processor time of a run of 1,500 requests of 64 tokens, all files included.
pub(super) fn cost(options: &BenchOptions) -> BenchResult {
    const TOKENS: u32 = 64;
    const REQUESTS: u64 = 1_500;
    let serving = Serving::start(
        &options.exe,
        None,
        ResponsePlan::busy(TOKENS, WriteMode::EachToken),
    )?;
    let scenario = scenario(
        serving.address,
        REQUESTS,
        TOKENS,
        ScenarioTraffic::Concurrent(64),
        ScenarioRuntime::default(),
    );
    let mut seconds = Vec::new();
    for _ in 0..options.repeats {
        let ran = run_program(&options.program, &scenario)?;
        succeeded(&ran)?;
        seconds.extend(ran.cpu.map(|cpu| cpu as f64 / 1e9));
    }
    Ok(vec![
        Measurement::of_repeats(
            Benchmark::P11,
            "CPU of a run, 1,500 requests of 64 tokens",
            "s",
            &seconds,
        )
        .at_most(0.8)
        .note("all threads, whole process, one write per token"),
    ])
}

fn succeeded(ran: &ProgramRun) -> Result<(), BenchError> {
    let requests = &ran.files.requests;
    let failed = requests.iter().filter(|request| !request.success).count();
    if failed == 0 && !requests.is_empty() {
        return Ok(());
    }
    Err(BenchError::Requests {
        failed: failed as u64,
        all: requests.len() as u64,
        first: requests.iter().find(|request| !request.success).map_or_else(
            || "the run has no requests".to_owned(),
            |request| request.request_id.clone(),
        ),
    })
}
