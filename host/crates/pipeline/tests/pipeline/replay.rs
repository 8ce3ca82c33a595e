//! Recorded arrivals and recorded answers, with the real clock.

use std::collections::BTreeMap;

use veeksha_events::Event;
use veeksha_model::{HistoryMode, NodeId, Recorded, RequestId, Session};
use veeksha_pipeline::{Control, EntryContent, PipelineError, Plan, ReplaySchedule};
use veeksha_ports::PluginFailureKind;
use veeksha_prompt::Tokenizer;
use veeksha_scheduler::{Shard, TrafficRule};

use crate::fakes::{Kind, plan, replayed, request};
use crate::real_time::{ENDLESS, drive};

const MS: u64 = 1_000_000;

pub(crate) fn scheduled(schedule: ReplaySchedule) -> Plan {
    let mut plan = plan();
    plan.scheduler.traffic = TrafficRule::Scheduled { replays: true };
    plan.schedule = schedule;
    plan
}

pub(crate) fn made(session: fn(u64, u64) -> Session, length: u64) -> Kind {
    Kind::Generated {
        seed: 0,
        length: Some(length),
        session,
        only: Shard::WHOLE,
    }
}

/// Arrivals that have nothing to do with the order of the ids.
fn arrival(id: u64) -> u64 {
    id * 7 % 20 * 2 * MS
}

/// Two turns, the second recorded 8 ms after the first.
fn recorded_session(_: u64, id: u64) -> Session {
    let at = arrival(id);
    Session {
        requests: vec![
            replayed(HistoryMode::Live, Some(at), request(0, &[])),
            replayed(HistoryMode::Live, Some(at + 8 * MS), request(1, &[0])),
        ],
        arrives_at: Some(at),
        ..Session::default()
    }
}

#[test]
fn recorded_instants_are_replayed_from_the_offset_on_at_another_speed() {
    let schedule = ReplaySchedule {
        offset: 5 * MS,
        speedup: 2.0,
    };
    for dispatchers in [1, 3] {
        let mut plan = scheduled(schedule);
        plan.dispatchers = dispatchers;
        let ran = drive(&plan, made(recorded_session, 20), &Control::default()).unwrap();
        let records: BTreeMap<RequestId, _> = ran
            .records()
            .into_iter()
            .map(|record| (record.id, record))
            .collect();
        assert_eq!(records.len(), 40);
        for (id, record) in &records {
            let recorded_at = arrival(id.session.0);
            let root = records[&RequestId {
                node: NodeId(0),
                ..*id
            }];
            let due = match id.node {
                NodeId(0) => 5 * MS + recorded_at / 2,
                _ => root.completed_at.max(9 * MS + recorded_at / 2),
            };
            assert_eq!(record.intended, due, "{id}");
            assert!(record.dispatched_at >= due);
            // As recorded, not as mapped.
            let expected = Recorded {
                at: Some(recorded_at + u64::from(id.node.0) * 8 * MS),
                output_tokens: Some(99),
                ..Recorded::default()
            };
            assert_eq!(record.recorded, Some(expected));
        }
    }
}

#[test]
fn a_session_that_was_never_recorded_cannot_be_replayed() {
    fn forgetful(_: u64, id: u64) -> Session {
        Session {
            arrives_at: None,
            ..recorded_session(0, id)
        }
    }
    let plan = scheduled(ReplaySchedule::default());
    let Err(PipelineError::Plugin(failure)) = drive(&plan, made(forgetful, 9), &Control::default()) else {
        unreachable!("no session may be sent");
    };
    assert_eq!(failure.kind, PluginFailureKind::Result);
    let text = failure.to_string();
    for words in ["session 0 has no recorded arrival", "`rate`", "arrives_at"] {
        assert!(text.contains(words), "{text}");
    }
    let agents = drive(&plan, Kind::Agents, &Control::default()).err().unwrap();
    assert!(agents.to_string().contains("agent"), "{agents}");

    // A later one is named, and those before it are sent.
    fn forgets_session_5(_: u64, id: u64) -> Session {
        let arrives_at = (id != 5).then_some(0);
        Session {
            arrives_at,
            ..recorded_session(0, id)
        }
    }
    let ran = drive(&plan, made(forgets_session_5, 9), &Control::default()).unwrap();
    assert_eq!(ran.ends().len(), 5);
    assert!(ran.end.plugin_failures[0].message.starts_with("session 5 has no"));
}

