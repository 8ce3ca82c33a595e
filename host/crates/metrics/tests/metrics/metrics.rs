//! Every request metric against expected values computed by hand, for answers on which other tools
//! disagree.
//!
//! A request of these tests is intended at `i`, dispatched at `i + 1`, and its last byte is sent at
//! `i + 4` milliseconds.

use crate::sequences::*;
use veeksha_events::RequestRecord;
use veeksha_metrics::{Deadlines, Evaluation, Metric, Setup};
use veeksha_model::ChunkKind::{Content, Done, Finish, Reasoning, Role, Tool, Usage as UsageChunk};
use veeksha_model::{ErrorClass, Usage};

fn of(record: RequestRecord) -> Evaluation {
    evaluate(Vec::new(), [finished(record)])
}

/// Asserts the only sample of a metric.
#[track_caller]
fn is(evaluation: &Evaluation, metric: Metric, expected: f64) {
    let summary = evaluation.metric(metric).copied();
    assert_eq!(summary.map(|summary| summary.count), Some(1), "{metric}");
    close(summary.map(|summary| summary.mean), expected);
}

#[track_caller]
fn absent(evaluation: &Evaluation, metrics: &[Metric]) {
    for metric in metrics {
        assert_eq!(evaluation.metric(*metric), None, "{metric}");
    }
}

const OF_AN_ANSWER: [Metric; 15] = [
    Metric::Tpot,
    Metric::Ttfc,
    Metric::TtfcFromIntended,
    Metric::TtfcContent,
    Metric::TimeToSecondChunk,
    Metric::Tbc,
    Metric::Itl,
    Metric::EndToEnd,
    Metric::EndToEndFromIntended,
    Metric::NormalizedEndToEnd,
    Metric::OutputThroughput,
    Metric::PrefillTime,
    Metric::DecodeTime,
    Metric::Fluidity,
    Metric::FluidityTokens,
];

/// vLLM's client would start at 11 (the role), inference-perf's at 41 (the first content).
#[test]
fn a_role_and_a_reasoning_before_the_text() {
    let seen = of(with_chunks(
        answered(0, 0, 0, 90),
        4,
        &[
            (11, Role),
            (21, Reasoning),
            (31, Reasoning),
            (41, Content),
            (61, Content),
            (61, Finish),
            (65, UsageChunk),
            (66, Done),
        ],
    ));
    is(&seen, Metric::Ttfc, 0.020);
    is(&seen, Metric::TtfcFromIntended, 0.021);
    is(&seen, Metric::TtfcContent, 0.040);
    is(&seen, Metric::TimeToSecondChunk, 0.010);
    is(&seen, Metric::PrefillTime, 0.017);
    is(&seen, Metric::DecodeTime, 0.040);
    // Not 65 or 66: usage and [DONE] are not part of the answer (SGLang and inference-perf count
    // them).
    is(&seen, Metric::EndToEnd, 0.060);
    is(&seen, Metric::EndToEndFromIntended, 0.061);
    is(&seen, Metric::Tpot, 0.040 / 3.0);
    is(&seen, Metric::NormalizedEndToEnd, 0.015);
    is(&seen, Metric::OutputThroughput, 4.0 / 0.060);
    let tbc = seen.metric(Metric::Tbc).unwrap();
    assert_eq!((tbc.count, tbc.min, tbc.max, tbc.p50), (3, 0.010, 0.020, 0.010));
    assert_eq!(seen.metric(Metric::Itl), Some(tbc));
    assert!(seen.samples.itl_is_tbc());
}

#[test]
fn an_answer_of_reasoning_or_of_a_tool_call_alone_has_no_first_content() {
    for kind in [Reasoning, Tool] {
        let seen = of(with_chunks(answered(0, 0, 0, 90), 2, &[(21, kind), (41, kind)]));
        is(&seen, Metric::Ttfc, 0.020);
        is(&seen, Metric::Tpot, 0.020);
        absent(&seen, &[Metric::TtfcContent]);
    }
}

