//! Requests that were due but not sent.

use veeksha_events::{Event, FailedPlugin, NeverSentReason, PluginRole, Status};
use veeksha_model::{ErrorClass, SessionId};

use crate::support::{
    S, SENT, check, ended, failed, finished, health, id, near, passed, rate, request, skipped, value_of,
};

fn never_sent(count: u32, reason: NeverSentReason) -> impl Iterator<Item = Event> {
    (0..count).map(move |node| Event::NeverSent {
        request: id(1000, node),
        reason,
        at: S,
    })
}

/// One of 100 due requests may be missing, two of 101 may not.
#[test]
fn large_share_of_withdrawn_requests_fails() {
    let sent = || (0..99).map(|session| finished(&request(session, 0, 0, S)));
    let of = |count, reason| {
        let events = sent().chain(never_sent(count, reason)).collect();
        check(&health(rate(1.0), &ended(events, 2 * S)), SENT).clone()
    };
    for reason in [
        NeverSentReason::SessionCancelled,
        NeverSentReason::PluginFailed,
        NeverSentReason::Missed,
    ] {
        passed(&of(1, reason));
        let much = of(2, reason);
        failed(&much, "2 of 101 requests that were due");
        near(value_of(&much, "requests never sent"), 2.0);
        near(value_of(&much, "requests due"), 101.0);
    }
    // Not due because of the end of the run or a limit of the scenario.
    for reason in [NeverSentReason::RunEnded, NeverSentReason::Held] {
        passed(&of(50, reason));
    }
}

#[test]
fn sessions_lost_to_the_workloads_plugin_fail_the_check() {
    let lost = Event::PluginFailed(FailedPlugin {
        plugin: "agents".into(),
        part: PluginRole::Workload,
        message: "in `agent.answered`: boom".into(),
        session: Some(SessionId(0)),
        at: Some(S),
    });
    let events = vec![finished(&request(0, 0, 0, S)), lost];
    let check = check(&health(rate(1.0), &ended(events, 2 * S)), SENT).clone();
    failed(
        &check,
        "1 session ended early, because the workload's plugin failed",
    );
}

#[test]
fn failed_requests_are_noted_but_do_not_fail_the_check() {
    let mut broken = request(0, 0, 0, S);
    broken.status = Status::Failed {
        class: ErrorClass::Connect,
        message: "refused".into(),
    };
    let report = health(rate(1.0), &ended(vec![finished(&broken)], 2 * S));
    passed(check(&report, SENT));
    near(value_of(check(&report, SENT), "requests failed"), 1.0);
    skipped(
        check(&health(rate(1.0), &ended(Vec::new(), S)), SENT),
        "no request was due",
    );
}
