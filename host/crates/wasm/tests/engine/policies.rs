//! Policies of plugins: the number of instances, the consequence of a trap, and files that are
//! granted by a pattern.

use std::sync::Arc;

use veeksha_manifest::{CapabilityGrants, CapabilityRequest, InstancePolicy, OnTrap};
use veeksha_model::{NodeId, Response, SessionId};
use veeksha_ports::{PluginErrorCode, PluginFailureKind, PluginMeter, Workload};
use veeksha_wasm::{EngineLimits, GrantedFolder, Grants};

use crate::support::{Kept, grants, load, only_label, planned, reactive, tight};

fn config(behaviour: &str) -> String {
    format!(r#"{{"behaviour": "{behaviour}"}}"#)
}

fn with(instances: InstancePolicy, on_trap: OnTrap) -> (Grants, Arc<PluginMeter>) {
    let meter = Arc::new(PluginMeter::default());
    let given = Grants {
        instances,
        on_trap,
        meter: Arc::clone(&meter),
        ..grants()
    };
    (given, meter)
}

fn answer(text: &str) -> Response {
    Response {
        text: text.into(),
        finish_reason: "stop".into(),
        ..Response::default()
    }
}

/// The numbers of calls that two workers see, in turn, of the instances that serve them.
fn calls_of_two_workers(instances: InstancePolicy) -> (Vec<u64>, u64) {
    let (given, meter) = with(instances, OnTrap::Abort);
    let plugin = load(tight(), "hostile-sessions");
    let factory = plugin.workload(config("calls"), given).unwrap();
    let mut workers = [factory.open().unwrap(), factory.open().unwrap()];
    let mut seen = Vec::new();
    for index in 0..3 {
        for worker in &mut workers {
            let Workload::Planned(source) = worker else {
                panic!("a reactive workload");
            };
            seen.push(only_label(&source.sessions(index, 1).unwrap()[0]));
        }
    }
    (seen, meter.usage().instances)
}

#[test]
fn instances_belong_to_workers_or_to_a_pool_or_to_calls() {
    let (seen, instances) = calls_of_two_workers(InstancePolicy::PerWorker);
    assert_eq!((seen, instances), (vec![1, 1, 2, 2, 3, 3], 2));
    let (seen, instances) = calls_of_two_workers(InstancePolicy::Pooled);
    assert_eq!((seen, instances), (vec![1, 2, 3, 4, 5, 6], 2));
    // Two to check the configuration, of which each serves a first call (`length`), then one for
    // each call.
    let (seen, instances) = calls_of_two_workers(InstancePolicy::PerCall);
    assert_eq!((seen, instances), (vec![1; 6], 8));
}

#[test]
fn plugins_that_keep_state_refuse_other_instances() {
    for policy in [InstancePolicy::Pooled, InstancePolicy::PerCall] {
        let (given, _) = with(policy, OnTrap::Abort);
        let failure = load(tight(), "hostile-measure")
            .metric(config("good"), given.clone())
            .err()
            .unwrap();
        assert_eq!(failure.code, PluginErrorCode::NotLoaded);
        assert!(failure.message.contains("keeps its state"), "{failure}");
        let arrivals = load(tight(), "hostile-arrivals").arrivals(config("good"), given);
        assert!(arrivals.is_err());
    }
}

/// Each call leaks 8 MiB: about every seventh one exceeds the limit of 64 MiB, and is repeated in a
/// new instance.
#[test]
fn a_restarted_generator_goes_on() {
    let limits = EngineLimits {
        recycle_memory_bytes: u64::MAX,
        ..tight()
    };
    let plugin = load(limits, "hostile-sessions");
    let log = Arc::new(Kept::default());
    let (given, meter) = with(InstancePolicy::PerWorker, OnTrap::Restart);
    let given = Grants {
        log: log.clone(),
        ..given
    };
    let mut source = planned(&plugin, &config("swell"), given);
    for index in 0..20 {
        source.sessions(index, 1).unwrap();
    }
    let usage = meter.usage();
    assert!((2..=3).contains(&usage.restarts), "{usage:?}");
    assert_eq!(usage.restarts, usage.traps);
    let warnings = log.lines();
    assert_eq!(warnings.len() as u64, usage.restarts);
    assert!(
        warnings[0]
            .2
            .starts_with("restarted after a failure in `workload.sessions`: ")
    );
}

/// A plugin that traps again is not restarted endlessly.
#[test]
fn a_second_trap_is_reported() {
    let (given, meter) = with(InstancePolicy::PerWorker, OnTrap::Restart);
    let plugin = load(tight(), "hostile-sessions");
    let failure = planned(&plugin, &config("trap"), given)
        .sessions(0, 1)
        .unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(meter.usage().traps, 2);
}

#[test]
fn a_restarted_agent_is_rebuilt_and_the_others_live_on() {
    let (given, meter) = with(InstancePolicy::PerWorker, OnTrap::Restart);
    let mut agents = reactive(&load(tight(), "hostile-agent"), "{}", given);
    for session in 0..2 {
        agents.start(SessionId(session)).unwrap();
    }
    let failure = agents
        .answered(SessionId(0), NodeId(0), &answer("trap"), 0)
        .unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!((meter.usage().traps, meter.usage().restarts), (2, 1));
    agents
        .answered(SessionId(1), NodeId(0), &answer("fine"), 0)
        .unwrap();
    let ended = agents
        .answered(SessionId(0), NodeId(1), &answer("fine"), 0)
        .unwrap_err();
    assert!(ended.message.contains("has ended"), "{ended}");
}

#[test]
fn a_disabled_agent_generator_starts_no_further_sessions() {
    let (given, _) = with(InstancePolicy::PerWorker, OnTrap::Disable);
    let mut agents = reactive(&load(tight(), "hostile-agent"), "{}", given);
    for session in 0..2 {
        agents.start(SessionId(session)).unwrap();
    }
    let trapped = agents
        .answered(SessionId(0), NodeId(0), &answer("trap"), 0)
        .unwrap_err();
    assert!(!trapped.ends_workload);
    agents
        .answered(SessionId(1), NodeId(0), &answer("fine"), 0)
        .unwrap();
    let refused = agents.start(SessionId(2)).unwrap_err();
    assert!(refused.ends_workload);
    assert!(
        refused
            .message
            .starts_with("the plugin was disabled after its first failure: ")
    );
}

/// With an instance for each session, nothing has to be rebuilt after a trap.
#[test]
fn agents_with_separate_instances_do_not_share_a_trap() {
    let (given, meter) = with(InstancePolicy::PerCall, OnTrap::Abort);
    let mut agents = reactive(&load(tight(), "hostile-agent"), "{}", given);
    for session in 0..3 {
        agents.start(SessionId(session)).unwrap();
    }
    agents
        .answered(SessionId(1), NodeId(0), &answer("trap"), 0)
        .unwrap_err();
    for session in [0, 2] {
        agents
            .answered(SessionId(session), NodeId(0), &answer("fine"), 0)
            .unwrap();
    }
    let usage = meter.usage();
    assert_eq!((usage.instances, usage.restarts), (3, 0));
}

/// A new instance repeats the earlier calls, so that it traps at the same arrival.
#[test]
fn a_restarted_arrival_process_repeats_its_calls() {
    let (given, meter) = with(InstancePolicy::PerWorker, OnTrap::Restart);
    let plugin = load(tight(), "hostile-arrivals");
    let factory = plugin.arrivals(config("trap-at-99"), given).unwrap();
    let mut source = factory.open().unwrap();
    assert_eq!(source.next(50).unwrap().len(), 50);
    assert_eq!(source.next(40).unwrap().len(), 40);
    let failure = source.next(20).unwrap_err();
    assert_eq!(failure.input.as_deref(), Some("count = 20, from session 90 on"));
    let usage = meter.usage();
    assert_eq!((usage.traps, usage.restarts), (2, 1));
}

#[test]
fn a_granted_pattern_opens_its_files_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data"), "0123456789").unwrap();
    std::fs::write(folder.path().join("other"), "secret").unwrap();
    let given = |patterns: &[&str]| {
        let granted = patterns
            .iter()
            .map(|text| CapabilityRequest::parse(text).unwrap());
        let (given, meter) = with(InstancePolicy::PerWorker, OnTrap::Abort);
        let folder = GrantedFolder {
            root: folder.path().to_owned(),
            grants: CapabilityGrants::new(granted.collect(), None),
            plugin: "hostile-sessions".into(),
        };
        (Grants { folder, ..given }, meter)
    };
    let plugin = load(tight(), "hostile-sessions");
    let (granted, meter) = given(&["blob:read dat?"]);
    let session = planned(&plugin, &config("blob"), granted)
        .sessions(0, 1)
        .unwrap()
        .remove(0);
    let body = session.requests[0].body.clone().unwrap();
    let read: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        read,
        serde_json::json!({ "text": "0123456789", "size": 10, "beyond": 0, "other": "not-granted" })
    );
    assert_eq!(meter.notes().len(), 1);
    assert!(
        meter.notes()[0].contains("--grant 'hostile-sessions=blob:read "),
        "{:?}",
        meter.notes()
    );
    let (nothing, _) = given(&[]);
    let failure = planned(&plugin, &config("blob"), nothing)
        .sessions(0, 1)
        .unwrap_err();
    assert!(matches!(&failure.kind, PluginFailureKind::Refused { code, .. } if code == "not-granted"));
}
