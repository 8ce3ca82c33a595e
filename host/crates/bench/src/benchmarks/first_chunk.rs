//! P6: the time to the first chunk as a run reports it, compared with the server's log.

use std::collections::BTreeMap;

use super::bench_result::BenchResult;
use crate::baseline::Baseline;
use crate::child::Serving;
use crate::error::BenchError;
use crate::load::Pace;
use crate::options::{BenchOptions, Benchmark};
use crate::program::{RequestLine, ScenarioRuntime, ScenarioTraffic, run_program, scenario};
use crate::report::Measurement;
use crate::server::{LogEntry, ResponsePlan};
use crate::stats::{Percentiles, difference};

const REQUESTS: u64 = 1_000;
const RATE: f64 = 100.0;
const TOKENS: u32 = 32;

/// Connections of the baseline client: about 18 are in use at the same time, more while it is
/// delayed.
const CONNECTIONS: u32 = 128;

pub(super) fn take(options: &BenchOptions) -> BenchResult {
    let mut serving = Serving::start(&options.exe, None, ResponsePlan::paced(20, 5, TOKENS))?;
    let scenario = scenario(
        serving.address,
        REQUESTS,
        TOKENS,
        ScenarioTraffic::Poisson(RATE),
        ScenarioRuntime::default(),
    );
    let ran = run_program(&options.program, &scenario)?;
    let errors = errors(&ran.files.requests, &serving.log()?)?;
    let baseline = baseline(&mut serving)?;
    let mut note = format!(
        "reported minus the server's first write after the arrival, of {} requests of a run; the baseline sends from the waiting thread and uses its read times",
        errors.count
    );
    if ran.reported_invalid {
        note.push_str("; the run reported itself as INVALID");
    }
    Ok(vec![
        Measurement::of(Benchmark::P6, "TTFC error P50, 100 requests/s", "µs", errors.p50)
            .baseline(Some(baseline.p50))
            .at_most(60.0)
            .note(note),
        Measurement::of(Benchmark::P6, "TTFC error P99", "µs", errors.p99)
            .baseline(Some(baseline.p99))
            .at_most(300.0),
    ])
}

/// Measures the baseline client at even intervals.
fn baseline(serving: &mut Serving) -> Result<Percentiles, BenchError> {
    let pace = Pace {
        interval: (1e9 / RATE) as u64,
        requests: REQUESTS / 2,
    };
    let seen = Baseline::connect(serving.address, CONNECTIONS, TOKENS)?.run_open(pace)?;
    errors_of(
        seen.iter().filter_map(|answer| {
            Some((
                answer.request.as_str(),
                difference(*answer.stamps.first()?, answer.asked),
            ))
        }),
        &serving.log()?,
    )
}

/// Returns the absolute differences between reported times and the server's.
fn errors(requests: &[RequestLine], log: &[LogEntry]) -> Result<Percentiles, BenchError> {
    let answered = requests.iter().filter(|request| request.success);
    errors_of(
        answered.filter_map(|request| Some((request.request_id.as_str(), request.ttfc? * 1e9))),
        log,
    )
}

/// As [`errors`], from pairs of request name and time in nanoseconds.
fn errors_of<'a>(
    reported: impl Iterator<Item = (&'a str, f64)>,
    log: &[LogEntry],
) -> Result<Percentiles, BenchError> {
    let truth: BTreeMap<&str, f64> = log
        .iter()
        .filter_map(|served| {
            let first = *served.writes.first()?;
            Some((served.request.as_deref()?, difference(first, served.arrived)))
        })
        .collect();
    let errors = reported.filter_map(|(request, ttfc)| Some((ttfc - truth.get(request)?).abs()));
    Percentiles::of(errors).ok_or(BenchError::Empty("no request is in the server's log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_relative_to_the_server_times() {
        let request = |id: &str, ttfc| RequestLine {
            request_id: id.into(),
            success: true,
            scheduler_ready_at: 0.0,
            scheduler_dispatched_at: 0.0,
            ttfc,
        };
        let served = |id: &str, arrived, first| LogEntry {
            request: Some(id.into()),
            connection: 0,
            arrived,
            writes: vec![first, first + 5],
        };
        let log = [
            served("0/0", 1_000_000, 21_000_000),
            served("1/0", 9_000_000, 29_000_000),
            served("2/0", 1, 2),
        ];
        let requests = [
            request("0/0", Some(0.020_050)),
            request("1/0", Some(0.019_950)),
            request("2/0", None),
            request("7/0", Some(1.0)),
        ];
        let spread = errors(&requests, &log).expect("errors");
        assert_eq!(spread.count, 2);
        assert!(
            (spread.p50 - 50.0).abs() < 1e-6 && (spread.p99 - 50.0).abs() < 1e-6,
            "{spread:?}"
        );
        assert!(errors(&requests[3..], &log).is_err());
    }
}
