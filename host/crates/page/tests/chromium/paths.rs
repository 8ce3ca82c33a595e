//! The critical path of a session.

use veeksha_events::{Event, SessionEnd};
use veeksha_model::{Edge, NodeId, SessionId, Trigger};

use crate::{open, sample};

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
