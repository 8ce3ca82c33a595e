//! The stated bounds against true errors, over a grid of loads.
//!
//! Each cell is a model of a server and of a client thread that reads all its streams. The server's
//! write times are known, so the true error of each sample is the recorded value minus the time
//! between the server's writes and the request's arrival there. Nothing of the estimate enters.

use std::collections::VecDeque;

use veeksha_model::Nanos;
use veeksha_stats::{GOLDEN_GAMMA, split_mix64};

use super::*;

const MS: Nanos = 1_000_000;

/// The share of samples whose error must be within the stated P99.
const COVERED: f64 = 0.985;

/// Requests in a cell.
const REQUESTS: u64 = 300;

/// Chunks per answer.
const CHUNKS: u64 = 40;

/// One load and the disturbances of its client.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Requests at a time in a closed loop, or `None` for an open loop.
    streams: Option<u64>,
    /// Requests per second of an open loop.
    rate: u64,
    /// Chunks that the server writes at once.
    bundle: u64,
    /// Mean time between interruptions of the client thread; 0 for none.
    interrupted_every: Nanos,
    /// The longest interruption.
    interruption: Nanos,
}

/// Uniform and exponential draws with a fixed seed (SplitMix64).
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        let mixed = split_mix64(self.0);
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }

    fn up_to(&mut self, most: Nanos) -> Nanos {
        (self.uniform() * most as f64) as Nanos
    }

    fn exponential(&mut self, mean: Nanos) -> Nanos {
        (-(1.0 - self.uniform()).ln() * mean as f64) as Nanos
    }
}

/// A request on its way: what the server did, and what the client has read.
struct Exchange {
    record: RequestRecord,
    /// Arrival of the request at the server.
    arrived: Nanos,
    /// The server's write of each chunk.
    wrote: Vec<Nanos>,
    /// The kernel's stamp of each chunk that has not been read.
    unread: VecDeque<Nanos>,
}

impl Exchange {
    fn new(number: u64, intended: Nanos, cell: &Cell, draws: &mut Draws) -> Self {
        let mut record = answered(number, 0, 0, 0);
        record.intended = intended;
        record.dispatched_at = intended + 20 * US + draws.exponential(20 * US);
        let sent = record.dispatched_at + 30 * US + draws.exponential(20 * US);
        record.picked_up_at = Some(sent);
        record.sent_at = Some(sent);
        record.connection_reused = true;
        record.stamps = StampSource::Kernel;
        let delivery = |draws: &mut Draws| 2 * US + draws.exponential(2 * US);
        let arrived = sent + delivery(draws);
        let mut at = arrived + 15 * MS + draws.up_to(10 * MS);
        let mut wrote = Vec::new();
        let mut unread = VecDeque::new();
        while (wrote.len() as u64) < CHUNKS {
            let stamp = at + delivery(draws);
            for _ in 0..cell.bundle {
                wrote.push(at);
                unread.push_back(stamp);
            }
            at += cell.bundle * (4 * MS + draws.up_to(2 * MS));
        }
        record.output_tokens = wrote.len() as u32;
        Exchange {
            record,
            arrived,
            wrote,
            unread,
        }
    }

    /// Reads everything that the kernel had received at `now`, with the stamp of the last segment.
    fn read(&mut self, now: Nanos) {
        let count = self.unread.iter().take_while(|stamp| **stamp <= now).count();
        let Some(last) = self.unread.drain(..count).next_back() else {
            return;
        };
        self.record.chunks.extend((0..count).map(|place| Chunk {
            at: last,
            lag: (now - last) as u32,
            bytes: 20,
            kind: ChunkKind::Content,
            merged: place > 0,
        }));
    }
}

