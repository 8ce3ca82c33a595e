//! Plots over time: throughput, concurrency, percentiles by slice.

use super::plot::Plot;
use super::table::{cell, cell_of, csv_table, heading};
use crate::drawing::{
    AreaFill, AxisScale, AxisSpan, Chart, Color, Dash, Drawing, LineShape, PlotAxis, PlotElement,
};

/// A curve over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeCurve {
    /// Its name: `in flight`.
    pub name: String,
    /// Seconds since the start of the run, ascending, and the value from then on.
    pub points: Vec<(f64, f64)>,
}

/// Throughput over time: mean rates of slices of equal length, the last of which may be shorter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThroughputData {
    /// Length of a slice in seconds.
    pub slice_seconds: f64,
    /// End of the last slice in seconds.
    pub end: f64,
    /// Beginning of each slice in seconds, and requests per second in it: finished, failed, ...
    pub requests_per_second: Vec<TimeCurve>,
    /// The same for tokens: output, input, ...
    pub tokens_per_second: Vec<TimeCurve>,
}

/// A level over time, such as the number of requests in flight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// Its name: `in flight`.
    pub name: String,
    /// Seconds since the start of the run, ascending, with the level until the next point: its mean
    /// and its maximum (equal if it does not change between two points).
    pub points: Vec<(f64, f64, f64)>,
}

/// Number of requests were under way over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConcurrencyData {
    /// `in flight` first (drawn with an area), then `in prefill`, `in decode`, ...
    pub levels: Vec<Level>,
}

/// Percentiles of a metric in slices of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceData {
    /// The metric's display name.
    pub display: String,
    /// The unit of its values.
    pub unit: String,
    /// Length of a slice in seconds.
    pub slice_seconds: f64,
    /// End of the last slice in seconds.
    pub end: f64,
    /// Beginning of each slice in seconds, its samples, and P50, P90, P99 (`None` where a slice has
    /// no sample).
    pub slices: Vec<(f64, u64, [Option<f64>; 3])>,
}

/// Maximum number of drawn points of a curve: about one per pixel.
const DRAWN: usize = 800;

/// A level with more points is drawn as the mean of this many stretches of time, with the band
/// between their extremes.
const STRETCHES: usize = 200;

/// Returns the plot `metrics/throughput_over_time.png`.
pub fn throughput_plot(data: &ThroughputData) -> Plot {
    let chart = |label: &str, unit: &str, curves: &[TimeCurve]| Chart {
        x: time_axis(),
        y: PlotAxis::new(label, unit).spanning(AxisSpan::FromZero),
        marks: lines(curves, data.end, AreaFill::None),
        empty: format!("no {label}"),
    };
    let drawing = Drawing {
        title: "Throughput over time".into(),
        subtitle: format!(
            "means of slices of {}",
            veeksha_stats::duration(data.slice_seconds)
        ),
        charts: vec![
            chart("requests", "1/s", &data.requests_per_second),
            chart("tokens", "1/s", &data.tokens_per_second),
        ],
    };
    let named = |what: &str, curves: &[TimeCurve]| -> Vec<(String, Vec<(f64, f64)>)> {
        curves
            .iter()
            .map(|curve| (format!("{} {what} (1/s)", curve.name), curve.points.clone()))
            .collect()
    };
    let mut columns = named("requests", &data.requests_per_second);
    columns.extend(named("tokens", &data.tokens_per_second));
    Plot {
        drawing,
        csv: by_time(&columns),
    }
}