/// vLLM reports a TPOT of 0 here, which meets every objective.
#[test]
fn one_token_has_no_times_between_tokens() {
    let seen = of(with_chunks(
        answered(0, 0, 0, 90),
        1,
        &[(51, Content), (51, Finish), (52, Done)],
    ));
    is(&seen, Metric::Ttfc, 0.050);
    is(&seen, Metric::EndToEnd, 0.050);
    // The only token arrived by its deadline of 100 ms.
    is(&seen, Metric::Fluidity, 1.0);
    absent(
        &seen,
        &[
            Metric::Tpot,
            Metric::TimeToSecondChunk,
            Metric::Tbc,
            Metric::Itl,
            Metric::DecodeTime,
        ],
    );
}

#[test]
fn an_empty_answer_and_a_failure_midway_have_no_latency_metrics() {
    let empty = with_chunks(answered(0, 0, 0, 90), 0, &[(11, Role), (12, Finish), (13, Done)]);
    absent(&of(empty), &OF_AN_ANSWER);
    let half = with_chunks(answered(0, 0, 0, 90), 2, &[(21, Content), (31, Content)]);
    let seen = of(failed(half, ErrorClass::InStream, Some(200)));
    absent(&seen, &OF_AN_ANSWER);
    absent(&seen, &[Metric::PromptTokens, Metric::OutputTokens]);
    assert_eq!((seen.counts.requests, seen.counts.errored), (1, 1));
}

/// Chunks of 1, 2, 0, 3 and 1 tokens at 21, 41, 51, 81 and 91: gaps of 20, 10, 30 and 10. The
/// second chunk produces two samples of 10, the third none, the fourth three of (10 + 30) / 3, the
/// last one of 10.
#[test]
fn the_gap_before_a_chunk_is_divided_over_its_tokens() {
    let chunks = [
        (21, Content),
        (41, Content),
        (51, Content),
        (81, Content),
        (91, Content),
    ];
    let record = with_chunks(answered(0, 0, 0, 100), 7, &chunks);
    let seen = of(with_chunk_tokens(record, &[1, 2, 0, 3, 1]));
    assert!(!seen.samples.itl_is_tbc());
    let itl = seen.metric(Metric::Itl).unwrap();
    assert_eq!(itl.count, 6);
    // All tokens after the first arrived within 70 ms.
    close(Some(itl.mean), 0.070 / 6.0);
    close(Some(itl.min), 0.010);
    close(Some(itl.max), 0.040 / 3.0);
    // Three of 10 and three of 13.33: the midpoint.
    close(Some(itl.p50), (0.010 + 0.040 / 3.0) / 2.0);
    // (3 * (10 - 70/6)^2 + 3 * (40/3 - 70/6)^2) / 6, both deviations are 10/6.
    close(Some(itl.std), 0.010 / 6.0);
    // The gaps themselves are unchanged.
    let tbc = seen.metric(Metric::Tbc).unwrap();
    assert_eq!((tbc.count, tbc.max), (4, 0.030));
    is(&seen, Metric::Tpot, 0.070 / 6.0);
}

#[test]
fn what_the_chunks_carry_is_known_or_there_are_no_token_times() {
    let chunks = [(21, Content), (41, Content)];
    // Two chunks and five tokens: the distribution over the chunks is unknown.
    let unknown = of(with_chunks(answered(0, 0, 0, 90), 5, &chunks));
    absent(&unknown, &[Metric::Itl, Metric::Fluidity, Metric::FluidityTokens]);
    assert_eq!(unknown.metric(Metric::Tbc).unwrap().count, 1);
    // Token counts are used only if there is one for each chunk.
    let mut odd = with_chunks(answered(0, 0, 0, 90), 5, &chunks);
    odd.chunk_tokens = vec![5];
    absent(&of(odd), &[Metric::Itl, Metric::Fluidity]);
    // One of each in a run: the gaps of the unknown one are not times between tokens.
    let known = with_chunks(answered(1, 0, 0, 90), 2, &[(21, Content), (51, Content)]);
    let both = evaluate(
        Vec::new(),
        [
            finished(with_chunks(answered(0, 0, 0, 90), 5, &chunks)),
            finished(known),
        ],
    );
    assert_eq!(both.metric(Metric::Tbc).unwrap().count, 2);
    is(&both, Metric::Itl, 0.030);
}

/// A read with three chunks: one gap is long, two are 0, as observed.
#[test]
fn merged_chunks_have_gaps_of_zero() {
    let mut record = with_chunks(
        answered(0, 0, 0, 90),
        4,
        &[(21, Content), (61, Content), (61, Content), (61, Content)],
    );
    record.chunks[2].merged = true;
    record.chunks[3].merged = true;
    let seen = of(record);
    let tbc = seen.metric(Metric::Tbc).unwrap();
    assert_eq!((tbc.count, tbc.min, tbc.p50, tbc.max), (3, 0.0, 0.0, 0.040));
    is(&seen, Metric::TimeToSecondChunk, 0.040);
}

