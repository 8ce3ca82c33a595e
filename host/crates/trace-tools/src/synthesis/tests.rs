//! Generated traces compared with the one that the model was fitted to.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::Value;
use veeksha_model::{HistoryMode, Session};
use veeksha_prefix::{PrefixLedger, PrefixPiece};
use veeksha_stats::RandomStream;

use super::*;
use crate::convert::{Converter, TargetFormat};
use crate::fixture::{blocks, request, session, synthetic, user};

/// A trace of `sessions` sessions: 70 % begin with one of twenty system prompts of four to ten
/// blocks, half of them followed by one of five documents of thirty blocks; then unshared text.
/// Half have one turn, the others two to four, each longer than the preceding one. Arrivals are a
/// Poisson process of two per second.
fn sample_trace(sessions: u64) -> Vec<Session> {
    let mut at = 0.0;
    (0..sessions)
        .map(|number| {
            let mut draws = RandomStream::new(5, number, "invented").draws();
            at += draws.exponential() / 2.0 * 1e9;
            let mut content = Vec::new();
            if draws.unit() < 0.7 {
                let system = u64::from(draws.below(20));
                content.extend((0..4 + system % 7).map(|block| synthetic(system * 100 + block, 64)));
                if draws.unit() < 0.5 {
                    let document = u64::from(draws.below(5));
                    content.extend((0..30).map(|block| synthetic(1_000_000 + document * 100 + block, 64)));
                }
            }
            content.push(synthetic(u64::MAX - number, 20 + draws.below(900)));
            let turns = if draws.unit() < 0.5 { 1 } else { 2 + draws.below(3) };
            let mut requests = Vec::new();
            for turn in 0..turns {
                let mut one = request(turn, turn.checked_sub(1), 1);
                if turn > 0 {
                    // A turn with its whole prompt: the history and the new part.
                    content.push(synthetic(
                        u64::MAX / 2 - number * 10 - u64::from(turn),
                        50 + draws.below(200),
                    ));
                    one.wait_after_ready = u64::from(draws.below(4000)) * 1_000_000;
                    one.replay.get_or_insert_default().history = HistoryMode::Fresh;
                }
                one.messages = vec![user(content.clone())];
                one.output.target_tokens = Some(10 + draws.below(300));
                requests.push(one);
            }
            Session {
                arrives_at: Some(at as u64),
                ..session(requests)
            }
        })
        .collect()
}

/// Statistics computed from rows.
#[derive(Debug)]
struct RowStats {
    requests: f64,
    sessions: f64,
    input: f64,
    output: f64,
    wait: f64,
    last_arrival: f64,
    hit_rate: f64,
    new_tokens: f64,
}

fn row_stats(rows: impl IntoIterator<Item = String>, size: u32) -> RowStats {
    let (mut ledger, mut hits, mut sessions) = (PrefixLedger::new(), 0, HashMap::new());
    let (mut count, mut input, mut output, mut wait, mut waits) = (0u64, 0u64, 0u64, 0.0, 0u64);
    let mut last_arrival: f64 = 0.0;
    for row in rows {
        let row: Value = serde_json::from_str(&row).unwrap();
        let tokens = row["input_length"].as_u64().unwrap();
        let ids: Vec<u64> = serde_json::from_value(row["hash_ids"].clone()).unwrap();
        assert_eq!(ids.len() as u64, tokens.div_ceil(u64::from(size)));
        assert!(ids.iter().all(|id| *id < 1 << 53));
        let mut left = tokens;
        let prompt: Vec<PrefixPiece> = ids
            .iter()
            .map(|id| {
                let here = left.min(u64::from(size)) as u32;
                left -= u64::from(here);
                PrefixPiece {
                    identity: *id,
                    tokens: here,
                }
            })
            .collect();
        hits += ledger.see(&prompt);
        count += 1;
        input += tokens;
        output += row["output_length"].as_u64().unwrap();
        let single = format!("row {count}");
        *sessions
            .entry(row["session_id"].as_str().map_or(single, str::to_owned))
            .or_insert(0) += 1;
        if let Some(delay) = row["delay"].as_f64() {
            wait += delay;
            waits += 1;
        }
        last_arrival = last_arrival.max(row["timestamp"].as_f64().unwrap_or(0.0));
    }
    RowStats {
        requests: count as f64,
        sessions: sessions.len() as f64,
        input: input as f64 / count as f64,
        output: output as f64 / count as f64,
        wait: wait / waits.max(1) as f64,
        last_arrival,
        hit_rate: hits as f64 / input as f64,
        new_tokens: (input - hits) as f64,
    }
}

