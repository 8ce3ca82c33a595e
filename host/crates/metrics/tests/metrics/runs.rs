//! Whole runs, with expected values computed by hand.
use crate::sequences::*;
use serde_json::{Value, json};
use veeksha_events::{Event, NeverSentReason, SessionEnd};
use veeksha_metrics::{Metric, RunEvaluator, RunMetric};
use veeksha_model::ChunkKind::{Content, Finish, Role};
use veeksha_model::{ErrorClass, Usage};

/// Three answers with TTFC 100, 200 and 300 ms; four chunks each, 20, 40 and 60 ms apart; four
/// tokens.
fn three_answers() -> Vec<Event> {
    let answer = |session: u64| {
        let (begin, ttfc, gap) = (session * 1000, 100 * (session + 1), 20 * (session + 1));
        let first = begin + 1 + ttfc;
        let chunks: Vec<_> = (0..4).map(|i| (first + i * gap, Content)).collect();
        with_chunks(answered(session, 0, begin, first + 3 * gap + 5), 4, &chunks)
    };
    (0..3).flat_map(|session| both(answer(session))).collect()
}

#[test]
fn percentiles_of_the_metrics() {
    let evaluation = evaluate(Vec::new(), three_answers());
    let of = |metric| *evaluation.metric(metric).unwrap();
    let ttfc = of(Metric::Ttfc);
    close(Some(ttfc.mean), 0.2);
    close(Some(ttfc.p50), 0.2);
    // Rank 0.9 * 2 = 1.8 of 100, 200, 300.
    close(Some(ttfc.p90), 0.280);
    close(Some(of(Metric::TtfcFromIntended).max), 0.301);
    // All gaps pooled: three of 20, three of 40, three of 60.
    let tbc = of(Metric::Tbc);
    assert_eq!(tbc.count, 9);
    close(Some(tbc.p50), 0.040);
    close(Some(tbc.p90), 0.060);
    close(Some(of(Metric::Tpot).mean), 0.040);
    close(Some(of(Metric::EndToEnd).min), 0.160);
    assert_eq!(of(Metric::TotalTokens).mean, 34.0);
    assert_eq!(of(Metric::PromptTokens).mean, 10.0);
}

/// Forty answers of ten tokens, each one event after 100 ms.
#[test]
fn responses_that_were_not_streamed_are_not_empty() {
    let events: Vec<_> = (0..40)
        .flat_map(|session| {
            let end = session * 1000 + 101;
            both(with_chunks(
                answered(session, 0, session * 1000, end),
                10,
                &[(end, Finish)],
            ))
        })
        .collect();
    let evaluation = evaluate(vec![slo(Metric::EndToEnd, 0.5, 0.2)], events);
    assert_eq!(
        (evaluation.counts.completed, evaluation.counts.empty_answers),
        (40, 0)
    );
    close(evaluation.slos.goodput, 1.0);
    let mut empty = Vec::new();
    evaluation
        .samples
        .each_part(RunMetric::EmptyAnswerShare, |_, value, _| empty.push(value));
    assert_eq!(empty, [0.0; 40]);
    assert_eq!(evaluation.metric(Metric::EndToEnd).unwrap().count, 40);
    assert_eq!(evaluation.metric(Metric::Ttfc), None);
    let bounds: Vec<_> = evaluation.host.errors.iter().map(|error| error.metric).collect();
    assert_eq!(bounds, [Metric::EndToEnd, Metric::EndToEndFromIntended]);
    // The area under the curve is the number of tokens; the window ends at 39.101 s.
    let rate = evaluation.curves.output_tokens.over_window.unwrap().mean;
    close(Some(rate * 39.101), 400.0);
}

#[test]
fn rates_run_from_the_first_intended_instant_to_the_last_completion() {
    let evaluation = evaluate(Vec::new(), three_answers());
    // Third answer: intended 2000, chunks at 2301 ... 2481, completed 2486.
    let window = 2.486;
    close(evaluation.throughput.window_seconds, window);
    close(evaluation.throughput.requests_per_second, 3.0 / window);
    close(evaluation.throughput.output_tokens_per_second, 12.0 / window);
    close(evaluation.throughput.input_tokens_per_second, 90.0 / window);
    close(evaluation.throughput.total_tokens_per_second, 102.0 / window);
    close(evaluation.throughput.tpot_based, 25.0);
    close(evaluation.throughput.tbc_based, 1.0 / 0.060);
    assert_eq!(evaluation.throughput.cached_tokens, None);
}

