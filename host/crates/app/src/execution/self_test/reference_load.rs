//! Traffic and timings of the self-test, derived from the run.

use std::fmt;

use serde_json::{Value, json};
use veeksha_metrics::{Evaluation, Metric};
use veeksha_model::Nanos;
use veeksha_scenario::{ClientKind, Scenario, Traffic};

use crate::execution::drive::realtime_priority;

/// Minimum number of requests; fewer contain no information about a tail.
const MIN_REQUESTS: f64 = 200.0;

/// Maximum number of requests; more only need memory.
const MAX_REQUESTS: f64 = 200_000.0;

/// Maximum gap of the reference server in seconds: the error of the client does not grow with it,
/// but the duration of the test does.
const MAX_GAP: f64 = 0.1;
const MAX_TTFC: f64 = 1.0;

/// Maximum number of tokens in a prompt: about 128 KiB, above which the test would measure the
/// reference server's reading of prompts.
const MAX_PROMPT: f64 = 32_768.0;

/// Gaps with a smaller coefficient of variation are equal.
const EQUAL_GAPS: f64 = 0.01;

/// The largest coefficient of variation that the scenario format accepts.
const MAX_VARIATION: f64 = 100.0;

/// The instants at which the test sends requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReferenceArrivals {
    /// Requests per second, and the coefficient of variation of the gaps between the run's
    /// requests: bursts delay one another.
    OpenLoop { rate: f64, variation: f64 },
    /// The number of requests in flight.
    ClosedLoop { streams: u32 },
}

impl fmt::Display for ReferenceArrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceArrivals::OpenLoop { rate, .. } => write!(f, "{rate:.1} per second"),
            ReferenceArrivals::ClosedLoop { streams } => write!(f, "{streams} at a time"),
        }
    }
}

impl ReferenceArrivals {
    fn scenario(&self) -> Value {
        match *self {
            ReferenceArrivals::OpenLoop { rate, variation } => {
                let gaps = if variation < EQUAL_GAPS {
                    json!({ "type": "fixed", "interval": 1.0 / rate })
                } else {
                    json!({ "type": "gamma", "arrival_rate": rate, "cv": variation })
                };
                json!({ "type": "rate", "interval_generator": gaps })
            }
            ReferenceArrivals::ClosedLoop { streams } => json!({
                "type": "concurrent",
                "target_concurrent_sessions": streams,
                "rampup_seconds": 0,
            }),
        }
    }
}

/// Workload and timings of the reference server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ReferenceLoad {
    pub(super) arrivals: ReferenceArrivals,
    /// Number of requests.
    pub(super) requests: u64,
    /// Seconds to the first chunk.
    pub(super) ttfc: f64,
    /// Seconds between chunks.
    pub(super) gap: f64,
    /// Tokens per prompt.
    prompt: u64,
    /// Chunks per answer: the reference server sends each token as a chunk, and the client's cost
    /// is per chunk, however many tokens the run's server put into one.
    chunks: u64,
}

