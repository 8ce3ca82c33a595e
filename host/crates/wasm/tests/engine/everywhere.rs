//! Every function of the contract with every misbehavior: each call ends within its limits, with
//! the code of its cause, and the host goes on.

use std::sync::Arc;
use std::time::Duration;

use veeksha_clock::RunClock;
use veeksha_model::{ErrorClass, FailureReason, NodeId, RequestId, Response, SessionId};
use veeksha_ports::{
    AgentSource, PluginErrorCode, PluginFailure, PluginMeter, ToolRunEnd, TraceFacts, TraceGroup, TraceRow,
};
use veeksha_wasm::{EngineLimits, Grants, PluginComponent};

use crate::measures::Run;
use crate::records::{batch, requests};
use crate::support::{Kept, grants, load, reactive, tight};

/// The functions that a test can call, except `describe`, which has no configuration.
const FUNCTIONS: [&str; 25] = [
    "generator.open",
    "generator.guarantees",
    "generator.length",
    "generator.start",
    "agent.answered",
    "agent.failed",
    "agent.cancelled",
    "agent.tool-ended",
    "agent (destructor)",
    "process.open",
    "process.next",
    "flavor.open",
    "flavor.guarantees",
    "flavor.layout",
    "flavor.sessions",
    "flavor.warmup",
    "codec.open",
    "codec.endpoint",
    "codec.decode",
    "collector.open",
    "collector.definitions",
    "collector.observe",
    "collector.finish",
    "checker.judge",
    "checker.check",
];

fn limits() -> EngineLimits {
    EngineLimits {
        call_deadline: Duration::from_millis(300),
        ..tight()
    }
}

/// Calls a function of the contract on the way on which a run calls it.
fn call(plugin: &PluginComponent, config: &str, grants: Grants, function: &str) -> Result<(), PluginFailure> {
    let config = || config.to_owned();
    let (resource, _) = function.split_once('.').unwrap_or(("agent", ""));
    match resource {
        "generator" | "agent" => {
            let factory = plugin.workload(config(), grants)?;
            if function == "generator.guarantees" {
                return factory.guarantees().map(drop);
            }
            let veeksha_ports::Workload::Reactive(mut agents) = factory.open()? else {
                panic!("a planned workload");
            };
            agents.start(SessionId(0))?;
            agent(agents.as_mut(), function)
        }
        "process" => plugin.arrivals(config(), grants)?.open()?.next(4).map(drop),
        "flavor" => flavor(plugin, config(), grants, function),
        "codec" => {
            let endpoint = plugin.codec(config(), grants)?;
            endpoint.codec.decode(&[b"an event"]).map(drop)
        }
        "collector" => {
            let mut collector = plugin.metric(config(), grants)?.open()?.collector;
            collector.observe(&batch(&requests(3, 9)))?;
            collector.finish().map(drop)
        }
        _ if function == "checker.judge" => {
            let mut check = plugin.request_check(config(), grants)?.open()?;
            check.judge(&batch(&requests(3, 9))).map(drop)
        }
        _ => plugin
            .slo_check(config(), grants)?
            .check(Arc::new(Run::default()))
            .map(drop),
    }
}

fn agent(agents: &mut dyn AgentSource, function: &str) -> Result<(), PluginFailure> {
    let session = SessionId(0);
    let response = |cancelled| Response {
        finish_reason: "stop".into(),
        cancelled,
        ..Response::default()
    };
    let request = RequestId {
        session,
        node: NodeId(0),
    };
    let step = match function {
        "agent.failed" => agents.failed(
            session,
            &FailureReason {
                request,
                class: ErrorClass::Timeout,
                status: None,
                retry_after: None,
                message: "late".into(),
                at: 5,
            },
        ),
        "agent.cancelled" => agents.answered(session, NodeId(0), &response(true), 5),
        "agent.tool-ended" => {
            let end = ToolRunEnd::Cancelled {
                node: NodeId(1),
                waiting_time: 0,
                at: 5,
            };
            agents.tool_ended(session, end)
        }
        _ => agents.answered(session, NodeId(0), &response(false), 5),
    };
    agents.finish(session);
    step.map(drop)
}

fn flavor(
    plugin: &PluginComponent,
    config: String,
    grants: Grants,
    function: &str,
) -> Result<(), PluginFailure> {
    let factory = plugin.flavor(config, grants)?;
    if function == "flavor.guarantees" {
        return factory.guarantees().map(drop);
    }
    let facts = TraceFacts {
        rows: 1,
        groups: 1,
        first_row: "{}".into(),
    };
    let group = TraceGroup {
        index: 0,
        key: "k".into(),
        rows: vec![TraceRow {
            number: 1,
            at: None,
            fields: "{}".into(),
        }],
    };
    let mut flavor = factory.open()?;
    flavor.layout()?;
    flavor.sessions(&facts, 0, std::slice::from_ref(&group))?;
    flavor.warmup(&facts, &[group]).map(drop)
}

