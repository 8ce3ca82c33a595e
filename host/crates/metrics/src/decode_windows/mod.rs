//! Time between chunks while enough requests decode concurrently:
//! `metrics/decode_window_metrics.json`.
//!
//! A request *decodes* from its first generated chunk to its last. A *window* is a maximal interval
//! in which at least the configured number of requests decode. Veeksha cuts such an interval at
//! every request that begins or ends in it, so that its longest window is the longest piece between
//! two such instants. Here the interval is one window, and each gap counts once.

mod config;

use serde_json::{Value, json};
use veeksha_events::RequestRecord;
use veeksha_model::Nanos;
use veeksha_stats::Summary;

pub use self::config::{
    DecodeConcurrency, DecodeWindowRules, DecodeWindowSelection, WholeAnswers, WindowAnchor,
};
use veeksha_definitions::seconds_between;

/// Collects the decode phases of measured, answered requests. Holds four bytes per chunk and a few
/// numbers per request.
#[derive(Clone, Debug)]
pub struct DecodeWindows {
    config: DecodeWindowRules,
    rows: u64,
    skipped: SkippedRequests,
    phases: Vec<DecodePhase>,
    gaps: Vec<u32>,
    /// Gaps of 4.29 s and more, by their index in `gaps`, ascending.
    long_gaps: Vec<(usize, Nanos)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SkippedRequests {
    non_stream: u64,
    missing_anchor: u64,
    no_decode_chunks: u64,
    empty: u64,
}

/// The decode phase of a request, and the end of its gaps in the list of all gaps.
#[derive(Clone, Copy, Debug)]
struct DecodePhase {
    first: Nanos,
    last: Nanos,
    gaps_end: usize,
}

/// In nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DecodeWindow {
    start: Nanos,
    end: Nanos,
}

impl DecodeWindow {
    fn seconds(self) -> f64 {
        seconds_between(self.start, self.end)
    }
}

impl DecodeWindows {
    /// Creates an empty collection.
    pub fn new(config: DecodeWindowRules) -> Self {
        DecodeWindows {
            config,
            rows: 0,
            skipped: SkippedRequests::default(),
            phases: Vec::new(),
            gaps: Vec::new(),
            long_gaps: Vec::new(),
        }
    }

    /// Processes a finished request. Measured ones that did not fail count.
    pub fn on(&mut self, record: &RequestRecord) {
        if !record.measured || record.is_failed() {
            return;
        }
        self.rows += 1;
        let mut arrivals = record.output_at();
        let Some(first) = arrivals.next() else {
            self.skipped.empty += 1;
            return;
        };
        if self.config.whole_answers == WholeAnswers::SkipAsNonStream && !record.is_stream() {
            self.skipped.non_stream += 1;
            return;
        }
        if self.config.anchor == WindowAnchor::ClientPickup && record.picked_up_at.is_none() {
            self.skipped.missing_anchor += 1;
            return;
        }
        let mut last = first;
        let before = self.gaps.len();
        for at in arrivals {
            let gap = at.saturating_sub(last);
            last = last.max(at);
            self.gaps.push(u32::try_from(gap).unwrap_or_else(|_| {
                self.long_gaps.push((self.gaps.len(), gap));
                u32::MAX
            }));
        }
        if self.gaps.len() == before {
            self.skipped.no_decode_chunks += 1;
            return;
        }
        self.phases.push(DecodePhase {
            first,
            last,
            gaps_end: self.gaps.len(),
        });
    }

