//! Cost of a request on each thread of a run, with a transport that answers at once with 64 chunks
//! and the server's count.
//!
//! ```text
//! cargo run --release -p veeksha-pipeline --example request_cost [requests]
//! ```
//!
//! Prints the time that each kind of thread had a processor, in nanoseconds for each request.
//! Sessions are made before the clock starts; the transport's own work is done on the dispatcher's
//! thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crossbeam_channel::unbounded;
use veeksha_clock::RunClock;
use veeksha_model::{
    Chunk, ChunkKind, Message, NodeId, Request, RequestId, Response, Role, Segment, Session, Usage,
};
use veeksha_pipeline::{Control, PipelineError, Plan, ReplaySchedule, run};
use veeksha_ports::{
    ConnectionUse, Job, PluginFailure, RequestOutcome, SessionSource, Sinks, Timings, Transport, Workload,
    WorkloadFactory, WorkloadInfo,
};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scheduler::{ConcurrencyLimits, GracePeriod, SchedulerConfig, Shard, TrafficRule};

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

struct AtOnce {
    clock: RunClock,
    sinks: Sinks,
}

impl Transport for AtOnce {
    fn submit(&self, job: Job) {
        let now = self.clock.now();
        let chunk = |number| Chunk {
            at: now + number,
            lag: 0,
            bytes: 200,
            kind: ChunkKind::Content,
            merged: false,
        };
        let response = Response {
            text: "word ".repeat(64),
            finish_reason: "stop".into(),
            usage: Some(Usage {
                prompt: 100,
                completion: 64,
                ..Usage::default()
            }),
            output_tokens: 64,
            ..Response::default()
        };
        (self.sinks.returned)(Box::new(RequestOutcome {
            timings: Timings {
                completed_at: now,
                ..Timings::default()
            },
            connection: ConnectionUse::default(),
            status: Some(200),
            chunk_texts: Vec::new(),
            chunk_tokens: Vec::new(),
            body_digest: None,
            response_id: None,
            trace_id: None,
            chunks: (0..64).map(chunk).collect(),
            result: Ok(response),
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

/// Nanoseconds on a processor by the kind of thread: the part of its name before the number.
fn on_a_processor() -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    let threads = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    for thread in threads {
        let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let time = read("schedstat")
            .split(' ')
            .next()
            .and_then(|time| time.parse().ok());
        let name = read("comm")
            .trim_end()
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .to_owned();
        *times.entry(name).or_default() += time.unwrap_or(0u64);
    }
    times
}

fn plan(requests: u64) -> Plan {
    Plan {
        tools: Default::default(),
        scheduler: SchedulerConfig {
            tools: Vec::new(),
            traffic: TrafficRule::Concurrent { target: 64, ramp: 0 },
            limits: ConcurrencyLimits::default(),
            cancel_session_on_failure: true,
            max_sessions: Some(requests),
            benchmark_timeout: None,
            grace: GracePeriod::Unbounded,
            seed: 7,
            shard: Shard::WHOLE,
        },
        spin: 0,
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
        pregenerate: true,
        clients: Default::default(),
        include_content: false,
        track_prefixes: false,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let requests = std::env::args()
        .nth(1)
        .and_then(|requests| requests.parse().ok())
        .unwrap_or(50_000);
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
    let (before, after) = (Arc::new(Mutex::default()), Arc::new(Mutex::default()));
    let begun = before.clone();
    let start = move |clock: RunClock, sinks: Sinks| -> Result<Arc<dyn Transport>, PipelineError> {
        if let Ok(mut before) = begun.lock() {
            *before = on_a_processor();
        }
        Ok(Arc::new(AtOnce { clock, sinks }))
    };
    let mut plan = plan(requests);
    let ended = after.clone();
    plan.thread_watch = Some(Arc::new(Mutex::new(move |_| {
        if let Ok(mut after) = ended.lock() {
            *after = on_a_processor();
        }
        Vec::new()
    })));
    let (events, entries) = unbounded();
    let collector = std::thread::Builder::new()
        .name("collector".into())
        .spawn(move || entries.iter().count())?;
    run(
        &plan,
        &factory,
        &tokenizer,
        materializer,
        start,
        &events,
        &Control::default(),
    )?;
    drop(events);
    let _ = collector.join();
    let before = before.lock().map_err(|_| "sampling the threads failed")?;
    for (name, time) in after.lock().map_err(|_| "sampling the threads failed")?.iter() {
        let spent = time - before.get(name).copied().unwrap_or(0).min(*time);
        println!("{name:24} {:8} ns", spent / requests);
    }
    Ok(())
}