fn rows_of(sessions: &[Session]) -> Vec<String> {
    let mut converter = Converter::new(TargetFormat::Mooncake).block_size(64);
    let mut rows = Vec::new();
    for (session, index) in sessions.iter().zip(0..) {
        rows.extend(converter.rows(session, index, &|_| 0).unwrap());
    }
    rows
}

fn fitted(sessions: &[Session]) -> TraceModel {
    TraceModel::fit(sessions, 64, &|_| 0).unwrap()
}

fn generated(model: &TraceModel, synthesis: &Synthesis) -> RowStats {
    row_stats(model.generate(synthesis).unwrap(), 64)
}

fn near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value / expected - 1.0).abs() < tolerance,
        "{what} is {value}, not {expected} within {:.1} %",
        tolerance * 100.0
    );
}

const SESSIONS: u64 = 3000;

fn synthesis() -> Synthesis {
    Synthesis {
        sessions: SESSIONS,
        ..Synthesis::default()
    }
}

#[test]
fn generated_trace_has_the_originals_statistics() {
    let sample_trace = sample_trace(SESSIONS);
    let original = row_stats(rows_of(&sample_trace), 64);
    let model = fitted(&sample_trace);
    let generated = generated(&model, &synthesis());
    assert_eq!(generated.sessions, original.sessions);
    // Stratified: the turns of 3,000 sessions from a thousand slices.
    near("requests", generated.requests, original.requests, 0.005);
    near(
        "last arrival",
        generated.last_arrival,
        original.last_arrival,
        0.01,
    );
    // Drawn for later turns: standard errors of about 1 %.
    near("input", generated.input, original.input, 0.03);
    near("output", generated.output, original.output, 0.03);
    near("wait", generated.wait, original.wait, 0.05);
    assert!(
        (generated.hit_rate - original.hit_rate).abs() < 0.02,
        "{generated:?} {original:?}"
    );
    // The trace is a meaningful test: much is shared, but not all.
    assert!((0.3..0.9).contains(&original.hit_rate), "{original:?}");
}

#[test]
fn single_turn_trace_is_reproduced_almost_exactly() {
    let sample_trace: Vec<Session> = sample_trace(SESSIONS)
        .into_iter()
        .map(|mut session| {
            session.requests.truncate(1);
            session
        })
        .collect();
    let original = row_stats(rows_of(&sample_trace), 64);
    let generated = generated(&fitted(&sample_trace), &synthesis());
    assert_eq!(
        (generated.requests, generated.sessions),
        (original.requests, original.sessions)
    );
    near("input", generated.input, original.input, 0.002);
    near("output", generated.output, original.output, 0.002);
    assert!(
        (generated.hit_rate - original.hit_rate).abs() < 0.004,
        "{generated:?} {original:?}"
    );
}