/// Three turns; the last sends the conversation in the given mode.
fn three_turns(mode: HistoryMode) -> Session {
    let requests = vec![
        replayed(HistoryMode::Live, None, request(0, &[])),
        // Never recorded.
        request(1, &[0]),
        replayed(mode, None, request(2, &[1])),
    ];
    Session {
        requests,
        ..Session::default()
    }
}

#[test]
fn a_turn_is_sent_after_real_answers_recorded_ones_or_nothing() {
    let tokens = |text: &str| Tokenizer::embedded().unwrap().count(text);
    let (real, then) = (tokens("four words of answer"), tokens("answer of node 0"));
    let live: fn(u64, u64) -> Session = |_, _| three_turns(HistoryMode::Live);
    let recorded: fn(u64, u64) -> Session = |_, _| three_turns(HistoryMode::Recorded);
    let fresh: fn(u64, u64) -> Session = |_, _| three_turns(HistoryMode::Fresh);
    let cases = [
        (HistoryMode::Live, live, 10 + real + 10 + real + 10, 5),
        (HistoryMode::Recorded, recorded, 10 + then + 10 + real + 10, 5),
        (HistoryMode::Fresh, fresh, 10, 1),
    ];
    for (mode, session, total, messages) in cases {
        let mut plan = plan();
        plan.include_content = true;
        let ran = drive(&plan, made(session, 1), &Control::default()).unwrap();
        let records = ran.records();
        let last = records.iter().find(|record| record.id.node.0 == 2).unwrap();
        assert_eq!(
            (last.total_prompt_tokens, last.prompt_tokens, last.history_mode),
            (total, 10, mode)
        );
        assert_eq!(last.history_parent, Some(NodeId(1)), "as planned");
        let text = ran
            .entries
            .iter()
            .find_map(|entry| match (&entry.event, &entry.content) {
                (Event::Dispatched { request, .. }, Some(content @ EntryContent::Sent { .. }))
                    if request.node.0 == 2 =>
                {
                    Some(content.text())
                }
                _ => None,
            });
        let text = text.unwrap();
        assert_eq!(text.lines().count(), messages, "{text}");
        assert_eq!(
            text.contains("assistant: answer of node 0\n"),
            mode == HistoryMode::Recorded
        );
    }
}

/// Recorded answers that no request sends are not made: an unusable recording does no harm.
#[test]
fn unsent_recorded_answers_are_not_made() {
    fn with_a_picture(mode: HistoryMode) -> Session {
        let mut session = three_turns(mode);
        let answer = session.requests[0]
            .replay
            .as_mut()
            .and_then(|replay| replay.answer.as_mut())
            .unwrap();
        answer.content.push(veeksha_model::Segment::Media {
            kind: veeksha_model::MediaKind::Image,
            source: "picture.png".into(),
        });
        session
    }
    let live = made(|_, _| with_a_picture(HistoryMode::Live), 1);
    assert_eq!(
        drive(&plan(), live, &Control::default()).unwrap().records().len(),
        3
    );
    let recorded = made(|_, _| with_a_picture(HistoryMode::Recorded), 1);
    let failure = drive(&plan(), recorded, &Control::default()).err().unwrap();
    assert!(failure.to_string().contains("session 0, node 0"), "{failure}");
}

#[test]
fn missing_recording_is_an_error() {
    let ran = drive(&plan(), ENDLESS, &Control::default()).unwrap();
    for record in ran.records() {
        assert_eq!((record.recorded, record.history_mode), (None, HistoryMode::Live));
    }
}
