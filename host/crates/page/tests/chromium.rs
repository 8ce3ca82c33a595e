//! The page in a browser: headless Chromium where there is one (`CHROMIUM`, or on the path), else these tests say that they did not run.
//!
//! `PAGE_SHOTS=FOLDER` keeps screenshots, for looking at the page.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests, and what helps them"
)]

mod browser;
mod sample;

use std::path::PathBuf;
use std::sync::Arc;

use browser::Browser;
use serde_json::json;
use veeksha_page::{Fact, Live, PageData, RunState, page};

/// The page of some hundred requests, opened from disk.
struct Opened {
    browser: Browser,
    _folder: tempfile::TempDir,
}

fn open(width: u32, height: u32, data: &PageData) -> Option<Opened> {
    let Some(program) = browser::find() else {
        println!("skipped: no Chromium on the path, and CHROMIUM is not set");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, page(data)).unwrap();
    let mut browser = Browser::start(&program, width, height);
    browser.prefer("light");
    browser.open(&format!("file://{}", file.display()));
    Some(Opened {
        browser,
        _folder: folder,
    })
}

fn some_data() -> PageData {
    sample::data(&sample::events(400, 60.0, 9), 20_000)
}

fn keep(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("PAGE_SHOTS") {
        browser.screenshot(&PathBuf::from(folder).join(name));
    }
}

/// How many requests are selected, and how many there are.
fn selected(browser: &mut Browser) -> (u64, u64) {
    let text = browser.text("#requests-caption");
    let number = |text: &str| {
        text.split(' ')
            .find_map(|word| word.replace('\u{202f}', "").parse().ok())
    };
    let all = browser
        .eval("JSON.parse(document.getElementById('data').textContent).requests.shown")
        .as_u64()
        .unwrap();
    let of = text.split(" of ").nth(1).and_then(number).unwrap();
    (of, all)
}

fn first_rows(browser: &mut Browser) -> String {
    browser.text("#requests-table tbody")
}