impl ReferenceLoad {
    /// Summarizes a run for its self-test.
    ///
    /// # Errors
    /// The reason why no self-test is possible, if the run has no times to reproduce.
    pub(super) fn of(scenario: &Scenario, evaluation: &Evaluation) -> Result<Self, &'static str> {
        let seconds = scenario.certificate.self_test_seconds;
        let Some(ttfc) = evaluation.metric(Metric::Ttfc) else {
            return Err(if evaluation.counts.completed == 0 {
                "no request was answered"
            } else {
                "no answer was streamed, so the run has no time to first chunk to reproduce"
            });
        };
        let gaps = evaluation.metric(Metric::Tbc);
        // The mean, not the median: most gaps of a server that sends in bursts are close to 0, and
        // the load of the client is the number of chunks per second.
        let gap = gaps.map_or(0.01, |gaps| gaps.mean).clamp(1e-4, MAX_GAP);
        let chunks = 1.0 + gaps.map_or(0.0, |gaps| gaps.count as f64 / ttfc.count as f64);
        // The last answers must not outlast the test.
        let longest = (seconds / gap).clamp(2.0, 512.0);
        let chunks = chunks.round().clamp(2.0, longest);
        let ttfc = ttfc.p50.clamp(1e-4, MAX_TTFC);
        let arrivals = match &scenario.traffic_scheduler {
            Traffic::Concurrent(_) => closed_loop(evaluation, seconds, ttfc + gap * (chunks - 1.0)),
            Traffic::Rate(_) | Traffic::FixedSchedule(_) | Traffic::ArrivalProcess(_) => {
                open_loop(evaluation, seconds)
            }
        };
        let (arrivals, requests) =
            arrivals.ok_or("the run is too short: its rate and concurrency are unknown")?;
        let prompt = evaluation.metric(Metric::PromptTokens);
        Ok(ReferenceLoad {
            arrivals,
            requests: requests.round() as u64,
            ttfc,
            gap,
            prompt: prompt
                .map_or(32.0, |tokens| tokens.mean)
                .clamp(1.0, MAX_PROMPT)
                .round() as u64,
            chunks: chunks as u64,
        })
    }

    /// Returns the scenario of the test: the run's client settings with another workload.
    pub(super) fn scenario(&self, like: &Scenario, api_base: &str, threads: usize) -> Value {
        let (client, runtime) = (&like.client, &like.runtime);
        let kind = match client.kind {
            // The reference server does not support endpoints that only this scenario describes;
            // the client reads both in the same way.
            ClientKind::Template | ClientKind::Wasm => ClientKind::OpenaiChatCompletions,
            known => known,
        };
        json!({
            "seed": like.seed,
            "session_generator": {
                "type": "synthetic",
                "session_graph": { "type": "single_request" },
                "channels": [{ "type": "text", "body_length_generator": { "type": "fixed", "value": self.prompt } }],
                "output_spec": { "text": { "output_length_generator": { "type": "fixed", "value": self.chunks } } },
            },
            "traffic_scheduler": self.arrivals.scenario(),
            "client": {
                "type": kind.name(),
                "api_base": api_base,
                "model": "reference",
                "tokenizer": "embedded",
                "request_timeout": 60,
                "connections": client.connections,
                "http_version": client.http_version,
            },
            "runtime": {
                "max_sessions": self.requests,
                "benchmark_timeout": 0,
                "num_client_threads": threads,
                "num_dispatcher_threads": runtime.num_dispatcher_threads,
                "num_completion_threads": runtime.num_completion_threads,
                "spin_microseconds": runtime.spin_microseconds,
                // That of the run: the reference server is a target like any other.
                "realtime_priority": realtime_priority(like).level().unwrap_or(0),
                "dispatcher_cores": runtime.dispatcher_cores,
                "client_cores": runtime.client_cores,
            },
        })
    }
}

/// Returns closed-loop arrivals with the run's peak of requests in flight, and the number of
/// requests that takes the given seconds.
fn closed_loop(
    evaluation: &Evaluation,
    seconds: f64,
    answer_seconds: f64,
) -> Option<(ReferenceArrivals, f64)> {
    let in_flight = evaluation.curves.in_flight.over_window.as_ref()?;
    let streams = in_flight.max.clamp(1.0, 1e6);
    // Two rounds at least: the first opens connections, all at once.
    let least = MIN_REQUESTS.max(2.0 * streams);
    let requests = (streams * seconds / answer_seconds).clamp(least, MAX_REQUESTS.max(least));
    Some((
        ReferenceArrivals::ClosedLoop {
            streams: streams as u32,
        },
        requests,
    ))
}

/// Returns open-loop arrivals with the run's rate and burstiness, and the number of requests in the
/// given seconds.
fn open_loop(evaluation: &Evaluation, seconds: f64) -> Option<(ReferenceArrivals, f64)> {
    let window = evaluation.throughput.window_seconds?;
    let rate = evaluation.counts.requests as f64 / window.max(1e-3);
    // A slow run would give too few requests; a higher rate can only increase the error.
    let requests = (rate * seconds).clamp(MIN_REQUESTS, MAX_REQUESTS);
    let intended: Vec<Nanos> = evaluation.samples.intended().collect();
    Some((
        ReferenceArrivals::OpenLoop {
            rate: requests / seconds,
            variation: variation(&intended),
        },
        requests,
    ))
}

/// Returns the coefficient of variation of the gaps between ordered instants; that of a Poisson
/// process, 1, if there are too few.
fn variation(instants: &[Nanos]) -> f64 {
    let gaps: Vec<f64> = instants
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    if count < 2.0 || mean <= 0.0 {
        return 1.0;
    }
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    (variance.sqrt() / mean).min(MAX_VARIATION)
}

#[cfg(test)]
mod tests {
    use veeksha_events::{Event, RequestRecord};
    use veeksha_metrics::RunEvaluator;
    use veeksha_model::{Chunk, ChunkKind, NodeId, RequestId, SessionId};
    use veeksha_scenario::{Concurrent, FixedSchedule, Rate};

    use super::*;

    const MS: Nanos = 1_000_000;

