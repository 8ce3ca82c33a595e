//! P9, P10 and P11: what a whole run takes, from the start of its process to its last file.

use super::Rows;
use crate::child::Serving;
use crate::program::{Ran, Runtime, Traffic, run_program, scenario};
use crate::report::Row;
use crate::server::{Counts, Keep, Plan, Writes};
use crate::stats::difference;
use crate::{BenchError, BenchOptions, Figure};

/// P9: from right before the process is made until its first request has arrived.
pub(super) fn start(options: &BenchOptions) -> Rows {
    let mut serving = Serving::start(&options.exe, None, Plan::paced(0, 0, 1))?;
    let scenario = scenario(serving.address, 1, 1, Traffic::Concurrent(1), Runtime::default());
    let mut took = Vec::new();
    // The first run puts the compiled plugins into the cache.
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
        Row::of_repeats(
            Figure::P9,
            "start of the process to the first request",
            "ms",
            &took,
        )
        .at_most(50.0)
        .note("compiled plugins from the cache"),
    ])
}

/// P10: memory of a run that keeps 256 streams busy.
pub(super) fn memory(options: &BenchOptions) -> Rows {
    const STREAMS: u32 = 256;
    const TOKENS: u32 = 64;
    let plan = Plan {
        keep: Keep::Nothing,
        ..Plan::paced(200, 20, TOKENS)
    };
    let mut serving = Serving::start(&options.exe, None, plan)?;
    let requests = 2 * u64::from(STREAMS);
    let traffic = Traffic::Concurrent(STREAMS);
    let ran = run_program(
        &options.program,
        &scenario(serving.address, requests, TOKENS, traffic, Runtime::default()),
    )?;
    succeeded(&ran)?;
    let Counts { peak_in_flight, .. } = serving.counts()?;
    let what = "peak memory of a run, 256 streams";
    Ok(vec![match ran.peak_resident {
        Some(bytes) => Row::of(Figure::P10, what, "MiB", bytes as f64 / f64::from(1 << 20))
            .at_most(64.0)
            .note(format!(
                "{peak_in_flight} streams at the same time at most; looked at each 10 ms"
            )),
        None => Row::absent(Figure::P10, what, "the kernel does not tell"),
    }])
}

/// P11: processor time of a run of 1,500 requests of 64 tokens, all files written.
pub(super) fn cost(options: &BenchOptions) -> Rows {
    const TOKENS: u32 = 64;
    const REQUESTS: u64 = 1_500;
    let serving = Serving::start(&options.exe, None, Plan::busy(TOKENS, Writes::EachToken))?;
    let scenario = scenario(
        serving.address,
        REQUESTS,
        TOKENS,
        Traffic::Concurrent(64),
        Runtime::default(),
    );
    let mut seconds = Vec::new();
    for _ in 0..options.repeats {
        let ran = run_program(&options.program, &scenario)?;
        succeeded(&ran)?;
        seconds.extend(ran.cpu.map(|cpu| cpu as f64 / 1e9));
    }
    Ok(vec![
        Row::of_repeats(
            Figure::P11,
            "CPU of a run, 1,500 requests of 64 tokens",
            "s",
            &seconds,
        )
        .at_most(0.8)
        .note("all threads, from the start of the process to its end, one write per token"),
    ])
}

fn succeeded(ran: &Ran) -> Result<(), BenchError> {
    let requests = &ran.files.requests;
    let failed = requests.iter().filter(|request| !request.success).count();
    if failed == 0 && !requests.is_empty() {
        return Ok(());
    }
    Err(BenchError::Requests {
        failed: failed as u64,
        all: requests.len() as u64,
        first: requests.iter().find(|request| !request.success).map_or_else(
            || "there is no request".to_owned(),
            |request| request.request_id.clone(),
        ),
    })
}