#[test]
fn cached_tokens_are_those_of_the_server() {
    let usage = |cached| {
        Some(Usage {
            prompt: 40,
            completion: 0,
            cached,
            reasoning: None,
        })
    };
    let mut some = answered(0, 0, 0, 10);
    some.usage = usage(Some(16));
    let mut silent = answered(1, 0, 0, 10);
    silent.usage = usage(None);
    let evaluation = evaluate(Vec::new(), [finished(some), finished(silent)]);
    assert_eq!(evaluation.throughput.cached_tokens, Some(16));
}

#[test]
fn every_end_of_a_request_has_its_count() {
    let mut retried = answered(5, 0, 0, 50);
    retried.retried = true;
    let still_open = answered(7, 0, 0, 0);
    let events = [
        finished(with_chunks(answered(0, 0, 0, 20), 1, &[(10, Content)])),
        finished(with_chunks(answered(1, 0, 0, 20), 0, &[(10, Role)])),
        finished(failed(answered(2, 0, 0, 20), ErrorClass::Status, Some(503))),
        finished(failed(answered(3, 0, 0, 20), ErrorClass::Truncated, Some(200))),
        finished(failed(answered(4, 0, 0, 20), ErrorClass::Cancelled, None)),
        finished(retried),
        finished(drained(with_chunks(answered(6, 0, 0, 900), 1, &[(800, Content)]))),
        dispatched(&still_open),
        never_sent(8, 0, NeverSentReason::SessionCancelled),
        never_sent(8, 1, NeverSentReason::PluginFailed),
        never_sent(9, 0, NeverSentReason::RunEnded),
    ];
    let evaluation = evaluate(vec![slo(Metric::Ttfc, 0.5, 1.0)], events);
    let counts = &evaluation.counts;
    assert_eq!(
        (
            counts.requests,
            counts.completed,
            counts.errored,
            counts.cancelled
        ),
        (6, 3, 2, 1)
    );
    assert_eq!(
        (
            counts.drained,
            counts.unfinished,
            counts.empty_answers,
            counts.retried
        ),
        (1, 1, 2, 1)
    );
    // Six sent, one open, two withheld; the request with `RunEnded` was not due.
    assert_eq!((counts.never_sent_total(), counts.intended()), (3, 9));
    assert_eq!(
        serde_json::to_value(&counts.errors).unwrap(),
        json!({ "503": 1, "truncated": 1 })
    );
    close(counts.error_rate(), 2.0 / 6.0);
    close(counts.cancellation_rate(), 1.0 / 6.0);
    // Of nine intended requests, one had a non-empty answer.
    close(evaluation.slos.goodput, 1.0 / 9.0);
    // Two empty answers and a drained one do not add latencies.
    assert_eq!(evaluation.metric(Metric::Ttfc).unwrap().count, 1);
    assert_eq!(evaluation.metric(Metric::EndToEnd).unwrap().count, 1);
    // The drained one does not extend the window, 0 to 50 ms.
    close(evaluation.throughput.window_seconds, 0.050);
}

#[test]
fn what_was_dispatched_after_the_timeout_is_not_missing_from_the_window() {
    let (before, after) = (answered(0, 0, 10, 0), answered(1, 0, 60, 0));
    let timeout = Event::TimeoutReached { at: ms(50) };
    let evaluation = evaluate(Vec::new(), [dispatched(&before), dispatched(&after), timeout]);
    assert_eq!(evaluation.counts.unfinished, 1);
}

#[test]
fn a_server_that_refuses_everything_is_seen() {
    let refused = |session| finished(failed(answered(session, 0, 0, 20), ErrorClass::Connect, None));
    let evaluation = evaluate(vec![slo(Metric::Ttfc, 0.99, 1.0)], (0..4).map(refused));
    assert!(evaluation.counts.all_failed());
    assert_eq!(evaluation.slos.goodput, Some(0.0));
    assert!(!evaluation.slos.all_met());
    assert_eq!(evaluation.throughput.requests_per_second, None);
    assert!(!evaluate(Vec::new(), []).counts.all_failed());
}

