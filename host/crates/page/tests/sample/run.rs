//! The events of the run.

use std::collections::BTreeMap;

use veeksha_events::{Event, NeverSentReason, RequestRecord, RunInfo, SessionEnd, Status};
use veeksha_model::{
    Better, Chunk, ChunkKind, ErrorClass, MetricDefinition, MetricSample, Nanos, NodeId, RequestId,
    SessionId, Usage,
};
use veeksha_stats::{GOLDEN_GAMMA, split_mix64};

/// A deterministic pseudorandom generator (SplitMix64).
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    fn next(&mut self) -> u64 {
        let drawn = split_mix64(self.0);
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        drawn
    }

    /// Returns a uniform value from 0 to 1, without 0.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns an exponential value with this mean.
    pub(crate) fn waiting(&mut self, mean: f64) -> f64 {
        -self.share().ln() * mean
    }

    /// Returns a log-normal value around a median.
    pub(crate) fn around(&mut self, median: f64, spread: f64) -> f64 {
        let normal = (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos();
        median * (normal * spread).exp()
    }
}

/// Converts seconds to nanoseconds.
pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

/// A record of an answered request, to be changed as needed.
pub(crate) fn record(session: u64, node: u32, dispatched: Nanos, chunks: &[Nanos]) -> RequestRecord {
    let completed = chunks.last().copied().unwrap_or(dispatched) + 200_000;
    RequestRecord {
        intended: dispatched.saturating_sub(40_000),
        dispatched_at: dispatched,
        picked_up_at: Some(dispatched + 8_000),
        sent_at: Some(dispatched + 60_000),
        first_byte_at: chunks.first().map(|at| at.saturating_sub(300_000)),
        completed_at: completed,
        processed_at: completed + 30_000,
        chunks: chunks
            .iter()
            .map(|&at| Chunk {
                at,
                lag: 9_000,
                bytes: 180,
                kind: ChunkKind::Content,
                merged: false,
            })
            .collect(),
        status: Status::Ok {
            finish_reason: "length".into(),
        },
        target_prompt_tokens: 512,
        prompt_tokens: 512,
        total_prompt_tokens: 512,
        target_output_tokens: Some(chunks.len() as u32),
        output_tokens: chunks.len() as u32,
        usage: Some(Usage {
            prompt: 512,
            completion: chunks.len() as u32,
            cached: Some(0),
            reasoning: None,
        }),
        ..RequestRecord::answered(RequestId {
            session: SessionId(session),
            node: NodeId(node),
        })
    }
}

struct Node {
    node: u32,
    parents: Vec<u32>,
    wait: f64,
}

/// Returns a chain, a fork with a join, or a single request.
fn shape(draw: &mut Draw) -> Vec<Node> {
    let node = |node, parents: &[u32], wait| Node {
        node,
        parents: parents.to_vec(),
        wait,
    };
    match draw.share() {
        kind if kind < 0.25 => vec![node(0, &[], 0.0)],
        kind if kind < 0.7 => {
            let turns = 2 + (draw.share() * 4.0) as u32;
            (0..turns)
                .map(|turn| {
                    let parents: Vec<u32> = turn.checked_sub(1).into_iter().collect();
                    node(turn, &parents, if turn == 0 { 0.0 } else { draw.waiting(1.4) })
                })
                .collect()
        }
        _ => vec![
            node(0, &[], 0.0),
            node(1, &[0], draw.waiting(0.4)),
            node(2, &[0], draw.waiting(0.4)),
            node(3, &[0], draw.waiting(0.4)),
            node(4, &[1, 2, 3], draw.waiting(0.8)),
            node(5, &[4], draw.waiting(1.5)),
        ],
    }
}

