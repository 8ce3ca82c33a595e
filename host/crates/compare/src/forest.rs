//! Forest plot: changes with their intervals as an SVG.

use std::fmt::Write;

use veeksha_model::Better;

use crate::axis::ForestAxis;
use crate::effect::ComparisonScale;
use crate::markup::escaped;
use crate::row::ComparisonRow;
use crate::text::{change_text, interval_text, row_name};
use crate::verdict::DifferenceVerdict;

/// Units of the drawing, about pixels.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 40.0;
const LINE: f64 = 22.0;
const EDGE: f64 = 26.0;
const HALF_MARK: f64 = 5.0;

/// Maximum number of metrics in one plot; the tables have all.
const MOST: usize = 40;

/// Draws the plots: one of ratios, and one of differences of shares. Metrics keep their order,
/// those with less as better first; all of a plot share one axis. Empty if no metric has an
/// interval.
pub(crate) fn forests(rows: &[&ComparisonRow], title: &str) -> String {
    let of_scale = |scale: ComparisonScale| -> Vec<ForestRow<'_>> {
        let is_meant =
            |row: &&&ComparisonRow| row.scale == scale && (scale == ComparisonScale::Ratio || row.is_share);
        rows.iter()
            .filter(is_meant)
            .filter_map(|row| ForestRow::of(row))
            .take(MOST)
            .collect()
    };
    let ratios = forest(&of_scale(ComparisonScale::Ratio), ComparisonScale::Ratio, title);
    let shares = forest(
        &of_scale(ComparisonScale::Difference),
        ComparisonScale::Difference,
        title,
    );
    ratios + &shares
}

/// A metric to draw.
#[derive(Clone, Copy)]
struct ForestRow<'a> {
    row: &'a ComparisonRow,
    change: f64,
    interval: (f64, f64),
}

impl<'a> ForestRow<'a> {
    fn of(row: &'a ComparisonRow) -> Option<Self> {
        let (change, interval) = match row.scale {
            ComparisonScale::Ratio => (row.relative, row.relative_interval),
            ComparisonScale::Difference => (row.difference, row.interval),
        };
        Some(ForestRow {
            row,
            change: change?,
            interval: interval?,
        })
    }
}

fn forest(drawn: &[ForestRow<'_>], scale: ComparisonScale, title: &str) -> String {
    if drawn.is_empty() {
        return String::new();
    }
    let changes: Vec<(f64, (f64, f64))> = drawn.iter().map(|drawn| (drawn.change, drawn.interval)).collect();
    let axis = ForestAxis::new(scale, &changes);
    let groups: Vec<(Better, Vec<&ForestRow<'_>>)> = [Better::Less, Better::Higher, Better::Neither]
        .into_iter()
        .map(|better| {
            (
                better,
                drawn.iter().filter(|drawn| drawn.row.better == better).collect(),
            )
        })
        .filter(|(_, drawn): &(Better, Vec<_>)| !drawn.is_empty())
        .collect();
    let lines = drawn.len() + groups.len();
    let bottom = EDGE + LINE * lines as f64;
    let height = bottom + 2.0 * EDGE;
    let mut svg = format!(
        "<svg class=\"forest\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(title)
    );
    draw_axis(&mut svg, &axis, bottom);
    let label = match scale {
        ComparisonScale::Ratio => "candidate ÷ baseline, logarithmic",
        ComparisonScale::Difference => "candidate less baseline, in percentage points",
    };
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    text(&mut svg, "tick", (middle, height - 8.0), "middle", label);
    let mut y = EDGE + LINE / 2.0;
    for (better, drawn) in groups {
        draw_heading(&mut svg, &axis, better, y);
        y += LINE;
        for drawn in drawn {
            draw_row(&mut svg, &axis, drawn, y);
            y += LINE;
        }
    }
    svg += "</svg>\n";
    svg
}

fn x(axis: &ForestAxis, change: f64) -> f64 {
    LEFT + axis.at(change) * (WIDTH - LEFT - RIGHT)
}

/// Draws ticks above and below, so that they are visible from all lines.
fn draw_axis(svg: &mut String, axis: &ForestAxis, bottom: f64) {
    for tick in axis.ticks() {
        let x = LEFT + tick.at * (WIDTH - LEFT - RIGHT);
        let class = if tick.is_zero { "zero" } else { "grid" };
        line(svg, class, (x, EDGE - 4.0), (x, bottom));
        for y in [EDGE - 10.0, bottom + 16.0] {
            text(svg, "tick", (x, y), "middle", &tick.label);
        }
    }
}

/// Draws the heading of a group, which shows the better side.
fn draw_heading(svg: &mut String, axis: &ForestAxis, better: Better, y: f64) {
    let (name, sides) = match better {
        Better::Less => ("less is better", Some(("← better", "worse →"))),
        Better::Higher => ("more is better", Some(("← worse", "better →"))),
        Better::Neither => ("neither is better", None),
    };
    let y = y + 4.0;
    text(svg, "group", (LEFT - 12.0, y), "end", name);
    if let Some((left, right)) = sides {
        let zero = x(axis, 0.0);
        if zero - LEFT > 60.0 {
            text(svg, "side", (zero - 8.0, y), "end", left);
        }
        if WIDTH - RIGHT - zero > 60.0 {
            text(svg, "side", (zero + 8.0, y), "start", right);
        }
    }
}

fn draw_row(svg: &mut String, axis: &ForestAxis, drawn: &ForestRow<'_>, y: f64) {
    let ForestRow {
        row,
        change,
        interval: (low, high),
    } = drawn;
    let class = match row.verdict {
        DifferenceVerdict::Better => "better",
        DifferenceVerdict::Worse => "worse",
        DifferenceVerdict::TooFewRuns
        | DifferenceVerdict::SurvivorsOnly
        | DifferenceVerdict::CacheStatesDiffer => "unsure",
        _ => "other",
    };
    let label = format!(
        "{}: {}, {}, {}",
        row_name(row),
        change_text(row),
        interval_text(row),
        row.verdict
    );
    let _ = writeln!(svg, "<g class=\"{class}\"><title>{}</title>", escaped(&label));
    text(svg, "name", (LEFT - 12.0, y + 4.0), "end", &row_name(row));
    line(svg, "reach", (x(axis, *low), y), (x(axis, *high), y));
    for (end, to) in [(low, -6.0), (high, 6.0)] {
        if axis.cuts(*end) {
            let (x, up) = (x(axis, *end) - to, y - 4.0);
            let _ = writeln!(
                svg,
                "<path class=\"reach\" d=\"M{x:.1} {up:.1}l{to} 4l{} 4\"/>",
                -to
            );
        }
    }
    let (x, h) = (x(axis, *change), HALF_MARK);
    // Shapes distinguish verdicts where colors do not.
    let mark = match row.verdict {
        DifferenceVerdict::Better => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{h}\"/>"),
        DifferenceVerdict::Worse => format!("<path d=\"M{x:.1} {:.1}l{h} {h}l-{h} {h}l-{h} -{h}z\"/>", y - h),
        _ => format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{2}\" height=\"{2}\"/>",
            x - h + 1.0,
            y - h + 1.0,
            2.0 * (h - 1.0)
        ),
    };
    let _ = writeln!(svg, "{mark}\n</g>");
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn text(svg: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, label: &str) {
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escaped(label)
    );
}