/// Returns the plot `metrics/concurrency_over_time.png`.
pub fn concurrency_plot(data: &ConcurrencyData) -> Plot {
    let levels = &data.levels;
    let most = |level: &Level| level.points.iter().map(|point| point.2).fold(0.0, f64::max);
    let peaks: Vec<String> = levels
        .iter()
        .map(|level| format!("{} {}", level.name, veeksha_stats::number(most(level))))
        .collect();
    let mut subtitle = format!("maximum: {}", peaks.join(" · "));
    let steps = |level: &Level| {
        let unchanging = |(_, mean, most): &(f64, f64, f64)| mean == most;
        level.points.len() <= 2 * STRETCHES && level.points.iter().all(unchanging)
    };
    let means = |level: &Level| -> Vec<(f64, f64)> {
        level.points.iter().map(|(at, mean, _)| (*at, *mean)).collect()
    };
    let marks = if levels.iter().all(steps) {
        let curves: Vec<TimeCurve> = levels
            .iter()
            .map(|level| TimeCurve {
                name: level.name.clone(),
                points: means(level),
            })
            .collect();
        lines(&curves, 0.0, AreaFill::Below)
    } else {
        let first = levels.first().map_or("", |level| level.name.as_str());
        subtitle.push_str(&format!(" · lines: means, band: extremes {first}"));
        means_and_extremes(levels)
    };
    let drawing = Drawing {
        title: "Concurrency over time".into(),
        subtitle,
        charts: vec![Chart {
            x: time_axis(),
            y: PlotAxis::new("requests", "")
                .counting()
                .spanning(AxisSpan::FromZero),
            marks,
            empty: "no requests".into(),
        }],
    };
    let columns: Vec<_> = levels
        .iter()
        .flat_map(|level| {
            let most = level.points.iter().map(|(at, _, most)| (*at, *most)).collect();
            [
                (format!("{} (requests)", level.name), means(level)),
                (format!("most {} (requests)", level.name), most),
            ]
        })
        .collect();
    Plot {
        drawing,
        csv: by_time(&columns),
    }
}

/// Decoding requests over time, and the windows with enough of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecodeWindowData {
    /// Number of decoding requests.
    pub in_decode: Level,
    /// The required minimum.
    pub least: u64,
    /// Beginnings and ends of the selected windows, in seconds since the start of the run.
    pub windows: Vec<(f64, f64)>,
}

/// Returns the plot `metrics/decode_window_plot.png`: the windows are shaded.
pub fn decode_window_plot(data: &DecodeWindowData) -> Plot {
    let level = std::slice::from_ref(&data.in_decode);
    let mut plot = concurrency_plot(&ConcurrencyData {
        levels: level.to_vec(),
    });
    let most = data
        .in_decode
        .points
        .iter()
        .map(|point| point.2)
        .fold(0.0, f64::max);
    let shades = data.windows.iter().map(|(from, to)| PlotElement::Band {
        stretches: vec![(*from, 0.0, most), (*to, 0.0, most)],
        color: Color::Orange,
    });
    for chart in &mut plot.drawing.charts {
        chart.y.label = "decoding requests".into();
        // An area below the line would mix its color with that of the windows.
        for mark in &mut chart.marks {
            if let PlotElement::Line { fill, .. } = mark {
                *fill = AreaFill::None;
            }
        }
        chart.marks.splice(0..0, shades.clone());
    }
    let word = if data.windows.len() == 1 {
        "window"
    } else {
        "windows"
    };
    plot.drawing.title = "Decode windows".into();
    plot.drawing.subtitle = format!(
        "shaded: {} {word} with at least {} at once",
        data.windows.len(),
        data.least
    );
    plot
}

/// Minimum ratio of values that are shown on a log axis.
const LOG_RATIO: f64 = 50.0;

/// Returns the plot `metrics/<metric>_over_time.png`.
pub fn slices_plot(data: &SliceData) -> Plot {
    const NAMES: [&str; 3] = ["P50", "P90", "P99"];
    // The last slice may be shorter.
    let middle = |at: f64| at + data.slice_seconds.min((data.end - at).max(0.0)) / 2.0;
    let marks = NAMES
        .iter()
        .enumerate()
        .map(|(number, name)| PlotElement::Line {
            name: (*name).into(),
            points: data
                .slices
                .iter()
                .filter_map(|(at, _, values)| Some((middle(*at), values[number]?)))
                .collect(),
            color: Color::nth(number),
            dash: Dash::nth(number),
            shape: LineShape::Straight,
            fill: AreaFill::None,
        })
        .collect();
    let values = || data.slices.iter().flat_map(|slice| slice.2).flatten();
    let least = values().fold(f64::INFINITY, f64::min);
    let most = values().fold(0.0, f64::max);
    let scale = if least > 0.0 && most >= LOG_RATIO * least {
        AxisScale::Log
    } else {
        AxisScale::Linear
    };
    let drawing = Drawing {
        title: format!("{} over time", data.display),
        subtitle: format!("slices of {}", veeksha_stats::duration(data.slice_seconds)),
        charts: vec![Chart {
            x: time_axis(),
            y: PlotAxis::new(&data.display, &data.unit)
                .scaled(scale)
                .spanning(AxisSpan::FromZero),
            marks,
            empty: "no samples".into(),
        }],
    };
    let headings = NAMES.map(|name| heading(&name.to_lowercase(), &data.unit));
    let csv = csv_table(
        &["time (s)", "count", &headings[0], &headings[1], &headings[2]],
        data.slices.iter().map(|(at, count, values)| {
            let [p50, p90, p99] = values.map(cell_of);
            [cell(*at), count.to_string(), p50, p90, p99]
        }),
    );
    Plot { drawing, csv }
}

