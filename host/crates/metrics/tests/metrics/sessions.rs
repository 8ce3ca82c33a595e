//! Metrics of sessions, with expected values computed by hand.

use crate::sequences::*;
use veeksha_events::{Event, RequestRecord, SessionEnd};
use veeksha_metrics::{Evaluation, Metric, Scope};
use veeksha_model::ChunkKind::{Content, Tool};
use veeksha_model::{ChunkKind, ErrorClass};
use veeksha_ports::RunResults;

/// Intended at `intended`, dispatched a millisecond later, first chunk `first` after dispatch,
/// completed at `completed`.
fn turn(node: u32, intended: u64, first: u64, completed: u64, kind: ChunkKind) -> RequestRecord {
    let at = intended + 1 + first;
    with_chunks(
        answered(0, node, intended, completed),
        2,
        &[(at, kind), (completed, kind)],
    )
}

fn session(records: Vec<RequestRecord>, end: SessionEnd) -> Evaluation {
    let requests = records.len() as u32;
    let events = records.into_iter().flat_map(both);
    let around = [session_started(0, 0), session_finished(0, 9000, end, requests)];
    evaluate(Vec::new(), around.into_iter().chain(events))
}

fn value(evaluation: &Evaluation, metric: Metric) -> Option<f64> {
    let summary = evaluation.metric(metric)?;
    assert_eq!(summary.count, 1, "{metric}");
    Some(summary.mean)
}

/// A diamond. 0 takes 1..101 and calls a tool; 1 waits 50 for it and takes 152..252; 2 waits 10 and
/// takes 112..412; 3 waits 20 for both and takes 433..533.
fn diamond() -> Vec<RequestRecord> {
    vec![
        turn(0, 0, 40, 101, Tool),
        after(turn(1, 151, 60, 252, Content), &[0], 50),
        after(turn(2, 111, 80, 412, Content), &[0], 10),
        after(turn(3, 432, 50, 533, Content), &[1, 2], 20),
    ]
}

#[test]
fn a_diamond_of_four_requests() {
    let seen = session(diamond(), SessionEnd::Completed);
    let of = |metric| value(&seen, metric);
    assert_eq!(of(Metric::SessionSize), Some(4.0));
    close(of(Metric::SessionDuration), 0.532);
    close(of(Metric::SessionMakespan), 0.533);
    // 0, 2, 3: 100 + 300 + 100. Through 1 it is 100 + 100 + 100.
    close(of(Metric::SessionCriticalPath), 0.500);
    // 1 and 2 both follow the call: 50 + 10.
    close(of(Metric::SessionToolTime), 0.060);
    let think = seen.metric(Metric::SessionThinkTime).unwrap();
    assert_eq!(think.count, 3);
    close(Some(think.mean), 0.080 / 3.0);
    close(Some(think.max), 0.050);
    // The shortest TTFC of the run is 40. Without queueing: 0 ends at 40 + 60 = 100; 2 at 110 +
    // 40 + (412 - 192) = 370; 3 begins 20 later and ends at 390 + 40 + (533 - 483) = 480.
    close(of(Metric::SessionSlowdown), 533.0 / 480.0);
}

/// A metric that is added to the table without a value in `sessions.rs` has no samples.
#[test]
fn every_session_metric_has_a_sample_in_every_query() {
    let seen = session(diamond(), SessionEnd::Completed);
    let is_of_sessions = |metric: &Metric| metric.scope() == Scope::Session;
    for metric in Metric::all().filter(is_of_sessions) {
        let summary = seen.metric(metric).unwrap_or_else(|| panic!("{metric}"));
        let mut visited = 0;
        seen.samples.each_sample(metric.name(), |_, _, _| visited += 1);
        assert_eq!(visited, summary.count, "{metric}");
        let windows = seen.samples.windows(metric.name(), &[], u64::MAX);
        let counts: Vec<u64> = windows.iter().map(|window| window.stats.count).collect();
        assert_eq!(counts, [summary.count as u64], "{metric}");
    }
}

#[test]
fn the_shortest_ttfc_is_one_of_prompts_at_least_as_long() {
    // Request 1 has a longer prompt than 0, and needs longer for it: 0 could not have had 10, but 1
    // could not have had 10 either.
    let mut long = after(turn(1, 101, 30, 202, Content), &[0], 0);
    long.total_prompt_tokens = 300;
    let short = turn(0, 0, 10, 101, Content);
    let seen = session(vec![short.clone(), long.clone()], SessionEnd::Completed);
    // 0: 10 + 90; 1: 30 + (202 - 132) = 100 after it.
    close(value(&seen, Metric::SessionSlowdown), 202.0 / 200.0);
    // With the lengths swapped both could have had 10.
    let mut short = short;
    short.total_prompt_tokens = 400;
    let seen = session(vec![short, long], SessionEnd::Completed);
    close(value(&seen, Metric::SessionSlowdown), 202.0 / 180.0);
}

