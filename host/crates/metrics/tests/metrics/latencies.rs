//! The latencies of single requests, with expected values computed by hand.
use crate::sequences::{answered, both, close, evaluate, failed, finished, with_chunk_tokens, with_chunks};
use veeksha_events::RequestRecord;
use veeksha_metrics::{Metric, RequestLatencies, latencies};
use veeksha_model::ChunkKind::{Comment, Content, Done, Finish, Reasoning, Role, Tool, Usage};
use veeksha_model::ErrorClass;

#[test]
fn a_reasoning_answer_starts_with_its_reasoning_and_ends_with_its_last_text() {
    // Intended at 900, dispatched at 901.
    let record = with_chunks(
        answered(0, 0, 900, 1700),
        5,
        &[
            (1000, Comment),
            (1101, Role),
            (1201, Reasoning),
            (1301, Content),
            (1501, Content),
            (1601, Finish),
            (1601, Usage),
            (1700, Done),
        ],
    );
    let seen = latencies(&record);
    close(seen.ttfc, 0.300);
    close(seen.ttfc_from_intended, 0.301);
    close(seen.end_to_end, 0.600);
    close(seen.end_to_end_from_intended, 0.601);
    // 300 ms from the first to the last of three generated chunks, which have an equal share of the
    // five tokens: 10/3 of them are after the first chunk.
    close(seen.tpot, 0.09);
    close(seen.normalized_end_to_end, 0.120);
    close(seen.output_throughput, 5.0 / 0.6);
    assert_eq!(seen.tbc, [0.1, 0.2]);
}

#[test]
fn a_tool_call_is_generated_too() {
    let record = with_chunks(answered(0, 0, 0, 90), 8, &[(11, Role), (21, Tool), (41, Tool)]);
    close(latencies(&record).ttfc, 0.020);
    assert_eq!(latencies(&record).tbc, [0.02]);
}

#[test]
fn without_anything_generated_there_is_no_latency() {
    for chunks in [&[][..], &[(11, Role), (12, Finish), (13, Usage), (14, Done)]] {
        let record = with_chunks(answered(0, 0, 0, 90), 0, chunks);
        assert_eq!(latencies(&record), RequestLatencies::default());
    }
}

#[test]
fn one_token_has_no_time_per_token() {
    let record = with_chunks(answered(0, 0, 0, 90), 1, &[(51, Content)]);
    let seen = latencies(&record);
    assert_eq!((seen.tpot, seen.tbc.len()), (None, 0));
    close(seen.ttfc, 0.050);
    close(seen.end_to_end, 0.050);
    close(seen.normalized_end_to_end, 0.050);
    close(seen.output_throughput, 20.0);
}

#[test]
fn several_tokens_in_one_piece_show_no_time_per_token() {
    let record = with_chunks(answered(0, 0, 0, 90), 6, &[(51, Content)]);
    assert_eq!(latencies(&record).tpot, None);
}

#[test]
fn two_chunks_of_one_token_show_no_time_per_token() {
    let record = with_chunks(answered(0, 0, 0, 90), 1, &[(51, Content), (61, Content)]);
    assert_eq!(latencies(&record).tpot, None);
    assert_eq!(latencies(&record).tbc, [0.01]);
}

#[test]
fn text_of_which_no_token_was_counted_has_no_metric_per_token() {
    let seen = latencies(&with_chunks(
        answered(0, 0, 0, 90),
        0,
        &[(51, Content), (61, Content)],
    ));
    assert_eq!(
        (seen.tpot, seen.normalized_end_to_end, seen.output_throughput),
        (None, None, None)
    );
    close(seen.end_to_end, 0.060);
}

#[test]
fn a_failure_after_some_chunks_keeps_what_was_observed_and_no_more() {
    let record = with_chunks(
        answered(0, 0, 0, 90),
        3,
        &[(11, Role), (21, Content), (31, Content)],
    );
    let seen = latencies(&failed(record, ErrorClass::Truncated, Some(200)));
    close(seen.ttfc, 0.020);
    assert_eq!(seen.tbc, [0.01]);
    let whole = (seen.tpot, seen.end_to_end, seen.end_to_end_from_intended);
    assert_eq!(whole, (None, None, None));
    assert_eq!((seen.normalized_end_to_end, seen.output_throughput), (None, None));
}

