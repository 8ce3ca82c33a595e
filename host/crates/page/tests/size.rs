//! The size of a page.

#[expect(dead_code, reason = "this test needs a part of it")]
mod sample;

use sample::run::{nanos, record};
use veeksha_events::Event;
use veeksha_page::{PageData, RequestSample, page};

/// The run to which the size goals refer: 1,500 requests of 64 tokens.
#[test]
fn a_typical_page_is_small() {
    let mut sample = RequestSample::new(20_000);
    for session in 0..1500u64 {
        let dispatched = nanos(session as f64 * 0.0137);
        // Gaps of about 20 ms that differ, so that they do not compress better than in a real run.
        let chunks: Vec<u64> = (0..64u64)
            .map(|chunk| dispatched + 180_123_456 + chunk * 20_011_777 + (chunk * session) % 999_983)
            .collect();
        sample.on(&Event::Finished(Box::new(record(
            session, 0, dispatched, &chunks,
        ))));
    }
    let data = PageData {
        requests: sample.finish(),
        ..PageData::default()
    };
    let html = page(&data);
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
}
