//! Relative changes with their intervals, one below the other, as an SVG: a forest plot.

use std::fmt::Write;

use crate::html::escaped;
use crate::text::{figure_text, interval_text, relative_text};
use crate::{Row, Verdict};

/// Units of the drawing, about pixels.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 24.0;
const LINE: f64 = 24.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 40.0;
const HALF_MARK: f64 = 5.0;

/// An axis never reaches further than this: what goes on is cut, with an arrow.
const FURTHEST: f64 = 3.0;

/// Nothing if no figure has an interval of its relative change.
pub(crate) fn forest(rows: &[Row], title: &str) -> String {
    let shown: Vec<(&Row, (f64, f64))> = rows
        .iter()
        .filter_map(|row| row.relative_interval.map(|interval| (row, interval)))
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let low = shown.iter().map(|(_, (low, _))| *low).fold(-0.02, f64::min);
    let high = shown.iter().map(|(_, (_, high))| *high).fold(0.02, f64::max);
    let axis = Axis::new(low, high.min(FURTHEST));
    let height = TOP + BOTTOM + LINE * shown.len() as f64;
    let mut svg = format!(
        "<svg class=\"forest\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(title)
    );
    axis.draw(&mut svg, height);
    for (place, (row, interval)) in shown.iter().enumerate() {
        draw_row(&mut svg, &axis, row, *interval, TOP + LINE * (place as f64 + 0.5));
    }
    svg += "</svg>\n";
    svg
}

/// From relative changes to places in the drawing.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// An axis from `low` to `high` at least, with about six ticks at round numbers.
    fn new(low: f64, high: f64) -> Axis {
        let rough = (high - low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let factors = [1.0, 2.0, 5.0, 10.0];
        let step = power
            * factors
                .into_iter()
                .find(|factor| factor * power >= rough)
                .unwrap_or(10.0);
        Axis {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
        }
    }

    fn x(&self, change: f64) -> f64 {
        let share = (change - self.low) / (self.high - self.low);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn draw(&self, svg: &mut String, height: f64) {
        let bottom = height - BOTTOM;
        let count = ((self.high - self.low) / self.step).round() as usize;
        for tick in 0..=count {
            // From the nearest whole number of steps, so that the zero is one.
            let change = ((self.low / self.step).round() + tick as f64) * self.step;
            let x = self.x(change);
            let class = if change == 0.0 { "zero" } else { "grid" };
            line(svg, class, (x, TOP), (x, bottom));
            let label = if change == 0.0 {
                "0 %".to_owned()
            } else {
                relative_text(change)
            };
            let y = bottom + 16.0;
            text(svg, "tick", (x, y), "middle", &label);
        }
        let x = (LEFT + WIDTH - RIGHT) / 2.0;
        text(
            svg,
            "tick",
            (x, height - 6.0),
            "middle",
            "change against the baseline",
        );
    }
}

fn draw_row(svg: &mut String, axis: &Axis, row: &Row, (low, high): (f64, f64), y: f64) {
    let class = match row.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        _ => "other",
    };
    let change = row.relative.unwrap_or(0.0);
    let said = format!(
        "{}: {}, {}, {}",
        figure_text(row),
        relative_text(change),
        interval_text(row),
        row.verdict
    );
    let _ = writeln!(svg, "<g class=\"{class}\"><title>{}</title>", escaped(&said));
    text(svg, "name", (LEFT - 12.0, y + 4.0), "end", &figure_text(row));
    line(svg, "reach", (axis.x(low), y), (axis.x(high), y));
    let cut_off = high > axis.high;
    let (x, h) = (axis.x(change), HALF_MARK);
    // Shapes tell verdicts apart where colours do not.
    let mark = match row.verdict {
        Verdict::Better => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{h}\"/>"),
        Verdict::Worse => format!("<path d=\"M{x:.1} {:.1}l{h} {h}l-{h} {h}l-{h} -{h}z\"/>", y - h),
        _ => format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{2}\" height=\"{2}\"/>",
            x - h + 1.0,
            y - h + 1.0,
            2.0 * (h - 1.0)
        ),
    };
    let _ = writeln!(svg, "{mark}");
    if cut_off {
        let x = axis.x(high);
        let _ = writeln!(
            svg,
            "<path class=\"reach\" d=\"M{:.1} {:.1}l6 4l-6 4\"/>",
            x - 6.0,
            y - 4.0
        );
    }
    *svg += "</g>\n";
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn text(svg: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, said: &str) {
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escaped(said)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_round_ticks_and_a_zero() {
        for (low, high) in [(-0.02, 0.02), (-0.5, 0.013), (-0.02, 3.0), (-0.0213, 0.87)] {
            let axis = Axis::new(low, high);
            assert!(axis.low <= low && axis.high >= high - 1e-12);
            let ticks = (axis.high - axis.low) / axis.step;
            assert!((2.5..=9.5).contains(&ticks), "{ticks}");
            assert!(((axis.low / axis.step) - (axis.low / axis.step).round()).abs() < 1e-9);
        }
        let axis = Axis::new(-0.5, 0.5);
        assert_eq!((axis.x(-9.0), axis.x(9.0)), (LEFT, WIDTH - RIGHT));
        assert_eq!(axis.x(0.0), (LEFT + WIDTH - RIGHT) / 2.0);
    }
}