#[test]
fn slos_judge_the_run_and_goodput_judges_each_request() {
    let slos = vec![
        slo(Metric::Ttfc, 0.5, 0.2),
        slo(Metric::Tbc, 0.99, 0.05),
        slo(Metric::OutputThroughput, 1.0, 1.0),
        slo(Metric::SessionDuration, 0.5, 1.0),
    ];
    let evaluation = evaluate(slos, three_answers());
    let results = &evaluation.slos.results;
    // The median TTFC is 200 ms, equal to the bound.
    assert!(results[0].met);
    close(results[0].observed, 0.2);
    // P99 of the pooled gaps is 60 ms.
    assert!(!results[1].met);
    assert_eq!(results[1].sample_count, Some(9));
    // All requests reach the throughput of the slowest one: 4 tokens in 480 ms.
    close(results[2].observed, 4.0 / 0.480);
    assert!(results[2].met);
    // No session ended, so durations are unknown.
    assert_eq!(
        (results[3].met, results[3].observed, results[3].sample_count),
        (false, None, Some(0))
    );
    assert!(!evaluation.slos.all_met());
    // The third request misses both latencies; the first two meet them.
    close(evaluation.slos.goodput, 2.0 / 3.0);
    close(evaluation.slos.good_requests_per_second, 2.0 / 2.486);
}

#[test]
fn goodput_needs_an_slo_that_a_request_can_meet() {
    assert_eq!(evaluate(Vec::new(), three_answers()).slos.goodput, None);
    assert_eq!(
        evaluate(vec![slo(Metric::SessionSize, 0.5, 9.0)], three_answers())
            .slos
            .goodput,
        None
    );
    assert_eq!(evaluate(vec![slo(Metric::Ttfc, 0.5, 9.0)], []).slos.goodput, None);
}

#[test]
fn goodput_takes_a_requests_own_percentile_and_leaves_out_what_it_does_not_have() {
    // Gaps of 10, 20 and 30 ms: the median is 20. The second answer has one chunk, so neither gaps
    // nor TPOT.
    let gaps = with_chunks(
        answered(0, 0, 0, 90),
        4,
        &[(11, Content), (21, Content), (51, Content), (71, Content)],
    );
    let single = with_chunks(answered(1, 0, 0, 90), 4, &[(11, Content)]);
    let goodput = |slos| {
        evaluate(slos, [finished(gaps.clone()), finished(single.clone())])
            .slos
            .goodput
    };
    assert_eq!(goodput(vec![slo(Metric::Tbc, 0.5, 0.020)]), Some(1.0));
    assert_eq!(goodput(vec![slo(Metric::Tbc, 0.5, 0.019)]), Some(0.5));
    assert_eq!(goodput(vec![slo(Metric::Tbc, 1.0, 0.029)]), Some(0.5));
    assert_eq!(goodput(vec![slo(Metric::Tpot, 0.5, 0.019)]), Some(0.5));
    assert_eq!(goodput(vec![slo(Metric::OutputTokens, 0.5, 3.0)]), Some(0.0));
    // SLOs on sessions do not apply to single requests.
    assert_eq!(
        goodput(vec![
            slo(Metric::Tbc, 0.5, 0.020),
            slo(Metric::SessionSize, 0.5, 0.1)
        ]),
        Some(1.0)
    );
}

/// A session of three: node 1 follows node 0 after 40 ms, node 2 waits for both.
fn diamond(session: u64) -> Vec<Event> {
    let mut second = answered(session, 1, 140, 200);
    second.parents = vec![id(session, 0).node.into()];
    let mut third = answered(session, 2, 205, 300);
    third.parents = vec![id(session, 0).node.into(), id(session, 1).node.into()];
    let mut events = vec![session_started(session, 0)];
    for record in [answered(session, 0, 0, 100), second, third] {
        events.extend(both(record));
    }
    events.push(session_finished(session, 300, SessionEnd::Completed, 3));
    events
}

#[test]
fn a_session_lasts_from_its_first_dispatch_to_its_last_completion() {
    let evaluation = evaluate(Vec::new(), diamond(0));
    let of = |metric| *evaluation.metric(metric).unwrap();
    assert_eq!(of(Metric::SessionSize).mean, 3.0);
    close(Some(of(Metric::SessionDuration).mean), 0.299);
    // 140 - 100, and 205 - max(100, 200).
    assert_eq!(of(Metric::SessionThinkTime).count, 2);
    close(Some(of(Metric::SessionThinkTime).max), 0.040);
    close(Some(of(Metric::SessionThinkTime).min), 0.005);
    assert_eq!(
        (evaluation.counts.sessions, evaluation.counts.successful_sessions),
        (1, 1)
    );
}

#[test]
fn a_single_request_session_has_a_duration_above_zero() {
    let mut events = vec![session_started(0, 0)];
    events.extend(both(answered(0, 0, 0, 100)));
    events.push(session_finished(0, 100, SessionEnd::Completed, 1));
    let evaluation = evaluate(Vec::new(), events);
    close(
        evaluation
            .metric(Metric::SessionDuration)
            .map(|summary| summary.mean),
        0.099,
    );
}

