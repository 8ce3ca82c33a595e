//! A run that never was, for looking at its page: two phases of load, a stall, failures, sessions with branches, a custom metric.

use std::collections::BTreeMap;

use veeksha_events::{Event, NeverSentReason, RequestRecord, RunInfo, SessionEnd, Status};
use veeksha_model::{
    Better, Chunk, ChunkKind, ErrorClass, HistoryMode, MetricDefinition, MetricSample, Nanos, NodeId,
    RequestId, SessionId, StampSource, Usage,
};
use veeksha_page::{
    Bound, Certificate, Check, CheckOutcome, Fact, Failures, Figure, Finding, Metric, MetricSummary,
    NeverSent, PageData, Plugin, RequestSample, RunFacts, Slice, SliceColumn, Slices, Slo, Verdict,
    WorstWindow,
};
use veeksha_stats::Summary;

/// Numbers that look random and are the same each time (SplitMix64).
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to 1, without 0.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with this mean.
    pub(crate) fn waiting(&mut self, mean: f64) -> f64 {
        -self.share().ln() * mean
    }

    /// Log-normal around a median.
    pub(crate) fn around(&mut self, median: f64, spread: f64) -> f64 {
        let normal = (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos();
        median * (normal * spread).exp()
    }
}

/// Seconds as nanoseconds.
pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

/// A record of an answered request, to be changed as needed.
pub(crate) fn record(session: u64, node: u32, dispatched: Nanos, chunks: &[Nanos]) -> RequestRecord {
    let completed = chunks.last().copied().unwrap_or(dispatched) + 200_000;
    RequestRecord {
        id: RequestId {
            session: SessionId(session),
            node: NodeId(node),
        },
        session_requests: 1,
        parents: Vec::new(),
        history_parent: None,
        wait_after_ready: 0,
        intended: dispatched.saturating_sub(40_000),
        held: Default::default(),
        dispatched_at: dispatched,
        picked_up_at: Some(dispatched + 8_000),
        sent_at: Some(dispatched + 60_000),
        first_byte_at: chunks.first().map(|at| at.saturating_sub(300_000)),
        completed_at: completed,
        processed_at: completed + 30_000,
        stamps: StampSource::Kernel,
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
        chunk_tokens: Vec::new(),
        status: Status::Ok {
            finish_reason: "length".into(),
        },
        http_status: Some(200),
        target_prompt_tokens: 512,
        prompt_tokens: 512,
        total_prompt_tokens: 512,
        target_output_tokens: Some(chunks.len() as u32),
        output_tokens: chunks.len() as u32,
        output_tokens_from_usage: true,
        usage: Some(Usage {
            prompt: 512,
            completion: chunks.len() as u32,
            cached: Some(0),
            reasoning: None,
        }),
        connection_reused: true,
        server: 0,
        resolve: None,
        connect: None,
        tls: None,
        retried: false,
        measured: true,
        template_tokens: 0,
        history_mode: HistoryMode::Live,
        recorded: None,
        ideal_cached_tokens: None,
        labels: Vec::new(),
    }
}

struct Node {
    node: u32,
    parents: Vec<u32>,
    wait: f64,
}

/// A chain, a fork that joins again, or a single request.
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

/// The events of about `requests` requests in `seconds`, in the order of their sessions.
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
                // Nothing comes while the server stalls.
                if at > stall.0 && at < stall.1 {
                    at = stall.1 + draw.share() * 0.02;
                }
                chunks.push(nanos(at));
            }
            first = chunks[0] as f64 / 1e9;
            let mut record = record(session, node.node, nanos(dispatched), &chunks);
            record.intended = nanos(intended);
            record.session_requests = nodes.len() as u32;
            record.parents = node.parents.iter().map(|&parent| NodeId(parent)).collect();
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

fn summary(values: &mut Vec<f64>) -> Option<MetricSummary> {
    Summary::of(values).map(|summary| MetricSummary {
        count: summary.count as u64,
        mean: summary.mean,
        std: summary.std,
        min: summary.min,
        max: summary.max,
        p50: summary.p50,
        p90: summary.p90,
        p95: summary.p95,
        p99: summary.p99,
    })
}

fn fact(name: &str, value: &str) -> Fact {
    Fact {
        name: name.into(),
        value: value.into(),
    }
}

