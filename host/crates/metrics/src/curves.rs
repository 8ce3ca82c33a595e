//! Curves over time: requests in flight, in prefill, in decode, sessions, output tokens per second.

use serde_json::{Value, json};
use veeksha_model::Nanos;
use veeksha_stats::{CurveSummary, Over, StepCurve};

use crate::row::RequestRow;
use crate::run_metric::RunMetric;
use crate::token_bins::TokenBins;

/// The largest number of points in a curve. A curve with more steps is averaged over intervals of
/// equal length.
const POINTS: usize = 2000;

/// The curves of a run. They include all requests that were sent: failed and drained ones are load
/// too.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadCurves {
    /// The measured window: from the first intended instant of a measured request to the last
    /// completion of one.
    pub window: Option<(Nanos, Nanos)>,
    /// Requests between dispatch and completion.
    pub in_flight: LoadCurve,
    /// Requests between the last byte sent (dispatch, if unknown) and the first generated chunk
    /// (completion, if there is none).
    pub in_prefill: LoadCurve,
    /// Requests between the first and the last generated chunk.
    pub in_decode: LoadCurve,
    /// Sessions between their start and their end.
    pub sessions: LoadCurve,
    /// Output tokens per second, by arrival of their chunks, in intervals of one second (longer in
    /// runs of more than four hours). The tokens of an answer add up to its output tokens as
    /// counted by the server. They are distributed over the chunks by the host's count, or equally
    /// without one. Intervals of measured requests are clipped to the window, so that the area
    /// under the curve within the window equals the token count of the throughput metrics.
    pub output_tokens: LoadCurve,
}

/// A curve over time.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadCurve {
    /// The snake_case name used in files.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// Statistics over the measured window.
    pub over_window: Option<CurveSummary>,
    /// Statistics over the part of the window in which the value is above 0.
    pub while_active: Option<CurveSummary>,
    /// The points, in order of time.
    pub points: Vec<CurvePoint>,
    /// True if `points` contains every change of the value. Otherwise the points are means over
    /// intervals, of equal length except for the first and the last.
    pub exact: bool,
}

/// The value of a curve from an instant until the next point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The instant.
    pub at: Nanos,
    /// The value; for an interval, its time-weighted mean.
    pub value: f64,
    /// The maximum until the next point.
    pub max: f64,
}

impl LoadCurves {
    /// Returns all curves.
    pub fn iter(&self) -> impl Iterator<Item = &LoadCurve> {
        [
            &self.in_flight,
            &self.in_prefill,
            &self.in_decode,
            &self.sessions,
            &self.output_tokens,
        ]
        .into_iter()
    }

    /// Returns the aggregates that objectives can name.
    pub(crate) fn run_metrics(&self) -> [(RunMetric, Option<f64>); 2] {
        let of = self.in_flight.over_window;
        [
            (RunMetric::MeanRequestsInFlight, of.map(|of| of.mean)),
            (RunMetric::MaxRequestsInFlight, of.map(|of| of.max)),
        ]
    }

    /// Returns the curves as JSON, with instants in seconds.
    pub fn json(&self) -> Value {
        let seconds = |at: Nanos| at as f64 / 1e9;
        let curve = |curve: &LoadCurve| {
            let points: Vec<Value> = curve
                .points
                .iter()
                .map(|point| json!([seconds(point.at), point.value, point.max]))
                .collect();
            let body = json!({
                "unit": curve.unit,
                "over_window": summary(curve.over_window.as_ref()),
                "while_active": summary(curve.while_active.as_ref()),
                "exact": curve.exact,
                "points": points,
            });
            (curve.name.to_owned(), body)
        };
        json!({
            "window": self.window.map(|(from, to)| [seconds(from), seconds(to)]),
            "point": ["at", "value", "max"],
            "curves": self.iter().map(curve).collect::<serde_json::Map<_, _>>(),
        })
    }
}