/// Lets one client thread read all answers of a cell.
fn exchange(cell: &Cell) -> Vec<Exchange> {
    let mut draws = Draws(7);
    let mut finished: Vec<Exchange> = Vec::new();
    let mut open: Vec<Exchange> = Vec::new();
    let mut begun = 0;
    let mut next_arrival = 0;
    let mut begin = |at: Nanos, draws: &mut Draws| {
        begun += 1;
        Exchange::new(begun - 1, at, cell, draws)
    };
    let mut now = 0;
    for _ in 0..cell.streams.unwrap_or(0) {
        open.push(begin(0, &mut draws));
    }
    let mut next_interruption = draws.exponential(cell.interrupted_every);
    while (finished.len() as u64) < REQUESTS {
        if cell.streams.is_none() {
            while next_arrival <= now {
                open.push(begin(next_arrival, &mut draws));
                next_arrival += draws.exponential(1_000 * MS / cell.rate);
            }
        }
        // The thread sleeps until a segment arrives, and takes a while to wake up.
        let first = open.iter().filter_map(|one| one.unread.front()).min().copied();
        let next = match (first, cell.streams) {
            (Some(first), None) => first.min(next_arrival),
            (Some(first), Some(_)) => first,
            (None, _) => next_arrival,
        };
        if next > now {
            now = next + 15 * US + draws.exponential(15 * US);
        }
        if cell.interrupted_every > 0 && now >= next_interruption {
            now += draws.up_to(cell.interruption);
            next_interruption = now + draws.exponential(cell.interrupted_every);
        }
        for one in &mut open {
            let before = one.unread.len();
            one.read(now);
            // Each read and each chunk take their time.
            if one.unread.len() < before {
                now += 3 * US + (before - one.unread.len()) as Nanos * US;
            }
        }
        if open.iter().all(|one| !one.unread.is_empty()) {
            continue;
        }
        let (done, rest): (Vec<_>, Vec<_>) = open.into_iter().partition(|one| one.unread.is_empty());
        open = rest;
        for one in done {
            if cell.streams.is_some() {
                open.push(begin(now + 50 * US, &mut draws));
            }
            finished.push(one);
        }
    }
    finished
}

/// The true errors of each metric in seconds: the record's value minus the server's.
fn true_errors(exchanges: &[Exchange]) -> [(Metric, Vec<f64>); 5] {
    let mut errors = [
        Metric::Ttfc,
        Metric::TtfcFromIntended,
        Metric::Tbc,
        Metric::Tpot,
        Metric::EndToEnd,
    ]
    .map(|metric| (metric, Vec::new()));
    for one in exchanges {
        let at: Vec<Nanos> = one.record.chunks.iter().map(|chunk| chunk.at).collect();
        let count = at.len();
        assert_eq!(count, one.wrote.len());
        let seconds = |nanos: i64| (nanos as f64 / 1e9).abs();
        let error = |recorded: Nanos, truth: Nanos| seconds(recorded as i64 - truth as i64);
        let of_gap = |from: usize, to: usize| error(at[to] - at[from], one.wrote[to] - one.wrote[from]);
        let to_first = one.wrote[0] - one.arrived;
        let to_last = one.wrote[count - 1] - one.arrived;
        let (dispatched, intended) = (one.record.dispatched_at, one.record.intended);
        errors[0].1.push(error(at[0] - dispatched, to_first));
        errors[1].1.push(error(at[0] - intended, to_first));
        errors[2]
            .1
            .extend((1..count).map(|place| of_gap(place - 1, place)));
        if count > 1 {
            errors[3].1.push(of_gap(0, count - 1) / (count - 1) as f64);
        }
        errors[4].1.push(error(at[count - 1] - dispatched, to_last));
    }
    errors
}

fn cells() -> Vec<Cell> {
    let loads = [1, 8, 64, 256]
        .map(|streams| (Some(streams), 0))
        .into_iter()
        .chain([5, 50, 500].map(|rate| (None, rate)));
    let disturbances = [
        (0, 0),
        (200 * MS, 5 * MS),
        (500 * MS, 60 * MS),
        (20 * MS, 60 * MS),
    ];
    loads
        .flat_map(|(streams, rate)| {
            [1, 4, 20].into_iter().flat_map(move |bundle| {
                disturbances.map(|(interrupted_every, interruption)| Cell {
                    streams,
                    rate,
                    bundle,
                    interrupted_every,
                    interruption,
                })
            })
        })
        .collect()
}

#[test]
fn stated_p99_covers_the_true_errors_of_every_load() {
    let mut failures = Vec::new();
    for cell in cells() {
        let exchanges = exchange(&cell);
        let truth = true_errors(&exchanges);
        let events = exchanges.into_iter().map(|one| {
            let mut record = one.record;
            record.completed_at = record.chunks.last().map_or(0, |last| last.at);
            record.processed_at = record.completed_at;
            finished(record)
        });
        let certificate = judge(events.collect());
        for (metric, errors) in truth {
            assert!(
                errors.len() as u64 >= REQUESTS,
                "{metric}: {} errors in {cell:?}",
                errors.len()
            );
            let bound = certificate.bound(metric).expect("a bound").p99_error;
            let within = errors.iter().filter(|error| **error <= bound).count();
            let covered = within as f64 / errors.len() as f64;
            if covered < COVERED {
                failures.push(format!("{metric}: {covered:.4} within {bound} s in {cell:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}\n{}", failures.len(), failures.join("\n"));
}
