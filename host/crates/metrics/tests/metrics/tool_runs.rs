//! Tool runs: metrics, counts, groups, and their part in the metrics of sessions.

use crate::sequences::*;
use serde_json::json;
use veeksha_events::{DroppedToolRun, Event, NeverSentReason, RequestRecord, SessionEnd, ToolDropReason};
use veeksha_metrics::{Evaluation, Fidelity, Metric, RunMetric, RunSamples, Setup};
use veeksha_model::ChunkKind::{Content, Tool};
use veeksha_model::{Edge, NodeId, Recorded, ToolRunRecord, Trigger};
use veeksha_ports::RunResults;

/// A tool run from `ready` over `started` to `completed`, in milliseconds.
fn tool_run(node: u32, [ready, started, completed]: [u64; 3], parents: &[u32]) -> ToolRunRecord {
    ToolRunRecord {
        parents: parents.iter().map(|parent| NodeId(*parent).into()).collect(),
        ready_at: ms(ready),
        started_at: ms(started),
        completed_at: ms(completed),
        labels: [("tier".to_owned(), "gold".to_owned())].into(),
        ..tool_record(0, node)
    }
}

fn turn(node: u32, intended: u64, completed: u64, parents: &[u32]) -> RequestRecord {
    let mut record = answered(0, node, intended, completed);
    record = with_chunks(record, 2, &[(intended + 50, Content), (completed, Content)]);
    record.parents = parents.iter().map(|parent| NodeId(*parent).into()).collect();
    record.labels = vec![("tier".to_owned(), "gold".to_owned())];
    record
}

fn ran(record: ToolRunRecord) -> Event {
    Event::ToolRan(Box::new(record))
}

/// A plan calls two tools at 100 ms, whose results are combined 5 ms after their last end: node 1
/// runs until 300 ms, node 2 waits until then and runs until 700 ms. Another tool run follows at
/// the end.
fn events() -> Vec<Event> {
    let mut combined = turn(3, 705, 900, &[1, 2]);
    combined.wait_after_ready = ms(5);
    let search = ToolRunRecord {
        class: "search".into(),
        failed: true,
        is_cold: true,
        ..tool_run(4, [900, 900, 1000], &[3])
    };
    [
        vec![
            session_started(0, 0),
            session_finished(0, 1000, SessionEnd::Completed, 2),
        ],
        both(turn(0, 0, 100, &[])).to_vec(),
        vec![
            ran(tool_run(1, [100, 100, 300], &[0])),
            ran(tool_run(2, [100, 300, 700], &[0])),
        ],
        both(combined).to_vec(),
        vec![ran(search)],
    ]
    .concat()
}

fn evaluated(events: Vec<Event>) -> Evaluation {
    run_in(Setup::default(), events)
}

fn mean(evaluation: &Evaluation, metric: Metric) -> Option<f64> {
    evaluation.metric(metric).map(|summary| summary.mean)
}

fn of_class(samples: &RunSamples, metric: Metric, class: &str) -> Vec<f64> {
    let label = [("tool".to_owned(), class.to_owned())];
    let stats = samples.stats(metric.name(), &label);
    vec![stats.count as f64, stats.mean, stats.max]
}

#[test]
fn tool_runs_have_times_and_counts_by_class() {
    let evaluation = evaluated(events());
    let samples = &evaluation.samples;
    assert_eq!(
        of_class(samples, Metric::ToolWaitingTime, "sandbox"),
        [2.0, 0.1, 0.2]
    );
    assert_eq!(
        of_class(samples, Metric::ToolServiceTime, "search"),
        [1.0, 0.1, 0.1]
    );
    assert_eq!(
        evaluation.metric(Metric::ToolServiceTime).map(|all| all.count),
        Some(3)
    );
    assert_eq!(evaluation.run_metric(RunMetric::ToolRuns), Some(3.0));
    assert_eq!(evaluation.run_metric(RunMetric::ToolFailures), Some(1.0));
    let summary = evaluation.summary_stats();
    assert_eq!(
        summary["tools"],
        serde_json::json!({
            "sandbox": { "tool_runs": 2, "tool_failures": 0, "cold_starts": 0, "dropped": {} },
            "search": { "tool_runs": 1, "tool_failures": 1, "cold_starts": 1, "dropped": {} },
        })
    );
    // Windows are those of the calls.
    let windows = samples.windows("tool_waiting_time", &[], ms(500));
    let counts: Vec<u64> = windows.iter().map(|window| window.stats.count).collect();
    assert_eq!(counts, [2, 1]);
}

