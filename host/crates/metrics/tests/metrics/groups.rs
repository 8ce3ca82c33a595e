//! Requests grouped by labels, with expected values computed by hand.

use proptest::prelude::*;
use veeksha_events::Event;
use veeksha_metrics::{Evaluation, GroupKey, LabelGroups, Setup};
use veeksha_model::ChunkKind::Content;
use veeksha_model::ErrorClass;

use crate::sequences::*;

fn by(labels: &[&str], events: Vec<Event>) -> Evaluation {
    let setup = Setup {
        group_by: Some(labels.iter().map(|label| (*label).to_owned()).collect()),
        ..Setup::default()
    };
    run_in(setup, events)
}

/// An answered request with a first chunk after `ttfc` milliseconds and two output tokens.
fn answer(session: u64, ttfc: u64, labels: &[(&str, &str)]) -> Event {
    let intended = 10 * session;
    let chunks = [
        (intended + 1 + ttfc, Content),
        (intended + 1 + ttfc + 20, Content),
    ];
    let record = answered(session, 0, intended, 1000);
    finished(labelled(with_chunks(record, 2, &chunks), labels))
}

fn keys(groups: &LabelGroups) -> Vec<String> {
    groups.groups.iter().map(|group| group.key.to_string()).collect()
}

#[test]
fn groups_have_the_counts_and_metrics_of_their_requests() {
    let events = vec![
        answer(0, 10, &[("tier", "gold")]),
        answer(1, 30, &[("tier", "gold")]),
        answer(2, 100, &[("tier", "free"), ("zone", "eu")]),
        finished(failed(
            labelled(answered(3, 0, 30, 90), &[("tier", "free")]),
            ErrorClass::Timeout,
            None,
        )),
        answer(4, 5, &[]),
    ];
    let seen = by(&["tier"], events);
    let [tier] = &seen.groups[..] else {
        panic!("one label: {:?}", seen.groups);
    };
    assert_eq!((tier.label.as_str(), tier.values), ("tier", 2));
    assert_eq!(keys(tier), ["free", "gold", "(no label)"]);
    assert_eq!(tier.remark(), None);
    let [free, gold, rest] = &tier.groups[..] else {
        panic!("three groups");
    };
    assert_eq!(
        (free.totals.requests, free.totals.completed, free.totals.errored),
        (2, 1, 1)
    );
    assert_eq!(free.totals.error_rate(), Some(0.5));
    assert_eq!((gold.totals.completed, gold.totals.output_tokens), (2, 4));
    assert_eq!(rest.key, GroupKey::Unlabelled);
    close(gold.metric("ttfc").map(|ttfc| ttfc.p50), 0.02);
    close(free.metric("ttfc").map(|ttfc| ttfc.max), 0.1);
    close(rest.metric("ttfc").map(|ttfc| ttfc.mean), 0.005);
    // The measured window is from 0 to 1 s.
    close(gold.requests_per_second, 2.0);
    close(gold.output_tokens_per_second, 4.0);
    let values = seen.samples.values_of_group(gold, "ttfc", 100);
    assert_eq!(values.len(), 2);
    close(values.last().copied(), 0.03);
    let json = seen.summary_stats();
    assert_eq!(json["groups"][0]["groups"][1]["value"], "gold");
    close(
        json["groups"][0]["groups"][1]["metrics"]["ttfc"]["p50"].as_f64(),
        0.02,
    );
    let (columns, rows) = LabelGroups::table(&seen.groups);
    assert!(rows.len() == 3 && rows.iter().all(|row| row.len() == columns.len()));
    let place = columns.iter().position(|column| column == "ttfc_p50").unwrap();
    close(rows[0][place].parse().ok(), 0.1);
}

