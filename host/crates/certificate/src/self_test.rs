//! Comparison of the client's measurements with those of a server whose own times are known.
//!
//! A *reference server* is a server on this machine that records, on the run's own clock, when a
//! request had arrived and when it wrote each event. The error of a measurement is the difference
//! between the client's value and the server's:
//!
//! * `ttfc`: (first generated chunk − dispatched) − (the server's first generated write − the
//!   request's arrival there);
//! * `end_to_end_latency`: the same for the last generated chunk and write;
//! * both from intended: from `intended` and the delay by limits, instead of dispatched;
//! * `tbc`: each gap of the client − the gap between the same two writes;
//! * `tpot`: the same for the whole time from the first to the last, per token after the first;
//! * `dispatch`: the request's arrival at the server − intended − held back.
//!
//! The difference contains the client's contribution (waking up, sending, reading), the loopback's
//! delivery in both directions, and the time until the reference server's thread noticed the
//! request. The measured error is therefore an upper bound of the client's error, too high by tens
//! of microseconds. A real network's delay is not included, and is not an error: it is part of what
//! a client observes.

use std::collections::HashMap;

use veeksha_definitions::{Metric, Observation, OptionalInstant, seconds_between};
use veeksha_events::{RequestRecord, Status};
use veeksha_metrics::latencies;
use veeksha_model::{ChunkKind, Nanos};
use veeksha_stats::Summary;

/// The reference server's record of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferenceRequest {
    /// `session/node`, from the request's `x-request-id`.
    pub id: String,
    /// The instant at which the whole request had been read.
    pub arrived_at: Nanos,
    /// The instant at which the head of the answer was written.
    pub headers_at: Nanos,
    /// Each event of the answer: the instant of the write, and the kind of chunk.
    pub chunks: Vec<(Nanos, ChunkKind)>,
}

/// Absolute errors, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorDistribution {
    /// Number of compared values.
    pub count: usize,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Upper confidence limit (95 %) of the 99th percentile. The P99 of a few hundred samples is
    /// itself uncertain: it would cover less than 98.5 % of the run's samples in every fifth test
    /// of 300 requests.
    pub p99_upper: f64,
    /// Arithmetic mean.
    pub mean_abs: f64,
    /// Largest.
    pub max: f64,
}

/// The result of a self-test. A statistic is `None` if nothing could be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfTest {
    /// Answered requests of the client.
    pub requests: usize,
    /// Answered requests that the server recorded.
    pub matched: usize,
    /// Answered requests that the server did not record.
    pub unmatched_requests: usize,
    /// Requests of the server that the client did not record, answered or not.
    pub unmatched_truth: usize,
    /// Matched requests with different numbers of generated chunks at client and server: only
    /// `dispatch` is compared.
    pub chunks_differ: usize,
    /// Time to first chunk.
    pub ttfc: Option<ErrorDistribution>,
    /// Time to first chunk from intended, without delays by limits.
    pub ttfc_from_intended: Option<ErrorDistribution>,
    /// Gaps between chunks.
    pub tbc: Option<ErrorDistribution>,
    /// Time per output token.
    pub tpot: Option<ErrorDistribution>,
    /// End-to-end latency.
    pub end_to_end: Option<ErrorDistribution>,
    /// End-to-end latency from intended, without delays by limits.
    pub end_to_end_from_intended: Option<ErrorDistribution>,
    /// Arrival at the server − the intended instant, without delays by limits.
    pub dispatch: Option<ErrorDistribution>,
}

impl SelfTest {
    /// Returns the errors of a metric; `None` also for metrics that have none.
    pub fn errors_of(&self, metric: Metric) -> Option<ErrorDistribution> {
        match metric {
            Metric::Ttfc => self.ttfc,
            Metric::TtfcFromIntended => self.ttfc_from_intended,
            Metric::Tbc => self.tbc,
            Metric::Tpot => self.tpot,
            Metric::EndToEnd => self.end_to_end,
            Metric::EndToEndFromIntended => self.end_to_end_from_intended,
            _ => None,
        }
    }
}

impl ErrorDistribution {
    fn of(errors: &[f64]) -> Option<ErrorDistribution> {
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        Summary::of(&mut sizes).map(|summary| ErrorDistribution {
            count: summary.count,
            p50: summary.p50,
            p99: summary.p99,
            p99_upper: upper_p99(&mut sizes).max(summary.p99),
            mean_abs: summary.mean,
            max: summary.max,
        })
    }
}