#[test]
fn without_a_tool_call_there_is_no_tool_time() {
    let seen = session(
        vec![
            turn(0, 0, 40, 101, Content),
            after(turn(1, 151, 60, 252, Tool), &[0], 50),
        ],
        SessionEnd::Completed,
    );
    assert_eq!(value(&seen, Metric::SessionToolTime), None);
    close(value(&seen, Metric::SessionThinkTime), 0.050);
}

#[test]
fn a_session_with_a_failure_has_a_makespan_and_no_slowdown() {
    let mut records = diamond();
    records[3] = failed(records[3].clone(), ErrorClass::Timeout, None);
    let seen = session(records, SessionEnd::Errored);
    close(value(&seen, Metric::SessionMakespan), 0.533);
    close(value(&seen, Metric::SessionCriticalPath), 0.500);
    assert_eq!(value(&seen, Metric::SessionSlowdown), None);
}

#[test]
fn only_sessions_that_were_tried_and_measured_to_their_end_count() {
    for end in [SessionEnd::Cancelled, SessionEnd::Incomplete] {
        assert_eq!(value(&session(diamond(), end), Metric::SessionMakespan), None);
    }
    let mut records = diamond();
    records[2] = drained(records[2].clone());
    let seen = session(records, SessionEnd::Completed);
    assert_eq!(value(&seen, Metric::SessionSize), None);
    // The think times of the measured requests exist regardless.
    assert_eq!(seen.metric(Metric::SessionThinkTime).unwrap().count, 2);
}

#[test]
fn a_parent_that_the_record_lacks_leaves_unknown_what_depends_on_it() {
    let mut records = diamond();
    records.remove(1);
    let seen = session(records, SessionEnd::Completed);
    assert_eq!(value(&seen, Metric::SessionCriticalPath), None);
    assert_eq!(value(&seen, Metric::SessionSlowdown), None);
    close(value(&seen, Metric::SessionMakespan), 0.533);
    // Only the node that waits for 0 alone has a think time.
    close(value(&seen, Metric::SessionThinkTime), 0.010);
}

#[test]
fn a_session_of_one_request_has_its_own_time() {
    let seen = session(vec![turn(0, 0, 40, 101, Content)], SessionEnd::Completed);
    close(value(&seen, Metric::SessionDuration), 0.100);
    close(value(&seen, Metric::SessionCriticalPath), 0.100);
    // It had the shortest TTFC of the run; the millisecond before its dispatch is due to the host.
    close(value(&seen, Metric::SessionSlowdown), 101.0 / 100.0);
}

#[test]
fn sessions_are_listed_with_their_labels() {
    let gold = |record| labelled(record, &[("tier", "gold"), ("turn", "x")]);
    let plain = |record| labelled(record, &[("tier", "gold")]);
    let seen = session(
        vec![
            gold(turn(0, 0, 40, 101, Content)),
            plain(after(turn(1, 151, 60, 252, Content), &[0], 50)),
        ],
        SessionEnd::Completed,
    );
    let file = seen.session_metrics();
    let mut written = Vec::new();
    seen.write_session_metrics(&mut written).unwrap();
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&written).unwrap(),
        file
    );
    let row = &file["sessions"][0];
    assert_eq!(row["labels"], serde_json::json!([["tier", "gold"]]));
    assert_eq!(
        (&row["session_size"], &row["session_tool_time"]),
        (&2.into(), &serde_json::Value::Null)
    );
    close(file["metrics"]["session_makespan"]["p50"].as_f64(), 0.252);
}

#[test]
fn objectives_on_sessions_may_ask_for_their_labels() {
    let tier = |session: u64, tier: &str, completed| {
        let mut record = labelled(turn(0, 0, 40, completed, Content), &[("tier", tier)]);
        record.id = id(session, 0);
        let ends = [
            session_started(session, 0),
            session_finished(session, 9000, SessionEnd::Completed, 1),
        ];
        ends.into_iter().chain(both(record))
    };
    let events = tier(0, "gold", 101).chain(tier(1, "free", 301));
    let seen = run_in(
        asking(&[
            "max(session_makespan{tier=\"gold\"}) <= 101ms",
            "max(session_duration{tier=\"free\"}, window = 1s) <= 200ms",
        ]),
        events,
    );
    let results: Vec<_> = seen
        .slos
        .results
        .iter()
        .map(|result| (result.met, result.sample_count))
        .collect();
    assert_eq!(results, [(true, Some(1)), (false, Some(1))]);
    close(seen.slos.results[1].observed, 0.300);
    // Session objectives do not imply a condition on single requests.
    assert_eq!(seen.slos.goodput, None);
}

#[test]
fn the_record_may_name_a_session_only_by_its_requests() {
    let records = diamond().into_iter().flat_map(both);
    let seen = evaluate(Vec::new(), records.chain([Event::RunEnded { at: ms(9000) }]));
    assert_eq!(value(&seen, Metric::SessionSize), None);
    assert_eq!(seen.metric(Metric::SessionThinkTime).unwrap().count, 3);
}
