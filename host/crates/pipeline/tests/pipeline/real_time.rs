//! Runs with the real clock.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::unbounded;
use veeksha_events::{Event, PluginRole, RequestRecord, SessionEnd};
use veeksha_model::{Segment, Session};
use veeksha_pipeline::{Control, EntryContent, EventEntry, PipelineError, Plan, RunEnd, run};
use veeksha_ports::Job;
use veeksha_prompt::Tokenizer;
use veeksha_scheduler::Shard;

use crate::fakes::{Kind, Server, echo, factory, paced, plan, request};
use crate::virtual_time::words;

pub(crate) struct Ran {
    pub(crate) end: RunEnd,
    pub(crate) entries: Vec<EventEntry>,
    /// The requests sent, warm-up included.
    pub(crate) jobs: Vec<Job>,
}

pub(crate) fn drive(plan: &Plan, kind: Kind, control: &Control) -> Result<Ran, PipelineError> {
    drive_against(Server::Up, plan, kind, control)
}

pub(crate) fn drive_against(
    server: Server,
    plan: &Plan,
    kind: Kind,
    control: &Control,
) -> Result<Ran, PipelineError> {
    drive_keeping(&Arc::default(), server, plan, kind, control)
}

/// Stops the run once the server was sent so much.
pub(crate) fn drive_until(jobs_sent: usize, server: Server, plan: &Plan, kind: Kind) -> Ran {
    let (jobs, control) = (Arc::<Mutex<Vec<Job>>>::default(), Control::default());
    let (seen, stop) = (jobs.clone(), control.clone());
    let stopper = std::thread::spawn(move || {
        while seen.lock().unwrap().len() < jobs_sent {
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.stop();
    });
    let ran = drive_keeping(&jobs, server, plan, kind, &control).unwrap();
    stopper.join().unwrap();
    ran
}

fn drive_keeping(
    jobs: &Arc<Mutex<Vec<Job>>>,
    server: Server,
    plan: &Plan,
    kind: Kind,
    control: &Control,
) -> Result<Ran, PipelineError> {
    let (tokenizer, materializer) = words();
    let (sender, receiver) = unbounded();
    let end = run(
        plan,
        &factory(kind),
        tokenizer,
        materializer.clone(),
        echo(server, jobs),
        &sender,
        control,
    )?;
    drop(sender);
    let jobs = std::mem::take(&mut *jobs.lock().unwrap());
    Ok(Ran {
        end,
        entries: receiver.iter().collect(),
        jobs,
    })
}

impl Ran {
    pub(crate) fn records(&self) -> Vec<&RequestRecord> {
        let finished = self.entries.iter().filter_map(|entry| match &entry.event {
            Event::Finished(record) => Some(&**record),
            _ => None,
        });
        finished.collect()
    }

    pub(crate) fn ends(&self) -> Vec<SessionEnd> {
        let ends = self.entries.iter().filter_map(|entry| match entry.event {
            Event::SessionFinished { end, .. } => Some(end),
            _ => None,
        });
        ends.collect()
    }
}

pub(crate) const ENDLESS: Kind = Kind::Chains {
    length: None,
    fails_at: u64::MAX,
};

/// Every request once, every session once, whatever the number of threads.
#[test]
fn every_request_is_answered_and_recorded_once() {
    for threads in [1, 2, 3] {
        let mut plan = plan();
        (plan.dispatchers, plan.completion_threads, plan.plugin_threads) = (threads, threads, threads);
        for kind in [ENDLESS, Kind::Agents] {
            let ran = drive(&plan, kind, &Control::default()).unwrap();
            let records = ran.records();
            let ids: BTreeSet<_> = records.iter().map(|record| record.id).collect();
            assert_eq!((records.len(), ids.len()), (40, 40), "{threads} threads");
            assert_eq!(ran.ends(), vec![SessionEnd::Completed; 20]);
            assert!(matches!(
                ran.entries.last().unwrap().event,
                Event::RunEnded { .. }
            ));
            assert!(ran.end.plugin_failures.is_empty() && !ran.end.interrupted);
        }
    }
}

/// Each failure of an agent is an event with its session; the report lists 20 and counts the rest.
#[test]
fn failing_agents_are_recorded_and_counted() {
    let mut plan = plan();
    plan.scheduler.max_sessions = Some(50);
    let ran = drive(&plan, Kind::FailingAgents, &Control::default()).unwrap();
    let failed: BTreeSet<(u64, String)> = ran
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::PluginFailed(failed) => {
                assert_eq!(
                    (failed.plugin.as_str(), failed.part),
                    ("fake", PluginRole::Workload)
                );
                assert!(failed.at.is_some());
                Some((failed.session.unwrap().0, failed.message.clone()))
            }
            _ => None,
        })
        .collect();
    let expected = (0..50).map(|session| (session, format!("in `agent.answered`: boom in {session}")));
    assert_eq!(failed, expected.collect());
    assert_eq!(
        (ran.end.plugin_failures.len(), ran.end.unlisted_plugin_failures),
        (20, 30)
    );
    assert_eq!(ran.ends(), vec![SessionEnd::Errored; 50]);
}

