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