pub(crate) fn summary(of: Option<&CurveSummary>) -> Value {
    of.map_or(Value::Null, |of| {
        json!({
            "seconds": of.nanos as f64 / 1e9, "mean": of.mean, "min": of.min, "max": of.max,
            "p50": of.p50, "p90": of.p90, "p95": of.p95, "p99": of.p99,
        })
    })
}

/// The inputs of the curves other than the finished requests.
#[derive(Debug, Default)]
pub(crate) struct CurveParts {
    /// Dispatch instants of requests that never ended.
    pub(crate) unfinished: Vec<Nanos>,
    pub(crate) sessions: Vec<(Nanos, Nanos)>,
    pub(crate) tokens: TokenBins,
    /// The last instant of the record.
    pub(crate) end: Nanos,
    pub(crate) window: Option<(Nanos, Nanos)>,
}

pub(crate) fn curves(rows: &[RequestRow], parts: CurveParts) -> LoadCurves {
    let CurveParts {
        unfinished,
        sessions,
        tokens,
        end,
        window,
    } = parts;
    // Computed sequentially, because each curve needs temporary memory.
    let curve = |name, unit, fill: &dyn Fn(&mut StepCurve)| {
        let mut steps = StepCurve::new();
        fill(&mut steps);
        steps.settle();
        LoadCurve::of(name, unit, &steps, window)
    };
    LoadCurves {
        window,
        in_flight: curve("requests_in_flight", "requests", &|steps| {
            rows.iter()
                .for_each(|row| steps.add(row.observed.dispatched, row.completed, 1.0));
            unfinished.iter().for_each(|from| steps.add(*from, end, 1.0));
        }),
        in_prefill: curve("requests_in_prefill", "requests", &|steps| {
            for row in rows {
                let from = row.observed.sent.get().unwrap_or(row.observed.dispatched);
                steps.add(from, row.observed.first.get().unwrap_or(row.completed), 1.0);
            }
        }),
        in_decode: curve("requests_in_decode", "requests", &|steps| {
            for row in rows {
                if let (Some(first), Some(last)) = (row.observed.first.get(), row.observed.last.get()) {
                    steps.add(first, last, 1.0);
                }
            }
        }),
        sessions: curve("sessions_active", "sessions", &|steps| {
            sessions.iter().for_each(|(from, to)| steps.add(*from, *to, 1.0));
        }),
        output_tokens: LoadCurve {
            // The points are means over intervals, not exact steps.
            exact: false,
            ..curve("output_tokens_per_second", "tokens/s", &|steps| {
                tokens.fill(steps, window, end)
            })
        },
    }
}

impl LoadCurve {
    fn of(name: &'static str, unit: &'static str, steps: &StepCurve, window: Option<(Nanos, Nanos)>) -> Self {
        let over = |over| window.and_then(|(from, to)| steps.summary(from, to, over));
        let exact = steps.steps().len() <= POINTS;
        LoadCurve {
            name,
            unit,
            over_window: over(Over::All),
            while_active: over(Over::Active),
            points: if exact { all(steps) } else { stretches(steps) },
            exact,
        }
    }
}

fn all(steps: &StepCurve) -> Vec<CurvePoint> {
    let point = |(at, value): &(u64, f64)| CurvePoint {
        at: *at,
        value: *value,
        max: *value,
    };
    steps.steps().iter().map(point).collect()
}

fn stretches(steps: &StepCurve) -> Vec<CurvePoint> {
    let of = steps.steps();
    let (Some((begin, _)), Some((end, _))) = (of.first(), of.last()) else {
        return Vec::new();
    };
    let length = ((end - begin) / POINTS as u64 + 1).max(1);
    let mut points: Vec<CurvePoint> = (*begin..*end)
        .step_by(length as usize)
        .filter_map(|at| {
            let to = (at + length).min(*end);
            Some(CurvePoint {
                at,
                value: steps.mean(at, to)?,
                max: steps.max(at, to)?,
            })
        })
        .collect();
    points.push(CurvePoint {
        at: *end,
        value: 0.0,
        max: 0.0,
    });
    points
}