#[test]
fn a_gap_longer_than_four_bytes_of_nanoseconds_is_not_cut() {
    let seen = of(with_chunks(
        answered(0, 0, 0, 9000),
        3,
        &[(21, Content), (41, Content), (6041, Content)],
    ));
    let tbc = seen.metric(Metric::Tbc).unwrap();
    assert_eq!((tbc.count, tbc.min, tbc.max), (2, 0.020, 6.0));
    close(Some(tbc.mean), 3.010);
    close(Some(tbc.std), 2.990);
    // Rank 0.9 of 20 ms and 6 s.
    close(Some(tbc.p90), 0.020 + 0.9 * 5.98);
    assert_eq!(seen.metric(Metric::Itl), Some(tbc));
}

#[test]
fn token_metrics_use_the_counts_of_the_server() {
    let usage = |prompt, cached, reasoning| {
        let mut record = with_chunks(answered(0, 0, 0, 90), 8, &[(21, Content)]);
        record.usage = Some(Usage {
            prompt,
            completion: 8,
            cached,
            reasoning,
        });
        of(record)
    };
    let seen = usage(64, Some(48), Some(5));
    is(&seen, Metric::CachedTokenShare, 0.75);
    is(&seen, Metric::ReasoningTokens, 5.0);
    is(&seen, Metric::PromptTokens, 10.0);
    is(&seen, Metric::OutputTokens, 8.0);
    is(&seen, Metric::TotalTokens, 38.0);
    // A cache count of 0 and a missing cache count are different.
    is(&usage(64, Some(0), Some(0)), Metric::CachedTokenShare, 0.0);
    is(&usage(64, Some(0), Some(0)), Metric::ReasoningTokens, 0.0);
    absent(
        &usage(64, None, None),
        &[Metric::CachedTokenShare, Metric::ReasoningTokens],
    );
    absent(&usage(0, Some(0), None), &[Metric::CachedTokenShare]);
}

/// Dispatched at 1; tokens at 81, 141, 201, 371, 421, 451, 551: the golden vector of the fluidity
/// index, 5 of 9 deadlines, 5 of 7 tokens.
#[test]
fn fluidity_in_both_published_forms() {
    let at = [81, 141, 201, 371, 421, 451, 551].map(|at| (at, Content));
    let record = with_chunks(answered(0, 0, 0, 600), 7, &at);
    let seen = of(record.clone());
    is(&seen, Metric::Fluidity, 5.0 / 9.0);
    is(&seen, Metric::FluidityTokens, 5.0 / 7.0);
    // All of these deadlines are met.
    let setup = Setup {
        deadlines: Deadlines {
            prefill: ms(80),
            decode: ms(170),
        },
        ..Setup::default()
    };
    is(&run_in(setup, [finished(record)]), Metric::Fluidity, 1.0);
}

/// Three tokens at once at 100 ms, then one after 150: on time, because the three saved 100 ms.
/// Then one after 51: late.
#[test]
fn tokens_that_come_together_save_time() {
    let record = with_chunks(
        answered(0, 0, 0, 600),
        5,
        &[(101, Content), (251, Content), (302, Content)],
    );
    let seen = of(with_chunk_tokens(record, &[3, 1, 1]));
    is(&seen, Metric::Fluidity, 4.0 / 5.0);
    is(&seen, Metric::FluidityTokens, 4.0 / 5.0);
}

/// The first chunk does not contain a whole token: the first token arrives with the second chunk,
/// after 130 ms.
#[test]
fn a_first_chunk_without_a_whole_token_is_not_its_first_token() {
    let record = with_chunks(
        answered(0, 0, 0, 600),
        2,
        &[(91, Content), (131, Content), (171, Content)],
    );
    let seen = of(with_chunk_tokens(record, &[0, 1, 1]));
    is(&seen, Metric::Ttfc, 0.090);
    is(&seen, Metric::Itl, 0.040);
    // Late by 30 ms: one deadline missed, one met.
    is(&seen, Metric::Fluidity, 0.5);
}