fn time_axis() -> PlotAxis {
    PlotAxis::new("time since the start of the run", "s").spanning(AxisSpan::FromZero)
}

/// Returns step lines with different colors and dashes; only the first one has an area below it.
/// The last point is extended to `end`.
fn lines(curves: &[TimeCurve], end: f64, first_fill: AreaFill) -> Vec<PlotElement> {
    curves
        .iter()
        .enumerate()
        .map(|(number, curve)| {
            let mut points = thinned(&curve.points, DRAWN);
            if let Some((at, value)) = points.last().copied()
                && end > at
            {
                points.push((end, value));
            }
            PlotElement::Line {
                name: curve.name.clone(),
                points,
                color: Color::nth(number),
                dash: Dash::nth(number),
                shape: LineShape::Steps,
                fill: if number == 0 { first_fill } else { AreaFill::None },
            }
        })
        .collect()
}

/// Returns for each curve the time-weighted mean of stretches of equal length; for the first one
/// also the band between its minimum and maximum (bands of several curves overlap).
fn means_and_extremes(levels: &[Level]) -> Vec<PlotElement> {
    let ends = || levels.iter().flat_map(|level| &level.points).map(|point| point.0);
    let from = ends().fold(f64::INFINITY, f64::min);
    let to = ends().fold(f64::NEG_INFINITY, f64::max);
    let mut bands = Vec::new();
    let mut means = Vec::new();
    for (number, level) in levels.iter().enumerate() {
        let color = Color::nth(number);
        let stretches = stretches(&level.points, (from, to), STRETCHES);
        if number == 0 {
            bands.push(PlotElement::Band {
                stretches: stretches
                    .iter()
                    .map(|stretch| (stretch.middle, stretch.least, stretch.most))
                    .collect(),
                color,
            });
        }
        means.push(PlotElement::Line {
            name: level.name.clone(),
            points: stretches
                .iter()
                .map(|stretch| (stretch.middle, stretch.mean))
                .collect(),
            color,
            dash: Dash::nth(number),
            shape: LineShape::Straight,
            fill: AreaFill::None,
        });
    }
    bands.extend(means);
    bands
}

/// A level over a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LevelInterval {
    middle: f64,
    mean: f64,
    least: f64,
    most: f64,
}

/// Returns the stretches of a level; before its first point it has none.
fn stretches(points: &[(f64, f64, f64)], (from, to): (f64, f64), count: usize) -> Vec<LevelInterval> {
    let length = (to - from) / count as f64;
    if !length.is_finite() || length <= 0.0 {
        return Vec::new();
    }
    let mut found = Vec::with_capacity(count);
    let mut next = 0;
    let mut level = None;
    for number in 0..count {
        let begin = from + length * number as f64;
        let end = begin + length;
        let (mut at, mut area, mut known) = (begin, 0.0, 0.0);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        // A level with zero duration is ignored.
        let mut hold = |level: Option<(f64, f64)>, lasted: f64| {
            if let Some((mean, peak)) = level.filter(|_| lasted > 0.0) {
                area += mean * lasted;
                known += lasted;
                (least, most) = (least.min(mean), most.max(peak));
            }
        };
        while let Some((when, mean, peak)) = points.get(next).copied().filter(|point| point.0 < end) {
            hold(level, when - at);
            (at, level) = (when.max(at), Some((mean, peak)));
            next += 1;
        }
        hold(level, end - at);
        if known > 0.0 {
            found.push(LevelInterval {
                middle: begin + length / 2.0,
                mean: area / known,
                least,
                most,
            });
        }
    }
    found
}

