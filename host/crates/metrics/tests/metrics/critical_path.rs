//! Critical paths of sessions, and their makespans with changed times.

use crate::sequences::*;
use proptest::prelude::*;
use veeksha_definitions::{GraphNode, NodePhases, PathPart, PathParts, SessionGraph};
use veeksha_events::{Event, NeverSentReason, RequestRecord, SessionEnd};
use veeksha_metrics::{Evaluation, Metric, Setup};
use veeksha_model::ChunkKind::Content;
use veeksha_model::{Chunk, Edge, ErrorClass, Nanos, NodeId, ToolRunRecord, Trigger};

/// The times of a request that a session sends, or of a tool run, in nanoseconds.
#[derive(Clone, Debug)]
struct Planned {
    /// Edges to earlier nodes of the list.
    edges: Vec<Edge>,
    wait: Nanos,
    /// Client queueing before and after the dispatch; `held` is the waiting time of a tool run.
    held: Nanos,
    sending: Nanos,
    /// Of a tool run, its service time.
    prefill: Nanos,
    decode: Nanos,
    is_tool_run: bool,
}

impl Planned {
    /// Turns a request into a tool run.
    fn into_tool_run(self) -> Planned {
        Planned {
            wait: 0,
            sending: 0,
            decode: 0,
            is_tool_run: true,
            ..self
        }
    }

    /// The parts of `held`, of `prefill` and of `decode`.
    fn parts(&self) -> [PathPart; 3] {
        if self.is_tool_run {
            [
                PathPart::ToolWaiting,
                PathPart::ToolService,
                PathPart::ToolService,
            ]
        } else {
            [PathPart::ClientQueueing, PathPart::Prefill, PathPart::Decode]
        }
    }
}

/// Returns the phases of each node.
fn carried_out(session: &[Planned]) -> Vec<NodePhases> {
    let mut all: Vec<NodePhases> = Vec::new();
    for planned in session {
        let met = planned.edges.iter().map(|edge| {
            let parent = &all[edge.parent.0 as usize];
            parent.events().of(edge.trigger) + edge.delay
        });
        let intended = met.max().unwrap_or(START) + planned.wait;
        let dispatched = intended + planned.held;
        let sent = dispatched + planned.sending;
        let first_chunk = sent + planned.prefill;
        all.push(NodePhases {
            intended,
            dispatched,
            sent,
            first_chunk,
            completed: first_chunk + planned.decode,
            is_tool_run: planned.is_tool_run,
        });
    }
    all
}

const START: Nanos = 1_000_000;

fn record(node: usize, planned: &Planned, phases: &NodePhases) -> RequestRecord {
    let chunk = |at| Chunk {
        at,
        kind: Content,
        bytes: 4,
        merged: false,
        lag: 0,
    };
    RequestRecord {
        parents: planned.edges.clone(),
        wait_after_ready: planned.wait,
        intended: phases.intended,
        dispatched_at: phases.dispatched,
        picked_up_at: Some(phases.dispatched),
        sent_at: Some(phases.sent),
        chunks: vec![chunk(phases.first_chunk), chunk(phases.completed)],
        completed_at: phases.completed,
        processed_at: phases.completed,
        output_tokens: 2,
        ..RequestRecord::answered(id(0, node as u32))
    }
}

fn tool_run(node: u32, planned: &Planned, phases: &NodePhases) -> Event {
    let run = ToolRunRecord {
        parents: planned.edges.clone(),
        ready_at: phases.intended,
        started_at: phases.dispatched,
        completed_at: phases.completed,
        ..tool_record(0, node)
    };
    Event::ToolRan(Box::new(run))
}

fn evaluated(records: Vec<RequestRecord>, what_if: &[&str]) -> Evaluation {
    let requests = records.len() as u32;
    evaluated_events(requests, records.into_iter().flat_map(both), what_if)
}

fn evaluated_events(requests: u32, events: impl Iterator<Item = Event>, what_if: &[&str]) -> Evaluation {
    let setup = Setup {
        what_if: what_if.iter().map(|text| text.parse().unwrap()).collect(),
        ..Setup::default()
    };
    let ends = [
        session_started(0, 1),
        session_finished(0, 9_000_000, SessionEnd::Completed, requests),
    ];
    run_in(setup, ends.into_iter().chain(events))
}

fn evaluated_session(session: &[Planned], what_if: &[&str]) -> Evaluation {
    let phases = carried_out(session);
    let nodes = (0u32..).zip(session.iter().zip(&phases));
    let events = nodes.flat_map(|(node, (planned, phases))| {
        if planned.is_tool_run {
            vec![tool_run(node, planned, phases)]
        } else {
            both(record(node as usize, planned, phases)).to_vec()
        }
    });
    let requests = session.iter().filter(|planned| !planned.is_tool_run).count();
    evaluated_events(requests as u32, events, what_if)
}