#[test]
fn tool_runs_are_nodes_of_their_session() {
    let evaluation = evaluated(events());
    for (metric, expected) in [
        (Metric::SessionSize, 2.0),
        (Metric::SessionMakespan, 1.0),
        (Metric::SessionDuration, 0.999),
        (Metric::SessionToolTime, 0.9),
        (Metric::SessionCriticalPath, 0.099 + 0.194),
        (Metric::PathRequests, 2.0),
        (Metric::PathToolWaiting, 0.2),
        (Metric::PathToolService, 0.4 + 0.1),
        (Metric::PathThink, 0.005),
        (Metric::SessionThinkTime, 0.005),
    ] {
        close(mean(&evaluation, metric), expected);
    }
    // Without queueing, node 2 begins at once.
    let ideal = evaluation.samples.sessions().next().unwrap().0.slowdown;
    assert!(ideal.is_some_and(|slowdown| slowdown > 1.2), "{ideal:?}");
}

#[test]
fn edges_can_wait_for_the_start_of_a_tool_run() {
    let mut events = events();
    let mut early = turn(5, 310, 400, &[]);
    early.parents = vec![Edge {
        parent: NodeId(2),
        trigger: Trigger::Dispatched,
        delay: ms(10),
    }];
    events.extend(both(early));
    close(mean(&evaluated(events), Metric::SessionThinkTime), 0.0075);
}

#[test]
fn tool_time_has_think_times_after_calls_only_without_tool_runs() {
    let called = |parents: &[u32]| {
        let mut plan = turn(0, 0, 100, &[]);
        plan.chunks[1].kind = Tool;
        let mut events = vec![
            session_started(0, 0),
            session_finished(0, 800, SessionEnd::Completed, 2),
        ];
        events.extend(both(plan));
        events.push(ran(tool_run(1, [100, 150, 300], &[0])));
        events.extend(both(turn(2, 350, 800, parents)));
        mean(&evaluated(events), Metric::SessionToolTime)
    };
    close(called(&[0, 1]), 0.2);
    close(called(&[0]), 0.2 + 0.25);
}

/// Calls after the timeout are not measured, and the session is not tried to its end.
#[test]
fn drained_tool_runs_do_not_count() {
    let mut events = events();
    for event in &mut events {
        if let Event::ToolRan(run) = event {
            run.measured = run.id.node != NodeId(4);
        }
    }
    let evaluation = evaluated(events);
    assert_eq!(evaluation.run_metric(RunMetric::ToolRuns), Some(2.0));
    assert_eq!(mean(&evaluation, Metric::SessionMakespan), None);
}

