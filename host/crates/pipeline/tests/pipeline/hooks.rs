//! A plan's hooks: preparing threads, watching the machine; and a transport's callbacks besides
//! outcomes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use veeksha_clock::RunClock;
use veeksha_events::{Event, ThreadSample};
use veeksha_pipeline::{Control, Plan, run};
use veeksha_ports::{PluginFailure, PluginFailureKind, Sinks, Transport};
use veeksha_scheduler::ConcurrencyLimits;

use crate::fakes::{Echo, Server, echo, factory, paced, plan};
use crate::real_time::{ENDLESS, drive};
use crate::virtual_time::words;

/// The watch is called once a second and at the end: this run is shorter than a second, so there is
/// the last call. The threads are still there.
#[test]
fn watch_is_called_at_the_end() {
    let mut plan = paced();
    plan.dispatchers = 2;
    plan.thread_watch = Some(Arc::new(Mutex::new(|now| {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
        let dispatchers = names.filter(|name| name.starts_with("dispatcher-")).count();
        vec![
            Event::ThreadSampled(ThreadSample {
                thread: dispatchers.to_string(),
                at: now,
                ..ThreadSample::default()
            }),
            Event::ClockStepped { at: now, by: -5 },
        ]
    })));
    let ran = drive(&plan, ENDLESS, &Control::default()).unwrap();
    let samples: Vec<&ThreadSample> = ran
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::ThreadSampled(sample) => Some(sample),
            _ => None,
        })
        .collect();
    let last = samples.last().unwrap();
    // Other tests with other dispatchers run at the same time.
    assert!(last.thread.parse::<u32>().unwrap() >= 2, "{last:?}");
    let records = ran.records();
    let answered = records.iter().map(|record| record.completed_at).max().unwrap();
    assert!(answered <= last.at && last.at <= ran.end.at);
    let steps = ran
        .entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::ClockStepped { by: -5, .. }));
    assert_eq!(steps.count(), samples.len());
}

/// Returns whether the first chunk of each job is requested, and when a slow start of the transport
/// lets the first request be sent.
fn first_dispatch(plan: &Plan) -> (bool, u64) {
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let sent = jobs.clone();
    let start = move |clock: RunClock, sinks: Sinks| {
        std::thread::sleep(Duration::from_millis(60));
        echo(Server::Up, &sent)(clock, sinks)
    };
    let (tokenizer, materializer) = words();
    let (events, entries) = crossbeam_channel::unbounded();
    let control = Control::default();
    run(
        plan,
        &factory(ENDLESS),
        tokenizer,
        materializer.clone(),
        start,
        &events,
        &control,
    )
    .unwrap();
    drop(events);
    let dispatched = entries.iter().filter_map(|entry| match entry.event {
        Event::Dispatched { at, .. } => Some(at),
        _ => None,
    });
    let asked = jobs.lock().unwrap().iter().all(|job| job.reports_first_chunk);
    (asked, dispatched.min().unwrap())
}

#[test]
fn first_chunks_are_asked_for_where_prefill_is_limited_and_a_slow_start_delays_nothing() {
    let mut plan = paced();
    let (asked, first) = first_dispatch(&plan);
    assert!(!asked && first < 40_000_000, "{first}");
    plan.scheduler.limits = ConcurrencyLimits {
        in_prefill: Some(3),
        ..ConcurrencyLimits::default()
    };
    assert!(first_dispatch(&plan).0);
}

/// An echo whose plugin fails on every answer of the second turn.
struct Broken(Echo);

impl Transport for Broken {
    fn submit(&self, job: veeksha_ports::Job) {
        self.0.submit(job);
    }

    fn cancel(&self, _: veeksha_model::RequestId) {}

    fn cancel_all(&self) {}

    fn in_flight(&self) -> usize {
        0
    }
}

#[test]
fn a_codec_that_fails_is_reported_and_the_run_goes_on() {
    let start = |clock: RunClock, sinks: Sinks| {
        let broken = Sinks::outcomes(move |mut outcome| {
            if outcome.job.id.node.0 == 1 {
                let kind = PluginFailureKind::Trap;
                outcome.codec_failure = Some(Box::new(PluginFailure::new(
                    "codec",
                    "read",
                    kind,
                    "out of memory",
                )));
            }
            (sinks.returned)(Box::new(outcome));
        });
        Ok(Arc::new(Broken(Echo {
            server: Server::Up,
            clock,
            sink: broken,
            jobs: Arc::default(),
            unanswered: Mutex::default(),
        })) as Arc<dyn Transport>)
    };
    let (tokenizer, materializer) = words();
    let (events, entries) = crossbeam_channel::unbounded();
    let control = Control::default();
    let end = run(
        &plan(),
        &factory(ENDLESS),
        tokenizer,
        materializer.clone(),
        start,
        &events,
        &control,
    )
    .unwrap();
    drop(events);
    let finished = entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::Finished(_)));
    assert_eq!(finished.count(), 40);
    // Twenty failed in the same way.
    assert_eq!(end.plugin_failures.len(), 1);
    assert_eq!(end.plugin_failures[0].repeated, 19);
    assert!(end.plugin_failures[0].to_string().contains("out of memory"));
}
