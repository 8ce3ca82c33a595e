//! Warm-ups with the real clock.

use veeksha_events::Event;
use veeksha_model::{ErrorClass, History, HistoryMode, Session};
use veeksha_pipeline::{Control, Plan};
use veeksha_ports::Job;

use crate::fakes::{Server, WARMING, paced, plan, replayed, request};
use crate::real_time::{ENDLESS, drive, drive_against, drive_until};

/// A session whose list is not in the order of its graph, with think times that are skipped, and a
/// session of one.
fn warmed(mut plan: Plan) -> Plan {
    let mut late = replayed(HistoryMode::Recorded, None, request(2, &[1]));
    late.wait_after_ready = u64::MAX;
    let mut last = request(3, &[0]);
    last.wait_after_ready = 10_000_000_000;
    let first = Session {
        requests: vec![
            last,
            late,
            replayed(HistoryMode::Live, None, request(0, &[])),
            request(1, &[0]),
        ],
        ..Session::default()
    };
    let second = Session {
        requests: vec![request(0, &[])],
        ..Session::default()
    };
    plan.warmup = vec![first, second];
    plan
}

fn before_the_run(jobs: &[Job]) -> Vec<&Job> {
    jobs.iter().take_while(|job| !job.measured).collect()
}

#[test]
fn a_warm_up_goes_one_by_one_and_leaves_no_trace_in_the_run() {
    let plan = warmed(paced());
    let ran = drive(&plan, ENDLESS, &Control::default()).unwrap();
    let warm = before_the_run(&ran.jobs);
    // Of the nodes whose parents are through, the first in the list: 0, then 3 before 1, then 2.
    let nodes: Vec<u32> = warm.iter().map(|job| job.id.node.0).collect();
    assert_eq!(nodes, [0, 3, 1, 2, 0]);
    for pair in warm.windows(2) {
        let gap = pair[1].dispatched_at - pair[0].dispatched_at;
        assert!(
            gap >= WARMING.as_nanos() as u64,
            "sent before the answer: {gap} ns"
        );
    }
    // Node 2 sends the recorded answer of node 0, and of node 1 the real one.
    let answers: Vec<String> = History::turns(&warm[3].history)
        .iter()
        .map(|turn| {
            turn.response
                .as_ref()
                .map(|response| response.text.clone())
                .unwrap_or_default()
        })
        .collect();
    assert_eq!(answers, ["answer of node 0", "four words of answer"]);

    // The run is what it is without: its sessions, and nothing else.
    assert_eq!(ran.jobs.len(), 5 + 40);
    assert_eq!((ran.records().len(), ran.ends().len()), (40, 20));
    assert_eq!(
        (ran.end.warmup_failures, &ran.end.first_warmup_failure),
        (0, &None)
    );
    let known = |id: veeksha_model::SessionId| id.0 < 20;
    for entry in &ran.entries {
        match &entry.event {
            Event::Dispatched { request, .. } => assert!(known(request.session)),
            Event::Finished(record) => assert!(known(record.id.session)),
            Event::SessionStarted { session, .. } => assert!(known(*session)),
            _ => {}
        }
    }
}

/// The transport's clock began five warm-up requests before the run's.
#[test]
fn a_warm_up_does_not_move_the_runs_clock() {
    let ran = drive(&warmed(paced()), ENDLESS, &Control::default()).unwrap();
    for record in ran.records() {
        if record.parents.is_empty() {
            assert_eq!(record.intended, record.id.session.0 * 2_000_000);
        }
        let stamps = [
            Some(record.intended),
            Some(record.dispatched_at),
            record.picked_up_at,
            record.chunks.first().map(|chunk| chunk.at),
            Some(record.completed_at),
            Some(record.processed_at),
            Some(ran.end.at),
        ];
        assert!(
            stamps.iter().all(Option::is_some) && stamps.is_sorted(),
            "{stamps:?}"
        );
    }
}

#[test]
fn failed_warm_up_is_reported_and_run_continues() {
    let ran = drive_against(Server::Cold, &warmed(plan()), ENDLESS, &Control::default()).unwrap();
    assert_eq!(ran.end.warmup_failures, 5);
    let first = ran.end.first_warmup_failure.as_deref();
    assert_eq!(first, Some("warm-up session 0, node 0: status: too cold"));
    assert_eq!(ran.records().len(), 40);
    assert!(!ran.end.interrupted);
}

#[test]
fn a_stop_during_the_warm_up_ends_it_and_the_run_never_begins() {
    let ran = drive_until(1, Server::Silent, &warmed(plan()), ENDLESS);
    assert_eq!(ran.jobs.len(), 1, "the first request was waited for");
    assert!(ran.end.interrupted && ran.records().is_empty());
    // Given up by the user: no failure of the server's.
    assert_eq!(ran.end.warmup_failures, 0);
    let interrupted = |event: &Event| matches!(event, Event::Interrupted { .. });
    assert_eq!(
        ran.entries
            .iter()
            .filter(|entry| interrupted(&entry.event))
            .count(),
        1
    );
    assert!(matches!(
        ran.entries.last().unwrap().event,
        Event::RunEnded { .. }
    ));
}

/// A stop while the run waits for the server works as without a warm-up.
#[test]
fn a_stop_gives_up_what_is_in_flight() {
    let ran = drive_until(4, Server::Silent, &plan(), ENDLESS);
    assert_eq!(ran.records().len(), 4);
    for record in ran.records() {
        let cancelled = matches!(
            record.status,
            veeksha_events::Status::Failed {
                class: ErrorClass::Cancelled,
                ..
            }
        );
        assert!(cancelled);
    }
}
