//! Requests below each other along time.

use super::cdf::grouped;
use super::plot::Plot;
use super::table::{cell, cell_of, csv_table};
use crate::drawing::{Chart, Color, Drawing, Marker, PlotAxis, PlotElement};

/// The times of a request, in seconds since the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineRequest {
    /// Its id: `17/2`.
    pub request: String,
    /// The scheduled instant.
    pub intended: f64,
    /// The instant of its dispatch.
    pub dispatched: f64,
    /// The arrival of its first generated chunk.
    pub first_chunk: Option<f64>,
    /// The instant of its end.
    pub completed: f64,
    /// True if it was answered.
    pub answered: bool,
    /// True if it counts; `false` for requests sent after the end of the measurement to hold the
    /// load.
    pub measured: bool,
}

/// Selection of the shown requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineChoice {
    /// The first dispatched ones.
    First,
    /// The measured ones with the longest time from dispatch to end.
    Slowest,
}

/// Requests of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineData {
    /// All of them or, for a long run, at least those to be shown; in any order.
    pub requests: Vec<TimelineRequest>,
    /// Number of requests of the run; for [`TimelineChoice::Slowest`], of its measured requests.
    pub total: u64,
    /// Selection of the shown requests.
    pub choice: TimelineChoice,
    /// Maximum number of shown requests.
    pub most: usize,
}

/// Returns the plot `metrics/request_timeline.png` or `metrics/slowest_requests.png`: a lane per
/// request with its id. The earliest dispatch, or the slowest request, is on top.
pub fn timeline_plot(data: &TimelineData) -> Plot {
    let shown = selected(data);
    let lane = |place: usize| (shown.len() - 1 - place) as f64;
    let (mut waiting, mut prefill, mut decode) = (Vec::new(), Vec::new(), Vec::new());
    let (mut drained, mut failed) = (Vec::new(), Vec::new());
    for (place, request) in shown.iter().enumerate() {
        let lane = lane(place);
        if request.dispatched > request.intended {
            waiting.push((request.intended, request.dispatched, lane));
        }
        // Its end does not characterize the server: the host may have cancelled it.
        if !request.measured {
            drained.push((request.dispatched, request.completed, lane));
            continue;
        }
        let first = request.first_chunk.unwrap_or(request.completed);
        prefill.push((request.dispatched, first, lane));
        if request.first_chunk.is_some() {
            decode.push((first, request.completed, lane));
        }
        if !request.answered {
            failed.push((request.completed, lane));
        }
    }
    let spans = |name: &str, spans, color, height| PlotElement::Spans {
        name: name.into(),
        spans,
        color,
        height,
    };
    let mut marks = vec![
        spans("waiting to be sent", waiting, Color::Grey, 0.3),
        spans("prefill", prefill, Color::Orange, 0.8),
        spans("decode", decode, Color::Blue, 0.8),
        spans("drained, not measured", drained, Color::Grey, 0.8),
        PlotElement::Dots {
            name: "failed".into(),
            points: failed,
            color: Color::Black,
            marker: Marker::Cross,
        },
    ];
    marks.retain(|mark| match mark {
        PlotElement::Spans { spans, .. } => !spans.is_empty(),
        PlotElement::Dots { points, .. } => !points.is_empty(),
        _ => true,
    });
    let (title, which, order) = match data.choice {
        TimelineChoice::First => ("Request timeline", "first", "by dispatch"),
        TimelineChoice::Slowest => ("Slowest requests", "slowest", "the slowest on top"),
    };
    let subtitle = if (shown.len() as u64) < data.total {
        format!(
            "the {which} {} of {} requests, {order}",
            grouped(shown.len() as u64),
            grouped(data.total)
        )
    } else {
        format!("all {} requests, {order}", grouped(data.total))
    };
    let names = shown.iter().rev().map(|request| request.request.clone());
    let drawing = Drawing {
        title: title.into(),
        subtitle,
        charts: vec![Chart {
            x: PlotAxis::new("time since the start of the run", "s"),
            y: PlotAxis::new("request", "").named(names.collect()),
            marks,
            empty: "no requests".into(),
        }],
    };
    Plot {
        drawing,
        csv: table(&shown),
    }
}