    /// Returns Veeksha's `decode_window_metrics.json`. Times are in seconds; window bounds are
    /// relative to the start of the run.
    pub fn finish(self) -> Value {
        let edges = self.edges();
        let peak = peak(&edges);
        let wanted = match self.config.min_active_requests {
            DecodeConcurrency::AtLeast(number) => u64::from(number.max(1)),
            DecodeConcurrency::MaxObserved => peak.max(1),
        };
        let candidates = windows(&edges, wanted);
        let selected = select(&candidates, self.config.selection);
        let mut samples = self.samples(&selected);

        let per_window: Vec<Value> = selected
            .iter()
            .zip(&mut samples)
            .enumerate()
            .map(|(index, (window, gaps))| window_statistics(index, *window, Summary::of(gaps)))
            .collect();
        let mut all: Vec<f64> = samples.into_iter().flatten().collect();
        let mut notes = Vec::new();
        if self.phases.is_empty() {
            notes.push("no request has two generated chunks, so none decoded".to_owned());
        } else if candidates.is_empty() {
            notes.push(format!(
                "there is no stretch of time in which {wanted} requests decoded at once; at most {peak} did"
            ));
        } else if all.is_empty() {
            notes.push("no chunk arrived in the selected windows".to_owned());
        }
        let min_active = match self.config.min_active_requests {
            DecodeConcurrency::AtLeast(number) => json!(number),
            DecodeConcurrency::MaxObserved => json!("max_observed"),
        };
        let mut file = json!({
            "config": {
                "min_active_requests": min_active,
                "resolved_min_active_requests": wanted,
                "selection_strategy": self.config.selection.name(),
                "anchor_to_client_pickup": self.config.anchor == WindowAnchor::ClientPickup,
                "require_streaming": self.config.whole_answers == WholeAnswers::SkipAsNonStream,
            },
            "eligible_requests": {
                "total_request_rows": self.rows,
                "eligible": self.phases.len(),
                "skipped": {
                    "non_stream": self.skipped.non_stream,
                    "missing_anchor": self.skipped.missing_anchor,
                    "no_decode_chunks": self.skipped.no_decode_chunks,
                    "empty": self.skipped.empty,
                },
            },
            "windows": {
                "num_candidate_segments": candidates.len(),
                "num_selected_segments": selected.len(),
                "total_duration_s": selected.iter().map(|window| window.seconds()).fold(0.0, |sum, length| sum + length),
                "per_window": per_window,
            },
            "max_observed_active_requests": peak,
            "tbc_in_window_stats": stats(Summary::of(&mut all)),
            "notes": notes,
        });
        if let [window] = per_window.as_slice() {
            file["window"] = window.clone();
        }
        file
    }

    /// Returns the changes in the number of decoding requests; at equal instants, begins before
    /// ends.
    fn edges(&self) -> Vec<(Nanos, PhaseBoundary)> {
        let mut edges: Vec<_> = self
            .phases
            .iter()
            .flat_map(|phase| {
                [
                    (phase.first, PhaseBoundary::Begin),
                    (phase.last, PhaseBoundary::End),
                ]
            })
            .collect();
        edges.sort_unstable();
        edges
    }