    /// A run of requests at the given instants, in milliseconds: first chunk after 20 ms, then
    /// `chunks` more, of which every `burst` come together every 40 ms.
    fn run(intended: impl IntoIterator<Item = Nanos>, chunks: u64, burst: u64) -> Evaluation {
        let mut evaluator = RunEvaluator::new(Vec::new());
        for (session, at) in (0..).zip(intended) {
            let chunk = |place: u64| Chunk {
                at: (at + 20 + 40 * place.div_ceil(burst)) * MS,
                lag: 0,
                bytes: 20,
                kind: ChunkKind::Content,
                merged: false,
            };
            let chunks: Vec<Chunk> = (0..=chunks).map(chunk).collect();
            let completed_at = chunks.last().map_or(0, |last| last.at);
            evaluator.on(&Event::Finished(Box::new(RequestRecord {
                intended: at * MS,
                dispatched_at: at * MS,
                sent_at: Some(at * MS),
                completed_at,
                processed_at: completed_at,
                prompt_tokens: 700,
                total_prompt_tokens: 700,
                // Four tokens in a chunk.
                output_tokens: 4 * chunks.len() as u32,
                chunks,
                ..RequestRecord::answered(RequestId {
                    session: SessionId(session),
                    node: NodeId(0),
                })
            })));
        }
        evaluator.finish()
    }

    fn scenario() -> Scenario {
        let document = veeksha_scenario::Document::from_yaml("seed: 1", "test.yml").unwrap();
        let source = crate::scenario::source::Source::of(document, std::path::PathBuf::new());
        source.settle(&[], &[], true).unwrap().scenario
    }

    fn load(traffic: Traffic, evaluation: &Evaluation) -> ReferenceLoad {
        let scenario = Scenario {
            traffic_scheduler: traffic,
            ..scenario()
        };
        ReferenceLoad::of(&scenario, evaluation).expect("answers")
    }

    fn open() -> Traffic {
        Traffic::Rate(Rate::default())
    }

    #[test]
    fn equal_gaps_of_the_run_are_equal_in_the_test() {
        let of = load(open(), &run((0..2_000).map(|place| place * 10), 8, 1));
        let ReferenceArrivals::OpenLoop { rate, variation } = of.arrivals else {
            panic!("{of:?}");
        };
        // 100 requests per second, over a window that the last answer extends.
        assert!((98.0..=101.0).contains(&rate), "{of:?}");
        assert_eq!(variation, 0.0);
        assert_eq!(of.arrivals.scenario()["interval_generator"]["type"], "fixed");
        // Nine chunks of four tokens.
        assert_eq!((of.chunks, of.prompt), (9, 700));
        assert!((of.gap - 0.04).abs() < 1e-9, "{of:?}");
    }

    #[test]
    fn bursts_of_arrivals_are_bursts_in_the_test() {
        // Ten at a time, each second: gaps of 0 (nine of ten) and 1 s. Mean 0.1, variation 3.
        let of = load(
            Traffic::FixedSchedule(FixedSchedule::default()),
            &run((0..1_000).map(|place| place / 10 * 1_000), 8, 1),
        );
        let ReferenceArrivals::OpenLoop { variation, .. } = of.arrivals else {
            panic!("{of:?}");
        };
        assert!((2.9..=3.1).contains(&variation), "{of:?}");
        let generator = &of.arrivals.scenario()["interval_generator"];
        assert_eq!(generator["type"], "gamma");
    }

    #[test]
    fn closed_loops_keep_their_streams() {
        // 64 requests in flight at any time, of 340 ms.
        let of = load(
            Traffic::Concurrent(Concurrent::default()),
            &run((0..640).map(|place| place / 64 * 340), 8, 1),
        );
        assert_eq!(of.arrivals, ReferenceArrivals::ClosedLoop { streams: 64 });
        assert_eq!(of.arrivals.scenario()["target_concurrent_sessions"], 64);
        // Five seconds of 64 streams at 340 ms.
        assert_eq!(of.requests, 941);
    }

    #[test]
    fn chunks_that_came_together_count_as_chunks() {
        // 33 chunks, of which 8 arrive every 40 ms: a mean gap of 5 ms.
        let of = load(open(), &run((0..500).map(|place| place * 10), 32, 8));
        assert_eq!(of.chunks, 33);
        assert!((of.gap - 0.005).abs() < 1e-9, "{of:?}");
    }

    #[test]
    fn states_why_a_run_without_answers_has_no_reference() {
        assert_eq!(
            ReferenceLoad::of(&scenario(), &RunEvaluator::new(Vec::new()).finish()),
            Err("no request was answered")
        );
    }
}
