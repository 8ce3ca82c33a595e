//! Timeline lanes: the request of each lane.

use veeksha_report::{Plot, TimelineChoice, TimelineData, TimelineRequest, timeline_plot};

use crate::drawings::words;

/// The id of a slow request is needed to find it in the record.
#[test]
fn lanes_are_labeled_with_request_ids() {
    let plot = |count: u32, choice| {
        let request = |index: u32| TimelineRequest {
            request: format!("{index}/0"),
            dispatched: f64::from(index),
            completed: f64::from(index) + f64::from(index % 7 + 1),
            answered: true,
            measured: true,
            ..TimelineRequest::default()
        };
        timeline_plot(&TimelineData {
            requests: (0..count).map(request).collect(),
            total: u64::from(count),
            choice,
            most: count as usize,
        })
    };
    let ids = |plot: &Plot| {
        let svg = plot.drawing.svg().unwrap();
        let words = words(&svg).into_iter().filter(|word| word.ends_with("/0"));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let slowest = ids(&plot(25, TimelineChoice::Slowest));
    assert_eq!(slowest.len(), 25, "{slowest:?}");
    // From the bottom: those of one second, the last dispatched first; on top one of seven seconds.
    assert_eq!((&*slowest[0], &*slowest[24]), ("21/0", "6/0"));
    // A selection of many, evenly spaced.
    let first = ids(&plot(60, TimelineChoice::First));
    assert!((15..=30).contains(&first.len()), "{first:?}");
}
