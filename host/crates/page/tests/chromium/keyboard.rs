//! Keyboard operation of the page.

use serde_json::json;

use crate::{keep, open, selected, some_data};

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
    // Charts are tab stops with labels.
    let charts = browser.eval("[...document.querySelectorAll('.plot-area')].every((area) => area.tabIndex === 0 && area.getAttribute('aria-label').length > 10)");
    assert_eq!(charts, json!(true));
    browser.key("g", false);
    assert_eq!(
        browser.eval("document.activeElement.className"),
        json!("plot-area")
    );
    // The cursor announces values; with shift it brushes.
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
    // The table: move down and mark.
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
    // Sorting by a column heading.
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
    // The list of keys is opened and closed.
    browser.eval("document.activeElement.blur()");
    browser.key("?", true);
    assert_eq!(browser.eval("document.getElementById('keys').open"), json!(true));
    keep(browser, "keys.png");
    browser.key("Escape", false);
    assert_eq!(browser.eval("document.getElementById('keys').open"), json!(false));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