#[test]
fn an_agent_that_is_done_at_once_is_a_session_of_one_request() {
    let ran = drive(&plan(), Kind::HastyAgents, &Control::default()).unwrap();
    assert_eq!(ran.records().len(), 20);
    assert_eq!(ran.ends(), vec![SessionEnd::Completed; 20]);
}

/// Tokens: ten asked for and made; the answer is counted by the tokenizer, because the server sent
/// no usage; the second turn carries the first and its answer.
#[test]
fn lengths_add_up_along_the_history() {
    let ran = drive(&plan(), ENDLESS, &Control::default()).unwrap();
    let answer = Tokenizer::embedded().unwrap().count("four words of answer");
    for record in ran.records() {
        assert_eq!((record.prompt_tokens, record.target_prompt_tokens), (10, 10));
        assert_eq!(
            (record.output_tokens, record.output_tokens_from_usage),
            (answer, false)
        );
        let before = if record.parents.is_empty() { 0 } else { 10 + answer };
        assert_eq!(record.total_prompt_tokens, before + 10);
    }
}

/// Arrival `i` is intended at `i` times the interval, on any number of dispatchers, and never sent
/// before.
#[test]
fn intended_arrivals_equal_the_schedule() {
    for dispatchers in [1, 3] {
        let mut plan = paced();
        plan.dispatchers = dispatchers;
        let ran = drive(&plan, ENDLESS, &Control::default()).unwrap();
        for record in ran.records().iter().filter(|record| record.parents.is_empty()) {
            assert_eq!(record.intended, record.id.session.0 * 2_000_000);
            assert!(record.dispatched_at >= record.intended);
        }
    }
}

#[test]
fn the_workload_may_end_before_the_run() {
    let short = Kind::Chains {
        length: Some(5),
        fails_at: u64::MAX,
    };
    let ran = drive(&plan(), short, &Control::default()).unwrap();
    assert_eq!(ran.ends().len(), 5);
}

#[test]
fn pregenerated_sessions_are_never_late() {
    let mut plan = paced();
    plan.pregenerate = true;
    let ran = drive(&plan, ENDLESS, &Control::default()).unwrap();
    assert_eq!(ran.records().len(), 40);
    assert!(
        !ran.entries
            .iter()
            .any(|entry| matches!(entry.event, Event::Starved { .. }))
    );
}

#[test]
fn a_plugin_that_fails_at_once_is_an_error_and_later_a_result() {
    let at_once = Kind::Chains {
        length: None,
        fails_at: 0,
    };
    let failure = drive(&plan(), at_once, &Control::default()).err().unwrap();
    assert!(failure.to_string().contains("boom"), "{failure}");

    // Session 9 is one of a batch: those before it are good all the same.
    let later = Kind::Chains {
        length: None,
        fails_at: 9,
    };
    let ran = drive(&plan(), later, &Control::default()).unwrap();
    assert_eq!(ran.ends().len(), 9);
    assert_eq!(ran.end.plugin_failures.len(), 1);
}

/// Returns the sessions of the recorded failures of a run that could not start.
fn sessions_of_failed_start(plan: &Plan, kind: Kind) -> Vec<Option<u64>> {
    let (tokenizer, materializer) = words();
    let (sender, receiver) = unbounded();
    let ended = run(
        plan,
        &factory(kind),
        tokenizer,
        materializer.clone(),
        echo(Server::Up, &Arc::default()),
        &sender,
        &Control::default(),
    );
    assert!(matches!(ended, Err(PipelineError::Plugin(_))), "{ended:?}");
    drop(sender);
    let events: Vec<Event> = receiver.iter().map(|entry| entry.event).collect();
    assert!(matches!(events.first(), Some(Event::RunStarted(_))), "{events:?}");
    assert!(
        matches!(events.last(), Some(Event::RunEnded { .. })),
        "{events:?}"
    );
    let failed = events.into_iter().filter_map(|event| match event {
        Event::PluginFailed(failed) => Some(failed.session.map(|session| session.0)),
        _ => None,
    });
    failed.collect()
}

