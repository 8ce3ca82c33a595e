//! Lateness of a run's dispatches at 1,000 requests a second, with the real pipeline and a
//! transport that answers at once, for several lengths of spinning.
//!
//! ```text
//! cargo run --release -p veeksha-pipeline --example dispatch_precision [rounds]
//! ```
//!
//! Prints, in microseconds, the lateness of the dispatcher's stamp and what passes from there until
//! the transport has the job. The settings take turns, so that all of them meet the same noise of
//! the machine.

use std::sync::{Arc, Mutex};

use crossbeam_channel::unbounded;
use veeksha_clock::RunClock;
use veeksha_model::{Message, NodeId, Request, RequestId, Response, Role, Segment, Session};
use veeksha_pipeline::{Control, PipelineError, Plan, ReplaySchedule, run};
use veeksha_ports::{
    ConnectionUse, Job, PluginFailure, RequestOutcome, SessionSource, Sinks, Timings, Transport, Workload,
    WorkloadFactory, WorkloadInfo,
};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scheduler::{ConcurrencyLimits, GracePeriod, Interval, SchedulerConfig, Shard, TrafficRule};

struct OneTurn(WorkloadInfo);

impl WorkloadFactory for OneTurn {
    fn info(&self) -> &WorkloadInfo {
        &self.0
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        Ok(Workload::Planned(Box::new(Turns)))
    }
}

struct Turns;

impl SessionSource for Turns {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(None)
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let turn = |id: u64| Session {
            requests: vec![Request {
                node: NodeId(0),
                messages: vec![Message::new(
                    Role::User,
                    vec![Segment::Synthetic {
                        seed: id.into(),
                        tokens: 100,
                    }],
                )],
                ..Request::default()
            }],
            ..Session::default()
        };
        Ok((first..first + u64::from(count)).map(turn).collect())
    }
}

#[derive(Default)]
struct Lateness {
    stamped: Vec<u64>,
    submitted: Vec<u64>,
}

struct AtOnce {
    clock: RunClock,
    sinks: Sinks,
    lateness: Arc<Mutex<Lateness>>,
}

impl Transport for AtOnce {
    fn submit(&self, job: Job) {
        let now = self.clock.now();
        if let Ok(mut lateness) = self.lateness.lock() {
            lateness.stamped.push(job.dispatched_at - job.intended);
            lateness.submitted.push(now.saturating_sub(job.dispatched_at));
        }
        (self.sinks.returned)(Box::new(RequestOutcome {
            timings: Timings {
                completed_at: now,
                ..Timings::default()
            },
            connection: ConnectionUse::default(),
            status: None,
            chunk_texts: Vec::new(),
            chunk_tokens: Vec::new(),
            body_digest: None,
            response_id: None,
            trace_id: None,
            chunks: Vec::new(),
            result: Ok(Response::default()),
            codec_failure: None,
            job,
        }));
    }

    fn cancel(&self, _: RequestId) {}

    fn cancel_all(&self) {}

    fn in_flight(&self) -> usize {
        0
    }
}

fn plan(spin: u64) -> Plan {
    Plan {
        tools: Default::default(),
        scheduler: SchedulerConfig {
            tools: Vec::new(),
            traffic: TrafficRule::Rate(Interval::Poisson { rate: 1_000.0 }),
            limits: ConcurrencyLimits::default(),
            cancel_session_on_failure: true,
            max_sessions: Some(500),
            benchmark_timeout: None,
            grace: GracePeriod::Unbounded,
            seed: 7,
            shard: Shard::WHOLE,
        },
        spin,
        on_dispatcher_start: None,
        thread_watch: None,
        run_id: None,
        shard: Shard::WHOLE,
        schedule: ReplaySchedule::default(),
        arrivals: None,
        warmup: Vec::new(),
        dispatchers: 1,
        completion_threads: 1,
        plugin_threads: 1,
        pregenerate: false,
        clients: Default::default(),
        include_content: false,
        track_prefixes: false,
    }
}

fn row(name: &str, late: &mut [u64]) {
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize] as f64 / 1_000.0;
    println!(
        "{name:32} p50 {:8.1}  p90 {:8.1}  p99 {:8.1} µs",
        at(0.5),
        at(0.9),
        at(0.99)
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: u32 = std::env::args()
        .nth(1)
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(10);
    let tokenizer = Tokenizer::embedded()?;
    let materializer = Arc::new(Materializer::new(tokenizer.clone())?);
    let factory: Arc<dyn WorkloadFactory> = Arc::new(OneTurn(WorkloadInfo {
        name: "one turn".into(),
        version: "1".into(),
        summary: String::new(),
        engine: "example",
        digest: String::new(),
        granted: Vec::new(),
    }));
    let spins = [0, 50_000, 100_000, 200_000];
    let found: Vec<Arc<Mutex<Lateness>>> = spins.iter().map(|_| Arc::default()).collect();
    for _ in 0..rounds {
        for (spin, lateness) in spins.iter().zip(&found) {
            let lateness = lateness.clone();
            let start = move |clock: RunClock, sinks: Sinks| -> Result<Arc<dyn Transport>, PipelineError> {
                Ok(Arc::new(AtOnce {
                    clock,
                    sinks,
                    lateness,
                }))
            };
            let (events, entries) = unbounded();
            let collector = std::thread::spawn(move || entries.iter().count());
            run(
                &plan(*spin),
                &factory,
                &tokenizer,
                materializer.clone(),
                start,
                &events,
                &Control::default(),
            )?;
            drop(events);
            let _ = collector.join();
        }
    }
    for (spin, lateness) in spins.iter().zip(found) {
        if let Ok(mut lateness) = lateness.lock() {
            row(
                &format!("lateness, {} µs of spin", spin / 1_000),
                &mut lateness.stamped,
            );
            row("  stamp to transport", &mut lateness.submitted);
        }
    }
    Ok(())
}
