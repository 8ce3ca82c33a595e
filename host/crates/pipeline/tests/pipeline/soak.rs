//! A soak in the small: tens of thousands of requests through many threads, with answers in any
//! order, failures, and an end that cuts through the middle. Every request has exactly one end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_model::{ErrorClass, FailureReason, RequestId, Response, Session};
use veeksha_pipeline::{Control, Plan, run};
use veeksha_ports::{ConnectionUse, Job, PendingOutcome, RequestOutcome, Sinks, Timings, Transport};
use veeksha_scheduler::{ConcurrencyLimits, GracePeriod, Interval, Shard, TrafficRule};
use veeksha_stats::RandomStream;

use crate::fakes::{Kind, factory, plan, request};
use crate::virtual_time::words;

enum ClientInput {
    Job(Box<Job>),
    CancelAll,
}

/// Answers on separate threads after up to 3 ms, in any order; every tenth request fails.
struct Random {
    clients: Vec<Sender<ClientInput>>,
    submitted: Arc<Mutex<Vec<RequestId>>>,
    in_flight: Arc<AtomicUsize>,
    /// Requests in flight at once, at most.
    most: Arc<AtomicUsize>,
}

impl Transport for Random {
    fn submit(&self, job: Job) {
        let in_flight = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(in_flight, Ordering::Relaxed);
        self.submitted.lock().unwrap().push(job.id);
        let client = job.id.session.0 as usize % self.clients.len();
        self.clients[client]
            .send(ClientInput::Job(Box::new(job)))
            .unwrap();
    }

    fn cancel(&self, _: RequestId) {}

