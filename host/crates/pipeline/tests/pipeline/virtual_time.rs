//! Runs in virtual time, with instants worked out by hand.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use veeksha_events::{Event, RequestRecord, Status};
use veeksha_model::{ChunkKind, ErrorClass, HistoryMode, RequestId, Segment, Session};
use veeksha_pipeline::{
    Control, EventEntry, Plan, ReplaySchedule, RunEnd, SimulatedTarget, SimulatedTargets, ToolSpecs,
};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scheduler::TrafficRule;
use veeksha_simulator::Profile;

use crate::fakes::{Kind, factory, plan, replayed, request};
use crate::replay::{made, scheduled};

pub(crate) struct Simulated {
    pub(crate) end: RunEnd,
    pub(crate) entries: Vec<EventEntry>,
}

impl Simulated {
    pub(crate) fn records(&self) -> Vec<&RequestRecord> {
        let finished = self.entries.iter().filter_map(|entry| match &entry.event {
            Event::Finished(record) => Some(&**record),
            _ => None,
        });
        finished.collect()
    }

    fn intended(&self) -> BTreeMap<(u64, u32), u64> {
        let due = |record: &&RequestRecord| ((record.id.session.0, record.id.node.0), record.intended);
        self.records().iter().map(due).collect()
    }

    fn cached(&self, session: u64, node: u32) -> Option<u32> {
        let record = self
            .records()
            .into_iter()
            .find(|record| (record.id.session.0, record.id.node.0) == (session, node))?;
        record.usage?.cached
    }
}

/// Created once for all tests.
pub(crate) fn words() -> (&'static Tokenizer, &'static Arc<Materializer>) {
    static WORDS: OnceLock<(Tokenizer, Arc<Materializer>)> = OnceLock::new();
    let (tokenizer, materializer) = WORDS.get_or_init(|| {
        let tokenizer = Tokenizer::embedded().unwrap();
        let materializer = Materializer::new(tokenizer.clone()).unwrap();
        (tokenizer, Arc::new(materializer))
    });
    (tokenizer, materializer)
}

pub(crate) fn simulate(plan: &Plan, target: &SimulatedTarget, kind: Kind) -> Simulated {
    simulate_on(plan, &target.clone().into(), kind)
}

/// Simulates several clients.
pub(crate) fn simulate_on(plan: &Plan, targets: &SimulatedTargets, kind: Kind) -> Simulated {
    simulate_until(plan, targets, kind, usize::MAX)
}

/// Requests a stop after the given number of events.
fn simulate_until(plan: &Plan, targets: &SimulatedTargets, kind: Kind, most: usize) -> Simulated {
    let control = Control::default();
    let (tokenizer, materializer) = words();
    let mut entries = Vec::new();
    let mut record = |entry| {
        entries.push(entry);
        if entries.len() == most {
            control.stop();
        }
    };
    let factory = factory(kind);
    let end = veeksha_pipeline::simulate(
        plan,
        targets,
        &factory,
        tokenizer,
        materializer,
        &mut record,
        &control,
    );
    Simulated {
        end: end.unwrap(),
        entries,
    }
}

const MS: u64 = 1_000_000;

/// A prompt takes 10 ms and gives the first token, each further token 5 ms: four tokens come after
/// 25 ms.
const ANSWER: u64 = 25 * MS;

/// Costs that do not depend on lengths, and blocks of 5 tokens: half a message of the fakes.
pub(crate) fn quick() -> SimulatedTarget {
    SimulatedTarget {
        profile: Profile {
            prefill_base_ms: 10.0,
            prefill_ms_per_token: 0.0,
            decode_base_ms: 5.0,
            decode_ms_per_sequence: 0.0,
            noise_cv: 0.0,
            block_size: 5,
            ..Profile::default()
        },
        request_timeout: 1_000 * MS,
        tool: None,
    }
}