/// Returns the order statistic that is above the 99th percentile of the distribution with a
/// probability of 95 %: the number of samples above the true percentile is binomial, here
/// approximated by a normal distribution. The largest sample if there are too few.
fn upper_p99(sizes: &mut [f64]) -> f64 {
    let count = sizes.len() as f64;
    let rank = 0.99 * count + 1.645 * (0.99 * 0.01 * count).sqrt();
    let place = (rank.ceil() as usize).min(sizes.len().saturating_sub(1));
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.get(place).copied().unwrap_or(0.0)
}

#[derive(Debug, Default)]
struct SelfTestErrors {
    ttfc: Vec<f64>,
    ttfc_from_intended: Vec<f64>,
    tbc: Vec<f64>,
    tpot: Vec<f64>,
    end_to_end: Vec<f64>,
    end_to_end_from_intended: Vec<f64>,
    dispatch: Vec<f64>,
}

/// Compares answered requests with the server's record, by id. If the server lists an id twice (the
/// client sent the request again), the last entry counts.
pub fn compare(records: &[RequestRecord], truth: &[ReferenceRequest]) -> SelfTest {
    let known: HashMap<&str, &ReferenceRequest> = truth
        .iter()
        .map(|request| (request.id.as_str(), request))
        .collect();
    let mut seen = SelfTest::default();
    let mut errors = SelfTestErrors::default();
    let mut in_record = 0;
    for record in records {
        let reference = known.get(record.id.to_string().as_str());
        in_record += usize::from(reference.is_some());
        if !matches!(record.status, Status::Ok { .. }) {
            continue;
        }
        seen.requests += 1;
        let Some(reference) = reference else {
            seen.unmatched_requests += 1;
            continue;
        };
        seen.matched += 1;
        seen.chunks_differ += usize::from(!errors.add(record, reference));
    }
    SelfTest {
        unmatched_truth: known.len().saturating_sub(in_record),
        ttfc: ErrorDistribution::of(&errors.ttfc),
        ttfc_from_intended: ErrorDistribution::of(&errors.ttfc_from_intended),
        tbc: ErrorDistribution::of(&errors.tbc),
        tpot: ErrorDistribution::of(&errors.tpot),
        end_to_end: ErrorDistribution::of(&errors.end_to_end),
        end_to_end_from_intended: ErrorDistribution::of(&errors.end_to_end_from_intended),
        dispatch: ErrorDistribution::of(&errors.dispatch),
        ..seen
    }
}

impl SelfTestErrors {
    /// Adds one request. Returns true if client and server agree on the number of generated chunks.
    fn add(&mut self, record: &RequestRecord, reference: &ReferenceRequest) -> bool {
        let held = record.held.total() as f64 / 1e9;
        self.dispatch
            .push(seconds_between(record.intended, reference.arrived_at) - held);
        let wrote: Vec<Nanos> = reference
            .chunks
            .iter()
            .filter(|(_, kind)| kind.is_generated())
            .map(|(at, _)| *at)
            .collect();
        if wrote.len() != record.generated_at().count() {
            return false;
        }
        let (Some(first), Some(last)) = (wrote.first(), wrote.last()) else {
            return true;
        };
        let seen = latencies(record);
        let to_first = seconds_between(reference.arrived_at, *first);
        let to_last = seconds_between(reference.arrived_at, *last);
        let from_intended = |seen: Option<f64>, truth: f64| seen.map(|seen| seen - held - truth);
        self.ttfc.extend(seen.ttfc.map(|seen| seen - to_first));
        self.ttfc_from_intended
            .extend(from_intended(seen.ttfc_from_intended, to_first));
        self.end_to_end.extend(seen.end_to_end.map(|seen| seen - to_last));
        self.end_to_end_from_intended
            .extend(from_intended(seen.end_to_end_from_intended, to_last));
        if let Some(tpot) = seen.tpot {
            let truth = Observation {
                first: OptionalInstant::of(Some(*first)),
                last: OptionalInstant::of(Some(*last)),
                ..Observation::of(record)
            };
            self.tpot
                .extend(Metric::Tpot.sample(&truth).map(|truth| tpot - truth));
        }
        let gaps = wrote.windows(2).map(|pair| seconds_between(pair[0], pair[1]));
        self.tbc
            .extend(seen.tbc.iter().zip(gaps).map(|(seen, truth)| seen - truth));
        true
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Chunk, ErrorClass, Held, NodeId, RequestId, SessionId};

    use super::*;

    const US: Nanos = 1_000;
    const MS: Nanos = 1_000_000;