/// The page's data of these events.
pub(crate) fn data(events: &[Event], limit: usize) -> PageData {
    let mut sample = RequestSample::new(limit);
    events.iter().for_each(|event| sample.on(event));
    let records: Vec<&RequestRecord> = events
        .iter()
        .filter_map(|event| match event {
            Event::Finished(record) => Some(&**record),
            _ => None,
        })
        .collect();
    let answered: Vec<&RequestRecord> = records.iter().copied().filter(|record| record.is_ok()).collect();
    let seconds = |from: Nanos, to: Nanos| (to as f64 - from as f64) / 1e9;
    let first = |record: &RequestRecord| record.generated_at().next();
    let last = |record: &RequestRecord| record.generated_at().last();
    let mut ttfc: Vec<f64> = records
        .iter()
        .filter_map(|record| Some(seconds(record.dispatched_at, first(record)?)))
        .collect();
    let mut tpot: Vec<f64> = answered
        .iter()
        .filter(|record| record.output_tokens > 1)
        .filter_map(|record| {
            Some(seconds(first(record)?, last(record)?) / f64::from(record.output_tokens - 1))
        })
        .collect();
    let mut whole: Vec<f64> = answered
        .iter()
        .filter_map(|record| Some(seconds(record.dispatched_at, last(record)?)))
        .collect();
    let mut gaps: Vec<f64> = records
        .iter()
        .flat_map(|record| {
            let at: Vec<Nanos> = record.generated_at().collect();
            at.windows(2)
                .map(|pair| seconds(pair[0], pair[1]))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut output: Vec<f64> = answered
        .iter()
        .map(|record| f64::from(record.output_tokens))
        .collect();
    let mut scores: Vec<f64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Sampled(sample) => Some(sample.value),
            _ => None,
        })
        .collect();
    let end = records
        .iter()
        .map(|record| record.completed_at)
        .max()
        .unwrap_or(1) as f64
        / 1e9;
    let tokens: f64 = output.iter().sum();
    let failed = records.len() - answered.len();
    let metric = |name: &str, label: &str, unit: &str, better: &str, definition: &str, summary| Metric {
        name: name.into(),
        label: label.into(),
        unit: unit.into(),
        better: better.into(),
        definition: definition.into(),
        plugin: None,
        summary,
    };
    let figure = |name: &str, label: &str, value: f64, unit: &str, count: usize, of: &str| Figure {
        name: name.into(),
        label: label.into(),
        value: Some(value),
        unit: unit.into(),
        count: Some(count as u64),
        count_of: Some(of.into()),
        ..Figure::default()
    };
    let metrics = vec![
        metric(
            "ttfc",
            "Time to first chunk",
            "s",
            "less",
            "first generated chunk - dispatched",
            summary(&mut ttfc),
        ),
        metric(
            "tbc",
            "Time between chunks",
            "s",
            "less",
            "gaps between successive generated chunks",
            summary(&mut gaps),
        ),
        metric(
            "tpot",
            "Time per output token",
            "s",
            "less",
            "(last generated chunk - first) / (output tokens - 1)",
            summary(&mut tpot),
        ),
        metric(
            "end_to_end_latency",
            "End-to-end latency",
            "s",
            "less",
            "last generated chunk - dispatched",
            summary(&mut whole),
        ),
        metric(
            "num_output_tokens",
            "Output tokens",
            "tokens",
            "neither",
            "tokens generated",
            summary(&mut output),
        ),
        Metric {
            plugin: Some("scorer".into()),
            ..metric(
                "answer_score",
                "Answer score",
                "1",
                "higher",
                "share of the reference's facts that the answer names",
                summary(&mut scores),
            )
        },
    ];
    let of = |name: &str| {
        metrics
            .iter()
            .find(|metric| metric.name == name)
            .and_then(|metric| metric.summary)
            .unwrap_or_default()
    };
    let slo = |expression: &str, observed: f64, bound: f64, unit: &str, comparison: &str, samples: u64| Slo {
        expression: expression.into(),
        observed: Some(observed),
        bound: Some(bound),
        unit: unit.into(),
        comparison: Some(comparison.into()),
        samples: Some(samples),
        met: Some(if comparison.starts_with('<') {
            observed < bound
        } else {
            observed > bound
        }),
        ..Slo::default()
    };
    let error_rate = failed as f64 / records.len().max(1) as f64;
    let slos = vec![
        Slo {
            worst_window: Some(WorstWindow {
                from: (end * 0.8 / 10.0).floor() * 10.0,
                to: (end * 0.8 / 10.0).floor() * 10.0 + 10.0,
                observed: of("ttfc").p99 * 1.4,
            }),
            ..slo(
                "p99(ttfc, window = 10s) < 1500ms",
                of("ttfc").p99 * 1.4,
                1.5,
                "s",
                "<",
                of("ttfc").count,
            )
        },
        slo("p95(tbc) < 40ms", of("tbc").p95, 0.04, "s", "<", of("tbc").count),
        slo(
            "error_rate < 1%",
            error_rate,
            0.01,
            "share",
            "<",
            records.len() as u64,
        ),
        Slo {
            name: Some("answers are good".into()),
            plugin: Some("tiered".into()),
            detail: Some("gold requests are held to 0.9, standard ones to 0.8".into()),
            ..slo(
                "mean(answer_score) > 0.85",
                of("answer_score").mean,
                0.85,
                "1",
                ">",
                of("answer_score").count,
            )
        },
    ];
    let bound = |name: &str, mean: f64, p99: f64| Bound {
        metric: name.into(),
        count: of(name).count,
        mean_error: mean,
        p99_error: p99,
        relative: Some(mean / of(name).p50),
        source: "estimated".into(),
    };
    let mut failures: BTreeMap<&str, Failures> = BTreeMap::new();
    for record in &records {
        if let Status::Failed { class, message } = &record.status {
            let entry = failures.entry(class.name()).or_insert_with(|| Failures {
                class: class.name().into(),
                count: 0,
                first_message: message.clone(),
                first_request: Some(record.id.to_string()),
                first_at: Some(record.completed_at as f64 / 1e9),
            });
            entry.count += 1;
        }
    }
    let withdrawn = events
        .iter()
        .filter(|event| matches!(event, Event::NeverSent { .. }))
        .count();
    let slices = (0..10)
        .map(|index| {
            let (from, to) = (end * f64::from(index) / 10.0, end * f64::from(index + 1) / 10.0);
            let within: Vec<&&RequestRecord> = records
                .iter()
                .filter(|record| (nanos(from)..nanos(to)).contains(&record.intended))
                .collect();
            let mut ttfc: Vec<f64> = within
                .iter()
                .filter_map(|record| Some(seconds(record.dispatched_at, first(record)?)))
                .collect();
            let summary = summary(&mut ttfc);
            let tokens: u32 = within.iter().map(|record| record.output_tokens).sum();
            Slice {
                from,
                to,
                values: vec![
                    Some(within.len() as f64),
                    Some(f64::from(tokens) / (to - from)),
                    summary.map(|summary| summary.p50),
                    summary.map(|summary| summary.p99),
                    Some(within.iter().filter(|record| !record.is_ok()).count() as f64),
                ],
            }
        })
        .collect();
    let column = |label: &str, unit: &str| SliceColumn {
        label: label.into(),
        unit: unit.into(),
    };
    let check = |name: &str, outcome, summary: &str, details: &[&str]| Check {
        name: name.into(),
        outcome,
        summary: summary.into(),
        details: details.iter().map(|detail| (*detail).into()).collect(),
    };
    PageData {
        run: RunFacts {
            name: "two-phase chat, 8B".into(),
            summary: Some("Chats with branches against one vLLM server; the rate of new sessions doubles half way.".into()),
            facts: vec![
                fact("Model", "meta-llama/Llama-3.1-8B-Instruct"),
                fact("Server", "http://10.0.4.17:8000/v1"),
                fact("Traffic", "Poisson, 3.5 then 7 sessions/s"),
                fact("Seed", "42"),
                fact("Workload digest", "9f2c41d07be8a613"),
            ],
            started_unix: Some(1_795_000_000.0),
            elapsed: Some(end),
            ..RunFacts::default()
        },
        certificate: Some(Certificate {
            verdict: Verdict::Degraded,
            basis: Some("the run's own record".into()),
            findings: vec![
                Finding {
                    verdict: Verdict::Degraded,
                    metric: Some("tbc".into()),
                    what: "TBC: error 1.4 % of its P50 (253 µs of 18.1 ms): chunks were read up to 0.9 ms after the kernel had them, while another process held a core of a client thread".into(),
                    remedy: Some("leave a core to each client thread (runtime.num_client_threads: 1), or stop what else runs on this machine".into()),
                },
                Finding {
                    verdict: Verdict::Valid,
                    metric: None,
                    what: "41 requests opened a connection, and waited for it: that time is part of their time to first chunk".into(),
                    remedy: None,
                },
            ],
            bounds: vec![
                bound("ttfc", 42e-6, 310e-6),
                bound("tbc", 0.014 * of("tbc").p50, 0.9e-3),
                bound("tpot", 4e-6, 22e-6),
                bound("end_to_end_latency", 61e-6, 540e-6),
            ],
        }),
        figures: vec![
            figure("goodput", "Goodput", 1.0 - error_rate - 0.03, "share", records.len() + withdrawn, "intended"),
            figure("requests_per_second", "Throughput", answered.len() as f64 / end, "requests/s", answered.len(), "answered"),
            figure("output_tokens_per_second", "Output", tokens / end, "tokens/s", tokens as usize, "tokens"),
            Figure {
                error: Some(310e-6),
                ..figure("p50_ttfc", "TTFC, median", of("ttfc").p50, "s", of("ttfc").count as usize, "")
            },
            Figure {
                error: Some(0.9e-3),
                ..figure("p99_tbc", "TBC, P99", of("tbc").p99, "s", of("tbc").count as usize, "gaps")
            },
            figure("error_rate", "Errors", error_rate, "share", records.len(), "sent"),
        ],
        metrics,
        slos,
        curves: None,
        requests: sample.finish(),
        failures: failures.into_values().collect(),
        never_sent: vec![NeverSent {
            reason: "session_cancelled".into(),
            count: withdrawn as u64,
            meaning: "an earlier request of their session had failed".into(),
        }],
        slices: Some(Slices {
            columns: vec![
                column("Requests", "requests"),
                column("Output", "tokens/s"),
                column("TTFC P50", "s"),
                column("TTFC P99", "s"),
                column("Failed", "requests"),
            ],
            rows: slices,
        }),
        health: vec![
            check("Session dispatch rate", CheckOutcome::Passed, "5.24 sessions/s were asked for, 5.21 were begun", &[]),
            check("Intra-session arrival", CheckOutcome::Passed, "2,046 waits, at most 0.4 ms late", &[]),
            check("Prompt length", CheckOutcome::Passed, "every prompt has the length that was asked for", &[]),
            check("Output length", CheckOutcome::Failed, "31 answers are shorter than asked for", &["request 17/2: 12 of 140 tokens, finish reason stop", "request 88/0: 55 of 60 tokens, finish reason stop"]),
            check("Lifecycle delays", CheckOutcome::Warned, "pick-up after dispatch: P99 0.8 ms, more than the 0.5 ms that are usual", &["client-1 had 71 % of a core"]),
            check("Dirty cache", CheckOutcome::Skipped, "the server does not report cached tokens", &[]),
        ],
        configuration: Some(CONFIGURATION.into()),
        plugins: vec![
            Plugin {
                name: "multi_turn".into(),
                role: "workload".into(),
                version: Some("0.1.0".into()),
                source: Some("shipped".into()),
                digest: Some("blake3:5d2b1f7c9e0a44b3a1fbb0d1d1c7c7f2b8c6f6a07c33ad1d9a7f0f9b7a1c2d3e".into()),
            },
            Plugin {
                name: "scorer".into(),
                role: "metric".into(),
                version: Some("2.0.1".into()),
                source: Some("plugins/scorer.wasm".into()),
                digest: Some("blake3:c0ffee7c9e0a44b3a1fbb0d1d1c7c7f2b8c6f6a07c33ad1d9a7f0f9b7a1c2d3e".into()),
            },
        ],
        machine: vec![
            fact("Processor", "AMD EPYC 7R13, 2 cores"),
            fact("Memory", "15.4 GiB"),
            fact("Kernel", "Linux 6.8.0"),
            fact("Clock", "tsc, resolution 1 ns"),
            fact("Timer slack", "50 µs"),
        ],
        versions: vec![
            fact("veeksha-host", "0.1.0"),
            fact("Contract", "veeksha:plugin 0.1.0"),
            fact("Server", "vLLM 0.11.0"),
            fact("Tokenizer", "meta-llama/Llama-3.1-8B-Instruct"),
        ],
    }
}

const CONFIGURATION: &str = r#"# resolved: defaults written out, secrets removed
seed: 42
session_generator:
  type: multi_turn
  turns: {type: uniform, min: 1, max: 6}
  branches: 3
traffic_scheduler:
  type: rate
  cancel_session_on_failure: true
  interval_generator:
    type: poisson
    arrival_rate: 5.25
client:
  type: openai_chat_completions
  api_base: http://10.0.4.17:8000/v1
  api_key: '***'
  model: meta-llama/Llama-3.1-8B-Instruct
  request_timeout: 30
runtime:
  benchmark_timeout: 180
  num_client_threads: 2
slos:
  - p99(ttfc, window = 10s) < 1500ms
  - p95(tbc) < 40ms
  - error_rate < 1%
"#;
