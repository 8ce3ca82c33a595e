//! Requests that choose their client.

use std::collections::BTreeMap;

use veeksha_events::{Event, RequestRecord, Status};
use veeksha_model::{Cancellation, Edge, ErrorClass, History, Request, Session, Trigger};
use veeksha_pipeline::{ClientSpec, ClientSpecs, Control, Plan, SimulatedTarget, SimulatedTargets};
use veeksha_simulator::Profile;

use crate::fakes::{plan, request};
use crate::real_time::drive;
use crate::replay::made;
use crate::virtual_time::{quick, simulate_on};

const MS: u64 = 1_000_000;

/// A plan of one session with the clients `default` and `judge`.
fn with_judge() -> Plan {
    let mut plan = plan();
    let judge = ClientSpec {
        name: "judge".into(),
        min_tokens_prompt: None,
    };
    plan.clients = ClientSpecs::new(None, vec![judge]);
    plan.scheduler.max_sessions = Some(1);
    plan
}

/// The judge takes 100 ms for a prompt with the first token, and 20 ms for each further one.
fn targets() -> SimulatedTargets {
    let quick = quick();
    let judge = SimulatedTarget {
        profile: Profile {
            prefill_base_ms: 100.0,
            decode_base_ms: 20.0,
            ..quick.profile.clone()
        },
        request_timeout: 400 * MS,
        tool: None,
    };
    SimulatedTargets {
        default: quick,
        others: vec![judge],
    }
}

fn of(client: &str, request: Request) -> Request {
    Request {
        client: Some(client.to_owned()),
        ..request
    }
}

fn by_node(records: Vec<&RequestRecord>) -> BTreeMap<u32, &RequestRecord> {
    records
        .into_iter()
        .map(|record| (record.id.node.0, record))
        .collect()
}

/// Node 0 to the default client, node 1 at the same time to the judge, node 2 continues node 0 at
/// the judge, and node 3 continues node 2 at the default client.
fn debate(_: u64, _: u64) -> Session {
    Session::from(vec![
        request(0, &[]),
        of("judge", request(1, &[])),
        of("judge", request(2, &[0])),
        of("default", request(3, &[2])),
    ])
}

#[test]
fn requests_take_the_times_of_their_own_servers() {
    let run = simulate_on(&with_judge(), &targets(), made(debate, 1));
    let records = by_node(run.records());
    let times = |node: u32| {
        let record = records[&node];
        let first = record.chunks[0].at - record.dispatched_at;
        (first, record.completed_at - record.dispatched_at)
    };
    // Four tokens: three gaps after the first. Nodes 1 and 2 overlap on the judge: see below.
    assert_eq!(times(0), (10 * MS, 25 * MS));
    assert_eq!(times(1).0, 100 * MS);
    assert_eq!(times(3), (10 * MS, 25 * MS));
    let judged = records[&2];
    assert!(
        judged.chunks[0].at - judged.dispatched_at >= 100 * MS,
        "{judged:?}"
    );
    // The conversation went along: ten tokens of each turn, and four of each answer.
    assert_eq!(records[&3].total_prompt_tokens, 10 + 4 + 10 + 4 + 10);
    for (node, client, server) in [
        (0, "default", 0),
        (1, "judge", 1),
        (2, "judge", 1),
        (3, "default", 0),
    ] {
        let record = records[&node];
        assert_eq!(
            record.labels,
            [("client".to_owned(), client.to_owned())],
            "{node}"
        );
        assert_eq!(record.server, server, "{node}");
    }
}

/// Each engine has a separate cache: the judge has not seen the beginning of the conversation.
#[test]
fn servers_do_not_share_their_caches() {
    let run = simulate_on(&with_judge(), &targets(), made(debate, 1));
    let records = by_node(run.records());
    let cached = |node: u32| records[&node].usage.and_then(|usage| usage.cached);
    assert_eq!(cached(2), Some(0));
    // The default client had the first turn and its answer: 14 tokens, of which two blocks are
    // whole before the last token.
    assert_eq!(cached(3), Some(10));
}

fn long(_: u64, _: u64) -> Session {
    let mut slow = of("judge", request(0, &[]));
    slow.output.target_tokens = Some(100);
    let mut quick = request(1, &[]);
    quick.output.target_tokens = Some(100);
    Session::from(vec![slow, quick])
}

