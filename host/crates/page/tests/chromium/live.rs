//! The page during the run.

use std::sync::Arc;

use serde_json::json;
use veeksha_page::{LivePage, RunState};

use crate::browser::{self, Browser};
use crate::{keep, sample};

#[test]
fn the_live_page_keeps_its_brush_and_its_last_state() {
    let Some(program) = browser::find() else {
        crate::skip::skip("chromium", "no Chromium on the path, and CHROMIUM is not set");
        return;
    };
    let token = "a-token-of-some-length";
    let live = LivePage::start("127.0.0.1:0".parse().unwrap(), Some(token.into())).unwrap();
    let events = sample::run::events(400, 60.0, 9);
    let part = |share: usize, state: RunState| {
        let mut data = sample::page_data::data(&events[..events.len() * share / 10], 20_000);
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
        browser.text("#verdict").contains("DEGRADED"),
        "the last state, with its verdict"
    );
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(
        browser.text("#live-state"),
        "Run ended",
        "and it stays when the server has gone"
    );
    // The stream of events breaks when the server stops, which browsers log.
    let complaints: Vec<String> = browser
        .complaints()
        .into_iter()
        .filter(|text| !text.contains("ERR_CONNECTION_REFUSED") && !text.contains("ERR_INCOMPLETE_CHUNKED"))
        .collect();
    assert_eq!(complaints, Vec::<String>::new());
}