#[test]
fn groups_contain_the_tool_runs_with_their_label() {
    let mut all = events();
    let mut free = turn(0, 10, 500, &[]);
    free.id = id(1, 0);
    free.labels = vec![
        ("tier".to_owned(), "free".to_owned()),
        ("turn".to_owned(), "1".to_owned()),
    ];
    let mut free_run = tool_run(1, [20, 20, 40], &[]);
    free_run.id = id(1, 1);
    free_run.labels = [
        ("tier".to_owned(), "free".to_owned()),
        ("tool".to_owned(), "own".to_owned()),
    ]
    .into();
    all.extend(both(free));
    all.push(ran(free_run));
    let waits = |labels: Option<&[&str]>| {
        let group_by = labels.map(|labels| labels.iter().map(|label| (*label).to_owned()).collect());
        let evaluation = run_in(
            Setup {
                group_by,
                ..Setup::default()
            },
            all.clone(),
        );
        let groups = evaluation.groups.iter().flat_map(|grouped| &grouped.groups);
        let waits = groups.map(|group| {
            let wait = group.metric("tool_waiting_time").map(|wait| wait.count);
            (group.key.to_string(), group.totals.requests, wait)
        });
        waits.collect::<Vec<_>>()
    };
    let of = |key: &str, requests: u64, wait: Option<usize>| (key.to_owned(), requests, wait);
    assert_eq!(
        waits(Some(&["tier"])),
        [of("free", 1, Some(1)), of("gold", 2, Some(3))]
    );
    // A label of the workload with this name precedes the class.
    let by_tool = [
        of("own", 0, Some(1)),
        of("sandbox", 0, Some(2)),
        of("search", 0, Some(1)),
        of("(no label)", 3, None),
    ];
    assert_eq!(waits(Some(&["tool"])), by_tool);
    // Labels of tool runs alone are not grouped unless they are named.
    assert!(waits(None).iter().all(|(key, ..)| key != "sandbox"));
}

#[test]
fn runs_without_tools_have_no_metrics_of_them() {
    let evaluation = evaluated(both(turn(0, 0, 100, &[])).to_vec());
    assert_eq!(evaluation.metric(Metric::ToolWaitingTime), None);
    assert_eq!(evaluation.run_metric(RunMetric::ToolRuns), None);
    assert_eq!(evaluation.summary_stats().get("tools"), None);
}

/// The delay of a request is measured from the end of the tool run, also if that is reported later.
#[test]
fn replay_fidelity_knows_tool_runs_as_parents() {
    let recorded = |record: Event| match record {
        Event::Finished(mut record) => {
            record.recorded = Some(Recorded::default());
            Event::Finished(record)
        }
        other => other,
    };
    let mut events: Vec<Event> = events().into_iter().map(recorded).collect();
    let slack = |events: &[Event]| {
        let mut fidelity = Fidelity::new(None);
        events.iter().for_each(|event| fidelity.on(event));
        fidelity.finish().unwrap().edges.slack
    };
    let expected = slack(&events).unwrap();
    assert_eq!(expected.count, 1);
    close(Some(expected.mean), 0.001);
    events.reverse();
    assert_eq!(slack(&events), Some(expected));
}

/// Runs that did not end are counted by class and reason, and those that were due are missing.
#[test]
fn dropped_tool_runs_are_counted_by_class_and_reason() {
    let mut all = events();
    let reasons = [
        ("sandbox", ToolDropReason::InService),
        ("sandbox", ToolDropReason::NotServed(NeverSentReason::Held)),
        ("sandbox", ToolDropReason::NotServed(NeverSentReason::Held)),
        ("sandbox", ToolDropReason::NotServed(NeverSentReason::RunEnded)),
        (
            "index",
            ToolDropReason::NotServed(NeverSentReason::CancelledByClient),
        ),
        (
            "index",
            ToolDropReason::NotServed(NeverSentReason::SessionCancelled),
        ),
    ];
    all.extend(reasons.into_iter().zip(10..).map(|((class, reason), node)| {
        Event::ToolDropped(Box::new(DroppedToolRun {
            id: id(0, node),
            class: class.into(),
            ready_at: Some(ms(100)),
            reason,
            at: ms(900),
        }))
    }));
    let evaluation = evaluated(all);
    let missing: u64 = evaluation.counts.missing_tool_runs().values().sum();
    assert_eq!(missing, 4, "not the one that was not due, and the cancelled one");
    let tools = &evaluation.summary_stats()["tools"];
    let ended = tools["sandbox"]["tool_runs"].as_u64();
    assert_eq!(ended, Some(2));
    assert_eq!(
        tools["sandbox"]["dropped"],
        json!({ "held": 2, "in_service": 1, "run_ended": 1 })
    );
    assert_eq!(
        tools["index"],
        json!({
            "tool_runs": 0, "tool_failures": 0, "cold_starts": 0,
            "dropped": { "cancelled_by_client": 1, "session_cancelled": 1 },
        })
    );
}