#[test]
fn deadlines_are_those_of_the_client() {
    let run = simulate_on(&with_judge(), &targets(), made(long, 1));
    let records = by_node(run.records());
    let Status::Failed { class, .. } = &records[&0].status else {
        panic!("{:?}", records[&0]);
    };
    assert_eq!(*class, ErrorClass::Timeout);
    assert_eq!(records[&0].completed_at - records[&0].dispatched_at, 400 * MS);
    // 10 + 99 * 5 = 505 ms, below its deadline of 1 s.
    assert!(records[&1].is_ok(), "{:?}", records[&1]);
    assert_eq!(records[&1].completed_at - records[&1].dispatched_at, 505 * MS);
}

/// Node 1 is cancelled when node 0 is complete, and its server is free at once.
fn cancelled(_: u64, _: u64) -> Session {
    let mut loser = of("judge", request(1, &[]));
    loser.output.target_tokens = Some(9);
    loser.cancellation = Some(Box::new(Cancellation {
        when: vec![Edge {
            parent: veeksha_model::NodeId(0),
            trigger: Trigger::Completed,
            delay: 100 * MS,
        }],
        after_chunks: None,
    }));
    Session::from(vec![request(0, &[]), loser, of("judge", request(2, &[1]))])
}

#[test]
fn a_cancellation_reaches_the_server_of_the_request() {
    let mut targets = targets();
    // One request at a time: the next one would wait for an answer that goes on.
    targets.others[0].profile.max_batch = 1;
    let run = simulate_on(&with_judge(), &targets, made(cancelled, 1));
    let records = by_node(run.records());
    assert_eq!(records[&1].status, Status::CancelledByClient);
    // At 125 ms: the first token at 100 ms, and one more 20 ms later.
    assert_eq!(records[&1].output_tokens, 2);
    // The step that began at 120 ms ends at 140 ms; then 100 ms and three times 20 ms.
    let next = records[&2];
    assert_eq!(next.completed_at, 300 * MS);
}

fn misspelt(_: u64, _: u64) -> Session {
    Session::from(vec![request(0, &[]), of("jugde", request(1, &[0]))])
}

#[test]
fn unknown_clients_fail_with_session_node_and_nearest_name() {
    let expected = "session 0: node 1: the client `jugde` does not exist; did you mean `judge`?";
    let simulated = simulate_on(&with_judge(), &targets(), made(misspelt, 1));
    let failures = &simulated.end.plugin_failures;
    assert_eq!(failures.len(), 1);
    assert_eq!((&*failures[0].plugin, &*failures[0].message), ("fake", expected));
    let refused = drive(&with_judge(), made(misspelt, 1), &Control::default()).map(|ran| ran.jobs.len());
    let error = refused.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn jobs_carry_client_label_and_the_conversation_of_another_client() {
    let ran = drive(&with_judge(), made(debate, 1), &Control::default()).unwrap();
    let clients: BTreeMap<u32, Option<&str>> = ran
        .jobs
        .iter()
        .map(|job| (job.id.node.0, job.request.request.client.as_deref()))
        .collect();
    let expected = [(0, None), (1, Some("judge")), (2, Some("judge")), (3, None)];
    assert_eq!(clients, expected.into());
    let last = ran.jobs.iter().find(|job| job.id.node.0 == 3).unwrap();
    assert_eq!(History::turns(&last.history).len(), 2);
    let labels: BTreeMap<u32, &str> = ran
        .records()
        .iter()
        .map(|record| (record.id.node.0, &*record.labels[0].1))
        .collect();
    assert_eq!(
        labels,
        [(0, "default"), (1, "judge"), (2, "judge"), (3, "default")].into()
    );
}

#[test]
fn a_run_with_one_client_has_no_label() {
    fn plain(_: u64, _: u64) -> Session {
        Session::from(vec![of("default", request(0, &[]))])
    }
    let mut plan = plan();
    plan.scheduler.max_sessions = Some(1);
    let run = simulate_on(&plan, &quick().into(), made(plain, 1));
    assert_eq!(run.records()[0].labels, []);
    let digest = |entries: &[veeksha_pipeline::EventEntry]| {
        entries.iter().find_map(|entry| match entry.event {
            Event::SessionPlanned { digest, .. } => Some(digest),
            _ => None,
        })
    };
    assert!(digest(&run.entries).is_some());
}
