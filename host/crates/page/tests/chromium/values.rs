//! Value charts: their requests, counts and scales.

use crate::{open, sample};

/// Without a selection, a card and the aggregate of its metric cover the same requests: those that
/// were measured and answered. The values of a failed request appear only in its row.
#[test]
fn charts_of_values_are_of_the_requests_that_count() {
    use veeksha_events::{Event, Status};
    use veeksha_model::ErrorClass;
    const MILLI: u64 = 1_000_000;
    // Ten answers: first chunks after 20, 21, ... 29 ms, then gaps of 5 ms.
    let record = |session: u64, first: u64, gap: u64| {
        let at = session * 1_000 * MILLI;
        let chunks = [first, first + gap, first + 2 * gap].map(|after| at + after * MILLI);
        sample::run::record(session, 0, at, &chunks)
    };
    let mut records: Vec<_> = (0..10).map(|session| record(session, 20 + session, 5)).collect();
    let mut broken = record(10, 900, 400);
    broken.status = Status::Failed {
        class: ErrorClass::Truncated,
        message: "no finish reason".into(),
    };
    let mut drained = record(11, 800, 300);
    drained.measured = false;
    // Answered, but nothing generated: an answer of 0 tokens.
    let mut empty = record(12, 0, 0);
    empty.chunks.clear();
    empty.output_tokens = 0;
    records.extend([broken, drained, empty]);
    let events: Vec<Event> = records
        .into_iter()
        .map(|record| Event::Finished(Box::new(record)))
        .collect();
    let Some(mut opened) = open(1400, 950, &sample::page_data::data(&events, 100)) else {
        return;
    };
    let browser = &mut opened.browser;
    let note = |browser: &mut crate::browser::Browser, plot: &str| {
        browser
            .text(&format!("#plot-{plot} .plot-note"))
            .replace('\u{202f}', " ")
    };
    // The median of 20..=29 is 24.5, the 99th percentile 28 + 0.91.
    assert_eq!(note(browser, "cdf-ttfc"), "P50 24.5 ms · P99 28.9 ms · n 10");
    assert_eq!(
        note(browser, "gaps"),
        "P50 5.00 ms · P99 5.00 ms · 20 gaps of 10 requests"
    );
    assert!(note(browser, "cdf-num_output_tokens").ends_with("n 11"));
    let row = browser.text("#requests-table tr[data-name=\"10/0\"]");
    assert!(row.contains("900"), "its time to first chunk was seen: {row}");
    let row = browser.text("#requests-table tr[data-name=\"11/0\"]");
    assert!(!row.contains("800"), "{row}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The host counts text fragments; the server determines the length of an answer. The last chunk of
/// an answer is drawn at its output tokens.
#[test]
fn tokens_of_chunks_add_up_to_the_answer() {
    const MILLI: u64 = 1_000_000;
    for (chunk_tokens, output_tokens, chunks) in [
        // Six by the host and four by the server: two thirds for each.
        (vec![3, 1, 2], 4, [2u32, 3, 4]),
        // The chunks were not counted, or had nothing to count: equal shares.
        (vec![], 6, [2, 4, 6]),
        (vec![0, 0, 0], 3, [1, 2, 3]),
        // A failed answer.
        (vec![1, 1, 2], 0, [1, 2, 4]),
    ] {
        let mut record = sample::run::record(0, 0, 0, &[100 * MILLI, 200 * MILLI, 300 * MILLI]);
        record.chunk_tokens = chunk_tokens;
        record.output_tokens = output_tokens;
        let events = [veeksha_events::Event::Finished(Box::new(record))];
        let Some(mut opened) = open(1400, 950, &sample::page_data::data(&events, 100)) else {
            return;
        };
        let browser = &mut opened.browser;
        let told =
            browser.eval("document.querySelector('#plot-tokens .plot-area').getAttribute('aria-label')");
        let last = chunks[2];
        let most = format!("at most {last}.");
        assert!(told.as_str().unwrap().ends_with(&most), "{told}");
        // The chart has margins of 58 pixels left, 12 right, 8 above and 24 below its plot; the
        // axes extend by a fiftieth beyond the longest answer, and by a twenty-fifth beyond its
        // tokens.
        let [x, y, width, height] = browser.place("#plot-tokens .plot-area");
        for (place, expected) in chunks.into_iter().enumerate() {
            let right = (place + 1) as f64 / (3.0 * 1.02);
            let up = f64::from(expected) / (f64::from(last) * 1.04);
            browser.hover((
                x + 58.0 + right * (width - 70.0),
                y + height - 24.0 - up * (height - 32.0),
            ));
            let tip = browser.text("#plot-tokens .tip");
            assert!(
                tip.contains(&format!("token{expected}since")),
                "{expected}: {tip}"
            );
        }
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

/// Gaps of 0 have no place on a log axis: nothing is drawn for them, and a note has their share.
#[test]
fn log_axes_omit_zeros_and_state_their_share() {
    const MILLI: u64 = 1_000_000;
    // Of four gaps of each answer two are 0: their chunks arrived together.
    let events: Vec<_> = (0..40u64)
        .map(|session| {
            let at = session * 1_000 * MILLI;
            let chunks = [20, 20, 30, 30, 45].map(|after| at + after * MILLI);
            veeksha_events::Event::Finished(Box::new(sample::run::record(session, 0, at, &chunks)))
        })
        .collect();
    let Some(mut opened) = open(1400, 950, &sample::page_data::data(&events, 1000)) else {
        return;
    };
    let note = opened.browser.text("#plot-gaps .plot-note");
    assert!(
        note.ends_with("50.0\u{202f}% at 0, not on the log axis"),
        "{note}"
    );
}

/// One slow answer compresses all others on a linear axis; several similar ones do not.
#[test]
fn an_axis_is_logarithmic_where_a_linear_one_presses_values_together() {
    const MICRO: u64 = 1_000;
    for (slowest, scale) in [(64_000, "linear"), (561_000, "logarithmic")] {
        // 18 to 64 ms: a quarter of them is below 29.5.
        let mut first: Vec<u64> = (0..100).map(|place| 18_000 + 460 * place).collect();
        first.push(slowest);
        let events: Vec<_> = (0u64..)
            .zip(first)
            .map(|(session, first)| {
                let at = session * 1_000_000 * MICRO;
                let chunks = [first, first + 10_000].map(|after| at + after * MICRO);
                veeksha_events::Event::Finished(Box::new(sample::run::record(session, 0, at, &chunks)))
            })
            .collect();
        let Some(mut opened) = open(1400, 950, &sample::page_data::data(&events, 1000)) else {
            return;
        };
        let browser = &mut opened.browser;
        let label = "document.querySelector('#plot-cdf-ttfc .plot-area').getAttribute('aria-label')";
        let label = browser.eval(label);
        assert!(
            label.as_str().unwrap().contains(&format!("on a {scale} axis")),
            "{slowest}: {label}"
        );
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}
