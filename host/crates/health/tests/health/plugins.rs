//! Plugins that measure metrics or check requests.

use veeksha_events::{Event, FailedPlugin, PluginRole};

use crate::support::{PLUGINS, S, check, ended, failed, health, id, passed, rate, skipped};

fn failure(part: PluginRole) -> Event {
    Event::PluginFailed(FailedPlugin {
        plugin: "stalls".into(),
        part,
        message: "in `observe`: boom".into(),
        session: None,
        at: None,
    })
}

#[test]
fn failed_metric_or_request_check_fails_the_check() {
    let of = |events: Vec<Event>| check(&health(rate(1.0), &ended(events, S)), PLUGINS).clone();
    let judged = || Event::Judged {
        plugin: "strict".into(),
        request: id(0, 0),
        good: true,
    };
    for (part, name) in [
        (PluginRole::Metric, "metric"),
        (PluginRole::RequestCheck, "request_check"),
    ] {
        let report = health(rate(1.0), &ended(vec![judged(), failure(part)], S));
        assert!(!report.passed());
        failed(
            check(&report, PLUGINS),
            &format!("the plugin `stalls` ({name}) failed, and its later results are missing"),
        );
    }
    passed(&of(vec![judged()]));
    // The check of a run is called after the health checks, and another check counts lost sessions.
    skipped(
        &of(vec![failure(PluginRole::SloCheck)]),
        "no plugin measured a metric",
    );
    skipped(
        &of(vec![failure(PluginRole::Workload)]),
        "no plugin measured a metric",
    );
}

#[test]
fn report_lists_the_interruption_and_every_role_that_failed() {
    let mut events = vec![
        failure(PluginRole::Workload),
        failure(PluginRole::Workload),
        failure(PluginRole::SloCheck),
    ];
    let report = health(rate(1.0), &ended(events.clone(), S));
    assert!(!report.interrupted);
    events.push(Event::Interrupted { at: S });
    let report = health(rate(1.0), &ended(events, S));
    let json = report.json();
    assert_eq!(json["interrupted"], true);
    let failed = json["failed_plugins"].as_array().unwrap().iter();
    let parts: Vec<&str> = failed.filter_map(|failed| failed["part"].as_str()).collect();
    assert_eq!(parts, ["workload", "slo_check"], "the first failure of each role");
    let text = report.text();
    assert!(text.contains("The run was interrupted"), "{text}");
    assert!(
        text.contains("The plugin `stalls` (slo_check) failed in `observe`: boom."),
        "{text}"
    );
}
