//! P7: gaps between chunks compared with the server's, on a quiet core and on one shared with two
//! busy loops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use veeksha_model::Chunk;
use veeksha_ports::RequestOutcome;

use super::bench_result::BenchResult;
use super::cores::Cores;
use crate::baseline::{Baseline, ObservedResponse};
use crate::child::Serving;
use crate::error::BenchError;
use crate::load::{Pace, TransportClient, drive_open};
use crate::options::{BenchOptions, Benchmark};
use crate::report::Measurement;
use crate::server::{LogEntry, ResponsePlan};
use crate::stats::{Percentiles, difference};

const TOKENS: u32 = 32;
const ITL_MS: u64 = 5;

/// 100 requests per second, for four seconds.
const PACE: Pace = Pace {
    interval: 10_000_000,
    requests: 400,
};

/// Connections of the baseline client: about 18 are in use at the same time, more while it is
/// delayed.
const CONNECTIONS: u32 = 256;

/// Busy loops on the client's core.
const LOOPS: usize = 2;

pub(super) fn take(options: &BenchOptions) -> BenchResult {
    let cores = Cores::choose();
    let mut serving = Serving::start(
        &options.exe,
        cores.server,
        ResponsePlan::paced(20, ITL_MS, TOKENS),
    )?;
    let address = serving.address;
    let mut rows = Vec::new();
    for (loops, what, bound) in [
        (0, "chunk-gap error P99, quiet", 20.0),
        (LOOPS, "chunk-gap error P99, two busy loops on the core", 50.0),
    ] {
        let outcomes = cores.on_client(move || with_busy_loops(loops, || drive(address)))?;
        let compared = compare(&outcomes, &serving.log()?);
        let seen = cores.on_client(move || {
            with_busy_loops(loops, || {
                Baseline::connect(address, CONNECTIONS, TOKENS)?.run_open(PACE)
            })
        })?;
        let baseline = baseline_errors(&seen, &serving.log()?);
        rows.extend(compared.rows(what, bound, baseline, cores)?);
    }
    Ok(rows)
}

fn drive(address: std::net::SocketAddr) -> Result<Vec<RequestOutcome>, BenchError> {
    let client = TransportClient::start(address, TOKENS)?;
    let mut outcomes = Vec::new();
    drive_open(&client, PACE, |outcome| outcomes.push(outcome))?;
    Ok(outcomes)
}