#[test]
fn multipliers_scale_their_quantity() {
    let mut sample_trace = sample_trace(SESSIONS);
    sample_trace
        .iter_mut()
        .for_each(|session| session.requests.truncate(1));
    let model = fitted(&sample_trace);
    let plain = generated(&model, &synthesis());
    let of = |change: fn(&mut Synthesis)| {
        let mut changed = synthesis();
        change(&mut changed);
        generated(&model, &changed)
    };
    let outputs = of(|synthesis| synthesis.output_multiplier = 2.0);
    near("output", outputs.output, 2.0 * plain.output, 0.005);
    assert_eq!((outputs.input, outputs.hit_rate), (plain.input, plain.hit_rate));

    let fast = of(|synthesis| synthesis.speedup = 4.0);
    near("last arrival", fast.last_arrival, plain.last_arrival / 4.0, 0.001);
    assert_eq!((fast.input, fast.hit_rate), (plain.input, plain.hit_rate));

    // Common prefixes are three times as long and the rest is unchanged: hits are tripled.
    let hits = |stats: &RowStats| stats.hit_rate * stats.input * stats.requests;
    let long = of(|synthesis| synthesis.prefix_multiplier = 3.0);
    near("hits", hits(&long), 3.0 * hits(&plain), 0.01);
    near("output", long.output, plain.output, 1e-9);

    // The unshared part is half as long; the hits are unchanged.
    let short = of(|synthesis| synthesis.prompt_multiplier = 0.5);
    near("hits", hits(&short), hits(&plain), 0.01);
    assert!(short.input < plain.input);

    // Five trees: prefixes are new five times instead of once; the lengths are unchanged.
    let roots = of(|synthesis| synthesis.root_multiplier = 5);
    near("input", roots.input, plain.input, 1e-9);
    assert!(roots.hit_rate < plain.hit_rate && roots.hit_rate > 0.5 * plain.hit_rate);
    // The tree: 20 system prompts of 4 to 10 blocks, each with 5 documents of 30.
    let tree: u64 = (0..20).map(|system| 64 * (4 + system % 7 + 5 * 30)).sum();
    near(
        "new tokens",
        roots.new_tokens,
        plain.new_tokens + 4.0 * tree as f64,
        0.02,
    );

    // Five times the sessions with five trees have the hit rate of one.
    let more = of(|synthesis| {
        synthesis.root_multiplier = 5;
        synthesis.sessions *= 5;
    });
    assert!((more.hit_rate - plain.hit_rate).abs() < 0.004);
}

#[test]
fn same_model_and_seed_generate_the_same_rows() {
    let model = fitted(&sample_trace(200));
    let rows = |synthesis: &Synthesis| model.generate(synthesis).unwrap().collect::<Vec<_>>();
    let plain = Synthesis {
        sessions: 200,
        ..Synthesis::default()
    };
    assert_eq!(rows(&plain), rows(&plain));
    assert_ne!(rows(&plain), rows(&Synthesis { seed: 7, ..plain }));
    // Stored as JSON and parsed again it generates the same rows.
    let kept = serde_json::to_string(&model).unwrap();
    let read = TraceModel::from_json(&kept).unwrap();
    assert_eq!(read.generate(&plain).unwrap().collect::<Vec<_>>(), rows(&plain));
    assert_eq!((read.sessions(), read.block_size()), (200, 64));
}

#[test]
fn unrecorded_quantities_are_omitted() {
    // One session of one request of unknown answer and arrival.
    let model = fitted(&[session(vec![request(0, None, 100)])]);
    let rows: Vec<String> = model
        .generate(&Synthesis {
            sessions: 2,
            ..Synthesis::default()
        })
        .unwrap()
        .collect();
    assert_eq!(
        rows,
        [
            r#"{"input_length":100,"hash_ids":[0,1]}"#,
            r#"{"input_length":100,"hash_ids":[16777216,16777217]}"#
        ]
    );
}

