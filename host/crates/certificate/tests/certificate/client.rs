//! Findings on the client's threads and the host.

use veeksha_events::{FailedPlugin, PluginRole};
use veeksha_model::SessionId;

use super::*;

#[test]
fn without_observed_lag_the_load_of_client_threads_is_used() {
    let mut events = requests(
        40,
        Way {
            stamps: StampSource::Read,
            ..QUIET
        },
    );
    // 200 chunks. Half busy: 500 ms * 0.5 / (2 * 0.5) = 250 ms of queueing, and 150 ms without a
    // processor: 2 ms each.
    events.push(thread("client-0", 500, 150));
    let certificate = judge(events);
    errors(
        &certificate,
        Metric::Ttfc,
        58.0 + 25.0 + 2_000.0,
        73.0 + 2_025.0 * 100f64.ln(),
    );
    let ttfc = about(&certificate, Metric::Ttfc);
    assert_eq!(ttfc.verdict, Verdict::Invalid);
    assert!(
        ttfc.what
            .contains("the lag of reads, whose times represent the arrivals")
    );
}

#[test]
fn a_client_thread_without_time_to_spare_degrades_and_with_lag_invalidates() {
    let with = |busy, lag| {
        let mut events = requests(40, Way { lag, ..QUIET });
        events.extend([thread("client-0", busy, 0), thread("dispatcher-0", 1_000, 0)]);
        judge(events)
    };
    assert_eq!(with(690, 25).verdict, Verdict::Valid);
    let nearly = with(700, 25);
    assert_eq!(nearly.verdict, Verdict::Degraded);
    assert_eq!(
        with_text(&nearly, "client-0").what,
        "client-0 was on a processor for 70 % of a second: the client was nearly the bottleneck"
    );
    // Kernel timestamps make lag harmless, but not a client at the limit of its reading rate.
    assert_eq!(with(960, 25).verdict, Verdict::Degraded);
    assert_eq!(with(940, 1_500).verdict, Verdict::Degraded);
    let saturated = with(960, 1_500);
    assert_eq!(saturated.verdict, Verdict::Invalid);
    with_text(&saturated, "the client was the bottleneck");
    with_text(
        &saturated,
        "reads returned up to 1.5 ms (P99) after the kernel had received their last segment",
    );
}

#[test]
fn a_thread_kept_from_running_is_a_remark() {
    let mut events = requests(40, QUIET);
    events.push(thread("dispatcher-0", 100, 250));
    let certificate = judge(events);
    assert_eq!(certificate.verdict, Verdict::Valid);
    let finding = with_text(&certificate, "dispatcher-0");
    assert_eq!(
        finding.what,
        "dispatcher-0 was ready to run and had no processor for 25 % of a second"
    );
}

#[test]
fn unsent_requests_of_the_host_count_and_withheld_ones_are_reported() {
    let of = |reason, count: u64| {
        let mut events = requests(98, QUIET);
        events.extend((0..count).map(|number| never_sent(1000 + number, 0, reason)));
        judge(events)
    };
    assert_eq!(of(NeverSentReason::Missed, 0).verdict, Verdict::Valid);
    // 2 of 100, 6 of 104.
    let missed = of(NeverSentReason::Missed, 2);
    assert_eq!(missed.verdict, Verdict::Degraded);
    assert_eq!(
        with_text(&missed, "never sent").what,
        "2 of 100 requests that were due (2 %) were never sent: 2 because the run ended before the host reached them; the load was lower than the scenario specifies"
    );
    assert_eq!(of(NeverSentReason::PluginFailed, 6).verdict, Verdict::Invalid);
    let held = of(NeverSentReason::Held, 50);
    assert_eq!(held.verdict, Verdict::Valid);
    with_text(&held, "50 of 148 requests that were due: held back by a limit");
    let cancelled = of(NeverSentReason::SessionCancelled, 50);
    assert_eq!(cancelled.verdict, Verdict::Valid);
    with_text(&cancelled, "50 of 148 requests that were due: withdrawn");
    // A request with `RunEnded` was not due.
    assert!(
        of(NeverSentReason::RunEnded, 50)
            .findings
            .iter()
            .all(|finding| finding.metric.is_some())
    );
}

#[test]
fn sessions_that_were_not_made_in_time_were_due() {
    let mut events = requests(90, QUIET);
    events.push(Event::ArrivalsMissed { sessions: 10, at: 1 });
    let certificate = judge(events);
    assert_eq!(certificate.verdict, Verdict::Invalid);
    with_text(
        &certificate,
        "10 of 100 requests that were due (10 %) were never sent: 10 because the plugin had not made",
    );
}

#[test]
fn sessions_lost_to_a_plugin_degrade_the_run() {
    let mut events = requests(40, QUIET);
    events.extend((40..43).map(|session| {
        Event::PluginFailed(FailedPlugin {
            plugin: "agents".into(),
            part: PluginRole::Workload,
            message: "in `agent.answered`: boom".into(),
            session: Some(SessionId(session)),
            at: Some(1),
        })
    }));
    let certificate = judge(events);
    assert_eq!(certificate.verdict, Verdict::Degraded);
    assert_eq!(
        with_text(&certificate, "the load was lower than the scenario specifies").what,
        "the plugin `agents` failed 3 times; the first, session 40: in `agent.answered`: boom; the load was lower than the scenario specifies"
    );
}

/// Built-in results are complete, but those of the plugin are not.
#[test]
fn failed_evaluator_plugins_degrade_the_run() {
    let failed = |part| {
        let mut events = requests(40, QUIET);
        events.push(Event::PluginFailed(FailedPlugin {
            plugin: "stalls".into(),
            part,
            message: "in `observe`: boom".into(),
            session: None,
            at: None,
        }));
        let evaluation = run(events);
        let simulated = Certificate::simulated(&evaluation, &Thresholds::default());
        let real = certify(
            &evaluation,
            &Thresholds::default(),
            &RunConditions::default(),
            None,
        );
        for certificate in [&real, &simulated] {
            assert_eq!(certificate.verdict, Verdict::Degraded);
        }
        with_text(&simulated, "the plugin `stalls` failed");
        with_text(&real, "the plugin `stalls` failed").what.clone()
    };
    assert_eq!(
        failed(PluginRole::Metric),
        "the plugin `stalls` failed, in `observe`: boom: its metrics do not cover all requests"
    );
    assert!(failed(PluginRole::RequestCheck).ends_with("it did not check all requests"));
    assert!(failed(PluginRole::SloCheck).ends_with("its verdicts on the run are missing"));
}
