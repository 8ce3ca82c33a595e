//! The benchmarks and their implementations.

mod bench_result;
mod chunk_cost;
mod cores;
mod dispatch;
mod evaluating;
mod first_chunk;
mod gaps;
mod instructions;
mod live_sessions;
mod many_streams;
mod whole_run;

use crate::options::{BenchOptions, Benchmark};
use crate::report::Measurement;
use bench_result::BenchResult;

/// A function that runs one benchmark, or several that share a measurement.
type BenchFn = fn(&BenchOptions) -> BenchResult;

/// In execution order.
const MEASUREMENTS: [(&[Benchmark], BenchFn); 13] = [
    (&[Benchmark::P1], chunk_cost::each_token),
    (&[Benchmark::P2], chunk_cost::whole_answers),
    (&[Benchmark::P3], instructions::take),
    (&[Benchmark::P4, Benchmark::P5], dispatch::take),
    (&[Benchmark::P6], first_chunk::take),
    (&[Benchmark::P7], gaps::take),
    (&[Benchmark::P8], many_streams::take),
    (&[Benchmark::P9], whole_run::start),
    (&[Benchmark::P10], whole_run::memory),
    (&[Benchmark::P11], whole_run::cost),
    (&[Benchmark::A1], live_sessions::take),
    (&[Benchmark::E1], evaluating::record),
    (&[Benchmark::E2], evaluating::live),
];

/// Runs the selected benchmarks. One that fails yields a row with the reason.
pub(crate) fn take(options: &BenchOptions, progress: &mut dyn FnMut(&str)) -> Vec<Measurement> {
    let mut rows = Vec::new();
    for (benchmarks, take) in MEASUREMENTS {
        let wanted: Vec<Benchmark> = benchmarks
            .iter()
            .copied()
            .filter(|benchmark| options.wants(*benchmark))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let names: Vec<String> = wanted
            .iter()
            .map(|benchmark| format!("{benchmark} {}", benchmark.title()))
            .collect();
        progress(&names.join(", "));
        match take(options) {
            Ok(taken) => rows.extend(taken.into_iter().filter(|row| wanted.contains(&row.benchmark))),
            Err(error) => rows.extend(
                wanted
                    .iter()
                    .map(|benchmark| Measurement::absent(*benchmark, benchmark.title(), error.to_string())),
            ),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_runs_once() {
        let taken: Vec<Benchmark> = MEASUREMENTS
            .iter()
            .flat_map(|(benchmarks, _)| benchmarks.iter().copied())
            .collect();
        assert_eq!(taken, Benchmark::ALL);
    }

    #[test]
    fn failed_benchmark_has_a_reason() {
        let options = BenchOptions {
            only: [Benchmark::P1, Benchmark::P9].into(),
            ..BenchOptions::new("/no/such/program".into())
        };
        let mut started = Vec::new();
        let rows = take(&options, &mut |line| started.push(line.to_owned()));
        assert_eq!(
            started,
            [
                "P1 CPU per chunk, one write per token",
                "P9 start to first request"
            ]
        );
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(row.here, None);
            assert!(row.note.expect("a reason").contains("/no/such/program"));
        }
    }
}