#[test]
fn groups_by_labels_with_few_values_unless_labels_are_named() {
    let events: Vec<Event> = (0..30)
        .map(|session| {
            let user = session.to_string();
            let tier = if session % 2 == 0 { "gold" } else { "free" };
            answer(session, 10, &[("tier", tier), ("user", &user), ("model", "only")])
        })
        .collect();
    let labels = |seen: &Evaluation| -> Vec<String> {
        let groups = seen.groups.iter();
        groups.map(|groups| groups.label.clone()).collect()
    };
    let automatic = run_in(Setup::default(), events.clone());
    assert_eq!(labels(&automatic), ["tier"]);
    assert_eq!(labels(&by(&["model", "tier"], events.clone())), ["model", "tier"]);
    assert!(by(&[], events.clone()).groups.is_empty());
    assert!(by(&["teir"], events.clone()).groups.is_empty());
    let without_labels = run_in(Setup::default(), vec![answer(0, 10, &[])]);
    assert!(without_labels.groups.is_empty());
    assert!(without_labels.summary_stats().get("groups").is_none());
}

/// Two turns of each of four sessions: `turn` groups them, `session_id` and `request_id` identify
/// them.
#[test]
fn labels_that_identify_requests_or_sessions_have_groups_only_if_named() {
    let events: Vec<Event> = (0..8u64)
        .map(|request| {
            let (session, turn) = (request / 2, request % 2);
            let record = answered(session, turn as u32, 10 * request, 1000);
            let [id, of_session, turn] = [request, session, turn].map(|value| value.to_string());
            let labels = [
                ("request_id", &*id),
                ("session_id", &*of_session),
                ("turn", &*turn),
            ];
            finished(labelled(record, &labels))
        })
        .collect();
    let automatic = run_in(Setup::default(), events.clone());
    let labels: Vec<&str> = automatic.groups.iter().map(|of| of.label.as_str()).collect();
    assert_eq!(labels, ["turn"]);
    assert_eq!(by(&["request_id", "session_id"], events).groups.len(), 2);
}

#[test]
fn less_frequent_values_are_merged_into_one_group() {
    // Value `n` has n + 1 requests: 19 to 9 are the 11 most frequent of 20, the rest is merged.
    let events: Vec<Event> = (0..20u64)
        .flat_map(|value| (0..=value).map(move |request| (value, request)))
        .map(|(value, request)| answer(100 * value + request, 10, &[("turn", &value.to_string())]))
        .collect();
    let seen = by(&["turn"], events);
    let turn = &seen.groups[0];
    let expected: Vec<String> = (9..20)
        .map(|value| value.to_string())
        .chain(["(9 others)".to_owned()])
        .collect();
    assert_eq!(keys(turn), expected);
    assert_eq!(turn.values, 20);
    let others = turn.groups.last().unwrap();
    assert_eq!(others.totals.requests, (1..=9).sum::<u64>());
    assert_eq!(
        turn.remark().unwrap(),
        "label \"turn\" has 20 values: the 11 with the most requests have groups, the others are one group"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn groups_partition_the_requests(values in prop::collection::vec(prop::option::of(0..30u32), 1..120)) {
        let events: Vec<Event> = (0u64..)
            .zip(&values)
            .map(|(session, value)| match value {
                Some(value) => answer(session, 10 + session, &[("user", &format!("u{value}"))]),
                None => answer(session, 10 + session, &[]),
            })
            .collect();
        let seen = by(&["user"], events);
        let whole = seen.summary_stats();
        for groups in &seen.groups {
            prop_assert!(groups.groups.len() <= 12);
            let sum = |of: &dyn Fn(&veeksha_metrics::RequestGroup) -> u64| -> u64 { groups.groups.iter().map(of).sum() };
            prop_assert_eq!(sum(&|group| group.totals.requests), values.len() as u64);
            prop_assert_eq!(
                Some(sum(&|group| group.metric("ttfc").map_or(0, |ttfc| ttfc.count as u64))),
                whole["Time to First Chunk (Count)"].as_u64()
            );
        }
    }
}