/// Returns about `most` points with the same outline: of each stretch of time the first, the
/// lowest, the highest and the last.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(most / 4);
    let mut kept = Vec::with_capacity(most + 4);
    for part in points.chunks(stretch) {
        let lowest = (0..part.len()).min_by(|a, b| part[*a].1.total_cmp(&part[*b].1));
        let highest = (0..part.len()).max_by(|a, b| part[*a].1.total_cmp(&part[*b].1));
        let mut places = vec![0, lowest.unwrap_or(0), highest.unwrap_or(0), part.len() - 1];
        places.sort_unstable();
        places.dedup();
        kept.extend(places.into_iter().map(|place| part[place]));
    }
    kept
}

/// Returns one row per instant at which some column has a point; other cells are empty.
fn by_time(columns: &[(String, Vec<(f64, f64)>)]) -> String {
    let mut places = vec![0; columns.len()];
    let mut rows = Vec::new();
    loop {
        let next = columns
            .iter()
            .zip(&places)
            .filter_map(|((_, points), place)| points.get(*place))
            .map(|point| point.0)
            .reduce(f64::min);
        let Some(at) = next else { break };
        let mut row = vec![cell(at)];
        for ((_, points), place) in columns.iter().zip(&mut places) {
            match points.get(*place) {
                // NaN is not a time: such a point goes with the current row.
                Some((when, value)) if *when <= at || !when.is_finite() => {
                    row.push(cell(*value));
                    *place += 1;
                }
                _ => row.push(String::new()),
            }
        }
        rows.push(row);
    }
    let mut headings = vec!["time (s)"];
    headings.extend(columns.iter().map(|(name, _)| name.as_str()));
    csv_table(&headings, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_peaks() {
        let points: Vec<(f64, f64)> = (0..100_000)
            .map(|at| (f64::from(at), if at == 54_321 { 99.0 } else { f64::from(at % 7) }))
            .collect();
        let kept = thinned(&points, DRAWN);
        assert!(kept.len() <= DRAWN + 4, "{}", kept.len());
        assert!(kept.contains(&(54_321.0, 99.0)));
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[99_999]));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn weights_means_by_time() {
        // 0 until 1, then 10 (12 at most) until 2, then 4: over 0..4 in two stretches, (0 + 10) / 2
        // and 4.
        let points = [
            (0.0, 0.0, 0.0),
            (1.0, 10.0, 12.0),
            (2.0, 4.0, 4.0),
            (4.0, 7.0, 7.0),
        ];
        let seen = stretches(&points, (0.0, 4.0), 2);
        let of = |middle, mean, least, most| LevelInterval {
            middle,
            mean,
            least,
            most,
        };
        assert_eq!(seen, [of(1.0, 5.0, 0.0, 12.0), of(3.0, 4.0, 4.0, 4.0)]);
        // A curve that begins later has no level before.
        let seen = stretches(&[(3.0, 2.0, 2.0)], (0.0, 4.0), 2);
        assert_eq!(seen, [of(3.0, 2.0, 2.0, 2.0)]);
        assert!(stretches(&[(1.0, 2.0, 2.0)], (1.0, 1.0), 2).is_empty());
    }

    #[test]
    fn joins_columns_by_time() {
        let columns = [
            ("a".to_owned(), vec![(0.0, 1.0), (2.0, 3.0)]),
            ("b".to_owned(), vec![(1.0, 5.0), (2.0, 6.0)]),
        ];
        assert_eq!(
            by_time(&columns),
            "time (s),a,b\n0.0,1.0,\n1.0,,5.0\n2.0,3.0,6.0\n"
        );
        assert_eq!(by_time(&[]), "time (s)\n");
        // It terminates for any times.
        by_time(&[("a".to_owned(), vec![(f64::NAN, 1.0), (1.0, 2.0)])]);
    }
}