#[test]
fn sessions_cut_short_are_counted_and_not_measured() {
    let begun = |session| [session_started(session, 0), finished(answered(session, 0, 0, 10))];
    let mut events: Vec<Event> = (0..4).flat_map(begun).collect();
    events.push(never_sent(0, 1, NeverSentReason::SessionCancelled));
    events.push(session_finished(0, 10, SessionEnd::Cancelled, 2));
    events.push(session_finished(1, 10, SessionEnd::Incomplete, 2));
    events.push(session_finished(2, 10, SessionEnd::Errored, 1));
    // Session 3 never ends. Session 4 is only partly measured.
    events.push(session_started(4, 0));
    events.push(finished(answered(4, 0, 0, 10)));
    events.push(finished(drained(answered(4, 1, 20, 30))));
    events.push(session_finished(4, 30, SessionEnd::Completed, 2));
    let evaluation = evaluate(Vec::new(), events);
    let counts = &evaluation.counts;
    let ends = (
        counts.successful_sessions,
        counts.errored_sessions,
        counts.cancelled_sessions,
        counts.incomplete_sessions,
    );
    assert_eq!(ends, (1, 1, 1, 2));
    // Only session 2 was attempted to its end and measured throughout.
    assert_eq!(evaluation.metric(Metric::SessionSize).unwrap().count, 1);
}

#[test]
fn the_session_rate_is_of_starts() {
    let starts = [0, 400, 900, 1500].into_iter().enumerate();
    let evaluation = evaluate(
        Vec::new(),
        starts.map(|(session, at)| session_started(session as u64, at)),
    );
    close(evaluation.session_dispatch_rate, 3.0 / 1.5);
    assert_eq!(
        evaluate(Vec::new(), [session_started(0, 0)]).session_dispatch_rate,
        None
    );
}

#[test]
fn the_hosts_own_delays() {
    let mut early = with_chunks(answered(1, 0, 100, 150), 2, &[(120, Content), (120, Content)]);
    early.dispatched_at = ms(98);
    early.chunks[1].merged = true;
    early.connection_reused = true;
    let mut late = with_chunks(answered(0, 0, 0, 50), 2, &[(20, Content), (30, Content)]);
    late.connect = Some(ms(2));
    let mut refused = failed(answered(2, 0, 200, 210), ErrorClass::Connect, None);
    refused.sent_at = None;
    let starved = Event::Starved {
        due: ms(10),
        at: ms(35),
    };
    let events = [
        finished(early),
        finished(late),
        finished(refused),
        starved.clone(),
        starved,
    ];
    let host = evaluate(Vec::new(), events).host;
    let lateness = host.dispatch_lateness.unwrap();
    // Two milliseconds early, one late, one late.
    close(Some(lateness.min), -0.002);
    close(Some(lateness.max), 0.001);
    assert_eq!(lateness.count, 3);
    // Sent at 104 after 98 on a reused connection, and at 4 after 1 on a new one.
    close(host.send_lateness.map(|summary| summary.max), 0.006);
    assert_eq!(host.send_lateness.unwrap().count, 1);
    close(host.send_lateness_with_opening.map(|summary| summary.max), 0.003);
    assert_eq!(host.ttfc_with_opening, 1);
    close(host.pickup_delay.map(|summary| summary.max), 0.004);
    close(host.processing_delay.map(|summary| summary.p50), 0.003);
    close(host.connect_time.map(|summary| summary.max), 0.002);
    assert_eq!(host.tls_time, None);
    assert_eq!(
        (host.merged_chunk_share, host.connection_reuse_share),
        (Some(0.25), Some(0.5))
    );
    assert_eq!((host.starvations, host.starved_seconds), (2, 0.05));
}

#[test]
fn live_metrics_follow_the_events() {
    let mut evaluator = RunEvaluator::new(Vec::new());
    let first = with_chunks(answered(0, 0, 0, 300), 7, &[(101, Content), (151, Content)]);
    let second = answered(1, 0, 10, 0);
    evaluator.on(&session_started(0, 0));
    evaluator.on(&dispatched(&first));
    evaluator.on(&dispatched(&second));
    assert_eq!((evaluator.live().dispatched, evaluator.live().in_flight), (2, 2));
    assert_eq!(evaluator.live().ttfc_p50, None);
    evaluator.on(&finished(first));
    evaluator.on(&session_finished(0, 300, SessionEnd::Completed, 1));
    evaluator.on(&finished(failed(second, ErrorClass::Timeout, None)));
    // A completion may arrive before its dispatch event.
    let third = answered(2, 0, 20, 30);
    evaluator.on(&finished(third.clone()));
    evaluator.on(&dispatched(&third));
    let live = evaluator.live();
    assert_eq!(
        (live.dispatched, live.completed, live.failed, live.in_flight),
        (3, 2, 1, 0)
    );
    assert_eq!(
        (live.sessions_started, live.sessions_finished, live.output_tokens),
        (1, 1, 7)
    );
    assert!((live.ttfc_p50.unwrap() - 0.1).abs() < 0.1 * 0.001);
    assert!((live.tbc_p50.unwrap() - 0.05).abs() < 0.05 * 0.001);
}