    /// Intended at 10 ms, held 2 ms by a limit, dispatched at 12.03 ms, with the given chunks.
    fn record(session: u64, chunks: &[Nanos]) -> RequestRecord {
        let chunk = |&at: &Nanos| Chunk {
            at,
            lag: 0,
            bytes: 1,
            kind: ChunkKind::Content,
            merged: false,
        };
        RequestRecord {
            id: RequestId {
                session: SessionId(session),
                node: NodeId(0),
            },
            intended: 10 * MS,
            held: Held {
                in_flight: 2 * MS,
                ..Held::default()
            },
            dispatched_at: 12 * MS + 30 * US,
            sent_at: Some(12 * MS + 50 * US),
            chunks: chunks.iter().map(chunk).collect(),
            output_tokens: 3,
            ..RequestRecord::answered(RequestId {
                session: SessionId(session),
                node: NodeId(0),
            })
        }
    }

    /// Arrived at 12.1 ms; wrote the role, three chunks and the end.
    fn served(session: u64) -> ReferenceRequest {
        ReferenceRequest {
            id: format!("{session}/0"),
            arrived_at: 12 * MS + 100 * US,
            headers_at: 12 * MS + 150 * US,
            chunks: vec![
                (20 * MS, ChunkKind::Role),
                (32 * MS, ChunkKind::Content),
                (42 * MS, ChunkKind::Content),
                (52 * MS, ChunkKind::Content),
                (52 * MS, ChunkKind::Finish),
            ],
        }
    }

    #[track_caller]
    fn close(actual: f64, micros: f64) {
        assert!(
            (actual * 1e6 - micros).abs() < 1e-6,
            "{actual} s instead of {micros} µs"
        );
    }

    #[test]
    fn errors_worked_out_by_hand() {
        // Observed 5, 15 and 2 µs after they were written.
        let seen = [32 * MS + 5 * US, 42 * MS + 15 * US, 52 * MS + 2 * US];
        let found = compare(&[record(7, &seen)], &[served(7)]);
        assert_eq!((found.requests, found.matched, found.chunks_differ), (1, 1, 0));
        // Dispatch to first chunk took 19975 µs; arrival to first write 19900.
        close(found.ttfc.unwrap().mean_abs, 75.0);
        // From intended without the 2 ms held: 22005 - 2000 = 20005 against 19900.
        close(found.ttfc_from_intended.unwrap().max, 105.0);
        // 39972 against 39900.
        close(found.end_to_end.unwrap().p50, 72.0);
        close(found.end_to_end_from_intended.unwrap().p50, 102.0);
        // Gaps of 10010 and 9987 against 10000 each: 10 and 13.
        let tbc = found.tbc.unwrap();
        assert_eq!(tbc.count, 2);
        close(tbc.mean_abs, 11.5);
        close(tbc.max, 13.0);
        // (19997 - 20000) / 2.
        close(found.tpot.unwrap().mean_abs, 1.5);
        // 12100 - 10000 - 2000.
        close(found.dispatch.unwrap().max, 100.0);
    }

    #[test]
    fn what_has_no_counterpart_is_counted() {
        let seen = [32 * MS, 42 * MS, 52 * MS];
        let mut failed = record(2, &seen);
        failed.status = Status::Failed {
            class: ErrorClass::Timeout,
            message: "late".into(),
        };
        let records = [record(0, &seen), record(1, &seen), failed, record(4, &seen[..2])];
        let found = compare(&records, &[served(0), served(2), served(3), served(4)]);
        assert_eq!(
            (found.requests, found.matched, found.unmatched_requests),
            (3, 2, 1)
        );
        // Session 3 is known to the server only; the failed one is known on both sides.
        assert_eq!((found.unmatched_truth, found.chunks_differ), (1, 1));
        // Chunks that differ in number cannot be paired; the arrival can be compared.
        assert_eq!(found.ttfc.map(|errors| errors.count), Some(1));
        assert_eq!(found.dispatch.map(|errors| errors.count), Some(2));
    }

    #[test]
    fn a_clock_that_runs_early_is_an_error_too() {
        let seen = [31 * MS, 42 * MS, 52 * MS];
        let found = compare(&[record(0, &seen)], &[served(0)]);
        // 18970 against 19900.
        close(found.ttfc.unwrap().mean_abs, 930.0);
    }

    #[test]
    fn no_compared_request_gives_no_result() {
        assert_eq!(compare(&[], &[]), SelfTest::default());
        let found = compare(&[record(0, &[])], &[]);
        assert_eq!((found.unmatched_requests, found.ttfc, found.tbc), (1, None, None));
    }
}
