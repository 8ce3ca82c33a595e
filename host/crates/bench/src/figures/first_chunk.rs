//! P6: the time to the first chunk as a run reports it, against what the server knows.

use std::collections::BTreeMap;

use super::Rows;
use crate::child::Serving;
use crate::floor::Floor;
use crate::load::Pace;
use crate::program::{RequestLine, Runtime, Traffic, run_program, scenario};
use crate::report::Row;
use crate::server::{Plan, Served};
use crate::stats::{Spread, difference};
use crate::{BenchError, BenchOptions, Figure};

const REQUESTS: u64 = 1_000;
const RATE: f64 = 100.0;
const TOKENS: u32 = 32;

/// Connections of the floor client: some 18 are used at the same time, and more while it is held up.
const CONNECTIONS: u32 = 128;

pub(super) fn take(options: &BenchOptions) -> Rows {
    let mut serving = Serving::start(&options.exe, None, Plan::paced(20, 5, TOKENS))?;
    let scenario = scenario(
        serving.address,
        REQUESTS,
        TOKENS,
        Traffic::Poisson(RATE),
        Runtime::default(),
    );
    let ran = run_program(&options.program, &scenario)?;
    let errors = errors(&ran.files.requests, &serving.log()?)?;
    let floor = floor(&mut serving)?;
    let mut note = format!(
        "reported minus the server's first write after the arrival, of {} requests of a run; the floor sends from the thread that waits, with the times of its reads",
        errors.count
    );
    if ran.called_invalid {
        note.push_str("; the run called itself INVALID");
    }
    Ok(vec![
        Row::of(Figure::P6, "TTFC error P50, 100 requests/s", "µs", errors.p50)
            .floor(Some(floor.p50))
            .at_most(60.0)
            .note(note),
        Row::of(Figure::P6, "TTFC error P99", "µs", errors.p99)
            .floor(Some(floor.p99))
            .at_most(300.0),
    ])
}

/// The same of the floor client, at even intervals.
fn floor(serving: &mut Serving) -> Result<Spread, BenchError> {
    let pace = Pace {
        interval: (1e9 / RATE) as u64,
        requests: REQUESTS / 2,
    };
    let seen = Floor::connect(serving.address, CONNECTIONS, TOKENS)?.run_open(pace)?;
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

/// How far the reported times are from the server's, whichever way.
fn errors(requests: &[RequestLine], log: &[Served]) -> Result<Spread, BenchError> {
    let answered = requests.iter().filter(|request| request.success);
    errors_of(
        answered.filter_map(|request| Some((request.request_id.as_str(), request.ttfc? * 1e9))),
        log,
    )
}

/// The same, of names of requests and their times in nanoseconds.
fn errors_of<'a>(
    reported: impl Iterator<Item = (&'a str, f64)>,
    log: &[Served],
) -> Result<Spread, BenchError> {
    let truth: BTreeMap<&str, f64> = log
        .iter()
        .filter_map(|served| {
            let first = *served.writes.first()?;
            Some((served.request.as_deref()?, difference(first, served.arrived)))
        })
        .collect();
    let errors = reported.filter_map(|(request, ttfc)| Some((ttfc - truth.get(request)?).abs()));
    Spread::of(errors).ok_or(BenchError::Empty("no request is in the server's log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_against_the_server_s_own_time() {
        let request = |id: &str, ttfc| RequestLine {
            request_id: id.into(),
            success: true,
            scheduler_ready_at: 0.0,
            scheduler_dispatched_at: 0.0,
            ttfc,
        };
        let served = |id: &str, arrived, first| Served {
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