#[test]
fn identical_prompts_are_shared_to_the_last_token() {
    let trace: Vec<Session> = (0..10).map(|at| blocks(&[1, 2], 64, 100, at * 1000, 5)).collect();
    let generated = generated(
        &fitted(&trace),
        &Synthesis {
            sessions: 10,
            ..Synthesis::default()
        },
    );
    assert_eq!((generated.input, generated.hit_rate), (100.0, 0.9));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every model that passes the check can be used: prompts are never empty, and the number of
    /// ids matches the blocks.
    #[test]
    fn any_sound_likeness_makes_rows(
        turns in prop::collection::vec(0.0..6.0f64, 1..4),
        rests in prop::collection::vec(prop_oneof![12 => 0.0..200.0f64, 1 => 0.0..1e18], 1..4),
        others in prop::collection::vec(prop_oneof![12 => 0.0..300.0f64, 1 => 0.0..1e18], 0..4),
        nodes in prop::collection::vec((0u32..100, 0u32..400, 0u64..4), 0..8),
        restarts in 0.0..=1.0f64,
        block_size in 64u32..200,
        roots in 1u32..4,
        multiplier in prop_oneof![12 => 0.001..3.0f64, 1 => Just(1e6)],
    ) {
        let mut tree = vec![(0u32, 0u32, 1u64)];
        for (number, (parent, tokens, prompts)) in nodes.into_iter().enumerate() {
            tree.push((parent % (number as u32 + 1), tokens, prompts));
        }
        let kept = serde_json::json!({
            "version": 1, "block_size": block_size, "sessions": 5, "turns": turns, "tree": tree, "rests": rests,
            "restarts": restarts, "growth": others, "outputs": others, "waits": others, "gaps": others,
        });
        let model = TraceModel::from_json(&kept.to_string()).unwrap();
        let synthesis = Synthesis {
            sessions: 4,
            root_multiplier: roots,
            prefix_multiplier: multiplier,
            prompt_multiplier: multiplier,
            ..Synthesis::default()
        };
        let rows: Vec<String> = model.generate(&synthesis).unwrap().collect();
        prop_assert!(rows.len() >= 4, "one request per session");
        for row in rows {
            let row: Value = serde_json::from_str(&row).unwrap();
            let tokens = row["input_length"].as_u64().unwrap();
            let ids = row["hash_ids"].as_array().unwrap();
            prop_assert!(tokens > 0);
            prop_assert_eq!(ids.len() as u64, tokens.div_ceil(u64::from(block_size)));
            prop_assert!(ids.iter().all(|id| id.as_u64().unwrap() < 1 << 53));
        }
    }

    #[test]
    fn no_text_is_read_by_surprise(text in ".{0,80}") {
        prop_assert!(TraceModel::from_json(&text).is_err());
    }
}

#[test]
fn rejects_invalid_options_and_models() {
    assert_eq!(
        TraceModel::fit(Vec::<Session>::new(), 64, &|_| 0),
        Err(SynthesisError::Nothing)
    );
    let model = fitted(&sample_trace(20));
    let refused = |synthesis: Synthesis| model.generate(&synthesis).unwrap_err().to_string();
    let plain = Synthesis::default();
    for invalid in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let message = refused(Synthesis {
            speedup: invalid,
            ..plain
        });
        assert!(
            message.starts_with("`speedup` must be above 0 and at most 1,000,000"),
            "{message}"
        );
    }
    let huge = Synthesis {
        prefix_multiplier: 1e6,
        root_multiplier: u32::MAX,
        ..plain
    };
    let branched = fitted(&sample_trace(300));
    assert!(branched.generate(&huge).unwrap_err().to_string().contains("2^52"));
    assert!(
        refused(Synthesis {
            root_multiplier: 0,
            ..plain
        })
        .contains("`root_multiplier` must be")
    );
    let kept: Value = serde_json::to_value(&model).unwrap();
    let tampered = |key: &str, value: Value| {
        let mut kept = kept.clone();
        kept[key] = value;
        TraceModel::from_json(&kept.to_string()).unwrap_err().to_string()
    };
    assert!(tampered("version", 9.into()).contains("version 9"));
    assert!(tampered("block_size", 0.into()).contains("`block_size`"));
    assert!(tampered("turns", serde_json::json!([])).contains("`turns`"));
    assert!(tampered("turns", serde_json::json!([1.0, 1e18])).contains("a million"));
    assert!(tampered("rests", serde_json::json!([-1.0])).contains("0 or more"));
    assert!(tampered("tree", serde_json::json!([[0, 0, 1], [5, 1, 1]])).contains("`tree`"));
    assert!(tampered("other", 1.into()).contains("cannot parse"));
}