#[test]
fn failed_start_names_the_session_that_failed() {
    let failing = Kind::Chains {
        length: None,
        fails_at: 9,
    };
    let mut plan = plan();
    plan.pregenerate = true;
    assert_eq!(sessions_of_failed_start(&plan, failing), [Some(9)]);
    // Session 9 is at position 4 of the second of two shards.
    plan.shard = Shard { index: 1, count: 2 };
    assert_eq!(sessions_of_failed_start(&plan, failing), [Some(9)]);
}

#[test]
fn failed_warm_up_prompt_names_no_session() {
    let mut plan = plan();
    let mut too_long = request(0, &[]);
    too_long.messages[0].content = vec![Segment::Text("a".repeat((16 << 20) + 1))];
    plan.warmup = vec![Session {
        requests: vec![too_long],
        ..Session::default()
    }];
    assert_eq!(sessions_of_failed_start(&plan, ENDLESS), [None]);
}

/// The worker is in a call of many sessions when the transport fails to start.
#[test]
fn workers_have_ended_when_the_transport_cannot_start() {
    let slow = Kind::Generated {
        seed: 0,
        length: None,
        session: |_, _| {
            std::thread::sleep(Duration::from_millis(20));
            Session {
                requests: vec![request(0, &[])],
                ..Session::default()
            }
        },
        only: Shard { index: 0, count: 1 },
    };
    let mut plan = plan();
    plan.plugin_threads = 1;
    let factory = factory(slow);
    let (tokenizer, materializer) = words();
    let (sender, _receiver) = unbounded();
    let ended = run(
        &plan,
        &factory,
        tokenizer,
        materializer.clone(),
        |_, _| Err(PipelineError::Transport("no network".into())),
        &sender,
        &Control::default(),
    );
    assert!(matches!(ended, Err(PipelineError::Transport(_))), "{ended:?}");
    assert_eq!(Arc::strong_count(&factory), 1, "a worker still has the factory");
}

#[test]
fn a_stop_ends_an_endless_run_and_keeps_what_was_answered() {
    let mut plan = paced();
    plan.scheduler.max_sessions = None;
    let ran = drive_until(5, Server::Up, &plan, ENDLESS);
    assert!(ran.end.interrupted);
    assert!(ran.records().len() >= 5);
    assert!(
        ran.entries
            .iter()
            .any(|entry| matches!(entry.event, Event::Interrupted { .. }))
    );
}

#[test]
fn a_stop_before_the_start_sends_nothing() {
    let control = Control::default();
    control.stop();
    let ran = drive(&paced(), ENDLESS, &control).unwrap();
    assert!(ran.end.interrupted);
    assert!(ran.records().is_empty());
}

#[test]
fn content_travels_with_its_events_when_asked_for() {
    let mut plan = plan();
    plan.include_content = true;
    let ran = drive(&plan, ENDLESS, &Control::default()).unwrap();
    let mut second_turns = 0;
    for entry in &ran.entries {
        match (&entry.event, &entry.content) {
            (Event::Dispatched { request, .. }, Some(content @ EntryContent::Sent { .. })) => {
                let text = content.text();
                let expected = if request.node.0 == 0 { 1 } else { 3 };
                assert_eq!(text.lines().count(), expected, "{text}");
                second_turns += usize::from(text.contains("\nassistant: four words of answer\nuser: "));
            }
            (Event::Finished(_), Some(content)) => assert_eq!(content.text(), "four words of answer"),
            (Event::Dispatched { .. } | Event::Finished(_), None) => unreachable!("content was asked for"),
            _ => assert!(entry.content.is_none()),
        }
    }
    assert_eq!(second_turns, 20);
}

/// A closed loop against a server that is gone would send without end.
#[test]
fn a_lost_target_ends_the_run() {
    let mut plan = plan();
    plan.scheduler.max_sessions = None;
    let ran = drive_against(Server::Gone, &plan, ENDLESS, &Control::default()).unwrap();
    assert!(!ran.end.interrupted);
    assert_eq!(ran.end.target_lost.as_deref(), Some("refused"));
    assert!(ran.records().len() >= 1000);
    assert!(
        !ran.entries
            .iter()
            .any(|entry| matches!(entry.event, Event::Interrupted { .. }))
    );
}
