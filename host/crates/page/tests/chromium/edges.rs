//! Edge cases of runs.

use serde_json::json;
use veeksha_page::{PageData, RunState, page};

use crate::browser::{self, Browser};
use crate::{keep, open, sample};

#[test]
fn a_page_of_nothing_is_a_page() {
    for data in [
        PageData::default(),
        sample::page_data::data(&[], 10),
        PageData {
            run: veeksha_page::RunFacts {
                state: RunState::Cut,
                ..Default::default()
            },
            curves: Some(veeksha_page::RunCurves::default()),
            slices: Some(veeksha_page::Slices::default()),
            ..PageData::default()
        },
    ] {
        let Some(mut opened) = open(1400, 950, &data) else {
            return;
        };
        assert_eq!(opened.browser.complaints(), Vec::<String>::new());
        opened.browser.key("g", false);
        opened.browser.key("Escape", false);
        assert_eq!(opened.browser.complaints(), Vec::<String>::new());
    }
}

/// Edge cases of runs: each is drawn, read, brushed and zoomed.
#[test]
#[expect(clippy::too_many_lines, reason = "one list of edge cases")]
fn strange_runs_are_drawn() {
    use veeksha_events::Event;
    use veeksha_model::{Edge, ErrorClass, MetricSample, NodeId, Trigger};
    const SECOND: u64 = 1_000_000_000;
    let finished = |record: veeksha_events::RequestRecord| Event::Finished(Box::new(record));
    let failed = |session: u64| {
        let mut record = sample::run::record(session, 0, session * SECOND, &[]);
        record.status = veeksha_events::Status::Failed {
            class: ErrorClass::Connect,
            message: "connection refused".into(),
        };
        finished(record)
    };
    let wide = |session: u64| {
        // Hundreds of nodes: half of them in parallel, the others in sequence.
        (0..400u32).map(move |node| {
            let at = if node < 200 {
                0
            } else {
                u64::from(node) * SECOND / 10
            };
            let mut record = sample::run::record(session, node, at, &[at + SECOND / 20, at + SECOND / 12]);
            record.parents = node
                .checked_sub(1)
                .filter(|_| node >= 200)
                .map(|parent| NodeId(parent).into())
                .into_iter()
                .collect();
            record.history_parent = record.parents.first().map(|edge| edge.parent);
            record.wait_after_ready = SECOND / 100;
            record
        })
    };
    let mut early = sample::run::record(0, 0, SECOND, &[SECOND + 5, SECOND + 5, SECOND + 5]);
    early.intended = 2 * SECOND;
    let sampled = |session: u64, value: f64| {
        Event::Sampled(MetricSample {
            metric: "balance".into(),
            value,
            weight: 1.0,
            request: Some(sample::run::record(session, 0, 0, &[]).id),
        })
    };
    let one = |session: u64, at: u64| {
        finished(sample::run::record(
            session,
            0,
            at,
            &[at + SECOND, at + 2 * SECOND],
        ))
    };
    let stream_with_children = || {
        let parent = sample::run::record(9, 0, 0, &[SECOND, 4 * SECOND]);
        let child = |node: u32, trigger, at: u64| {
            let mut record = sample::run::record(9, node, at, &[at + SECOND / 2]);
            record.parents = vec![Edge {
                parent: NodeId(0),
                trigger,
                delay: SECOND / 5,
            }];
            record
        };
        [
            parent,
            child(1, Trigger::Dispatched, SECOND / 5),
            child(2, Trigger::FirstChunk, 6 * SECOND / 5),
            child(3, Trigger::Completed, 21 * SECOND / 5),
        ]
        .into_iter()
    };
    let shapes: Vec<(&str, Vec<Event>)> = vec![
        (
            "one chunk",
            vec![finished(sample::run::record(0, 0, 0, &[SECOND]))],
        ),
        ("two at once", vec![one(0, 7), one(1, 7)]),
        ("all failed", (0..20).map(failed).collect()),
        (
            "nothing generated",
            (0..20)
                .map(|session| finished(sample::run::record(session, 0, session, &[])))
                .collect(),
        ),
        ("a large session", wide(3).map(finished).collect()),
        (
            "children of a stream",
            stream_with_children().map(finished).collect(),
        ),
        (
            "fifteen hundred at once",
            (0..1500).map(|session| one(session, session)).collect(),
        ),
        (
            "within microseconds",
            (0..50)
                .map(|session| {
                    finished(sample::run::record(
                        session,
                        0,
                        session * 900,
                        &[session * 900 + 2000, session * 900 + 2500],
                    ))
                })
                .collect(),
        ),
        (
            "ten hours",
            (0..600)
                .map(|session| one(session, session * 60 * SECOND))
                .collect(),
        ),
        ("sent early, chunks together", vec![finished(early)]),
        (
            "negative, zero, equal",
            (0..30)
                .flat_map(|session| {
                    [
                        one(session, session * SECOND),
                        sampled(session, (session % 3) as f64 - 1.0),
                    ]
                })
                .collect(),
        ),
        (
            "far apart",
            vec![
                one(0, 0),
                one(1, SECOND),
                finished(sample::run::record(2, 0, SECOND, &[SECOND + 1000, 4000 * SECOND])),
            ],
        ),
    ];
    let Some(program) = browser::find() else {
        crate::skip::skip("chromium", "no Chromium on the path, and CHROMIUM is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(&program, 1100, 900);
    for (name, events) in shapes {
        let file = folder.path().join("report.html");
        std::fs::write(&file, page(&sample::page_data::data(&events, 20_000))).unwrap();
        browser.open(&format!("file://{}", file.display()));
        for plot in [
            "concurrency",
            "throughput",
            "scatter",
            "timeline",
            "tokens",
            "gaps",
        ] {
            let selector = format!("#plot-{plot} .plot-area");
            if browser.eval(&format!(
                "document.querySelector('{selector}').offsetParent === null"
            )) == json!(true)
            {
                continue;
            }
            let [x, y, width, height] = browser.place(&selector);
            browser.hover((x + width * 0.4, y + height * 0.5));
            browser.drag(
                (x + width * 0.2, y + height * 0.3),
                (x + width * 0.8, y + height * 0.7),
            );
            browser.wheel((x + width * 0.6, y + height * 0.5), -300.0, true);
            browser.eval(&format!("document.querySelector('{selector}').focus()"));
            browser.keys(&["ArrowRight", "ArrowUp", "+", "z", "]", "0", "Enter", "Escape"]);
        }
        browser.eval("document.querySelector('.graph').focus()");
        browser.keys(&["ArrowDown", "ArrowRight", "ArrowLeft", "End", ".", "Enter"]);
        keep(&mut browser, &format!("strange {name}.png"));
        let written = browser.eval("document.body.innerText");
        let written = written.as_str().unwrap();
        for wrong in ["NaN", "Infinity", "undefined", "[object"] {
            assert!(!written.contains(wrong), "{name}: {wrong}");
        }
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn twenty_thousand_requests_are_no_burden() {
    let data = sample::page_data::data(&sample::run::events(24_000, 600.0, 9), 20_000);
    let Some(mut opened) = open(1400, 950, &data) else {
        return;
    };
    let browser = &mut opened.browser;
    assert!(browser.text("#requests-caption").contains("20\u{202f}000 of 2"));
    let [x, y, width, height] = browser.place("#plot-concurrency .plot-area");
    browser.drag(
        (x + width * 0.3, y + height / 2.0),
        (x + width * 0.5, y + height / 2.0),
    );
    // The time from a change of the selection until everything is redrawn.
    let took = browser.eval(
        "(async () => { const frames = (count) => new Promise((done) => { const next = (left) => (left ? requestAnimationFrame(() => next(left - 1)) : done()); next(count); }); \
         const begin = performance.now(); document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true})); await frames(3); return performance.now() - begin; })()",
    );
    println!("a change of the selection takes {took} ms");
    assert!(took.as_f64().unwrap() < 5000.0, "{took} ms");
    keep(browser, "many.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