#[test]
fn chunks_of_one_read_have_a_gap_of_zero_between_them() {
    let record = with_chunks(
        answered(0, 0, 0, 90),
        3,
        &[(21, Content), (21, Content), (31, Content)],
    );
    assert_eq!(latencies(&record).tbc, [0.0, 0.01]);
}

#[test]
fn an_answer_at_the_instant_of_its_dispatch_has_no_infinite_throughput() {
    let record = with_chunks(answered(0, 0, 0, 90), 1, &[(1, Content)]);
    assert_eq!(latencies(&record).output_throughput, None);
    close(latencies(&record).end_to_end, 0.0);
}

/// A server that answers faster than the client reads: the time of the second chunk is unknown, but
/// not 0.
#[test]
fn chunks_of_one_read_have_no_pace() {
    let record = with_chunks(
        answered(0, 0, 0, 60),
        3,
        &[(51, Content), (51, Content), (51, Content)],
    );
    let seen = latencies(&record);
    assert_eq!((seen.tpot, seen.tbc), (None, vec![0.0, 0.0]));
    close(seen.end_to_end, 0.050);
    let run = evaluate(Vec::new(), [finished(record)]);
    assert!(run.metric(Metric::DecodeTime).is_none() && run.metric(Metric::Tpot).is_none());
}

/// The server also counts its template, so that its cached tokens may exceed the host's count of
/// the whole prompt.
#[test]
fn what_is_cached_is_a_share_of_what_the_server_counts() {
    let cached = |session, cached, prompt| RequestRecord {
        total_prompt_tokens: 30,
        usage: Some(veeksha_model::Usage {
            prompt,
            completion: 2,
            cached: Some(cached),
            reasoning: None,
        }),
        ..answered(session, 0, 0, 60)
    };
    // The second one is contradictory.
    let run = evaluate(
        Vec::new(),
        [finished(cached(0, 32, 40)), finished(cached(1, 50, 40))],
    );
    let share = run.metric(Metric::CachedTokenShare).unwrap();
    assert_eq!((share.count, share.max), (1, 0.8));
    close(
        run.run_metric(veeksha_metrics::RunMetric::OverallCachedTokenShare),
        0.8,
    );
    let file = run.throughput_metrics();
    assert_eq!(
        (
            &file["cached_tokens"],
            &file["cached_of_tokens"],
            &file["input_tokens"]
        ),
        (&32.into(), &40.into(), &60.into())
    );
}

/// An answer dispatched at 1 ms, with content at these instants (ms).
fn content(total: u32, at: &[u64]) -> RequestRecord {
    let chunks: Vec<_> = at.iter().map(|at| (*at, Content)).collect();
    with_chunks(answered(0, 0, 0, at[at.len() - 1]), total, &chunks)
}

/// A token every 10 ms, sent in seven chunks of 20: the first chunk arrives with its 20th token,
/// and 120 tokens take the 1200 ms after it. (last - first) / 139 is 13.7 % lower.
#[test]
fn tpot_of_bundled_tokens_is_the_pace_of_the_server() {
    let instants: Vec<u64> = (1..=7).map(|chunk| 1 + 200 * chunk).collect();
    let known = with_chunk_tokens(content(140, &instants), &[20; 7]);
    let mut by_another_tokenizer = known.clone();
    by_another_tokenizer.chunk_tokens = vec![25; 7];
    for record in [known, by_another_tokenizer, content(140, &instants)] {
        close(latencies(&record).tpot, 0.010);
    }
}

/// Speculative decoding: steps of 20 ms produce one to four tokens.
#[test]
fn tpot_of_speculative_decoding_counts_the_tokens_of_each_step() {
    let record = with_chunk_tokens(content(0, &[21, 41, 61, 81]), &[4, 1, 3, 2]);
    assert_eq!(record.output_tokens, 10);
    close(latencies(&record).tpot, 0.060 / 6.0);
}

