//! The pieces of prompts, for an account of repeated prefixes.

use std::collections::BTreeMap;

use veeksha_events::Event;
use veeksha_model::{HistoryMode, Message, RequestId, Role, Segment, Session, ToolCall};
use veeksha_pipeline::{Control, EventEntry};
use veeksha_prefix::{PrefixLedger, PrefixPiece};
use veeksha_prompt::Tokenizer;

use crate::fakes::{Kind, plan, replayed, request};
use crate::real_time::{ENDLESS, drive};
use crate::replay::made;
use crate::virtual_time::{quick, simulate};

fn pieces(entries: &[EventEntry]) -> BTreeMap<RequestId, Vec<PrefixPiece>> {
    let tokenizer = Tokenizer::embedded().unwrap();
    let found = entries.iter().filter_map(|entry| match &entry.event {
        Event::Dispatched { request, .. } => Some((*request, entry.pieces(&|text| tokenizer.count(text))?)),
        _ => None,
    });
    found.collect()
}

fn tokens(pieces: &[PrefixPiece]) -> u32 {
    pieces.iter().map(|piece| piece.tokens).sum()
}

#[test]
fn pieces_come_only_when_asked_for_and_never_as_content() {
    let ran = drive(&plan(), ENDLESS, &Control::default()).unwrap();
    assert!(pieces(&ran.entries).is_empty());
    let mut plan = plan();
    plan.track_prefixes = true;
    let ran = drive(&plan, ENDLESS, &Control::default()).unwrap();
    assert_eq!(pieces(&ran.entries).len(), 40);
    for entry in &ran.entries {
        assert!(entry.content.is_none());
        let dispatched = matches!(entry.event, Event::Dispatched { .. });
        assert_eq!(entry.pieces(&|_| 0).is_some(), dispatched);
    }
}

/// A system prompt that all share, a second turn in each of the modes.
fn shared(mode: HistoryMode, id: u64) -> Session {
    let mut first = replayed(HistoryMode::Live, None, request(0, &[]));
    let prompt = vec![
        Segment::Text("be brief and kind".into()),
        Segment::Synthetic {
            seed: 77.into(),
            tokens: 40,
        },
    ];
    first.messages.insert(0, Message::new(Role::System, prompt));
    if let Some(answer) = first.replay.as_mut().and_then(|replay| replay.answer.as_mut()) {
        answer.tool_calls.push(ToolCall {
            id: "1".into(),
            name: "look_up".into(),
            arguments: "{\"word\":\"house\"}".into(),
        });
    }
    let own = &mut first.messages[1].content[0];
    *own = Segment::Synthetic {
        seed: (1000 + id).into(),
        tokens: 10,
    };
    Session {
        requests: vec![first, replayed(mode, None, request(1, &[0]))],
        ..Session::default()
    }
}

type Make = fn(u64, u64) -> Session;

const MODES: [(HistoryMode, Make); 3] = [
    (HistoryMode::Live, |_, id| shared(HistoryMode::Live, id)),
    (HistoryMode::Recorded, |_, id| shared(HistoryMode::Recorded, id)),
    (HistoryMode::Fresh, |_, id| shared(HistoryMode::Fresh, id)),
];

/// The pieces of a prompt have its tokens, and those of a second turn go on from the first.
#[test]
fn pieces_are_the_prompt_as_it_was_sent() {
    for (mode, session) in MODES {
        let mut plan = plan();
        plan.track_prefixes = true;
        let workload: Kind = made(session, 5);
        let ran = drive(&plan, workload, &Control::default()).unwrap();
        let simulated = simulate(&plan, &quick(), workload);
        for (records, entries) in [
            (ran.records(), &ran.entries),
            (simulated.records(), &simulated.entries),
        ] {
            let pieces = pieces(entries);
            assert_eq!((records.len(), pieces.len()), (10, 10));
            for record in records {
                assert_eq!(
                    tokens(&pieces[&record.id]),
                    record.total_prompt_tokens,
                    "{mode:?}"
                );
                let first = &pieces[&RequestId {
                    node: veeksha_model::NodeId(0),
                    ..record.id
                }];
                let goes_on = pieces[&record.id].starts_with(first);
                assert_eq!(goes_on, record.id.node.0 == 0 || mode != HistoryMode::Fresh);
            }
        }
    }
}

/// Two accounts of the same thing: the ledger's, which knows pieces, and the engine's prefix cache,
/// which knows blocks. With blocks of one token, memory enough and one request at a time they agree
/// (but for the one token that the engine always computes).
#[test]
fn the_ideal_cache_and_the_engines_agree_where_nothing_is_in_the_way() {
    for (mode, session) in MODES {
        let mut plan = plan();
        plan.track_prefixes = true;
        plan.scheduler.traffic = veeksha_scheduler::TrafficRule::Concurrent { target: 1, ramp: 0 };
        let mut target = quick();
        target.profile.block_size = 1;
        target.profile.kv_capacity_tokens = 1_000_000;
        let simulated = simulate(&plan, &target, made(session, 8));
        let pieces = pieces(&simulated.entries);
        let mut ledger = PrefixLedger::new();
        let mut hits = 0;
        // One at a time: the order of the answers is that of the requests.
        for record in simulated.records() {
            let known = ledger.see(&pieces[&record.id]) as u32;
            let cached = record.usage.and_then(|usage| usage.cached).unwrap();
            assert_eq!(
                cached,
                known.min(record.total_prompt_tokens - 1),
                "{} {mode:?}",
                record.id
            );
            hits += known;
        }
        assert!(hits > 0);
    }
}