#[test]
fn veekshas_keys_of_summary_stats() {
    let mut events = three_answers();
    events.extend(diamond(9));
    events.push(finished(failed(
        answered(10, 0, 0, 20),
        ErrorClass::Status,
        Some(429),
    )));
    events.push(Event::RunEnded { at: ms(5000) });
    let file = evaluate(Vec::new(), events).summary_stats();
    let counts = [
        ("Number of Requests", json!(7)),
        ("Number of Errored Requests", json!(1)),
        ("Number of Completed Requests", json!(6)),
        ("Number of Cancelled Requests", json!(0)),
        ("Error Rate", json!(1.0 / 7.0)),
        ("Cancellation Rate", json!(0.0)),
        ("Number of Sessions Seen", json!(1)),
        ("Successful Sessions", json!(1)),
        ("Errored Sessions", json!(0)),
        ("Cancelled Sessions", json!(0)),
        ("Incomplete Sessions", json!(0)),
        ("Observed Session Dispatch Rate", Value::Null),
        ("error_code_freq", json!({ "429": 1 })),
        ("record_complete", json!(true)),
        ("interrupted", json!(false)),
    ];
    for (key, expected) in counts {
        assert_eq!(file[key], expected, "{key}");
    }
    let displays = [
        "Number of Prompt Tokens",
        "Number of Output Tokens",
        "Number of Total Tokens",
        "Time per Output Token",
        "Time to First Chunk",
        "Time Between Chunks",
        "End to End Latency",
        "Normalized End to End Latency",
        "Output Throughput",
        "Requests per Session",
        "Session Duration",
        "Intra-session Think Time",
    ];
    for (display, statistic) in displays
        .iter()
        .flat_map(|name| ["Mean", "P50", "P90", "P99"].map(|statistic| (name, statistic)))
    {
        let key = format!("{display} ({statistic})");
        assert!(file[&key].is_f64(), "{key}: {}", file[&key]);
    }
    let thin = file["P99 of Fewer than 100 Samples"].as_array().unwrap();
    assert!(thin.contains(&json!("Time to First Chunk (P99)")));
    close(file["host"]["dispatch_lateness"]["p99"].as_f64(), 0.001);
}

#[test]
fn empty_run_has_nulls_instead_of_zeros() {
    let evaluation = evaluate(vec![slo(Metric::Ttfc, 0.99, 0.5)], []);
    let file = evaluation.summary_stats();
    assert_eq!(file["Error Rate"], Value::Null);
    assert_eq!(file.get("Time to First Chunk (P99)"), None);
    assert_eq!(file["host"]["send_lateness"], Value::Null);
    assert_eq!(file["record_complete"], json!(false));
    let expected = json!({
        "tpot_based_throughput": null, "tbc_based_throughput": null, "window_seconds": null,
        "requests_per_second": null, "input_tokens_per_second": null, "output_tokens_per_second": null,
        "total_tokens_per_second": null, "input_tokens": 0, "output_tokens": 0, "cached_tokens": null,
        "cached_of_tokens": null,
        "goodput": null, "good_requests_per_second": null,
    });
    assert_eq!(evaluation.throughput_metrics(), expected);
    let expected = json!({
        "all_slos_met": false,
        "results": [{
            "met": false, "slo_metric_key": "ttfc_p99", "observed_value": null, "threshold": 0.5,
            "percentile": 0.99, "metric": "ttfc", "name": null, "lower_is_better": true, "sample_count": 0,
            "objective": "p99(ttfc) <= 0.5", "unit": "s", "too_few_samples": true, "worst_window": null,
            "plugin": null, "detail": "no request was answered",
        }],
        "remarks": [],
        "failed_plugins": [],
    });
    assert_eq!(evaluation.slo_results(), expected);
}

#[test]
fn gaps_of_zero_give_no_infinite_throughput() {
    let record = with_chunks(answered(0, 0, 0, 50), 2, &[(20, Content), (20, Content)]);
    let evaluation = evaluate(Vec::new(), [finished(record)]);
    assert_eq!(
        (evaluation.throughput.tpot_based, evaluation.throughput.tbc_based),
        (None, None)
    );
}
