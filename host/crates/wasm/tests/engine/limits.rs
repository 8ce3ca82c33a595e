//! Limits of plugins, the error code of each, and the resources that a plugin used.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use veeksha_ports::{PluginErrorCode, PluginFailure, PluginFailureKind, PluginMeter, SandboxedAccess};
use veeksha_wasm::{CallBudget, EngineLimits, Grants, LogLevel, LogLine, LogSink};

use crate::support::{Kept, grants, load, open, planned, tight};

fn config(behaviour: &str) -> String {
    format!(r#"{{"behaviour": "{behaviour}"}}"#)
}

fn fails(plugin: &str, behaviour: &str, limits: EngineLimits, grants: Grants) -> PluginFailure {
    let plugin = load(limits, plugin);
    planned(&plugin, &config(behaviour), grants)
        .sessions(0, 1)
        .unwrap_err()
}

#[test]
fn each_kind_of_failure_has_its_code() {
    let large = EngineLimits {
        memory_bytes: 512 << 20,
        ..tight()
    };
    let short = EngineLimits {
        call_deadline: Duration::from_millis(100),
        ..tight()
    };
    let fueled = EngineLimits {
        call_budget: CallBudget::Fuel,
        call_fuel: 1_000_000,
        ..tight()
    };
    let cases = [
        ("trap", tight(), PluginErrorCode::Trap),
        ("error", tight(), PluginErrorCode::Refused),
        ("loop", short, PluginErrorCode::CallDeadline),
        ("loop", fueled, PluginErrorCode::CallFuel),
        ("memory", tight(), PluginErrorCode::Memory),
        ("huge", large, PluginErrorCode::Output),
        ("words", tight(), PluginErrorCode::HostCall),
        ("tokens", tight(), PluginErrorCode::NotGranted),
        ("cyclic", tight(), PluginErrorCode::Result),
    ];
    for (behaviour, limits, code) in cases {
        let failure = fails("hostile-sessions", behaviour, limits, grants());
        assert_eq!(failure.code, code, "{behaviour}: {failure}");
    }
    assert_eq!(
        fails("wasi", "exit", tight(), grants()).code,
        PluginErrorCode::Exit
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let blobs = [("data".to_owned(), file.path().to_owned())].into();
    let failure = fails(
        "hostile-sessions",
        "handles",
        tight(),
        Grants { blobs, ..grants() },
    );
    assert_eq!(failure.code, PluginErrorCode::Objects, "{failure}");
    let failure = crate::support::engine(tight()).load("p", b"").err().unwrap();
    assert_eq!(failure.code, PluginErrorCode::NotLoaded);
}

#[test]
fn the_last_host_call_is_reported() {
    let failure = fails("hostile-sessions", "tokens", tight(), grants());
    assert_eq!(failure.last_host_call.as_deref(), Some("tokens.count(16 bytes)"));
    let shown = failure.to_string();
    assert!(
        shown.contains("\n  last host call: tokens.count(16 bytes)\n"),
        "{shown}"
    );
    assert!(
        shown.ends_with("\n  code: VP0013 (docs/plugin-errors.md)"),
        "{shown}"
    );
}

/// Fuel decides at the same instruction each time, however fast the machine is: the smallest
/// allowance with which a call returns is the same number in every search.
#[test]
fn fuel_decides_equally_on_every_machine() {
    let fueled = |call_fuel| EngineLimits {
        call_budget: CallBudget::Fuel,
        call_fuel,
        ..tight()
    };
    let used = |call_fuel: u64| {
        let meter = Arc::new(PluginMeter::default());
        let given = Grants {
            meter: Arc::clone(&meter),
            ..grants()
        };
        let plugin = load(fueled(call_fuel), "planned");
        let made = planned(&plugin, "{}", given).sessions(0, 64);
        made.map(|_| meter.usage().call_fuel)
    };
    let needed = used(100_000_000).unwrap();
    assert!(needed > 10_000, "{needed}");
    assert_eq!(used(needed).unwrap(), needed);
    let half = needed / 2;
    let failure = used(half).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Fuel { allowed: half });
    let smallest = || {
        let (mut fails, mut returns) = (half, needed);
        while returns - fails > 1 {
            let middle = fails + (returns - fails) / 2;
            match used(middle) {
                Ok(_) => returns = middle,
                Err(_) => fails = middle,
            }
        }
        returns
    };
    assert_eq!(smallest(), smallest());
}

#[test]
fn tables_and_instances_are_bounded() {
    let limits = EngineLimits {
        table_elements: 1,
        ..tight()
    };
    let refused = |limits| {
        open(&load(limits, "hostile-sessions"), "{}", grants())
            .err()
            .unwrap()
    };
    let failure = refused(limits);
    assert_eq!(failure.code, PluginErrorCode::Objects, "{failure}");
    assert!(
        failure.message.ends_with("elements, at most 1 are allowed"),
        "{failure}"
    );
    let limits = EngineLimits {
        instances: 1,
        ..tight()
    };
    let failure = refused(limits);
    assert_eq!(failure.code, PluginErrorCode::Objects, "{failure}");
}

#[test]
fn the_use_of_resources_is_measured() {
    let meter = Arc::new(PluginMeter::default());
    let plugin = load(tight(), "hostile-sessions");
    let given = Grants {
        meter: Arc::clone(&meter),
        ..grants()
    };
    let mut source = planned(&plugin, &config("trap-at-7"), given);
    source.sessions(0, 4).unwrap();
    let first = meter.usage();
    // `workload.open`, `workload.length` and `workload.sessions`.
    assert_eq!((first.calls, first.instances, first.traps), (3, 1, 0));
    assert!(first.memory_bytes >= 1 << 16, "at least a page: {first:?}");
    assert!(first.longest_call > Duration::ZERO);
    assert!(first.output_bytes > 4 * 50, "four sessions: {first:?}");
    source.sessions(6, 4).unwrap_err();
    source.sessions(8, 4).unwrap();
    let last = meter.usage();
    assert_eq!((last.instances, last.traps, last.restarts), (2, 1, 1));
}

#[derive(Default)]
struct Calls(Mutex<Vec<(String, Option<u64>, String)>>);

impl LogSink for Calls {
    fn line(&self, _: &str, _: LogLevel, _: &str) {}

    fn record(&self, line: &LogLine<'_>) {
        let entry = (line.function.to_owned(), line.session, line.message.to_owned());
        self.0.lock().unwrap().push(entry);
    }
}

#[test]
fn a_line_names_its_call_and_its_session() {
    let log = Arc::new(Calls::default());
    let plugin = load(tight(), "hostile-sessions");
    let given = Grants {
        log: log.clone(),
        ..grants()
    };
    let mut source = planned(&plugin, &config("log-flood"), given);
    source.sessions(7, 1).unwrap();
    let lines = log.0.lock().unwrap();
    assert_eq!(lines[0], ("workload.sessions".into(), Some(7), "line 0".into()));
}

/// What a guest prints is logged: 20 MB, of which the first 64 KiB of the call become lines.
#[test]
fn printed_lines_are_logged_and_bounded() {
    let log = Arc::new(Kept::default());
    let plugin = load(tight(), "wasi");
    let given = Grants {
        log: log.clone(),
        ..grants()
    };
    planned(&plugin, &config("flood"), given).sessions(0, 1).unwrap();
    let lines = log.lines();
    // 64 KiB hold 16 lines of 4,000 bytes and the beginning of another one, of 5,001.
    assert_eq!(lines.len(), 17 + 1);
    assert_eq!((lines[0].1, lines[0].2.len()), (LogLevel::Info, 3999));
    let last = &lines[17];
    assert_eq!(
        (last.1, last.2.as_str()),
        (LogLevel::Warn, "4,985 more lines of one call were not logged")
    );
}

#[test]
fn a_refused_access_is_noted_once_and_in_later_reports() {
    for (behaviour, access) in [
        ("environment", SandboxedAccess::Environment),
        ("clocks", SandboxedAccess::Clock),
    ] {
        let log = Arc::new(Kept::default());
        let meter = Arc::new(PluginMeter::default());
        let plugin = load(tight(), "wasi");
        let given = || Grants {
            log: log.clone(),
            meter: Arc::clone(&meter),
            ..grants()
        };
        for _ in 0..2 {
            planned(&plugin, &config(behaviour), given())
                .sessions(0, 1)
                .unwrap();
        }
        let noted = ("wasi".to_owned(), LogLevel::Warn, access.message().to_owned());
        assert_eq!(log.lines(), [noted]);
        let failure = planned(&plugin, &config("panic"), given())
            .sessions(0, 1)
            .unwrap_err();
        assert_eq!(failure.notes, [access.message()]);
        let shown = failure.to_string();
        assert!(
            shown.contains(&format!("\n  note: {}\n", access.message())),
            "{shown}"
        );
    }
}

#[test]
fn a_granted_variable_is_all_of_the_environment() {
    let meter = Arc::new(PluginMeter::default());
    let plugin = load(tight(), "wasi");
    let given = Grants {
        environment: [("TOKEN".to_owned(), "x".to_owned())].into(),
        meter: Arc::clone(&meter),
        ..grants()
    };
    let sessions = planned(&plugin, &config("environment"), given)
        .sessions(0, 1)
        .unwrap();
    assert_eq!(sessions[0].labels[0], ("environment".to_owned(), "1".to_owned()));
    assert!(meter.notes().is_empty());
}

#[test]
fn lines_beyond_the_limit_of_a_run_are_dropped_in_all_instances() {
    let limits = EngineLimits {
        log_lines_per_run: 300,
        ..tight()
    };
    let log = Arc::new(Kept::default());
    let meter = Arc::new(PluginMeter::default());
    let plugin = load(limits, "hostile-sessions");
    for _ in 0..3 {
        let given = Grants {
            log: log.clone(),
            meter: Arc::clone(&meter),
            ..grants()
        };
        planned(&plugin, &config("log-flood"), given)
            .sessions(0, 1)
            .unwrap();
    }
    // 256 lines and one about the rest of the call; 44 lines and one about the rest of the run.
    assert_eq!(log.lines().len(), 257 + 45);
    let usage = meter.usage();
    assert_eq!(
        (usage.log_lines, usage.dropped_log_lines),
        (300, 3 * 100_000 - 300)
    );
}