/// Returns the events of about `requests` requests in `seconds`, in the order of their sessions.
#[expect(clippy::too_many_lines, reason = "one value with every field")]
pub(crate) fn events(requests: usize, seconds: f64, seed: u64) -> Vec<Event> {
    let mut draw = Draw::new(seed);
    let mut events = vec![Event::RunStarted(RunInfo::default())];
    events.push(Event::MetricDefined(MetricDefinition {
        name: "answer_score".into(),
        unit: "1".into(),
        better: Better::Higher,
        summary: "share of the reference's facts that the answer names".into(),
        plugin: "scorer".into(),
    }));
    // Arrivals: the second half of the run has twice the rate of the first.
    let sessions = (requests as f64 / 3.15).round().max(1.0) as u64;
    let mut starts: Vec<f64> = (0..sessions)
        .map(|_| {
            let place = draw.share() * 3.0;
            if place < 1.0 {
                place * 0.5 * seconds
            } else {
                (0.5 + (place - 1.0) * 0.24) * seconds
            }
        })
        .collect();
    starts.sort_by(f64::total_cmp);
    let stall = (0.72 * seconds, 0.72 * seconds + seconds * 0.012);
    for (session, start) in starts.iter().enumerate() {
        let session = session as u64;
        let nodes = shape(&mut draw);
        let tier = if draw.share() < 0.3 { "gold" } else { "standard" };
        events.push(Event::SessionStarted {
            session: SessionId(session),
            at: nanos(*start),
            requests: nodes.len() as u32,
        });
        let mut ends: BTreeMap<u32, f64> = BTreeMap::new();
        let mut prompt = 0.0;
        let mut failed = false;
        let mut last = *start;
        for node in &nodes {
            let id = RequestId {
                session: SessionId(session),
                node: NodeId(node.node),
            };
            let ready = node
                .parents
                .iter()
                .map(|parent| ends.get(parent))
                .try_fold(*start, |latest, end| end.map(|end| latest.max(*end)));
            let Some(ready) = ready.filter(|_| !failed) else {
                events.push(Event::NeverSent {
                    request: id,
                    reason: NeverSentReason::SessionCancelled,
                    at: nanos(last),
                });
                continue;
            };
            let intended = ready + node.wait;
            let dispatched = intended + draw.around(28e-6, 0.4);
            prompt += draw.around(420.0, 0.6);
            let late = dispatched > 0.5 * seconds;
            let ramp = ((dispatched - 0.5 * seconds) / (0.48 * seconds)).clamp(0.0, 1.0);
            let queue = if late {
                draw.waiting(0.05 + 0.28 * ramp)
            } else {
                draw.waiting(0.012)
            };
            let mut first = dispatched + draw.around(0.055, 0.16) + prompt / 21_000.0 + queue;
            let tokens = draw.around(150.0, 0.45).clamp(4.0, 640.0) as u32;
            let pace = if late { 0.0165 + 0.008 * ramp } else { 0.0128 };
            let mut at = first;
            let mut chunks = Vec::with_capacity(tokens as usize);
            for token in 0..tokens {
                if token > 0 {
                    at += draw.around(pace, 0.16);
                    if draw.share() < 0.004 {
                        at += draw.waiting(0.09);
                    }
                }
                // No request arrives while the server stalls.
                if at > stall.0 && at < stall.1 {
                    at = stall.1 + draw.share() * 0.02;
                }
                chunks.push(nanos(at));
            }
            first = chunks[0] as f64 / 1e9;
            let mut record = record(session, node.node, nanos(dispatched), &chunks);
            record.intended = nanos(intended);
            record.session_requests = nodes.len() as u32;
            record.parents = node.parents.iter().map(|&parent| NodeId(parent).into()).collect();
            record.history_parent = node.parents.first().map(|&parent| NodeId(parent));
            record.wait_after_ready = nanos(node.wait);
            record.total_prompt_tokens = prompt as u32;
            record.labels = vec![("tier".into(), tier.into())];
            if draw.share() < if late { 0.02 } else { 0.004 } {
                let (class, message, kept) = match draw.share() {
                    kind if kind < 0.6 => (
                        ErrorClass::Status,
                        "status 503: {\"error\":{\"message\":\"the engine's queue is full\"}}",
                        0,
                    ),
                    kind if kind < 0.85 => (
                        ErrorClass::Truncated,
                        "the stream ended after 38 chunks without a finish reason",
                        38,
                    ),
                    _ => (ErrorClass::Timeout, "no answer within 30 s", 0),
                };
                record.chunks.truncate(kept);
                record.output_tokens = record.chunks.len() as u32;
                record.http_status = Some(if class == ErrorClass::Status { 503 } else { 200 });
                record.completed_at = match class {
                    ErrorClass::Timeout => nanos(dispatched + 3.0),
                    ErrorClass::Status => nanos(dispatched + 0.012),
                    _ => record
                        .chunks
                        .last()
                        .map_or(nanos(first), |chunk| chunk.at + 1_000_000),
                };
                record.status = Status::Failed {
                    class,
                    message: message.into(),
                };
                failed = true;
            } else {
                events.push(Event::Sampled(MetricSample {
                    metric: "answer_score".into(),
                    value: (1.0 - draw.waiting(0.12)).max(0.0),
                    weight: 1.0,
                    request: Some(id),
                }));
            }
            let end = record.completed_at as f64 / 1e9;
            ends.insert(node.node, end);
            last = last.max(end);
            events.push(Event::Judged {
                plugin: "tiered".into(),
                request: id,
                good: !failed,
            });
            events.push(Event::Finished(Box::new(record)));
        }
        events.push(Event::SessionFinished {
            session: SessionId(session),
            at: nanos(last),
            end: if failed {
                SessionEnd::Cancelled
            } else {
                SessionEnd::Completed
            },
            requests: nodes.len() as u32,
        });
    }
    events.push(Event::RunEnded { at: nanos(seconds) });
    events
}