    fn cancel_all(&self) {
        for client in &self.clients {
            client.send(ClientInput::CancelAll).unwrap();
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// Understood on the completion thread.
struct Late(RequestOutcome);

impl PendingOutcome for Late {
    fn id(&self) -> RequestId {
        self.0.job.id
    }

    fn outcome(self: Box<Self>) -> RequestOutcome {
        self.0
    }
}

fn end(clock: RunClock, job: Job, fails: Option<ErrorClass>) -> Box<dyn PendingOutcome> {
    let at = clock.now();
    let result = match fails {
        None => Ok(Response {
            text: "four words of answer".into(),
            output_tokens: 4,
            usage: Some(Default::default()),
            ..Response::default()
        }),
        Some(class) => Err(FailureReason {
            request: job.id,
            class,
            status: None,
            retry_after: None,
            message: "unlucky".into(),
            at,
        }),
    };
    Box::new(Late(RequestOutcome {
        timings: Timings {
            completed_at: at,
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
        result,
        codec_failure: None,
        job,
    }))
}

fn client(clock: RunClock, sinks: &Sinks, inputs: &Receiver<ClientInput>, in_flight: &AtomicUsize) {
    let mut jobs: BTreeMap<u64, Job> = BTreeMap::new();
    let mut due: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let mut count = 0;
    loop {
        let wait = due
            .peek()
            .map_or(1_000_000, |Reverse((at, _))| at.saturating_sub(clock.now()));
        match inputs.recv_timeout(Duration::from_nanos(wait)) {
            Ok(ClientInput::Job(job)) => {
                let mut draws =
                    RandomStream::new(job.id.session.0, u64::from(job.id.node.0), "latency").draws();
                count += 1;
                due.push(Reverse((clock.now() + u64::from(draws.below(3_000_000)), count)));
                jobs.insert(count, *job);
            }
            Ok(ClientInput::CancelAll) => {
                for (_, job) in std::mem::take(&mut jobs) {
                    in_flight.fetch_sub(1, Ordering::Relaxed);
                    (sinks.returned)(end(clock, job, Some(ErrorClass::Cancelled)));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Some(Reverse((_, number))) = due.peek().filter(|Reverse((at, _))| *at <= clock.now()) {
            let job = jobs.remove(number);
            due.pop();
            let Some(job) = job else { continue };
            in_flight.fetch_sub(1, Ordering::Relaxed);
            let id = job.id;
            if job.reports_first_chunk && id.session.0 % 3 > 0 {
                (sinks.first_chunk)(id, clock.now());
            }
            (sinks.returned)(end(
                clock,
                job,
                (id.session.0 % 10 == 7).then_some(ErrorClass::Status),
            ));
        }
    }
}

fn soak(plan: &Plan) {
    let (tokenizer, materializer) = words();
    let submitted = Arc::<Mutex<Vec<RequestId>>>::default();
    let (events, entries) = unbounded();
    let kind = Kind::Generated {
        seed: 0,
        length: None,
        session: |_, _| Session {
            requests: vec![request(0, &[]), request(1, &[0]), request(2, &[0])],
            ..Session::default()
        },
        only: Shard::WHOLE,
    };
    let (seen, most) = (submitted.clone(), Arc::<AtomicUsize>::default());
    let most_seen = most.clone();
    let start = move |clock: RunClock, sinks: Sinks| {
        let in_flight = Arc::new(AtomicUsize::new(0));
        let clients = (0..3).map(|_| {
            let (client_end, inputs) = unbounded();
            let (sinks, in_flight) = (sinks.clone(), in_flight.clone());
            std::thread::spawn(move || client(clock, &sinks, &inputs, &in_flight));
            client_end
        });
        let transport = Random {
            clients: clients.collect(),
            submitted: seen,
            in_flight: in_flight.clone(),
            most: most_seen,
        };
        Ok(Arc::new(transport) as Arc<dyn Transport>)
    };
    let control = Control::default();
    let end = run(
        plan,
        &factory(kind),
        tokenizer,
        materializer.clone(),
        start,
        &events,
        &control,
    )
    .unwrap();
    drop(events);
    assert!(end.plugin_failures.is_empty());
    let limit = plan
        .scheduler
        .limits
        .in_flight
        .map_or(usize::MAX, |most| most as usize);
    assert!(
        most.load(Ordering::Relaxed) <= limit,
        "more in flight than {limit}"
    );

    let submitted = submitted.lock().unwrap();
    let sent: BTreeSet<RequestId> = submitted.iter().copied().collect();
    assert_eq!(sent.len(), submitted.len(), "submitted twice");
    let (mut dispatched, mut finished, mut never) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut started, mut ended) = (BTreeSet::new(), BTreeMap::new());
    for entry in entries {
        match entry.event {
            Event::Dispatched { request, .. } => assert!(dispatched.insert(request), "{request}"),
            Event::Finished(record) => assert!(finished.insert(record.id), "{}", record.id),
            Event::NeverSent { request, .. } => assert!(never.insert(request), "{request}"),
            Event::SessionStarted { session, .. } => assert!(started.insert(session), "{session}"),
            Event::SessionFinished {
                session, requests, ..
            } => {
                assert!(ended.insert(session, requests).is_none(), "{session}");
            }
            _ => {}
        }
    }
    assert_eq!(dispatched, sent);
    assert_eq!(finished, sent);
    assert!(sent.is_disjoint(&never));
    assert_eq!(started, ended.keys().copied().collect());
    assert!(ended.values().all(|requests| *requests == 3));
    assert_eq!(sent.len() + never.len(), 3 * started.len());
    assert!(
        sent.len() > 1_000 && !never.is_empty(),
        "{} sent, {} never",
        sent.len(),
        never.len()
    );
}

#[test]
fn every_request_has_exactly_one_end() {
    let few = ConcurrencyLimits {
        sessions: Some(60),
        in_flight: Some(40),
        in_prefill: Some(20),
    };
    let interval = Interval::Fixed { interval: 0.000_05 };
    for (traffic, limits, threads, cancel) in [
        (TrafficRule::Rate(interval), ConcurrencyLimits::default(), 3, true),
        (TrafficRule::Rate(interval), few, 2, false),
        (
            TrafficRule::Concurrent {
                target: 64,
                ramp: 100_000_000,
            },
            few,
            4,
            true,
        ),
    ] {
        let mut plan = plan();
        plan.scheduler.traffic = traffic;
        plan.scheduler.limits = limits;
        plan.scheduler.max_sessions = None;
        plan.scheduler.cancel_session_on_failure = cancel;
        plan.scheduler.benchmark_timeout = Some(500_000_000);
        plan.scheduler.grace = GracePeriod::Bounded(1_000_000);
        (plan.dispatchers, plan.completion_threads, plan.plugin_threads) = (threads, threads, 2);
        soak(&plan);
    }
}