/// Session 0 arrives last. Each has three turns that were recorded 40 ms and 120 ms after the
/// first.
fn unsorted(_: u64, id: u64) -> Session {
    let at = [900, 0, 400][id as usize] * MS;
    let turn = |after: u64, request| replayed(HistoryMode::Live, Some(at + after * MS), request);
    let mut third = turn(120, request(2, &[1]));
    third.wait_after_ready = 30 * MS;
    Session {
        requests: vec![turn(0, request(0, &[])), turn(40, request(1, &[0])), third],
        arrives_at: Some(at),
        ..Session::default()
    }
}

#[test]
fn a_run_that_is_stopped_gives_up_what_is_in_flight_and_sends_nothing_more() {
    let plan = scheduled(ReplaySchedule::default());
    let whole = simulate(&plan, &quick(), made(unsorted, 3));
    assert!(!whole.end.interrupted && whole.records().len() == 9);
    let first_dispatch = |entries: &[EventEntry]| {
        let place = entries
            .iter()
            .position(|entry| matches!(entry.event, Event::Dispatched { .. }));
        place.unwrap() + 1
    };
    let stopped = simulate_until(
        &plan,
        &quick().into(),
        made(unsorted, 3),
        first_dispatch(&whole.entries),
    );
    assert!(stopped.end.interrupted);
    let records = stopped.records();
    // One had been sent, and it had 25 ms to go.
    assert_eq!(records.len(), 1);
    assert!(
        matches!(&records[0].status, Status::Failed { class, .. } if *class == ErrorClass::Cancelled),
        "{:?}",
        records[0].status
    );
    let interrupted = stopped
        .entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::Interrupted { .. }));
    assert_eq!(interrupted.count(), 1);
    assert!(matches!(
        stopped.entries.last().unwrap().event,
        Event::RunEnded { .. }
    ));
}

#[test]
fn a_recording_is_replayed_at_its_own_pace_or_faster() {
    // As recorded: the second turn waits for its instant (40 > 25); so does the third (120 > 40 +
    // 25 + 30).
    let as_recorded = simulate(&scheduled(ReplaySchedule::default()), &quick(), made(unsorted, 3));
    let expected = |id: u64, at: u64| [0, 40, 120].map(move |after| ((id, after), (at + after) * MS));
    let expected: BTreeMap<(u64, u64), u64> = [expected(0, 900), expected(1, 0), expected(2, 400)]
        .into_iter()
        .flatten()
        .collect();
    let by_offset: Vec<u64> = expected.values().copied().collect();
    assert_eq!(
        as_recorded.intended().into_values().collect::<Vec<_>>(),
        by_offset
    );
    let starts: Vec<u64> = as_recorded
        .entries
        .iter()
        .filter_map(|entry| match entry.event {
            Event::SessionStarted { session, .. } => Some(session.0),
            _ => None,
        })
        .collect();
    assert_eq!(starts, [1, 2, 0]);

    // Twice as fast, 7 ms later. The second turn is recorded at 20 and its parent ends at 25; the
    // third at 60, and its parent ends at 50, and it thinks for 30, which is not scaled: 80.
    let faster = ReplaySchedule {
        offset: 7 * MS,
        speedup: 2.0,
    };
    let faster = simulate(&scheduled(faster), &quick(), made(unsorted, 3));
    let of = |id: u64, at: u64| {
        let start = (7 + at / 2) * MS;
        [
            ((id, 0), start),
            ((id, 1), start + ANSWER),
            ((id, 2), start + 2 * ANSWER + 30 * MS),
        ]
    };
    let expected: BTreeMap<(u64, u32), u64> =
        [of(0, 900), of(1, 0), of(2, 400)].into_iter().flatten().collect();
    assert_eq!(faster.intended(), expected);

    // Other traffic ignores the recording.
    let mut plan = plan();
    plan.scheduler.traffic = TrafficRule::Concurrent { target: 1, ramp: 0 };
    let closed = simulate(&plan, &quick(), made(unsorted, 1)).intended();
    let expected = BTreeMap::from([((0, 0), 0), ((0, 1), ANSWER), ((0, 2), 2 * ANSWER + 30 * MS)]);
    assert_eq!(closed, expected);
}