/// Returns the shown requests in display order.
fn selected(data: &TimelineData) -> Vec<&TimelineRequest> {
    let mut requests: Vec<&TimelineRequest> = data
        .requests
        .iter()
        .filter(|request| request.dispatched.is_finite() && request.completed.is_finite())
        .collect();
    let by_dispatch = |a: &&TimelineRequest, b: &&TimelineRequest| {
        a.dispatched
            .total_cmp(&b.dispatched)
            .then_with(|| a.request.cmp(&b.request))
    };
    let took = |request: &TimelineRequest| request.completed - request.dispatched;
    match data.choice {
        TimelineChoice::First => requests.sort_by(by_dispatch),
        TimelineChoice::Slowest => {
            requests.retain(|request| request.measured);
            requests.sort_by(|a, b| took(b).total_cmp(&took(a)).then_with(|| by_dispatch(a, b)));
        }
    }
    requests.truncate(data.most);
    requests
}

fn table(shown: &[&TimelineRequest]) -> String {
    csv_table(
        &[
            "request_id",
            "intended (s)",
            "dispatched (s)",
            "first_chunk (s)",
            "completed (s)",
            "success",
            "measured",
        ],
        shown.iter().map(|request| {
            [
                request.request.clone(),
                cell(request.intended),
                cell(request.dispatched),
                cell_of(request.first_chunk),
                cell(request.completed),
                request.answered.to_string(),
                request.measured.to_string(),
            ]
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str, dispatched: f64, completed: f64) -> TimelineRequest {
        TimelineRequest {
            request: name.into(),
            intended: dispatched,
            dispatched,
            first_chunk: Some(dispatched + 0.1),
            completed,
            answered: true,
            measured: true,
        }
    }

    #[test]
    fn drained_requests_are_neither_failed_nor_slowest() {
        let given_up = TimelineRequest {
            answered: false,
            measured: false,
            first_chunk: None,
            ..request("b", 1.0, 9.0)
        };
        let mut data = TimelineData {
            requests: vec![request("a", 0.0, 1.0), given_up],
            total: 2,
            choice: TimelineChoice::First,
            most: 10,
        };
        let plot = timeline_plot(&data);
        let marks: Vec<&str> = plot.drawing.charts[0]
            .marks
            .iter()
            .filter_map(|mark| match mark {
                PlotElement::Spans { name, .. } | PlotElement::Dots { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(marks, ["prefill", "decode", "drained, not measured"]);
        assert!(
            plot.csv
                .lines()
                .nth(2)
                .is_some_and(|line| line.ends_with(",false,false"))
        );
        data.choice = TimelineChoice::Slowest;
        data.total = 1;
        assert_eq!(selected(&data).len(), 1);
    }

    #[test]
    fn orders_first_by_dispatch_and_slowest_by_duration() {
        let mut data = TimelineData {
            requests: vec![
                request("d", 3.0, 4.0),
                request("a", 0.0, 1.0),
                request("c", 2.0, 9.0),
                request("b", 1.0, 3.0),
            ],
            total: 4,
            choice: TimelineChoice::First,
            most: 2,
        };
        let names = |data: &TimelineData| -> Vec<String> {
            selected(data)
                .iter()
                .map(|request| request.request.clone())
                .collect()
        };
        assert_eq!(names(&data), ["a", "b"]);
        data.choice = TimelineChoice::Slowest;
        // Seven seconds and two; then one second each.
        assert_eq!(names(&data), ["c", "b"]);
        data.most = 10;
        assert_eq!(names(&data), ["c", "b", "a", "d"]);
        let drawing = timeline_plot(&data).drawing;
        // From the bottom.
        assert_eq!(drawing.charts[0].y.names, ["d", "a", "b", "c"]);
        assert_eq!(drawing.subtitle, "all 4 requests, the slowest on top");
    }
}
