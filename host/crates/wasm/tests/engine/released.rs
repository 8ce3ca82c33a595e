//! Components that were built when a version of the contract was released. They are never rebuilt
//! (`wit/frozen.txt` has their digests): each must go on working in every later host.

use std::path::PathBuf;
use std::sync::Arc;

use veeksha_model::{AnswerPart, NodeId, Response, SessionId};
use veeksha_ports::{TraceFacts, TraceGroup, TraceRow, Workload};
use veeksha_wasm::{EngineLimits, PluginComponent};

use crate::measures::Run;
use crate::records::plain;
use crate::support::{engine, grants, open};

/// The oldest version of the contract that the host supports.
const OLDEST: &str = "0.2.0";

fn folder() -> PathBuf {
    let guests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/guests");
    guests.join("released").join(OLDEST)
}

fn released(name: &str) -> PluginComponent {
    let path = folder().join(name).with_extension("wasm");
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    engine(EngineLimits::default()).load(name, &bytes).unwrap()
}

#[test]
fn released_session_generator_plans_sessions() {
    let plugin = released("planned");
    let Workload::Planned(mut source) = open(&plugin, r#"{"turns": 3, "length": 1000}"#, grants()).unwrap()
    else {
        panic!("not planned")
    };
    let sessions = source.sessions(5, 2).unwrap();
    assert_eq!(sessions.len(), 2);
    assert!(sessions.iter().all(|session| session.requests.len() == 3));
}

#[test]
fn released_agent_takes_steps() {
    let plugin = released("agent");
    let Workload::Reactive(mut source) = open(&plugin, "{}", grants()).unwrap() else {
        panic!("not reactive")
    };
    let step = source.start(SessionId(4)).unwrap();
    assert_eq!((step.added.requests.len(), step.done), (1, false));
    let step = source.answered(SessionId(4), NodeId(0), &Response::default(), 9);
    assert!(step.unwrap().done);
}

/// It runs tools after an answer, and cancels requests.
#[test]
fn released_agent_of_the_sdk_runs_tools_and_cancels() {
    let plugin = released("sdk-agent");
    let agents = |config: &str| {
        let Workload::Reactive(source) = open(&plugin, config, grants()).unwrap() else {
            panic!("not reactive")
        };
        source
    };
    let mut tools = agents(r#"{"steps": 1, "tools": true}"#);
    let first = tools.start(SessionId(4)).unwrap().added.requests[0].node;
    let step = tools
        .answered(SessionId(4), first, &Response::default(), 9)
        .unwrap();
    let runs = step.added.tool_runs.iter();
    let stated: Vec<_> = runs.map(|run| (run.class.as_str(), run.result_tokens)).collect();
    assert_eq!(stated, [("sandbox", None), ("sandbox", Some(17))]);
    let mut impatient = agents(r#"{"steps": 1, "impatient": true}"#);
    let step = impatient.start(SessionId(4)).unwrap();
    assert!(step.added.requests[0].cancellation.is_some());
}

#[test]
fn released_arrival_process_returns_arrivals() {
    let process = released("sdk-arrivals")
        .arrivals(r#"{"rate": 5}"#.into(), grants())
        .unwrap();
    let arrivals = process.open().unwrap().next(20).unwrap();
    assert_eq!((arrivals.len(), arrivals.is_sorted()), (20, true));
}

#[test]
fn released_flavor_converts_rows() {
    let factory = released("flavor")
        .flavor(r#"{"grouping": "row"}"#.into(), grants())
        .unwrap();
    let mut flavor = factory.open().unwrap();
    assert!(!flavor.layout().unwrap().columns.is_empty());
    let facts = TraceFacts {
        rows: 1,
        groups: 1,
        first_row: "{}".into(),
    };
    let row = TraceRow {
        number: 1,
        at: None,
        fields: r#"{"count": 1}"#.into(),
    };
    let group = TraceGroup {
        index: 0,
        key: String::new(),
        rows: vec![row],
    };
    assert_eq!(flavor.sessions(&facts, 0, &[group]).unwrap().len(), 1);
}

#[test]
fn released_codec_decodes_events() {
    let endpoint = released("codec")
        .codec(r#"{"framing": "lines"}"#.into(), grants())
        .unwrap();
    let parts = endpoint.codec.decode(&[b"content hello", b"done"]).unwrap();
    assert_eq!(
        parts,
        [vec![AnswerPart::Content("hello".into())], vec![AnswerPart::Done]]
    );
}

#[test]
fn released_metric_and_checks_judge() {
    let plugin = released("measure");
    let config = || r#"{"at_least": "3"}"#.to_owned();
    let request = plain(1, 0);
    let mut open = plugin.metric(config(), grants()).unwrap().open().unwrap();
    assert_eq!(open.definitions.len(), 3);
    assert!(!open.collector.observe(&[&request]).unwrap().is_empty());
    let check = plugin.request_check(config(), grants()).unwrap();
    assert_eq!(check.open().unwrap().judge(&[&request]).unwrap().len(), 1);
    let slo = plugin.slo_check(config(), grants()).unwrap();
    assert!(!slo.check(Arc::new(Run::default())).unwrap().is_empty());
}