/// Runs `work` while `loops` threads spin on the caller's cores.
fn with_busy_loops<T>(loops: usize, work: impl FnOnce() -> Result<T, BenchError>) -> Result<T, BenchError> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let begun: Result<Vec<_>, _> = (0..loops)
            .map(|_| {
                thread::Builder::new().spawn_scoped(scope, || {
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        let result = match begun {
            Ok(_) => work(),
            Err(error) => Err(BenchError::io("starting a busy loop")(error)),
        };
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Returns the errors of all gaps that the baseline client observed; it does not flag merged reads.
fn baseline_errors(seen: &[ObservedResponse], log: &[LogEntry]) -> Option<Percentiles> {
    let truth = truth(log);
    let errors = seen.iter().flat_map(|answer| {
        let writes = truth.get(answer.request.as_str()).copied().unwrap_or_default();
        answer
            .stamps
            .windows(2)
            .zip(writes.windows(2))
            .filter_map(gap_error)
    });
    Percentiles::of(errors)
}

/// Returns the absolute difference between a gap at the client and at the server.
fn gap_error((stamps, writes): (&[u64], &[u64])) -> Option<f64> {
    match (stamps, writes) {
        ([before, after], [wrote_before, wrote_after]) => {
            Some((difference(*after, *before) - difference(*wrote_after, *wrote_before)).abs())
        }
        _ => None,
    }
}

/// Maps each request to the server's write times of its tokens.
fn truth(log: &[LogEntry]) -> BTreeMap<&str, &[u64]> {
    log.iter()
        .filter_map(|served| Some((served.request.as_deref()?, served.writes.as_slice())))
        .collect()
}

/// Gaps of the client compared with the server's.
#[derive(Clone, Debug, Default, PartialEq)]
struct Compared {
    /// Errors of gaps between chunks that did not share a read, in nanoseconds.
    clear: Vec<f64>,
    /// Gaps at a chunk that shared a read.
    shared: usize,
    /// Of the clear gaps, those of length zero: two chunks arrived together without being flagged.
    unflagged: usize,
    failed: usize,
}

impl Compared {
    fn rows(self, what: &str, bound: f64, baseline: Option<Percentiles>, cores: Cores) -> BenchResult {
        let all = self.clear.len() + self.shared;
        let share = 100.0 * self.shared as f64 / all.max(1) as f64;
        let unflagged = self.unflagged;
        let failed = self.failed;
        let spread = Percentiles::of(self.clear).ok_or(BenchError::Empty("no chunk had a read to itself"))?;
        let mut note = format!(
            "of {} gaps, {share:.2} % more are at chunks flagged as sharing a read; the baseline uses its read times; {}",
            spread.count,
            cores.words()
        );
        if failed > 0 {
            note.push_str(&format!("; {failed} requests failed"));
        }
        Ok(vec![
            Measurement::of(Benchmark::P7, what, "µs", spread.p99)
                .baseline(baseline.map(|baseline| baseline.p99))
                .at_most(bound)
                .note(note),
            Measurement::of(
                Benchmark::P7,
                "chunks that arrived together without a flag",
                "",
                unflagged as f64,
            )
            .at_most(0.0),
        ])
    }
}

fn compare(outcomes: &[RequestOutcome], log: &[LogEntry]) -> Compared {
    let truth = truth(log);
    let mut compared = Compared::default();
    for outcome in outcomes {
        let id = outcome.job.id.to_string();
        let Some(writes) = truth.get(id.as_str()).filter(|_| outcome.result.is_ok()) else {
            compared.failed += 1;
            continue;
        };
        compared.add(&outcome.chunks, writes);
    }
    compared
}

impl Compared {
    /// Adds one response: its chunks and the server's write times.
    fn add(&mut self, chunks: &[Chunk], writes: &[u64]) {
        let tokens: Vec<(u64, bool)> = tokens(chunks);
        for (pair, times) in tokens.windows(2).zip(writes.windows(2)) {
            let [before, after] = pair else { continue };
            if before.1 || after.1 {
                self.shared += 1;
                continue;
            }
            let Some(error) = gap_error((&[before.0, after.0], times)) else {
                continue;
            };
            self.unflagged += usize::from(after.0 == before.0);
            self.clear.push(error);
        }
    }
}

/// Returns when each token arrived, and whether its read carried another token. The role shares a
/// write with the first token and the usage with the last by design, so they do not count.
fn tokens(chunks: &[Chunk]) -> Vec<(u64, bool)> {
    let mut tokens: Vec<(u64, bool)> = Vec::new();
    for chunk in chunks.iter().filter(|chunk| chunk.kind.is_generated()) {
        let joined = chunk.merged && !tokens.is_empty();
        if joined && let Some(before) = tokens.last_mut() {
            before.1 = true;
        }
        tokens.push((chunk.at, joined));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use veeksha_model::ChunkKind;

    use super::*;

    const MS: u64 = 1_000_000;

    fn chunk(at: u64, kind: ChunkKind, merged: bool) -> Chunk {
        Chunk {
            at,
            lag: 0,
            bytes: 200,
            kind,
            merged,
        }
    }

    fn answer(tokens: &[(u64, bool)]) -> Vec<Chunk> {
        let first = tokens.first().map_or(0, |token| token.0);
        let mut chunks = vec![chunk(first, ChunkKind::Role, false)];
        for (index, (at, merged)) in tokens.iter().enumerate() {
            chunks.push(chunk(*at, ChunkKind::Content, index == 0 || *merged));
        }
        let last = tokens.last().map_or(0, |token| token.0);
        chunks.push(chunk(last, ChunkKind::Usage, true));
        chunks.push(chunk(last, ChunkKind::Done, true));
        chunks
    }

    #[test]
    fn ignores_role_and_usage_in_shared_writes() {
        let mut compared = Compared::default();
        let chunks = answer(&[(1_000, false), (1_000 + 5 * MS, false), (8_000 + 10 * MS, false)]);
        compared.add(&chunks, &[0, 5 * MS, 10 * MS]);
        assert_eq!(compared.clear, [0.0, 7_000.0]);
        assert_eq!((compared.shared, compared.unflagged), (0, 0));
    }

    #[test]
    fn excludes_both_ends_of_a_shared_read() {
        // The third token arrived in the read of the second, which therefore has the third's time.
        let mut compared = Compared::default();
        let chunks = answer(&[
            (0, false),
            (10 * MS, false),
            (10 * MS, true),
            (15 * MS, false),
            (20 * MS, false),
        ]);
        compared.add(&chunks, &[0, 5 * MS, 10 * MS, 15 * MS, 20 * MS]);
        assert_eq!(
            (compared.clear.as_slice(), compared.shared),
            ([0.0].as_slice(), 3)
        );
    }

    #[test]
    fn counts_unflagged_chunks_with_equal_times() {
        let mut compared = Compared::default();
        let chunks = answer(&[(0, false), (10 * MS, false), (10 * MS, false), (15 * MS, false)]);
        compared.add(&chunks, &[0, 5 * MS, 10 * MS, 15 * MS]);
        assert_eq!(compared.unflagged, 1);
    }

    #[test]
    fn matches_baseline_gaps_by_request_name() {
        let seen = [ObservedResponse {
            request: "baseline-1".into(),
            asked: 0,
            stamps: vec![0, 5 * MS, 12 * MS],
        }];
        let served = |name: &str, writes: &[u64]| LogEntry {
            request: Some(name.into()),
            connection: 0,
            arrived: 0,
            writes: writes.to_vec(),
        };
        let log = [
            served("baseline-2", &[0, 1, 2]),
            served("baseline-1", &[0, 5 * MS, 10 * MS]),
        ];
        let spread = baseline_errors(&seen, &log).expect("errors");
        assert_eq!((spread.count, spread.p50), (2, 1_000.0));
        assert_eq!(baseline_errors(&seen, &[]), None);
    }

    #[test]
    fn busy_loops_end_with_the_work() {
        let value = with_busy_loops(2, || Ok(7)).expect("work");
        assert_eq!(value, 7);
        assert!(with_busy_loops(1, || -> Result<(), _> { Err(BenchError::Empty("no")) }).is_err());
    }
}