#[test]
fn a_session_without_an_arrival_ends_the_source_and_names_itself() {
    fn forgets_session_2(_: u64, id: u64) -> Session {
        Session {
            requests: vec![request(0, &[])],
            arrives_at: (id != 2).then_some(0),
            ..Session::default()
        }
    }
    let simulated = simulate(
        &scheduled(ReplaySchedule::default()),
        &quick(),
        made(forgets_session_2, 9),
    );
    assert_eq!(simulated.records().len(), 2);
    let failure = simulated.end.plugin_failures[0].to_string();
    assert!(failure.contains("session 2 has no recorded arrival"), "{failure}");
}

/// A recorded answer is known to the cache when two sessions have the same; a real one is
/// everybody's own.
#[test]
fn recorded_answers_are_what_later_prompts_are_made_of() {
    fn chain(mode: HistoryMode) -> Session {
        let mut first = replayed(HistoryMode::Live, None, request(0, &[]));
        let recording = first.replay.as_mut().unwrap();
        recording.answer.as_mut().unwrap().content = vec![Segment::Synthetic {
            seed: 5.into(),
            tokens: 20,
        }];
        Session {
            requests: vec![first, replayed(mode, None, request(1, &[0]))],
            ..Session::default()
        }
    }
    let mut plan = plan();
    plan.scheduler.traffic = TrafficRule::Concurrent { target: 1, ramp: 0 };
    let totals = |mode: HistoryMode, run: &Simulated| {
        for record in run.records().iter().filter(|record| record.id.node.0 == 1) {
            assert_eq!(record.history_mode, mode);
        }
        let of = |record: &&&RequestRecord| record.id == id(1, 1);
        run.records()
            .iter()
            .find(of)
            .map(|record| record.total_prompt_tokens)
    };
    // Prompt of 10, recorded answer of 20, prompt of 10. All but the last block of 5, because a
    // token is always computed.
    let recorded = simulate(&plan, &quick(), made(|_, _| chain(HistoryMode::Recorded), 2));
    assert_eq!(totals(HistoryMode::Recorded, &recorded), Some(40));
    assert_eq!(
        (recorded.cached(0, 1), recorded.cached(1, 1)),
        (Some(10), Some(35))
    );
    // A real answer of 4: 24 tokens, the first 10 known.
    let live = simulate(&plan, &quick(), made(|_, _| chain(HistoryMode::Live), 2));
    assert_eq!(totals(HistoryMode::Live, &live), Some(24));
    assert_eq!((live.cached(0, 1), live.cached(1, 1)), (Some(10), Some(10)));
    // Nothing: the prompt of node 1 alone, which differs from that of node 0.
    let fresh = simulate(&plan, &quick(), made(|_, _| chain(HistoryMode::Fresh), 2));
    assert_eq!(totals(HistoryMode::Fresh, &fresh), Some(10));
    assert_eq!((fresh.cached(0, 1), fresh.cached(1, 1)), (Some(0), Some(5)));
}

fn id(session: u64, node: u32) -> RequestId {
    RequestId {
        session: veeksha_model::SessionId(session),
        node: veeksha_model::NodeId(node),
    }
}

/// One request of 10 tokens that all sessions begin with.
fn same(_: u64, _: u64) -> Session {
    let mut request = request(0, &[]);
    request.messages[0].content.push(Segment::Synthetic {
        seed: 9.into(),
        tokens: 10,
    });
    Session {
        requests: vec![request],
        ..Session::default()
    }
}