#[test]
fn it_draws_itself_without_a_complaint_and_asks_nobody() {
    let data = some_data();
    let Some(mut opened) = open(1400, 950, &data) else {
        return;
    };
    let browser = &mut opened.browser;
    assert!(browser.text("#verdict").contains("Degraded"));
    assert!(browser.text("#verdict").contains("To do"));
    assert_eq!(browser.text("h1"), data.run.name);
    let metrics = browser.text("#metrics-table");
    for metric in &data.metrics {
        assert!(metrics.contains(&metric.label), "{}", metric.label);
    }
    assert_eq!(
        browser.eval("document.querySelectorAll('#slos tbody tr').length"),
        json!(data.slos.len())
    );
    // Every chart has drawn something: its canvas is not of one colour.
    let drawn = browser.eval(
        "[...document.querySelectorAll('.plot')].map((plot) => { const canvas = plot.querySelector('canvas'); \
         const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer); \
         return [plot.id, new Set(pixels).size > 5]; })",
    );
    let drawn = drawn.as_array().unwrap();
    assert!(drawn.len() >= 11, "{drawn:?}");
    assert!(drawn.iter().all(|plot| plot[1] == json!(true)), "{drawn:?}");
    keep(browser, "light.png");
    for section in [
        "charts",
        "distributions",
        "session",
        "requests",
        "failures",
        "slices",
        "health",
        "setup",
    ] {
        assert_eq!(
            browser.eval(&format!("document.getElementById('{section}').hidden")),
            json!(false),
            "{section}"
        );
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let asked = browser.asked();
    assert!(
        asked.iter().all(|address| address.starts_with("file://")),
        "{asked:?}"
    );
    assert_eq!(asked.len(), 1, "the page itself: {asked:?}");
}

/// The page derives latencies from times of microseconds; `sample::data` computes them from the records' nanoseconds.
#[test]
fn its_figures_are_those_of_the_records() {
    let data = some_data();
    let Some(mut opened) = open(1400, 950, &data) else {
        return;
    };
    let seconds = |text: &str| {
        let mut words = text.split('\u{202f}');
        let number: f64 = words.next().unwrap().parse().unwrap();
        match words.next().unwrap() {
            "s" => number,
            "ms" => number / 1e3,
            unit => panic!("{unit}"),
        }
    };
    for metric in ["ttfc", "tpot", "end_to_end_latency", "tbc"] {
        let plot = if metric == "tbc" {
            "gaps".to_owned()
        } else {
            format!("cdf-{metric}")
        };
        let note = opened.browser.text(&format!("#plot-{plot} .plot-note"));
        let parts: Vec<&str> = note.split(" · ").collect();
        let summary = data
            .metrics
            .iter()
            .find(|entry| entry.name == metric)
            .and_then(|entry| entry.summary)
            .unwrap();
        for (part, name, expected) in [(parts[0], "P50 ", summary.p50), (parts[1], "P99 ", summary.p99)] {
            let shown = seconds(part.strip_prefix(name).unwrap());
            // Three digits are shown.
            assert!(
                (shown - expected).abs() <= 0.0051 * expected,
                "{metric} {name}{shown}, not {expected}"
            );
        }
        let samples: String = parts[2]
            .chars()
            .take_while(|sign| !sign.is_alphabetic() || *sign == 'n')
            .filter(char::is_ascii_digit)
            .collect();
        assert_eq!(samples.parse(), Ok(summary.count), "{metric}: {note}");
    }
}

#[test]
fn brushing_a_time_range_changes_tables_and_charts() {
    let Some(mut opened) = open(1400, 950, &some_data()) else {
        return;
    };
    let browser = &mut opened.browser;
    let before = first_rows(browser);
    let metrics = browser.text("#metrics-table");
    let [x, y, width, height] = browser.place("#plot-concurrency .plot-area");
    browser.drag(
        (x + width * 0.3, y + height / 2.0),
        (x + width * 0.45, y + height / 2.0),
    );
    keep(browser, "brushed.png");
    let (some, all) = selected(browser);
    assert!(some > 0 && some < all / 2, "{some} of {all}");
    assert_ne!(first_rows(browser), before);
    assert_ne!(
        browser.text("#metrics-table"),
        metrics,
        "figures of the selection stand beside those of the run"
    );
    assert!(browser.text("#selection-count").contains(&some.to_string()));
    // What is counted is what was brushed: the same by the data.
    let range = browser.eval("document.querySelector('.part').textContent");
    let numbers: Vec<f64> = range
        .as_str()
        .unwrap()
        .split(|sign: char| !(sign.is_ascii_digit() || sign == '.'))
        .filter_map(|text| text.parse().ok())
        .collect();
    let expected = browser.eval(&format!(
        "(() => {{ const columns = JSON.parse(document.getElementById('data').textContent).requests; let at = 0, count = 0; \
         columns.intended.forEach((step, row) => {{ at += step; const time = (at + columns.dispatched[row]) / 1e6; if (time >= {} && time <= {}) count += 1; }}); return count; }})()",
        numbers[0], numbers[1]
    ));
    // The range is written with a digit less than it has.
    let expected = expected.as_u64().unwrap();
    assert!(
        some.abs_diff(expected) <= 3,
        "{some} are selected, {expected} were dispatched then"
    );
    // The brush can be moved by its inside.
    browser.drag(
        (x + width * 0.37, y + height / 2.0),
        (x + width * 0.67, y + height / 2.0),
    );
    let moved = browser.eval("document.querySelector('.part').textContent");
    assert_ne!(moved, range);
    // Escape takes it away.
    browser.key("Escape", false);
    assert_eq!(selected(browser), (all, all));
    assert_eq!(
        browser.eval("document.getElementById('selection').hidden"),
        json!(true)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn requests_and_tokens_select_too() {
    let Some(mut opened) = open(1400, 950, &some_data()) else {
        return;
    };
    let browser = &mut opened.browser;
    let (_, all) = selected(browser);
    // A region of time and latency.
    let [x, y, width, height] = browser.place("#plot-scatter .plot-area");
    browser.drag((x + width * 0.1, y + 4.0), (x + width * 0.95, y + height * 0.5));
    let (by_value, _) = selected(browser);
    assert!(by_value > 0 && by_value < all, "{by_value}");
    browser.key("Escape", false);
    // Long gaps: only requests that have one.
    let [x, y, width, height] = browser.place("#plot-gaps .plot-area");
    browser.drag(
        (x + width * 0.6, y + height / 2.0),
        (x + width * 0.98, y + height / 2.0),
    );
    let (by_gap, _) = selected(browser);
    assert!(by_gap > 0 && by_gap < all, "{by_gap}");
    browser.key("Escape", false);
    // Tokens: only answers that are as long.
    let [x, y, width, height] = browser.place("#plot-tokens .plot-area");
    browser.drag(
        (x + width * 0.5, y + height * 0.1),
        (x + width * 0.5, y + height * 0.4),
    );
    let (by_token, _) = selected(browser);
    assert!(by_token > 0 && by_token < all, "{by_token}");
    // And within them, a stretch of time.
    let [x, y, width, height] = browser.place("#plot-timeline .plot-area");
    browser.drag(
        (x + width * 0.5, y + height / 2.0),
        (x + width * 0.9, y + height / 2.0),
    );
    let (both, _) = selected(browser);
    assert!(both < by_token, "{both} of {by_token}");
    assert_eq!(
        browser.eval("document.querySelectorAll('.selection .part').length"),
        json!(2)
    );
    browser.key("Escape", false);
    // Failures of a class, from their table.
    browser.click("#failures .link");
    let (failed, _) = selected(browser);
    assert_eq!(
        json!(failed),
        browser.eval("JSON.parse(document.getElementById('data').textContent).failures[0].count")
    );
    browser.key("Escape", false);
    // A click on a row marks the request, and its session is shown.
    browser.click("#requests-table tbody tr:nth-child(3)");
    let name = browser.text("#requests-table tbody tr:nth-child(3) th");
    assert!(browser.text("#selection").contains(&name));
    assert_eq!(
        browser.eval("document.getElementById('session-number').value"),
        json!(name.split('/').next().unwrap())
    );
    assert_eq!(
        browser.eval("document.querySelectorAll('.node.marked').length"),
        json!(1)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn hover_reads_and_zoom_follows_in_all_charts_of_time() {
    let Some(mut opened) = open(1400, 950, &some_data()) else {
        return;
    };
    let browser = &mut opened.browser;
    let [x, y, width, height] = browser.place("#plot-concurrency .plot-area");
    browser.hover((x + width * 0.5, y + height / 2.0));
    assert!(browser.text("#plot-concurrency .tip").contains("in flight"));
    keep(browser, "hover.png");
    let picture = "document.querySelector('#plot-timeline canvas').toDataURL()";
    let before = browser.eval(picture);
    let scrolled = browser.eval("scrollY");
    browser.wheel((x + width * 0.5, y + height / 2.0), -240.0, true);
    assert_ne!(browser.eval(picture), before, "the timeline is zoomed as well");
    assert_eq!(browser.eval("scrollY"), scrolled, "zooming does not scroll");
    browser.eval("document.querySelector('#plot-concurrency .plot-area').focus()");
    browser.key("0", false);
    assert_eq!(browser.eval(picture), before, "and back");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_keyboard_reaches_everything() {
    let Some(mut opened) = open(1400, 950, &some_data()) else {
        return;
    };
    let browser = &mut opened.browser;
    let (_, all) = selected(browser);
    // Tab order: the first stop skips to the charts.
    browser.key("Tab", false);
    assert_eq!(browser.eval("document.activeElement.className"), json!("skip"));
    // Charts are stops, and say what they are.
    let charts = browser.eval("[...document.querySelectorAll('.plot-area')].every((area) => area.tabIndex === 0 && area.getAttribute('aria-label').length > 10)");
    assert_eq!(charts, json!(true));
    browser.key("g", false);
    assert_eq!(
        browser.eval("document.activeElement.className"),
        json!("plot-area")
    );
    // The cursor reads aloud; with shift it brushes.
    browser.key("ArrowRight", false);
    assert!(browser.text("#announcer").contains("in flight"));
    for _ in 0..12 {
        browser.key("ArrowRight", true);
    }
    let (some, _) = selected(browser);
    assert!(some > 0 && some < all, "{some}");
    browser.key("+", false);
    browser.key("Escape", false);
    assert_eq!(selected(browser).0, all);
    // The table: down, and mark.
    browser.eval("document.querySelector('#requests-table tbody tr').focus()");
    browser.key("ArrowDown", false);
    browser.key("Enter", false);
    assert_eq!(
        browser.eval(
            "document.querySelector('#requests-table tbody tr:nth-child(2)').className.includes('marked')"
        ),
        json!(true)
    );
    assert_eq!(
        browser.eval("document.activeElement.matches('#requests-table tbody tr:nth-child(2)')"),
        json!(true),
        "the reader is where they were"
    );
    // Sorting by a heading.
    let sorted = "document.querySelector('#requests-table th[aria-sort=\"descending\"]').textContent";
    browser.eval("document.querySelector('[data-sort=\"ttfc\"]').focus()");
    browser.key("Enter", false);
    assert!(browser.eval(sorted).as_str().unwrap().contains("TTFC"));
    let slowest = "[...document.querySelectorAll('#requests-table tbody tr')].map((row) => Number(row.children[2].textContent.replace(/\\s/g, '')))";
    let values: Vec<f64> = serde_json::from_value(browser.eval(slowest)).unwrap();
    assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
    // The session's graph.
    browser.eval("document.querySelector('.graph').focus()");
    browser.key("End", false);
    let last = browser.text(".node-detail");
    browser.key("ArrowLeft", false);
    assert_ne!(browser.text(".node-detail"), last, "along the edge to a parent");
    // The keys, and out again.
    browser.eval("document.activeElement.blur()");
    browser.key("?", true);
    assert_eq!(browser.eval("document.getElementById('keys').open"), json!(true));
    keep(browser, "keys.png");
    browser.key("Escape", false);
    assert_eq!(browser.eval("document.getElementById('keys').open"), json!(false));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn light_and_dark_and_small() {
    let Some(mut opened) = open(1400, 950, &some_data()) else {
        return;
    };
    let browser = &mut opened.browser;
    let ground = "getComputedStyle(document.documentElement).backgroundColor";
    let picture = "document.querySelector('#plot-scatter canvas').toDataURL()";
    let (light, drawn) = (browser.eval(ground), browser.eval(picture));
    browser.prefer("dark");
    browser.settle();
    assert_ne!(browser.eval(ground), light, "it follows the system");
    assert_ne!(browser.eval(picture), drawn, "and so do the charts");
    keep(browser, "dark.png");
    browser.click("#theme");
    assert_eq!(browser.eval(ground), light, "and the reader's choice goes before");
    browser.eval("document.documentElement.dataset.ready = 'no'; location.reload()");
    browser.until("Boolean(document.documentElement && document.documentElement.dataset.ready === 'yes')");
    assert_eq!(browser.eval(ground), light, "also the next time");
    browser.size(420, 900);
    browser.settle();
    keep(browser, "small.png");
    assert_eq!(
        browser.eval("document.documentElement.scrollWidth"),
        json!(420),
        "nothing stands out at the side"
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// What was sent after the timeout is shown, and is no sample of anything; many metrics and slices are folded.
#[test]
fn what_does_not_count_is_told_apart() {
    let mut events = sample::events(300, 60.0, 9);
    let mut drained = 0;
    for event in &mut events {
        if let veeksha_events::Event::Finished(record) = event {
            record.measured = record.dispatched_at < 40_000_000_000;
            drained += u64::from(!record.measured);
        }
    }
    let mut data = sample::data(&events, 1000);
    let model = data.metrics[0].clone();
    for index in 0..20 {
        data.metrics.push(veeksha_page::Metric {
            name: format!("more_{index}"),
            label: format!("More {index}"),
            ..model.clone()
        });
    }
    let Some(mut opened) = open(1400, 950, &data) else {
        return;
    };
    let browser = &mut opened.browser;
    let (_, all) = selected(browser);
    let note = browser.text("#plot-cdf-ttfc .plot-note");
    let count = note
        .rsplit(' ')
        .next()
        .and_then(|text| text.replace('\u{202f}', "").parse::<u64>().ok());
    let with_first_chunk = "(() => { const columns = JSON.parse(document.getElementById('data').textContent).requests; \
         return columns.first_chunk.filter((at, row) => at !== null && !columns.drained[row]).length; })()";
    assert_eq!(browser.eval(with_first_chunk), json!(count.unwrap()), "{note}");
    assert!(drained > 0 && count.unwrap() < all - drained + 1);
    assert!(browser.text("#plot-timeline .legend").contains("drained"));
    assert_eq!(
        browser.eval("document.querySelectorAll('#metrics-table tbody tr').length"),
        json!(8)
    );
    browser.click("[data-more=metrics]");
    assert_eq!(
        browser.eval("document.querySelectorAll('#metrics-table tbody tr').length"),
        json!(26)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Every text that a page shows, hostile.
#[test]
fn hostile_text_stays_text() {
    let hostile =
        "</script><img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>{{data}}<!--\u{2028}'\"`";
    let mut events = sample::events(60, 20.0, 9);
    for event in &mut events {
        match event {
            veeksha_events::Event::Finished(record) => {
                record.labels = vec![(hostile.into(), hostile.into())];
                record.status = if record.id.session.0 % 3 == 0 {
                    veeksha_events::Status::Failed {
                        class: veeksha_model::ErrorClass::Protocol,
                        message: hostile.into(),
                    }
                } else {
                    veeksha_events::Status::Ok {
                        finish_reason: hostile.into(),
                    }
                };
            }
            veeksha_events::Event::Sampled(sample) => sample.metric = hostile.into(),
            _ => {}
        }
    }
    // Every text of the data: through JSON, so that none is forgotten when another part is added.
    let data = sample::data(&events, 1000);
    let mut hostile_data = data.clone();
    hostile_data.run.name = hostile.into();
    hostile_data.run.summary = Some(hostile.into());
    hostile_data.run.remarks = vec![hostile.into()];
    hostile_data.run.facts = vec![Fact {
        name: hostile.into(),
        value: hostile.into(),
    }];
    hostile_data.configuration = Some(hostile.into());
    hostile_data.machine = hostile_data.run.facts.clone();
    hostile_data.versions = hostile_data.run.facts.clone();
    for metric in &mut hostile_data.metrics {
        (metric.label, metric.definition, metric.unit) = (hostile.into(), hostile.into(), hostile.into());
        metric.plugin = Some(hostile.into());
    }
    for slo in &mut hostile_data.slos {
        (slo.expression, slo.name, slo.detail) = (hostile.into(), Some(hostile.into()), Some(hostile.into()));
    }
    for figure in &mut hostile_data.figures {
        (figure.label, figure.detail, figure.unit) = (hostile.into(), Some(hostile.into()), hostile.into());
    }
    for check in &mut hostile_data.health {
        (check.name, check.summary, check.details) = (hostile.into(), hostile.into(), vec![hostile.into()]);
    }
    for plugin in &mut hostile_data.plugins {
        (plugin.name, plugin.role, plugin.digest, plugin.source) = (
            hostile.into(),
            hostile.into(),
            Some(hostile.into()),
            Some(hostile.into()),
        );
    }
    for failure in &mut hostile_data.failures {
        (failure.class, failure.first_message, failure.first_request) =
            (hostile.into(), hostile.into(), Some(hostile.into()));
    }
    for reason in &mut hostile_data.never_sent {
        (reason.reason, reason.meaning) = (hostile.into(), hostile.into());
    }
    if let Some(slices) = &mut hostile_data.slices {
        slices
            .columns
            .iter_mut()
            .for_each(|column| (column.label, column.unit) = (hostile.into(), hostile.into()));
    }
    if let Some(certificate) = &mut hostile_data.certificate {
        certificate.basis = Some(hostile.into());
        for finding in &mut certificate.findings {
            (finding.what, finding.remedy, finding.metric) =
                (hostile.into(), Some(hostile.into()), Some(hostile.into()));
        }
        for bound in &mut certificate.bounds {
            bound.source = hostile.into();
        }
    }
    let Some(mut opened) = open(1400, 950, &hostile_data) else {
        return;
    };
    let browser = &mut opened.browser;
    assert_eq!(browser.text("h1"), hostile);
    // Also what is made only when something is touched.
    let [x, y, width, height] = browser.place("#plot-scatter .plot-area");
    browser.hover((x + width * 0.5, y + height * 0.5));
    browser.drag((x + width * 0.1, y + 5.0), (x + width * 0.9, y + height * 0.9));
    browser.click("#requests-table tbody tr");
    browser.key("Escape", false);
    browser.click("#failures .link");
    assert_eq!(
        browser.eval(
            "window.hit === undefined && document.images.length === 0 && document.scripts.length === 2"
        ),
        json!(true)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.asked().len(), 1);
}

#[test]
fn a_page_of_nothing_is_a_page() {
    for data in [
        PageData::default(),
        sample::data(&[], 10),
        PageData {
            run: veeksha_page::RunFacts {
                state: RunState::Cut,
                ..Default::default()
            },
            curves: Some(veeksha_page::Curves::default()),
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

/// Runs at the edges of what there can be: each is drawn, read, brushed and zoomed.
#[test]
fn strange_runs_are_drawn() {
    use veeksha_events::Event;
    use veeksha_model::{ErrorClass, MetricSample, NodeId};
    const SECOND: u64 = 1_000_000_000;
    let finished = |record: veeksha_events::RequestRecord| Event::Finished(Box::new(record));
    let failed = |session: u64| {
        let mut record = sample::record(session, 0, session * SECOND, &[]);
        record.status = veeksha_events::Status::Failed {
            class: ErrorClass::Connect,
            message: "connection refused".into(),
        };
        finished(record)
    };
    let wide = |session: u64| {
        // Hundreds of nodes: half of them at once, then one after the other.
        (0..400u32).map(move |node| {
            let at = if node < 200 {
                0
            } else {
                u64::from(node) * SECOND / 10
            };
            let mut record = sample::record(session, node, at, &[at + SECOND / 20, at + SECOND / 12]);
            record.parents = node
                .checked_sub(1)
                .filter(|_| node >= 200)
                .map(NodeId)
                .into_iter()
                .collect();
            record.history_parent = record.parents.first().copied();
            record.wait_after_ready = SECOND / 100;
            record
        })
    };
    let mut early = sample::record(0, 0, SECOND, &[SECOND + 5, SECOND + 5, SECOND + 5]);
    early.intended = 2 * SECOND;
    let sampled = |session: u64, value: f64| {
        Event::Sampled(MetricSample {
            metric: "balance".into(),
            value,
            weight: 1.0,
            request: Some(sample::record(session, 0, 0, &[]).id),
        })
    };
    let one =
        |session: u64, at: u64| finished(sample::record(session, 0, at, &[at + SECOND, at + 2 * SECOND]));
    let shapes: Vec<(&str, Vec<Event>)> = vec![
        ("one chunk", vec![finished(sample::record(0, 0, 0, &[SECOND]))]),
        ("two at once", vec![one(0, 7), one(1, 7)]),
        ("all failed", (0..20).map(failed).collect()),
        (
            "nothing generated",
            (0..20)
                .map(|session| finished(sample::record(session, 0, session, &[])))
                .collect(),
        ),
        ("a large session", wide(3).map(finished).collect()),
        (
            "fifteen hundred at once",
            (0..1500).map(|session| one(session, session)).collect(),
        ),
        (
            "within microseconds",
            (0..50)
                .map(|session| {
                    finished(sample::record(
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
                finished(sample::record(2, 0, SECOND, &[SECOND + 1000, 4000 * SECOND])),
            ],
        ),
    ];
    let Some(program) = browser::find() else {
        println!("skipped: no Chromium on the path, and CHROMIUM is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(&program, 1100, 900);
    for (name, events) in shapes {
        let file = folder.path().join("report.html");
        std::fs::write(&file, page(&sample::data(&events, 20_000))).unwrap();
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
    let data = sample::data(&sample::events(24_000, 600.0, 9), 20_000);
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
    // A change of the selection, until everything is drawn again.
    let took = browser.eval(
        "(async () => { const frames = (count) => new Promise((done) => { const next = (left) => (left ? requestAnimationFrame(() => next(left - 1)) : done()); next(count); }); \
         const begin = performance.now(); document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true})); await frames(3); return performance.now() - begin; })()",
    );
    println!("a change of the selection takes {took} ms");
    assert!(took.as_f64().unwrap() < 5000.0, "{took} ms");
    keep(browser, "many.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_live_page_keeps_its_brush_and_its_last_state() {
    let Some(program) = browser::find() else {
        println!("skipped: no Chromium on the path, and CHROMIUM is not set");
        return;
    };
    let token = "a-token-of-some-length";
    let live = Live::start("127.0.0.1:0".parse().unwrap(), Some(token.into())).unwrap();
    let events = sample::events(400, 60.0, 9);
    let part = |share: usize, state: RunState| {
        let mut data = sample::data(&events[..events.len() * share / 10], 20_000);
        (data.run.state, data.run.elapsed, data.run.planned) = (state, Some(share as f64 * 6.0), Some(60.0));
        if state == RunState::Running {
            data.certificate = None;
        }
        Arc::from(data.json())
    };
    let mut browser = Browser::start(&program, 1400, 950);
    browser.open(&format!("http://{}/?token={token}", live.address()));
    browser.until("document.getElementById('live-state').textContent.includes('Waiting')");
    assert_eq!(
        browser.eval("location.search"),
        json!(""),
        "the token does not stay in the address"
    );
    live.publish(part(4, RunState::Running));
    browser.until("document.getElementById('live-state').textContent.includes('24\u{202f}s of')");
    assert!(browser.text("#verdict").contains("Running"));
    let [x, y, width, height] = browser.place("#plot-concurrency .plot-area");
    browser.drag(
        (x + width * 0.2, y + height / 2.0),
        (x + width * 0.4, y + height / 2.0),
    );
    let brushed = browser.text("#selection .part");
    keep(&mut browser, "live.png");
    live.publish(part(7, RunState::Running));
    browser.until("document.getElementById('live-state').textContent.includes('42\u{202f}s of')");
    let now = browser.text("#selection .part");
    let numbers = |text: &str| {
        text.split(|sign: char| !(sign.is_ascii_digit() || sign == '.'))
            .filter_map(|part| part.parse().ok())
            .collect::<Vec<f64>>()
    };
    for (before, after) in numbers(&brushed).into_iter().zip(numbers(&now)) {
        assert!((before - after).abs() < 0.11, "the brush stays: {brushed}, {now}");
    }
    live.publish(part(10, RunState::Ended));
    live.stop();
    browser.until("document.getElementById('live-state').textContent === 'Run ended'");
    assert!(
        browser.text("#verdict").contains("Degraded"),
        "the last state, with its verdict"
    );
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(
        browser.text("#live-state"),
        "Run ended",
        "and it stays when the server has gone"
    );
    // The stream of events breaks off when the server goes; browsers write that down.
    let complaints: Vec<String> = browser
        .complaints()
        .into_iter()
        .filter(|text| !text.contains("ERR_CONNECTION_REFUSED") && !text.contains("ERR_INCOMPLETE_CHUNKED"))
        .collect();
    assert_eq!(complaints, Vec::<String>::new());
}
