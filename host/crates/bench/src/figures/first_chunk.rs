//! P6: the time to the first chunk as a run reports it, against what the server knows.

use std::collections::BTreeMap;

use super::Rows;
use crate::child::Serving;
use crate::program::{RequestLine, Runtime, Traffic, run_program, scenario};
use crate::report::Row;
use crate::server::{Plan, Served};
use crate::stats::{Spread, difference};
use crate::{BenchError, BenchOptions, Figure};

const REQUESTS: u64 = 1_000;
const RATE: f64 = 100.0;
const TOKENS: u32 = 32;

pub(super) fn take(options: &BenchOptions) -> Rows {
    let mut serving = Serving::start(&options.exe, None, Plan::paced(20, 5, TOKENS))?;
    let scenario = scenario(
        serving.address,
        REQUESTS,
        TOKENS,
        Traffic::Poisson(RATE),
        Runtime::default(),
    );
    let ran = run_program(&options.exe, &scenario)?;
    let errors = errors(&ran.files.requests, &serving.log()?)?;
    let mut note = format!(
        "reported minus the server's first write after the arrival, of {} requests of a run",
        errors.count
    );
    if ran.called_invalid {
        note.push_str("; the run called itself INVALID");
    }
    Ok(vec![
        Row::of(Figure::P6, "TTFC error P50, 100 requests/s", "µs", errors.p50)
            .at_most(60.0)
            .note(note),
        Row::of(Figure::P6, "TTFC error P99", "µs", errors.p99).at_most(300.0),
    ])
}

/// How far the reported times are from the server's, whichever way.
fn errors(requests: &[RequestLine], log: &[Served]) -> Result<Spread, BenchError> {
    let truth: BTreeMap<&str, f64> = log
        .iter()
        .filter_map(|served| {
            let first = *served.writes.first()?;
            Some((served.request.as_deref()?, difference(first, served.arrived)))
        })
        .collect();
    let errors = requests
        .iter()
        .filter(|request| request.success)
        .filter_map(|request| {
            let truth = truth.get(request.request_id.as_str())?;
            Some((request.ttfc? * 1e9 - truth).abs())
        });
    Spread::of(errors).ok_or(BenchError::Empty("no request of the run is in the server's log"))
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
