//! P4 and P5: dispatch lateness at 1,000 requests per second, and arrivals compared with the
//! schedule.

use std::collections::BTreeMap;

use veeksha_machine::WakeUps;

use super::bench_result::BenchResult;
use crate::child::Serving;
use crate::error::BenchError;
use crate::options::{BenchOptions, Benchmark};
use crate::program::{
    ProgramRun, RequestLine, RunFiles, ScenarioRuntime, ScenarioTraffic, run_program, scenario,
};
use crate::report::Measurement;
use crate::server::{LogEntry, ResponsePlan};
use crate::stats::Percentiles;

/// Requests per second.
const RATE: f64 = 1_000.0;

/// Requests of a run; of the run that only compares arrivals.
const REQUESTS: u64 = 5_000;
const COMPARED: u64 = 1_000;

/// Microseconds of spinning before each dispatch: more than the lateness of nearly every wake-up.
const SPIN: f64 = 200.0;

pub(super) fn take(options: &BenchOptions) -> BenchResult {
    // Dispatch lateness is measured on the dispatching thread, so responses are as short as
    // possible.
    let mut serving = Serving::start(&options.exe, None, ResponsePlan::paced(0, 0, 1))?;
    let mut run = |requests, runtime| -> Result<(ProgramRun, Vec<LogEntry>), BenchError> {
        let scenario = scenario(
            serving.address,
            requests,
            1,
            ScenarioTraffic::Poisson(RATE),
            runtime,
        );
        let ran = run_program(&options.program, &scenario)?;
        Ok((ran, serving.log()?))
    };
    let (asleep, log) = run(REQUESTS, ScenarioRuntime::default())?;
    let spin = ScenarioRuntime {
        spin: SPIN,
        ..ScenarioRuntime::default()
    };
    let spinning = run(REQUESTS, spin);
    let two = ScenarioRuntime {
        dispatchers: 2,
        ..ScenarioRuntime::default()
    };
    let split = run(COMPARED, two);

    let mut rows = Vec::new();
    let bare = WakeUps::measure();
    let bare = |of: fn(&WakeUps) -> u64| bare.as_ref().map(|wake_ups| of(wake_ups) as f64 / 1e3);
    let late = lateness(&asleep.files.requests)?;
    let note = format!("of {} requests; the baseline is a bare sleep of 1 ms", late.count);
    rows.extend([
        Measurement::of(
            Benchmark::P4,
            "dispatch lateness P50, 1,000 requests/s",
            "µs",
            late.p50,
        )
        .baseline(bare(|wake_ups| wake_ups.p50))
        .at_most(40.0)
        .note(note),
        Measurement::of(Benchmark::P4, "dispatch lateness P99", "µs", late.p99)
            .baseline(bare(|wake_ups| wake_ups.p99))
            .at_most(150.0),
    ]);
    let spinning = spinning.and_then(|(ran, _)| lateness(&ran.files.requests));
    for (name, of, goal) in [
        ("P50", (|late| late.p50) as fn(&Percentiles) -> f64, 5.0),
        ("P99", |late| late.p99, 30.0),
    ] {
        let what = format!("the same {name}, spinning for {SPIN} µs");
        rows.push(match &spinning {
            Ok(late) => Measurement::of(Benchmark::P4, what, "µs", of(late)).at_most(goal),
            Err(error) => Measurement::absent(Benchmark::P4, what, error.to_string()),
        });
    }
    rows.extend(arrivals(&asleep.files, &log)?);
    let what = "arrivals that differ with two dispatcher threads";
    rows.push(match &split {
        Ok((split, _)) => Measurement::of(
            Benchmark::P5,
            what,
            "",
            differing(&asleep.files, &split.files) as f64,
        )
        .at_most(0.0)
        .note(format!("of {COMPARED}")),
        Err(error) => Measurement::absent(Benchmark::P5, what, error.to_string()),
    });
    Ok(rows)
}

/// Returns the delay from the scheduled instant to the dispatch.
fn lateness(requests: &[RequestLine]) -> Result<Percentiles, BenchError> {
    let late = requests
        .iter()
        .map(|request| (request.scheduler_dispatched_at - request.scheduler_ready_at) * 1e9);
    Percentiles::of(late).ok_or(BenchError::Empty("the run has no requests"))
}

