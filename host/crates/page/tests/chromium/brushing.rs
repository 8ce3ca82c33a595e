//! Brushing time, requests and tokens.

use serde_json::json;

use crate::{first_rows, keep, open, selected, some_data};

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
        "values of the selection are next to those of the run"
    );
    assert!(browser.text("#selection-count").contains(&some.to_string()));
    // The displayed count equals the count computed from the data.
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
    // The displayed range has one digit less.
    let expected = expected.as_u64().unwrap();
    assert!(
        some.abs_diff(expected) <= 3,
        "{some} are selected, {expected} were dispatched then"
    );
    // The brush can be moved by dragging its interior.
    browser.drag(
        (x + width * 0.37, y + height / 2.0),
        (x + width * 0.67, y + height / 2.0),
    );
    let moved = browser.eval("document.querySelector('.part').textContent");
    assert_ne!(moved, range);
    // Escape clears the brush.
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
    // Tokens: only answers of that length.
    let [x, y, width, height] = browser.place("#plot-tokens .plot-area");
    browser.drag(
        (x + width * 0.5, y + height * 0.1),
        (x + width * 0.5, y + height * 0.4),
    );
    let (by_token, _) = selected(browser);
    assert!(by_token > 0 && by_token < all, "{by_token}");
    // And among them, a time range.
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
    // Failures of a class, selected from their table.
    browser.click("#failures .link");
    let (failed, _) = selected(browser);
    assert_eq!(
        json!(failed),
        browser.eval("JSON.parse(document.getElementById('data').textContent).failures[0].count")
    );
    browser.key("Escape", false);
    // A click on a row marks the request and displays its session.
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