/// The makespans of the only session, measured and changed.
fn makespans(evaluation: &Evaluation) -> (f64, Vec<f64>) {
    let counterfactuals = evaluation.samples.counterfactuals();
    let changed = counterfactuals.iter().map(|of| of.changed().unwrap().p50);
    (
        evaluation.metric(Metric::SessionMakespan).unwrap().p50,
        changed.collect(),
    )
}

fn planned(requests: usize) -> impl Strategy<Value = Planned> {
    let time = || (0u64..500_000_000).prop_map(|half| 2 * half);
    let edge = (0..requests.max(1) as u32, 0usize..3, prop_oneof![Just(0), time()]);
    let edges = prop::collection::vec(edge, 0..=requests.min(3));
    (
        edges,
        prop_oneof![Just(0), time()],
        time(),
        time(),
        time(),
        time(),
    )
        .prop_map(|(edges, wait, held, sending, prefill, decode)| {
            let edges = edges.into_iter().map(|(parent, trigger, delay)| Edge {
                parent: NodeId(parent),
                trigger: Trigger::ALL[trigger],
                delay,
            });
            Planned {
                edges: edges.collect(),
                wait,
                held,
                sending,
                prefill,
                decode,
                is_tool_run: false,
            }
        })
}

fn session() -> impl Strategy<Value = Vec<Planned>> {
    // The first node is a request: a session without any has no metrics.
    let node = |place: usize| {
        let node = (planned(place), any::<bool>());
        node.prop_map(move |(planned, is_tool_run)| {
            if is_tool_run && place > 0 {
                planned.into_tool_run()
            } else {
                planned
            }
        })
    };
    (1usize..12).prop_flat_map(move |count| (0..count).map(node).collect::<Vec<_>>())
}

/// The parts of the path to an event of each node, from the plan: the same path, computed
/// forward in time.
fn forward(session: &[Planned], phases: &[NodePhases]) -> PathParts<Nanos> {
    let mut until_due: Vec<PathParts<Nanos>> = Vec::new();
    let until = |due: &PathParts<Nanos>, planned: &Planned, trigger: Trigger| {
        let mut parts = *due;
        let [queueing, prefill, decode] = planned.parts();
        *parts.of_mut(queueing) += planned.held;
        if trigger != Trigger::Dispatched {
            *parts.of_mut(queueing) += planned.sending;
            *parts.of_mut(prefill) += planned.prefill;
        }
        if trigger == Trigger::Completed {
            *parts.of_mut(decode) += planned.decode;
        }
        parts
    };
    for planned in session {
        let last = planned
            .edges
            .iter()
            .max_by_key(|edge| phases[edge.parent.0 as usize].events().of(edge.trigger) + edge.delay);
        let mut parts = last.map_or(PathParts::default(), |edge| {
            let parent = edge.parent.0 as usize;
            let mut parts = until(&until_due[parent], &session[parent], edge.trigger);
            *parts.of_mut(PathPart::Think) += edge.delay;
            parts
        });
        *parts.of_mut(PathPart::Think) += planned.wait;
        until_due.push(parts);
    }
    let ends = phases.iter().map(|phases| phases.completed);
    let last = ends.clone().max().unwrap();
    let place = ends.clone().position(|end| end == last).unwrap();
    let mut parts = until(&until_due[place], &session[place], Trigger::Completed);
    // The session begins when its first request is due.
    let start = phases.iter().map(|phases| phases.intended).min().unwrap();
    *parts.of_mut(PathPart::Think) -= start - START;
    parts
}

fn total(parts: &PathParts<Nanos>) -> Nanos {
    PathPart::ALL.iter().map(|part| parts.of(*part)).sum()
}