/// Compares arrivals at the server with the schedule. Both ends share one clock.
fn arrivals(files: &RunFiles, log: &[LogEntry]) -> BenchResult {
    let intended: BTreeMap<&str, f64> = files
        .requests
        .iter()
        .map(|request| {
            (
                request.request_id.as_str(),
                files.epoch + request.scheduler_ready_at,
            )
        })
        .collect();
    let mut pairs: Vec<(f64, f64)> = log
        .iter()
        .filter_map(|served| {
            let intended = intended.get(served.request.as_deref()?)?;
            Some((*intended, served.arrived as f64 / 1e9))
        })
        .collect();
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else {
        return Err(BenchError::Empty("no request of the run is in the server's log"));
    };
    let (asked, came) = (last.0 - first.0, last.1 - first.1);
    let note = format!("{} of {} requests arrived", pairs.len(), files.requests.len());
    Ok(vec![
        Measurement::of(
            Benchmark::P5,
            "first arrival after its instant",
            "ms",
            (first.1 - first.0) * 1e3,
        )
        .at_most(1.0)
        .note(note),
        Measurement::of(
            Benchmark::P5,
            "rate at the server against the schedule's",
            "% off",
            if asked > 0.0 {
                ((came / asked) - 1.0).abs() * 100.0
            } else {
                f64::NAN
            },
        )
        .at_most(0.1),
    ])
}

/// Counts the requests of `part` whose instants differ from those in `whole`.
fn differing(whole: &RunFiles, part: &RunFiles) -> usize {
    let instants: BTreeMap<&str, f64> = whole
        .requests
        .iter()
        .map(|request| (request.request_id.as_str(), request.scheduler_ready_at))
        .collect();
    part.requests
        .iter()
        .filter(|request| instants.get(request.request_id.as_str()) != Some(&request.scheduler_ready_at))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::GoalStatus;

    fn request(number: u32, ready: f64, late: f64) -> RequestLine {
        RequestLine {
            request_id: format!("{number}/0"),
            success: true,
            scheduler_ready_at: ready,
            scheduler_dispatched_at: ready + late,
            ttfc: None,
        }
    }

    fn served(number: u32, arrived: u64) -> LogEntry {
        LogEntry {
            request: Some(format!("{number}/0")),
            connection: 0,
            arrived,
            writes: Vec::new(),
        }
    }

    #[test]
    fn lateness_runs_from_instant_to_dispatch() {
        let requests: Vec<RequestLine> = (0..=100)
            .map(|n| request(n, f64::from(n), f64::from(n) * 1e-6))
            .collect();
        let spread = lateness(&requests).expect("requests");
        assert!(
            (spread.p50 - 50.0).abs() < 0.01 && (spread.p99 - 99.0).abs() < 0.01,
            "{spread:?}"
        );
        assert!(lateness(&[]).is_err());
    }

    #[test]
    fn compares_arrivals_on_one_clock() {
        let files = RunFiles {
            epoch: 1_000.0,
            requests: vec![request(1, 1.0, 0.0), request(0, 0.0, 0.0), request(2, 2.0, 0.0)],
        };
        // 0.5 ms late at first, 4.5 ms late at last: 2.004 s for 2 s are 0.2 % off. One request
        // belongs to another run.
        let log = [
            served(2, 1_002_004_500_000),
            served(0, 1_000_000_500_000),
            served(9, 5),
            served(1, 1_001_000_000_000),
        ];
        let rows = arrivals(&files, &log).expect("arrivals");
        let here: Vec<f64> = rows.iter().filter_map(|row| row.here).collect();
        assert!(
            (here[0] - 0.5).abs() < 1e-4 && (here[1] - 0.2).abs() < 1e-4,
            "{here:?}"
        );
        assert_eq!(
            (rows[0].status, rows[1].status),
            (GoalStatus::Met, GoalStatus::Missed)
        );
        assert!(arrivals(&files, &[]).is_err());
    }

    #[test]
    fn compares_instants_per_request() {
        let files = |requests| RunFiles { epoch: 0.0, requests };
        let whole = files(vec![
            request(0, 0.0, 0.0),
            request(1, 0.1, 0.0),
            request(2, 0.2, 0.0),
        ]);
        let same = files(vec![request(1, 0.1, 0.5), request(0, 0.0, 0.0)]);
        let other = files(vec![
            request(1, 0.1000001, 0.0),
            request(0, 0.0, 0.0),
            request(7, 0.3, 0.0),
        ]);
        assert_eq!((differing(&whole, &same), differing(&whole, &other)), (0, 2));
    }
}
