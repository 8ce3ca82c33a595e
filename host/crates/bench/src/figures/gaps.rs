//! P7: the gaps between chunks against the server's own, on a quiet core and on one that is shared with two busy loops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use veeksha_model::Chunk;
use veeksha_ports::Outcome;

use super::Rows;
use super::cores::Cores;
use crate::child::Serving;
use crate::floor::{Floor, Seen};
use crate::load::{Client, Pace, drive_open};
use crate::report::Row;
use crate::server::{Plan, Served};
use crate::stats::{Spread, difference};
use crate::{BenchError, BenchOptions, Figure};

const TOKENS: u32 = 32;
const ITL_MS: u64 = 5;

/// 100 requests a second, for four seconds.
const PACE: Pace = Pace {
    interval: 10_000_000,
    requests: 400,
};

/// Connections of the floor client: some 18 are used at the same time, and more while it is held up.
const CONNECTIONS: u32 = 256;

/// Busy loops on the client's core.
const LOOPS: usize = 2;

pub(super) fn take(options: &BenchOptions) -> Rows {
    let cores = Cores::choose();
    let mut serving = Serving::start(&options.exe, cores.server, Plan::paced(20, ITL_MS, TOKENS))?;
    let address = serving.address;
    let mut rows = Vec::new();
    for (loops, what, bound) in [
        (0, "chunk-gap error P99, quiet", 20.0),
        (LOOPS, "chunk-gap error P99, two busy loops on the core", 50.0),
    ] {
        let outcomes = cores.on_client(move || beside_loops(loops, || drive(address)))?;
        let compared = compare(&outcomes, &serving.log()?);
        let seen = cores.on_client(move || {
            beside_loops(loops, || {
                Floor::connect(address, CONNECTIONS, TOKENS)?.run_open(PACE)
            })
        })?;
        let floor = floor_errors(&seen, &serving.log()?);
        rows.extend(compared.rows(what, bound, floor, cores)?);
    }
    Ok(rows)
}

fn drive(address: std::net::SocketAddr) -> Result<Vec<Outcome>, BenchError> {
    let client = Client::start(address, TOKENS)?;
    let mut outcomes = Vec::new();
    drive_open(&client, PACE, |outcome| outcomes.push(outcome))?;
    Ok(outcomes)
}

/// Does `work` while so many threads do nothing but run, on the same cores as the caller.
fn beside_loops<T>(loops: usize, work: impl FnOnce() -> Result<T, BenchError>) -> Result<T, BenchError> {
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

/// Errors of all gaps that the floor client saw: it flags nothing.
fn floor_errors(seen: &[Seen], log: &[Served]) -> Option<Spread> {
    let truth = truth(log);
    let errors = seen.iter().flat_map(|answer| {
        let writes = truth.get(answer.request.as_str()).copied().unwrap_or_default();
        answer
            .stamps
            .windows(2)
            .zip(writes.windows(2))
            .filter_map(gap_error)
    });
    Spread::of(errors)
}

/// How far a gap of the client is from the server's, whichever way.
fn gap_error((stamps, writes): (&[u64], &[u64])) -> Option<f64> {
    match (stamps, writes) {
        ([before, after], [wrote_before, wrote_after]) => {
            Some((difference(*after, *before) - difference(*wrote_after, *wrote_before)).abs())
        }
        _ => None,
    }
}

/// When the server wrote each token of each request.
fn truth(log: &[Served]) -> BTreeMap<&str, &[u64]> {
    log.iter()
        .filter_map(|served| Some((served.request.as_deref()?, served.writes.as_slice())))
        .collect()
}

/// Gaps of the client and of the server, compared.
#[derive(Clone, Debug, Default, PartialEq)]
struct Compared {
    /// Errors of gaps between chunks that had their reads to themselves, in nanoseconds.
    clear: Vec<f64>,
    /// Gaps at a chunk that shared a read.
    shared: usize,
    /// Of the clear ones, those without any length: two chunks came together, and nothing says so.
    unflagged: usize,
    failed: usize,
}

impl Compared {
    fn rows(self, what: &str, bound: f64, floor: Option<Spread>, cores: Cores) -> Rows {
        let all = self.clear.len() + self.shared;
        let share = 100.0 * self.shared as f64 / all.max(1) as f64;
        let unflagged = self.unflagged;
        let failed = self.failed;
        let spread = Spread::of(self.clear).ok_or(BenchError::Empty("no chunk had a read to itself"))?;
        let mut note = format!(
            "of {} gaps, {share:.2} % more are at chunks that shared a read and say so; the floor has the times of its reads; {}",
            spread.count,
            cores.words()
        );
        if failed > 0 {
            note.push_str(&format!("; {failed} requests failed"));
        }
        Ok(vec![
            Row::of(Figure::P7, what, "µs", spread.p99)
                .floor(floor.map(|floor| floor.p99))
                .at_most(bound)
                .note(note),
            Row::of(
                Figure::P7,
                "chunks that came together and do not say so",
                "",
                unflagged as f64,
            )
            .at_most(0.0),
        ])
    }
}

fn compare(outcomes: &[Outcome], log: &[Served]) -> Compared {
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
    /// One answer: its chunks, and when the server wrote each token.
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

/// When each token came, and whether its read brought another token, too. The role comes in the write of the first token, the token counts
/// in that of the last: these share a read by design.
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
    fn the_role_and_the_counts_do_not_blur_the_tokens_they_came_with() {
        let mut compared = Compared::default();
        let chunks = answer(&[(1_000, false), (1_000 + 5 * MS, false), (8_000 + 10 * MS, false)]);
        compared.add(&chunks, &[0, 5 * MS, 10 * MS]);
        assert_eq!(compared.clear, [0.0, 7_000.0]);
        assert_eq!((compared.shared, compared.unflagged), (0, 0));
    }

    #[test]
    fn both_ends_of_a_shared_read_are_left_out() {
        // The third token came in the read of the second, whose time is then the third's.
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
    fn chunks_that_came_together_and_do_not_say_so_are_found() {
        let mut compared = Compared::default();
        let chunks = answer(&[(0, false), (10 * MS, false), (10 * MS, false), (15 * MS, false)]);
        compared.add(&chunks, &[0, 5 * MS, 10 * MS, 15 * MS]);
        assert_eq!(compared.unflagged, 1);
    }

    #[test]
    fn the_floor_s_gaps_are_compared_by_name() {
        let seen = [Seen {
            request: "floor-1".into(),
            asked: 0,
            stamps: vec![0, 5 * MS, 12 * MS],
        }];
        let served = |name: &str, writes: &[u64]| Served {
            request: Some(name.into()),
            connection: 0,
            arrived: 0,
            writes: writes.to_vec(),
        };
        let log = [
            served("floor-2", &[0, 1, 2]),
            served("floor-1", &[0, 5 * MS, 10 * MS]),
        ];
        let spread = floor_errors(&seen, &log).expect("errors");
        assert_eq!((spread.count, spread.p50), (2, 1_000.0));
        assert_eq!(floor_errors(&seen, &[]), None);
    }

    #[test]
    fn busy_loops_end_with_the_work() {
        let value = beside_loops(2, || Ok(7)).expect("work");
        assert_eq!(value, 7);
        assert!(beside_loops(1, || -> Result<(), _> { Err(BenchError::Empty("no")) }).is_err());
    }
}