proptest! {
    #[test]
    fn parts_of_the_path_are_those_of_the_requests_on_it(session in session()) {
        let phases = carried_out(&session);
        let requests: Vec<GraphNode> = (0u32..).zip(session.iter().zip(&phases)).map(|(node, (planned, phases))| {
            GraphNode { node: NodeId(node), phases: *phases, wait: planned.wait, edges: &planned.edges }
        }).collect();
        let path = SessionGraph::of(&requests).unwrap().critical_path();
        let last = phases.iter().map(|phases| phases.completed).max().unwrap();
        let start = phases.iter().map(|phases| phases.intended).min().unwrap();
        prop_assert_eq!(total(&path.times), last - start);
        prop_assert_eq!(path.times, forward(&session, &phases));
        for pair in path.steps.windows(2) {
            let event = phases[pair[0].place].events().of(pair[0].event);
            prop_assert!(event <= phases[pair[1].place].intended);
        }
        prop_assert_eq!(path.steps.last().unwrap().event, Trigger::Completed);
    }

    /// Stamps of several threads, or of a damaged record, can be in any order.
    #[test]
    fn parts_of_any_instants_add_up_to_the_makespan(
        instants in prop::collection::vec(
            (0u64..100, 0u64..100, prop::option::of(0u64..100), prop::option::of(0u64..100), 0u64..100),
            1..8,
        ),
        edges in prop::collection::vec(prop::collection::vec((0u32..8, 0usize..3, 0u64..50), 0..3), 8),
        wait in 0u64..3,
    ) {
        let edges: Vec<Vec<Edge>> = edges.iter().map(|edges| edges.iter().map(|(parent, trigger, delay)| Edge {
            parent: NodeId(*parent), trigger: Trigger::ALL[*trigger], delay: *delay,
        }).collect()).collect();
        let requests: Vec<GraphNode> = (0u32..).zip(instants.iter().zip(&edges)).map(|(node, (at, edges))| {
            let (intended, dispatched, sent, first, completed) = *at;
            let phases = NodePhases::new(intended, dispatched, sent, first, completed);
            GraphNode { node: NodeId(node), phases, wait, edges }
        }).collect();
        if let Some(graph) = SessionGraph::of(&requests) {
            let last = requests.iter().map(|request| request.phases.completed).max().unwrap();
            prop_assert_eq!(total(&graph.critical_path().times), last - graph.start());
        }
    }

    /// The counterfactual of a change is the session carried out with the change.
    #[test]
    fn changed_times_give_the_makespan_of_the_changed_session(session in session(), part in 0usize..6) {
        let part = PathPart::ALL[part];
        let halved: Vec<Planned> = session.iter().map(|planned| {
            let time = |of: PathPart, time: Nanos| if of == part { time / 2 } else { time };
            let [queueing, prefill, decode] = planned.parts();
            Planned {
                edges: planned.edges.iter().map(|edge| Edge { delay: time(PathPart::Think, edge.delay), ..*edge }).collect(),
                wait: time(PathPart::Think, planned.wait),
                held: time(queueing, planned.held),
                sending: time(queueing, planned.sending),
                prefill: time(prefill, planned.prefill),
                decode: time(decode, planned.decode),
                is_tool_run: planned.is_tool_run,
            }
        }).collect();
        let name = part.name();
        let half = format!("{name}=0.5");
        let evaluation = evaluated_session(&session, &[&format!("{name}=1"), &half]);
        let (measured, changed) = makespans(&evaluation);
        let (expected, _) = makespans(&evaluated_session(&halved, &[]));
        prop_assert_eq!(&changed, &[measured, expected]);
    }
}

/// A request, and another one 50 ms after one of its events.
fn pair(trigger: Trigger) -> Vec<RequestRecord> {
    let request = |edges: Vec<Edge>| Planned {
        edges,
        wait: 0,
        held: ms(1),
        sending: ms(3),
        prefill: ms(100),
        decode: ms(900),
        is_tool_run: false,
    };
    let edge = Edge {
        parent: NodeId(0),
        trigger,
        delay: ms(50),
    };
    let session = [request(Vec::new()), request(vec![edge])];
    let phases = carried_out(&session);
    let records = session.iter().zip(&phases).enumerate();
    records
        .map(|(node, (planned, phases))| record(node, planned, phases))
        .collect()
}

#[test]
fn trigger_decides_the_part_of_the_parent() {
    let parts = |trigger| {
        let evaluation = evaluated(pair(trigger), &[]);
        PathPart::ALL.map(|part| (evaluation.metric(part.metric()).unwrap().mean * 1000.0).round())
    };
    assert_eq!(parts(Trigger::Dispatched), [5.0, 100.0, 900.0, 0.0, 0.0, 50.0]);
    assert_eq!(parts(Trigger::FirstChunk), [8.0, 200.0, 900.0, 0.0, 0.0, 50.0]);
    assert_eq!(parts(Trigger::Completed), [8.0, 200.0, 1800.0, 0.0, 0.0, 50.0]);
}

#[test]
fn session_without_a_parent_has_no_path() {
    let mut records = pair(Trigger::Completed);
    records[1].parents[0].parent = NodeId(7);
    let evaluation = evaluated(records, &["ttfc=0.5"]);
    assert_eq!(evaluation.metric(Metric::PathRequests), None);
    let counterfactual = &evaluation.samples.counterfactuals()[0];
    assert_eq!(
        (counterfactual.changed(), counterfactual.median_change()),
        (None, None)
    );
    assert_eq!(
        evaluation.session_metrics()["sessions"][0]["critical_path_decode"],
        serde_json::Value::Null
    );
}