fn plan(function: &str, behaviour: &str) -> String {
    format!(r#"{{"in": "{function} {behaviour}"}}"#)
}

#[test]
fn nothing_misbehaves_unasked() {
    let plugin = load(limits(), "hostile-everywhere");
    for function in FUNCTIONS {
        call(&plugin, &plan("nothing", "loop"), grants(), function).unwrap();
    }
}

/// A misbehavior in a destructor is a warning: the session is over.
fn expect(function: &str, behaviour: &str, code: PluginErrorCode, slowest: Duration) {
    let plugin = load(limits(), "hostile-everywhere");
    let log = Arc::new(Kept::default());
    let meter = Arc::new(PluginMeter::default());
    let given = Grants {
        log: log.clone(),
        meter: Arc::clone(&meter),
        ..grants()
    };
    let clock = RunClock::starting_now();
    let called = call(&plugin, &plan(function, behaviour), given, function);
    let took = Duration::from_nanos(clock.now());
    assert!(took < slowest, "{function} {behaviour} took {took:?}");
    if function == "agent (destructor)" {
        called.unwrap();
        assert_eq!(meter.usage().traps, 1, "{behaviour}");
        let warned = log
            .lines()
            .iter()
            .any(|(_, _, line)| line.starts_with("the destructor of an agent failed"));
        assert!(warned, "{behaviour}: {:?}", log.lines());
    } else {
        let failure = called.unwrap_err();
        assert_eq!(
            (failure.code, failure.function.as_str()),
            (code, function),
            "{behaviour}: {failure}"
        );
    }
    // Another configuration of the same component works as before.
    let next = FUNCTIONS.iter().find(|next| **next != function).unwrap();
    call(&plugin, &plan("nothing", "loop"), grants(), next).unwrap();
}

/// The deadline is 0.3 s; the rest is a margin for machines under load.
#[test]
fn an_endless_loop_in_any_function_is_stopped() {
    for function in FUNCTIONS {
        expect(
            function,
            "loop",
            PluginErrorCode::CallDeadline,
            Duration::from_secs(20),
        );
    }
}

#[test]
fn an_endless_recursion_in_any_function_is_stopped() {
    for function in FUNCTIONS {
        expect(
            function,
            "recurse",
            PluginErrorCode::StackOverflow,
            Duration::from_secs(20),
        );
    }
}

#[test]
fn a_panic_in_any_function_is_a_trap() {
    for function in FUNCTIONS {
        expect(function, "panic", PluginErrorCode::Trap, Duration::from_secs(20));
    }
}

#[test]
fn unlimited_memory_in_any_function_is_refused() {
    let generous = EngineLimits {
        call_deadline: Duration::from_secs(60),
        ..tight()
    };
    let plugin = load(generous, "hostile-everywhere");
    for function in FUNCTIONS
        .into_iter()
        .filter(|function| *function != "agent (destructor)")
    {
        let failure = call(&plugin, &plan(function, "memory"), grants(), function).unwrap_err();
        assert_eq!(failure.code, PluginErrorCode::Memory, "{function}: {failure}");
    }
}

/// The functions that can return an error, with a text that no host may take.
fn with_results() -> impl Iterator<Item = &'static str> {
    const WITHOUT: [&str; 6] = [
        "generator.guarantees",
        "generator.length",
        "flavor.guarantees",
        "flavor.layout",
        "codec.endpoint",
        "collector.definitions",
    ];
    FUNCTIONS
        .into_iter()
        .filter(|function| !WITHOUT.contains(function) && *function != "agent (destructor)")
}

#[test]
fn text_that_is_not_utf_8_is_refused_at_the_boundary() {
    let plugin = load(limits(), "hostile-everywhere");
    for function in with_results() {
        let failure = call(&plugin, &plan(function, "utf8"), grants(), function).unwrap_err();
        assert!(failure.message.contains("utf-8"), "{function}: {failure}");
    }
}

#[test]
fn a_huge_error_is_not_taken_over() {
    let plugin = load(
        EngineLimits {
            memory_bytes: 256 << 20,
            call_deadline: Duration::from_secs(60),
            ..tight()
        },
        "hostile-everywhere",
    );
    for function in with_results() {
        let failure = call(&plugin, &plan(function, "huge"), grants(), function).unwrap_err();
        assert_eq!(failure.code, PluginErrorCode::Output, "{function}: {failure}");
    }
}

/// Floods do not fail: they are cut, counted, and bounded by the deadline.
#[test]
fn floods_are_bounded() {
    let plugin = load(
        EngineLimits {
            call_deadline: Duration::from_secs(60),
            ..tight()
        },
        "hostile-everywhere",
    );
    for behaviour in ["log-flood", "blob-flood"] {
        let log = Arc::new(Kept::default());
        let meter = Arc::new(PluginMeter::default());
        let given = Grants {
            log: log.clone(),
            meter: Arc::clone(&meter),
            ..grants()
        };
        let mut agents = reactive(&plugin, &plan("generator.start", behaviour), given);
        agents.start(SessionId(0)).unwrap();
        assert!(log.lines().len() <= 257, "{behaviour}: {}", log.lines().len());
        let usage = meter.usage();
        if behaviour == "log-flood" {
            assert_eq!((usage.log_lines, usage.dropped_log_lines), (256, 50_000 - 256));
        }
        assert!(meter.notes().len() <= 16);
    }
}
