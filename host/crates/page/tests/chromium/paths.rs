//! The critical path of a session.

use veeksha_events::{Event, SessionEnd};
use veeksha_model::{Edge, NodeId, RequestId, SessionId, ToolRunRecord, Trigger};

use crate::{keep, open, sample};

const SECOND: u64 = 1_000_000_000;

/// Request 0 streams from 1 s to 4 s. 1 begins half a second after its first chunk and takes 4 s; 2
/// begins at its end and takes 1 s.
fn events(end: Option<SessionEnd>) -> Vec<Event> {
    let child = |node: u32, trigger, delay, at: u64, takes: u64| {
        let mut record = sample::run::record(7, node, at, &[at + SECOND / 2, at + takes]);
        record.parents = vec![Edge {
            parent: NodeId(0),
            trigger,
            delay,
        }];
        record
    };
    let records = [
        sample::run::record(7, 0, 0, &[SECOND, 4 * SECOND]),
        child(1, Trigger::FirstChunk, SECOND / 2, 3 * SECOND / 2, 4 * SECOND),
        child(2, Trigger::Completed, 0, 4 * SECOND, SECOND),
    ];
    let ended = end.map(|end| Event::SessionFinished {
        session: SessionId(7),
        at: 6 * SECOND,
        end,
        requests: 3,
    });
    let finished = records.map(|record| Event::Finished(Box::new(record)));
    finished.into_iter().chain(ended).collect()
}

#[test]
fn critical_path_is_marked_and_split() {
    let Some(mut opened) = open(
        1400,
        950,
        &sample::page_data::data(&events(Some(SessionEnd::Completed)), 100),
    ) else {
        return;
    };
    let browser = &mut opened.browser;
    let split = browser.text("#session .path-text").replace('\u{202f}', " ");
    assert!(
        split.starts_with("Critical path (underlined): 2 requests, 5.50 s"),
        "{split}"
    );
    for part in ["prefill 1.50 s", "decode 3.50 s", "think time 500 ms"] {
        assert!(split.contains(part), "{part}: {split}");
    }
    assert_eq!(
        browser.eval("document.querySelectorAll('.edge.critical').length"),
        1
    );
    assert_eq!(
        browser.eval("document.querySelectorAll('rect.critical').length"),
        2
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// A plan that ends at 1 s calls a tool twice; the second call waits for the only server. The
/// answer that combines both results begins at 4 s. A search follows it, whose server works from 6
/// s to 7 s.
fn with_tool_runs() -> Vec<Event> {
    let run = |node: u32, class: &str, parent: u32, [ready, started, completed]: [u64; 3]| {
        Event::ToolRan(Box::new(ToolRunRecord {
            id: RequestId {
                session: SessionId(7),
                node: NodeId(node),
            },
            class: class.into(),
            parents: vec![NodeId(parent).into()],
            ready_at: ready * SECOND / 2,
            started_at: started * SECOND / 2,
            completed_at: completed * SECOND / 2,
            is_cold: node == 2,
            failed: node == 5,
            result_tokens: 300,
            measured: true,
            labels: [].into(),
        }))
    };
    let plan = sample::run::record(7, 0, 0, &[SECOND / 2, SECOND]);
    let mut combined = sample::run::record(7, 3, 4 * SECOND, &[9 * SECOND / 2, 5 * SECOND]);
    combined.parents = vec![NodeId(1).into(), NodeId(2).into()];
    combined.history_parent = None;
    vec![
        Event::Finished(Box::new(plan)),
        run(1, "sandbox", 0, [2, 2, 4]),
        run(2, "sandbox", 0, [2, 4, 8]),
        run(5, "sandbox", 0, [2, 8, 9]),
        Event::Finished(Box::new(combined)),
        run(4, "search", 3, [10, 12, 14]),
        Event::SessionFinished {
            session: SessionId(7),
            at: 7 * SECOND,
            end: SessionEnd::Completed,
            requests: 2,
        },
    ]
}

#[test]
fn tool_runs_are_bars_on_the_path() {
    let Some(mut opened) = open(1400, 950, &sample::page_data::data(&with_tool_runs(), 100)) else {
        return;
    };
    let browser = &mut opened.browser;
    let split = browser.text("#session .path-text").replace('\u{202f}', " ");
    assert!(
        split.starts_with("Critical path (underlined): 2 requests, 2 tool runs, 7 s"),
        "{split}"
    );
    for part in ["tool waiting 2 s", "tool service 3.00 s", "decode 1 s"] {
        assert!(split.contains(part), "{part}: {split}");
    }
    for (selector, expected) in [
        (".node .tool", 3),
        (".node .tool-waiting", 4),
        (".node .failure", 1),
        (".edge", 6),
        (".edge.critical", 3),
    ] {
        let found = browser.eval(&format!(
            "document.querySelectorAll('#session {selector}').length"
        ));
        assert_eq!(found, expected, "{selector}");
    }
    let facts = browser.text(".session-facts");
    assert!(facts.starts_with("2 requests, 4 tool runs, "), "{facts}");
    browser.eval("document.querySelector('#session').scrollIntoView(); document.querySelector('#session .graph').focus()");
    browser.keys(&["Home", "ArrowDown", "ArrowDown"]);
    let detail = browser.text("#session .node-detail").replace('\u{202f}', " ");
    for text in [
        "7/2",
        "sandbox",
        "Waited1 s",
        "2 s (cold start)",
        "300 tokens",
        "on it until its end",
    ] {
        assert!(detail.contains(text), "{text}: {detail}");
    }
    keep(browser, "tool_runs.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn session_without_an_end_has_no_path() {
    let Some(mut opened) = open(1400, 950, &sample::page_data::data(&events(None), 100)) else {
        return;
    };
    let browser = &mut opened.browser;
    assert_eq!(
        browser.eval("document.querySelectorAll('.critical, .path-text').length"),
        0
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
