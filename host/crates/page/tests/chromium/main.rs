//! Tests of the page in headless Chromium, if available (`CHROMIUM`, or on the path); otherwise
//! these tests report that they were skipped.
//!
//! `PAGE_SHOTS=FOLDER` keeps screenshots for visual inspection.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests, and what helps them"
)]

mod browser;
mod brushing;
mod edges;
mod hostile;
mod keyboard;
mod live;
mod look;
mod paths;
#[path = "../sample/mod.rs"]
mod sample;
#[path = "../../../../../tests/support/skip.rs"]
mod skip;
mod values;

use std::path::PathBuf;

use browser::Browser;
use veeksha_page::{PageData, page};

/// The page of a few hundred requests, opened from disk.
pub(crate) struct Opened {
    pub(crate) browser: Browser,
    _folder: tempfile::TempDir,
}

pub(crate) fn open(width: u32, height: u32, data: &PageData) -> Option<Opened> {
    let Some(program) = browser::find() else {
        skip::skip("chromium", "no Chromium on the path, and CHROMIUM is not set");
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

pub(crate) fn some_data() -> PageData {
    sample::page_data::data(&sample::run::events(400, 60.0, 9), 20_000)
}

pub(crate) fn keep(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("PAGE_SHOTS") {
        browser.screenshot(&PathBuf::from(folder).join(name));
    }
}

/// Returns the number of selected requests, and the total.
pub(crate) fn selected(browser: &mut Browser) -> (u64, u64) {
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

pub(crate) fn first_rows(browser: &mut Browser) -> String {
    browser.text("#requests-table tbody")
}
