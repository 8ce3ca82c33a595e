//! The visible content of the page.

use serde_json::json;

use crate::{keep, open, sample, selected, some_data};

#[test]
fn renders_without_errors_or_network_requests() {
    let data = some_data();
    let Some(mut opened) = open(1400, 950, &data) else {
        return;
    };
    let browser = &mut opened.browser;
    assert!(browser.text("#verdict").contains("DEGRADED"));
    assert!(browser.text("#verdict").contains("fix:"));
    assert_eq!(browser.text("h1"), data.run.name);
    let metrics = browser.text("#metrics-table");
    for metric in &data.metrics {
        assert!(metrics.contains(&metric.label), "{}", metric.label);
    }
    assert_eq!(
        browser.eval("document.querySelectorAll('#slos tbody tr').length"),
        json!(data.slos.len())
    );
    // Every chart is drawn: its canvas has more than one color.
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

/// The page derives latencies from times in microseconds; `page_data` computes them from the
/// records' nanoseconds.
#[test]
fn shows_the_metrics_of_the_records() {
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
fn verdict_names_the_metrics_it_applies_to() {
    use veeksha_page::{CertificateFinding, CertificateVerdict};
    let mut data = some_data();
    let finding = |metric: Option<&str>| CertificateFinding {
        verdict: CertificateVerdict::Invalid,
        metric: metric.map(str::to_owned),
        what: "too large an error".into(),
        remedy: None,
    };
    let text_of = |data: &veeksha_page::PageData| {
        let mut opened = open(1400, 950, data)?;
        let text = opened.browser.text(".verdict-text");
        let marked = "document.querySelectorAll('#metrics-table .metric-verdict.invalid').length";
        Some((text, opened.browser.eval(marked)))
    };
    let certificate = data.certificate.as_mut().unwrap();
    certificate.verdict = CertificateVerdict::Invalid;
    certificate.findings = vec![finding(Some("ttfc"))];
    let metrics = certificate.bounds.len();
    let Some((text, marked)) = text_of(&data) else {
        return;
    };
    assert!(
        text.starts_with(&format!(
            "INVALID applies to 1 of {metrics} metrics: Time to first chunk."
        )),
        "{text}"
    );
    assert_eq!(marked, json!(1));
    data.certificate.as_mut().unwrap().findings = vec![finding(None)];
    let (text, marked) = text_of(&data).unwrap();
    assert_eq!(text, "INVALID applies to the run as a whole.");
    assert_eq!(marked, json!(0));
}

/// A fix appears once, below all the findings that it resolves.
#[test]
fn findings_with_one_remedy_share_it() {
    use veeksha_page::{CertificateFinding, CertificateVerdict};
    let mut data = some_data();
    let finding = |verdict, what: &str, remedy: Option<&str>| CertificateFinding {
        verdict,
        metric: None,
        what: what.into(),
        remedy: remedy.map(str::to_owned),
    };
    let certificate = data.certificate.as_mut().unwrap();
    certificate.findings = vec![
        finding(CertificateVerdict::Degraded, "first", Some("use fewer cores")),
        finding(CertificateVerdict::Invalid, "second", Some("run the self-test")),
        finding(CertificateVerdict::Degraded, "third", None),
        finding(CertificateVerdict::Degraded, "fourth", Some("run the self-test")),
        finding(CertificateVerdict::Degraded, "fifth", Some("use fewer cores")),
    ];
    let Some(mut opened) = open(400, 900, &data) else {
        return;
    };
    let browser = &mut opened.browser;
    assert_eq!(
        browser.eval(
            "[...document.querySelectorAll('#verdict .findings > li:not(.finding)')].map((group) => \
             [[...group.querySelectorAll('.finding p')].map((what) => what.textContent), group.querySelector('.remedy')?.lastChild.textContent])"
        ),
        json!([
            [["second", "fourth"], "run the self-test"],
            [["first", "fifth"], "use fewer cores"],
            [["third"], null],
        ])
    );
    keep(browser, "findings.png");
    assert_eq!(
        browser.eval("document.documentElement.scrollWidth"),
        json!(400),
        "nothing overflows horizontally"
    );
    let heads = browser.text("#requests-table thead");
    assert!(heads.contains("Prompt with history"), "{heads}");
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
        "nothing overflows horizontally"
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Requests that were sent after the timeout are displayed, but excluded from samples; long lists
/// of metrics and slices are collapsed.
#[test]
fn marks_requests_that_are_not_measured() {
    let mut events = sample::run::events(300, 60.0, 9);
    let mut drained = 0;
    for event in &mut events {
        if let veeksha_events::Event::Finished(record) = event {
            record.measured = record.dispatched_at < 40_000_000_000;
            drained += u64::from(!record.measured);
        }
    }
    let mut data = sample::page_data::data(&events, 1000);
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
         return columns.first_chunk.filter((at, row) => at !== null && columns.failed[row] === null && !columns.drained[row]).length; })()";
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

/// A plugin metric counts the same requests as built-in metrics. Requests that were withdrawn while
/// the run drained are drawn as drained, not as failures. A column of the table keeps its unit.
#[test]
fn drained_requests_are_no_samples_and_no_failures() {
    let mut events = sample::run::events(300, 60.0, 9);
    let mut scored = std::collections::BTreeSet::new();
    for event in &mut events {
        match event {
            veeksha_events::Event::Finished(record) => {
                let failed = !record.is_ok();
                record.measured = record.dispatched_at < 40_000_000_000 && !failed;
                if failed {
                    record.status = veeksha_events::Status::Failed {
                        class: veeksha_model::ErrorClass::Cancelled,
                        message: "given up at the end".into(),
                    };
                }
                if record.measured {
                    scored.insert(record.id);
                }
            }
            _ => continue,
        }
    }
    let samples = events
        .iter()
        .filter(|event| matches!(event, veeksha_events::Event::Sampled(sample) if sample.request.is_some_and(|id| scored.contains(&id))))
        .count();
    let data = sample::page_data::data(&events, 1000);
    let drained_and_failed = data
        .requests
        .rows
        .iter()
        .filter(|row| matches!(row.outcome, veeksha_page::Outcome::Failed { .. }))
        .count();
    assert!(drained_and_failed > 0);
    let Some(mut opened) = open(1400, 950, &data) else {
        return;
    };
    let browser = &mut opened.browser;
    let note = browser.text("#plot-cdf-answer_score .plot-note");
    let shown = note.rsplit(' ').next().map(|text| text.replace('\u{202f}', ""));
    assert_eq!(shown, Some(samples.to_string()), "{note}");
    for plot in ["timeline", "scatter"] {
        let legend = browser.text(&format!("#plot-{plot} .legend"));
        assert!(!legend.contains("failed"), "{plot}: {legend}");
        let red = browser.eval(&format!(
            "(() => {{ const canvas = document.querySelector('#plot-{plot} canvas'); const context = document.createElement('canvas').getContext('2d'); \
             context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--vermillion'); context.fillRect(0, 0, 1, 1); \
             const sought = new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0]; \
             return new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer).filter((pixel) => pixel === sought).length; }})()"
        ));
        assert_eq!(red, json!(0), "{plot}");
    }
    assert!(
        browser
            .text("#plot-timeline .legend")
            .contains("drained, not measured")
    );
    assert_eq!(
        browser.eval("document.querySelectorAll('#requests-table tr.failed').length"),
        json!(0)
    );
    let mut heads = std::collections::BTreeSet::new();
    for _ in 0..2 {
        browser.click("#requests-table [data-sort=tpot]");
        heads.insert(browser.text("#requests-table [data-sort=tpot] .unit"));
    }
    browser.click("#requests-table [data-sort=dispatched]");
    heads.insert(browser.text("#requests-table [data-sort=tpot] .unit"));
    assert_eq!(heads.len(), 1, "one unit in any order: {heads:?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn it_prints_with_its_charts_on_white() {
    let Some(mut opened) = open(1400, 950, &some_data()) else {
        return;
    };
    let browser = &mut opened.browser;
    browser.prefer("dark");
    browser.settle();
    browser.eval(
        "addEventListener('beforeprint', () => { window.printed = [document.documentElement.dataset.theme, document.querySelectorAll('.picture').length]; })",
    );
    browser.call("Page.printToPDF", json!({"printBackground": true}));
    let charts = browser.eval("[...document.querySelectorAll('.plot')].length");
    assert_eq!(
        browser.eval("window.printed"),
        json!(["light", charts]),
        "a picture of each chart, on white"
    );
    // Back on the screen everything is unchanged.
    assert_eq!(
        browser.eval("document.querySelectorAll('.picture').length"),
        json!(0)
    );
    assert_eq!(
        browser.eval("document.documentElement.dataset.theme === undefined"),
        json!(true)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