/// The server holds its first chunk back until eight tokens are ready, and then streams.
#[test]
fn tpot_of_a_delayed_first_chunk_leaves_its_tokens_out() {
    let record = with_chunk_tokens(content(0, &[81, 91, 101, 111]), &[8, 1, 1, 1]);
    close(latencies(&record).tpot, 0.010);
}

/// Everything arrived with the first chunk, except for the end of the answer.
#[test]
fn tpot_does_not_exist_without_a_token_after_the_first_chunk() {
    let record = with_chunk_tokens(content(0, &[81, 91]), &[5, 0]);
    assert_eq!(latencies(&record).tpot, None);
}

#[test]
fn itl_of_another_tokenizer_is_scaled_to_usage() {
    // 25 tokens by the host's tokenizer in each chunk, 20 by the server: 200 ms / 20.
    let instants: Vec<u64> = (1..=7).map(|chunk| 1 + 200 * chunk).collect();
    let mut record = content(140, &instants);
    record.chunk_tokens = vec![25; 7];
    let evaluation = evaluate(vec![], [finished(record)]);
    let itl = evaluation.metric(Metric::Itl).expect("the itl");
    assert_eq!(itl.count, 120);
    close(Some(itl.mean), 0.010);
    close(Some(itl.max), 0.010);
}

/// Four requests dispatched at 1, 101, 201 and 301 ms: three in 300 ms.
#[test]
fn dispatch_rate_counts_the_intervals_between_requests() {
    let requests = (0..4).map(|number| finished(answered(number, 0, number * 100, 900)));
    let evaluation = evaluate(vec![], requests);
    close(
        evaluation.run_metric(veeksha_metrics::RunMetric::RequestDispatchRate),
        10.0,
    );
    // Four answers from 0 to 900 ms.
    close(evaluation.throughput.requests_per_second, 4.0 / 0.9);
}

/// Servers buffer the arguments of a call: tokens generated after the last visible chunk count.
#[test]
fn tool_call_ends_with_its_finish_event() {
    let chunks = [
        (11, Role),
        (21, Tool),
        (41, Tool),
        (61, Finish),
        (62, Usage),
        (63, Done),
    ];
    let seen = latencies(&with_chunks(answered(0, 0, 0, 90), 9, &chunks));
    close(seen.ttfc, 0.020);
    close(seen.end_to_end, 0.060);
    // 40 ms from the first chunk to the finish event. Nine tokens in two chunks of unknown sizes:
    // half of them are assumed to arrive after the first chunk.
    close(seen.tpot, 0.040 / 4.5);
    assert_eq!(seen.tbc, [0.02]);
}

#[test]
fn response_that_was_not_streamed_has_no_first_chunk() {
    let record = with_chunks(answered(0, 0, 0, 90), 10, &[(51, Finish)]);
    assert!(!record.is_stream());
    let seen = latencies(&record);
    assert_eq!(
        (seen.ttfc, seen.ttfc_from_intended, seen.tpot),
        (None, None, None)
    );
    close(seen.end_to_end, 0.050);
    close(seen.normalized_end_to_end, 0.005);
    // Nothing was generated.
    let empty = with_chunks(answered(0, 0, 0, 90), 0, &[(51, Finish)]);
    assert_eq!(latencies(&empty), RequestLatencies::default());
}

/// A metric with `Certification::Own` and no estimate would silently have no error bound.
#[test]
fn estimates_the_errors_of_exactly_the_certified_metrics() {
    let record = with_chunks(
        answered(0, 0, 0, 90),
        3,
        &[(20, Content), (30, Content), (40, Content)],
    );
    let estimates = evaluate(Vec::new(), both(record)).host.errors;
    let estimated: Vec<Metric> = estimates.iter().map(|estimate| estimate.metric).collect();
    assert_eq!(estimated, Metric::certified().collect::<Vec<_>>());
}