/// A node that was cancelled before it was sent takes no time: the path leads through it to the one
/// with whose end it ended. One that nothing waits for changes nothing.
#[test]
fn path_leads_through_a_node_that_was_never_sent() {
    let through = || {
        let mut records = pair(Trigger::Completed);
        records[1].parents[0].parent = NodeId(7);
        records
    };
    let end = through()[0].completed_at;
    let unsent = |node, at| Event::NeverSent {
        request: id(0, node),
        reason: NeverSentReason::CancelledByClient,
        at,
    };
    let evaluate = |at| {
        let events = through().into_iter().flat_map(both);
        let never = [unsent(7, at), unsent(8, 8_000_000_000)];
        evaluated_events(4, events.chain(never), &["prefill=0.5"])
    };
    let (direct, measured) = (
        evaluated(pair(Trigger::Completed), &["prefill=0.5"]),
        evaluate(end),
    );
    for part in PathPart::ALL {
        let mean = |run: &Evaluation| run.metric(part.metric()).map(|summary| summary.mean);
        assert_eq!(mean(&measured), mean(&direct), "{part:?}");
    }
    for metric in [
        Metric::PathRequests,
        Metric::SessionMakespan,
        Metric::SessionThinkTime,
    ] {
        let mean = |run: &Evaluation| run.metric(metric).map(|summary| summary.mean);
        assert!(mean(&direct).is_some());
        assert_eq!(mean(&measured), mean(&direct), "{metric:?}");
    }
    assert_eq!(makespans(&measured), makespans(&direct));

    // Cancelled by time, 20 ms later than the end: the path begins there.
    let mut later = through();
    later[1].intended += ms(20);
    let events = later.into_iter().flat_map(both);
    let later = evaluated_events(3, events.chain([unsent(7, end + ms(20))]), &[]);
    assert_eq!(
        later.metric(Metric::PathRequests).map(|path| path.mean),
        Some(1.0)
    );
}

/// A component's agent may add a request without naming the parent at whose end it did.
#[test]
fn request_added_by_an_agent_continues_the_path() {
    let mut records = pair(Trigger::Completed);
    let end = records[0].completed_at;
    records[1].parents.clear();
    records[1].wait_after_ready = records[1].intended - end;
    let evaluation = evaluated(records, &["prefill=0.5"]);
    assert_eq!(evaluation.metric(Metric::PathRequests).unwrap().mean, 2.0);
    close(
        evaluation.metric(Metric::PathPrefill).map(|prefill| prefill.mean),
        0.2,
    );
    let (measured, changed) = makespans(&evaluation);
    close(Some(measured - changed[0]), 0.1);
}

#[test]
fn request_without_an_answer_ends_in_the_phase_that_it_reached() {
    let mut records = pair(Trigger::Completed);
    for failing in &mut records {
        failing.chunks.clear();
        *failing = failed(failing.clone(), ErrorClass::Connect, None);
    }
    records[1].sent_at = None;
    let evaluation = evaluated(records, &[]);
    let time = |part: PathPart| evaluation.metric(part.metric()).map(|summary| summary.mean);
    close(time(PathPart::Prefill), 1.0);
    close(time(PathPart::ClientQueueing), 0.004 + 1.004);
    close(time(PathPart::Decode), 0.0);
}

#[test]
fn what_if_is_part_of_the_summary() {
    let evaluation = evaluated(pair(Trigger::FirstChunk), &["ttfc=0.5", "decode=2,think=0"]);
    let summary = evaluation.summary_stats();
    let [halved, doubled] = [0, 1].map(|place| &summary["what_if"][place]);
    assert_eq!(halved["what_if"], "ttfc=0.5");
    assert_eq!(
        halved["factors"],
        serde_json::json!({
            "client_queueing": 1.0, "prefill": 0.5, "decode": 1.0, "tool_waiting": 1.0, "tool_service": 1.0,
            "think": 1.0,
        })
    );
    close(halved["session_makespan"]["p50"].as_f64(), 1.158);
    close(halved["changed_session_makespan"]["p50"].as_f64(), 1.058);
    close(halved["median_change"].as_f64(), 1.058 / 1.158 - 1.0);
    close(doubled["changed_session_makespan"]["max"].as_f64(), 2.008);
    let unchanged = evaluated(pair(Trigger::FirstChunk), &[]);
    assert_eq!(unchanged.summary_stats().get("what_if"), None);
}