#[test]
fn the_engine_keeps_what_a_warm_up_taught_it_and_the_run_begins_at_zero() {
    let workload = made(same, 1);
    let cold = simulate(&plan(), &quick(), workload);
    assert_eq!(cold.cached(0, 0), Some(0));
    let mut plan = plan();
    plan.warmup = vec![
        Session {
            requests: vec![request(0, &[]), request(1, &[0])],
            ..Session::default()
        };
        3
    ];
    let warm = simulate(&plan, &quick(), workload);
    // The prompt of the warm-up's first turn is the beginning of the run's.
    assert_eq!(warm.cached(0, 0), Some(10));
    assert_eq!(
        (warm.end.warmup_failures, warm.end.first_warmup_failure),
        (0, None)
    );
    // Everything else is as without: the same events at the same instants.
    let lines = |run: &[EventEntry]| -> Vec<String> {
        run.iter()
            .map(|entry| match &entry.event {
                Event::Finished(record) => {
                    let mut record = record.clone();
                    record.usage = None;
                    format!("{record:?}")
                }
                event => format!("{event:?}"),
            })
            .collect()
    };
    assert_eq!(lines(&cold.entries), lines(&warm.entries));
    assert_eq!((cold.end.at, warm.end.at), (ANSWER, ANSWER));
}

#[test]
fn a_warm_up_that_fails_is_counted_and_does_not_end_the_run() {
    let mut plan = plan();
    let mut long = request(1, &[0]);
    long.messages[0].content = vec![Segment::Synthetic {
        seed: 1.into(),
        tokens: 5_000,
    }];
    let mut slow = request(2, &[1]);
    slow.output.target_tokens = Some(1_000);
    plan.warmup = vec![Session {
        requests: vec![request(0, &[]), long, slow],
        ..Session::default()
    }];
    let mut target = quick();
    target.profile.max_context = 4_000;
    // A deadline of 1 s, and 1000 tokens take five. The history of node 2 is too long as well, so
    // it gets its own.
    let first = &mut plan.warmup[0].requests[2];
    first.history_parent = None;
    let simulated = simulate(&plan, &target, made(same, 1));
    assert_eq!(simulated.end.warmup_failures, 2);
    let message = simulated.end.first_warmup_failure.unwrap();
    assert!(
        message.starts_with("warm-up session 0, node 1: status 4"),
        "{message}"
    );
    let records: Vec<&RequestRecord> = simulated
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Finished(record) => Some(&**record),
            _ => None,
        })
        .collect();
    assert_eq!(records.len(), 1);
    assert!(matches!(records[0].status, Status::Ok { .. }));
    assert_eq!(records[0].completed_at, ANSWER);
}

/// As the HTTP simulator answers a request whose `tool_choice` requires a call.
#[test]
fn required_tool_is_called_in_virtual_time() {
    let target = SimulatedTarget {
        tool: Some("search".to_owned()),
        ..quick()
    };
    let plan = scheduled(ReplaySchedule::default());
    let kinds = |target: &SimulatedTarget| {
        let run = simulate(&plan, target, made(unsorted, 3));
        let records = run.records();
        let chunks = records.iter().flat_map(|record| record.chunks.iter());
        chunks.map(|chunk| chunk.kind).collect::<Vec<_>>()
    };
    let called = kinds(&target);
    assert!(!called.is_empty() && called.iter().all(|kind| *kind == ChunkKind::Tool));
    assert!(kinds(&quick()).iter().all(|kind| *kind == ChunkKind::Content));
}

/// The agent acts forever at one instant: the time never advances.
#[test]
fn a_stop_ends_an_agent_that_never_waits() {
    let mut plan = plan();
    plan.tools = ToolSpecs::new(Vec::new(), 1);
    plan.scheduler.tools = plan.tools.classes();
    let simulated = simulate_until(&plan, &quick().into(), Kind::EndlessAgents, 1_000);
    assert!(simulated.end.interrupted);
    assert_eq!(simulated.end.at, 0);
    assert!(simulated.entries.len() < 1_100, "{}", simulated.entries.len());
}