    /// Returns the gaps, in seconds, whose chunk arrived in each window, bounds included.
    fn samples(&self, windows: &[DecodeWindow]) -> Vec<Vec<f64>> {
        let mut samples = vec![Vec::new(); windows.len()];
        let mut long_gaps = self.long_gaps.iter().peekable();
        let mut place = 0;
        for phase in &self.phases {
            let mut at = phase.first;
            while place < phase.gaps_end {
                let gap = match long_gaps.peek() {
                    Some((long, gap)) if *long == place => {
                        long_gaps.next();
                        *gap
                    }
                    _ => Nanos::from(self.gaps[place]),
                };
                at += gap;
                place += 1;
                // Windows are sorted and disjoint.
                let window = windows.partition_point(|window| window.end < at);
                if windows.get(window).is_some_and(|window| window.start <= at) {
                    samples[window].push(gap as f64 / 1e9);
                }
            }
        }
        samples
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PhaseBoundary {
    Begin,
    End,
}

/// Returns the peak number of concurrently decoding requests.
fn peak(edges: &[(Nanos, PhaseBoundary)]) -> u64 {
    let (mut active, mut peak) = (0u64, 0);
    for (_, edge) in edges {
        match edge {
            PhaseBoundary::Begin => active += 1,
            PhaseBoundary::End => active -= 1,
        }
        peak = peak.max(active);
    }
    peak
}

/// Returns the intervals in which at least `wanted` (not 0) requests decode, in order, without
/// empty ones.
fn windows(edges: &[(Nanos, PhaseBoundary)], wanted: u64) -> Vec<DecodeWindow> {
    let mut windows = Vec::new();
    let (mut active, mut start) = (0u64, 0);
    for (at, edge) in edges {
        match edge {
            PhaseBoundary::Begin => {
                active += 1;
                if active == wanted {
                    start = *at;
                }
            }
            PhaseBoundary::End => {
                if active == wanted && *at > start {
                    windows.push(DecodeWindow { start, end: *at });
                }
                active -= 1;
            }
        }
    }
    windows
}

fn select(candidates: &[DecodeWindow], selection: DecodeWindowSelection) -> Vec<DecodeWindow> {
    match selection {
        DecodeWindowSelection::All => candidates.to_vec(),
        DecodeWindowSelection::First => candidates.first().copied().into_iter().collect(),
        DecodeWindowSelection::Longest => {
            // `max_by_key` returns the last of equal maxima, which is the first one in reverse
            // order.
            let longest = candidates
                .iter()
                .rev()
                .max_by_key(|window| window.end - window.start);
            longest.copied().into_iter().collect()
        }
    }
}

fn window_statistics(index: usize, window: DecodeWindow, tbc: Option<Summary>) -> Value {
    json!({
        "window_index": index,
        "start": window.start as f64 / 1e9,
        "end": window.end as f64 / 1e9,
        "duration_s": window.seconds(),
        "tbc_count": tbc.map_or(0, |tbc| tbc.count),
        "tbc_mean": tbc.map(|tbc| tbc.mean),
        "tbc_median": tbc.map(|tbc| tbc.p50),
        "tbc_p99": tbc.map(|tbc| tbc.p99),
    })
}

fn stats(tbc: Option<Summary>) -> Value {
    json!({
        "count": tbc.map_or(0, |tbc| tbc.count),
        "mean": tbc.map(|tbc| tbc.mean),
        "median": tbc.map(|tbc| tbc.p50),
        "std": tbc.map(|tbc| tbc.std),
        "min": tbc.map(|tbc| tbc.min),
        "max": tbc.map(|tbc| tbc.max),
        "p90": tbc.map(|tbc| tbc.p90),
        "p99": tbc.map(|tbc| tbc.p99),
    })
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Chunk, ChunkKind};

    use super::*;
    use crate::blank;

    /// Content at these instants (in seconds), then the end of the stream.
    fn streamed(at: &[u64]) -> RequestRecord {
        let chunk = |at: u64, kind| Chunk {
            at: at * 1_000_000_000,
            lag: 0,
            bytes: 1,
            kind,
            merged: false,
        };
        let mut chunks: Vec<_> = at.iter().map(|at| chunk(*at, ChunkKind::Content)).collect();
        chunks.push(chunk(at.last().copied().unwrap_or(0), ChunkKind::Done));
        RequestRecord {
            chunks,
            output_tokens: at.len() as u32,
            ..blank::record()
        }
    }

    fn of(
        min_active_requests: DecodeConcurrency,
        selection: DecodeWindowSelection,
        records: &[RequestRecord],
    ) -> Value {
        let mut windows = DecodeWindows::new(DecodeWindowRules {
            min_active_requests,
            selection,
            ..DecodeWindowRules::default()
        });
        records.iter().for_each(|record| windows.on(record));
        windows.finish()
    }

    /// Three requests: A decodes in 0..10, B in 2..6, C in 4..20. Number of decoding requests: one
    /// in 0..2, two in 2..4, three in 4..6, two in 6..10, one in 10..20.
    fn three() -> [RequestRecord; 3] {
        [
            streamed(&[0, 3, 5, 10]),
            streamed(&[2, 4, 6]),
            streamed(&[4, 5, 9, 15, 20]),
        ]
    }

    #[test]
    fn a_stretch_with_enough_requests_is_one_window() {
        // At least two: 2..10, regardless of begins and ends within. Chunks that arrive in it: A's
        // at 3 (gap 3), 5 (2), 10 (5); B's at 4 (2), 6 (2); C's at 5 (1), 9 (4).
        let seen = of(
            DecodeConcurrency::AtLeast(2),
            DecodeWindowSelection::Longest,
            &three(),
        );
        assert_eq!(seen["windows"]["num_candidate_segments"], 1);
        let window = &seen["window"];
        assert_eq!((&window["start"], &window["end"]), (&json!(2.0), &json!(10.0)));
        assert_eq!(window["duration_s"], 8.0);
        let stats = &seen["tbc_in_window_stats"];
        // Sorted 1 2 2 2 3 4 5: mean 19/7, median 2, P90 at rank 5.4.
        assert_eq!((&stats["count"], &stats["median"]), (&json!(7), &json!(2.0)));
        assert_eq!((&stats["min"], &stats["max"]), (&json!(1.0), &json!(5.0)));
        assert!((stats["mean"].as_f64().unwrap() - 19.0 / 7.0).abs() < 1e-12);
        assert!((stats["p90"].as_f64().unwrap() - 4.4).abs() < 1e-12);
        assert_eq!(window["tbc_count"], 7);
    }

    #[test]
    fn max_observed_is_the_most_that_ever_decoded_at_once() {
        let seen = of(
            DecodeConcurrency::MaxObserved,
            DecodeWindowSelection::All,
            &three(),
        );
        assert_eq!(seen["config"]["min_active_requests"], "max_observed");
        assert_eq!(seen["config"]["resolved_min_active_requests"], 3);
        // 4..6; bounds included: A's 5 (2), B's 4 (2) and 6 (2), C's 5 (1).
        assert_eq!(
            (&seen["window"]["start"], &seen["window"]["end"]),
            (&json!(4.0), &json!(6.0))
        );
        assert_eq!(seen["window"]["tbc_count"], 4);
        assert_eq!(seen["window"]["tbc_mean"], 1.75);
    }

    #[test]
    fn windows_are_chosen_as_asked() {
        // Pairs decode concurrently in 0..2, 10..15 and 20..25.
        let mut records = Vec::new();
        for (begin, end) in [(0, 2), (10, 15), (20, 25)] {
            records.push(streamed(&[begin, end]));
            records.push(streamed(&[begin, end]));
        }
        let of = |selection| of(DecodeConcurrency::AtLeast(2), selection, &records);
        let starts = |seen: &Value| -> Vec<f64> {
            let windows = seen["windows"]["per_window"].as_array().unwrap();
            windows
                .iter()
                .map(|window| window["start"].as_f64().unwrap())
                .collect()
        };
        assert_eq!(starts(&of(DecodeWindowSelection::First)), [0.0]);
        assert_eq!(starts(&of(DecodeWindowSelection::Longest)), [10.0]);
        let all = of(DecodeWindowSelection::All);
        assert_eq!(starts(&all), [0.0, 10.0, 20.0]);
        assert_eq!(all["windows"]["num_selected_segments"], 3);
        assert_eq!(all["windows"]["total_duration_s"], 12.0);
        assert_eq!(all["tbc_in_window_stats"]["count"], 6);
        assert_eq!(all.get("window"), None);
        assert_eq!(all["windows"]["per_window"][2]["window_index"], 2);
    }

    #[test]
    fn one_that_begins_as_another_ends_keeps_the_window_open() {
        let seen = of(
            DecodeConcurrency::AtLeast(1),
            DecodeWindowSelection::All,
            &[streamed(&[0, 4]), streamed(&[4, 9])],
        );
        assert_eq!(
            (&seen["window"]["start"], &seen["window"]["end"]),
            (&json!(0.0), &json!(9.0))
        );
        // Two requests decode at the instant 4, which is an empty interval.
        let seen = of(
            DecodeConcurrency::AtLeast(2),
            DecodeWindowSelection::All,
            &[streamed(&[0, 4]), streamed(&[4, 9])],
        );
        assert_eq!(seen["windows"]["num_candidate_segments"], 0);
        assert_eq!(seen["max_observed_active_requests"], 2);
        assert_eq!(seen["tbc_in_window_stats"]["mean"], Value::Null);
        assert!(seen["notes"][0].as_str().unwrap().contains("at most 2 did"));
    }

    #[test]
    fn long_gaps_are_not_cut() {
        // 5 s and 6 s do not fit into 32 bits of nanoseconds.
        let seen = of(
            DecodeConcurrency::AtLeast(1),
            DecodeWindowSelection::All,
            &[streamed(&[0, 5, 6, 12]), streamed(&[0, 1, 8])],
        );
        let stats = &seen["tbc_in_window_stats"];
        assert_eq!((&stats["count"], &stats["max"]), (&json!(5), &json!(7.0)));
        // 5 + 1 + 6 and 1 + 7.
        assert_eq!(stats["mean"], 4.0);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let whole = RequestRecord {
            chunks: vec![Chunk {
                kind: ChunkKind::Finish,
                ..streamed(&[3]).chunks[0]
            }],
            output_tokens: 4,
            ..blank::record()
        };
        let unanchored = RequestRecord {
            picked_up_at: None,
            ..streamed(&[1, 2])
        };
        let drained = RequestRecord {
            measured: false,
            ..streamed(&[1, 2])
        };
        let records = [whole, unanchored, drained, streamed(&[5]), streamed(&[])];
        let seen = of(
            DecodeConcurrency::MaxObserved,
            DecodeWindowSelection::All,
            &records,
        );
        assert_eq!(
            seen["eligible_requests"],
            json!({
                "total_request_rows": 4, "eligible": 0,
                "skipped": {"non_stream": 1, "missing_anchor": 1, "no_decode_chunks": 1, "empty": 1},
            })
        );
        assert_eq!(seen["windows"]["per_window"], json!([]));
        assert_eq!(seen["windows"]["total_duration_s"].to_string(), "0.0");
        assert_eq!(seen["notes"].as_array().unwrap().len(), 1);

        // With the other settings, the request without a pickup counts, and the answer in one piece
        // is a request without decode chunks.
        let mut windows = DecodeWindows::new(DecodeWindowRules {
            anchor: WindowAnchor::Dispatch,
            whole_answers: WholeAnswers::Take,
            ..DecodeWindowRules::default()
        });
        records.iter().for_each(|record| windows.on(record));
        let seen = windows.finish();
        assert_eq!(
            seen["eligible_requests"],
            json!({
                "total_request_rows": 4, "eligible": 1,
                "skipped": {"non_stream": 0, "missing_anchor": 0, "no_decode_chunks": 2, "empty": 1},
            })
        );
        assert_eq!(seen["config"]["anchor_to_client_pickup"], false);
        assert_eq!(seen["config"]["require_streaming"], false);
        assert_eq!(seen["window"]["tbc_count"], 1);
    }
}
