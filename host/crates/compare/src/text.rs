//! Formatting of values and differences.

use veeksha_stats::{duration, number, share};

use crate::ends::{ends_text, percent, plain, seconds};
use crate::row::ComparisonRow;
use crate::statistic::Statistic;

/// Formats a value with its unit ([`ComparisonRow::display_unit`]): `12.3 ms`, `98.2 %`,
/// `120 tokens`.
pub(crate) fn value_text(value: f64, unit: &str) -> String {
    match unit {
        "s" => duration(value),
        "share" => share(value),
        "1" | "" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}

/// Formats a value with its spread: `52.6 ± 0.62 tokens/s`.
pub(crate) fn spread_text(value: f64, spread: f64, unit: &str) -> String {
    match unit {
        "s" | "share" | "1" | "" => format!("{} ± {}", value_text(value, unit), value_text(spread, unit)),
        unit => format!("{} ± {} {unit}", number(value), number(spread)),
    }
}

/// Formats a difference of shares in percentage points: `+2.5 points`.
pub(crate) fn points_text(difference: f64) -> String {
    points_to(difference, 0)
}

fn points_to(difference: f64, more: usize) -> String {
    let points = (difference * 1e8).round() / 1e6;
    let name = if points.abs() == 1.0 { "point" } else { "points" };
    signed(difference, format!("{} {name}", plain(points, more)))
}

/// Formats a difference with sign and unit: `+1.2 ms`, shares in points.
pub(crate) fn difference_text(difference: f64, unit: &str) -> String {
    difference_to(difference, unit, 0)
}

fn difference_to(difference: f64, unit: &str, more: usize) -> String {
    let text = match unit {
        "share" => return points_to(difference, more),
        "s" => seconds(difference, more),
        "1" | "" => plain(difference, more),
        unit => format!("{} {unit}", plain(difference, more)),
    };
    signed(difference, text)
}

/// Formats a relative change in percent, whatever its size, so that a table is uniform: `+5.1 %`,
/// `+2030 %`.
pub(crate) fn relative_text(relative: f64) -> String {
    relative_to(relative, 0)
}

fn relative_to(relative: f64, more: usize) -> String {
    if relative.is_infinite() {
        return if relative > 0.0 {
            "from nothing".into()
        } else {
            "to below nothing".into()
        };
    }
    signed(relative, format!("{} %", percent(relative * 100.0, more)))
}

fn signed(value: f64, text: String) -> String {
    if value > 0.0 { format!("+{text}") } else { text }
}

/// Formats `+12.3 ms (+5.1 %)`; empty without a difference.
pub(crate) fn change_text(row: &ComparisonRow) -> String {
    match (row.difference, row.relative) {
        (Some(difference), Some(relative)) if difference != 0.0 => {
            format!(
                "{} ({})",
                difference_text(difference, row.display_unit()),
                relative_text(relative)
            )
        }
        (Some(difference), _) => difference_text(difference, row.display_unit()),
        (None, _) => String::new(),
    }
}

/// Formats `+2.1 % … +8 %`, or an interval in the unit of the row if it has no relative change.
pub(crate) fn interval_text(row: &ComparisonRow) -> String {
    match (row.relative_interval, row.interval) {
        (Some(ends), _) => ends_text(ends, relative_to),
        (None, Some(ends)) => ends_text(ends, |end, more| difference_to(end, row.display_unit(), more)),
        _ => String::new(),
    }
}

/// Formats `ttfc p99`, or `error_rate`.
pub(crate) fn row_name(row: &ComparisonRow) -> String {
    match row.statistic {
        Statistic::OfSamples(aggregate) => format!("{} {aggregate}", row.name),
        Statistic::Value => row.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units_and_changes_have_signs() {
        assert_eq!(value_text(0.0123, "s"), "12.3 ms");
        assert_eq!(value_text(0.982, "share"), "98.2 %");
        assert_eq!(value_text(0.982, "1"), "0.982");
        assert_eq!(value_text(3.4, "1"), "3.4");
        assert_eq!(value_text(120.0, "tokens"), "120 tokens");
        assert_eq!(difference_text(0.0012, "s"), "+1.2 ms");
        assert_eq!(difference_text(-3.0, "tokens"), "-3 tokens");
        assert_eq!(difference_text(0.0, "s"), "0 s");
        assert_eq!(difference_text(0.025, "share"), "+2.5 points");
        assert_eq!(difference_text(0.025, "1"), "+0.025");
        assert_eq!(relative_text(0.0512), "+5.12 %");
        assert_eq!(relative_text(-0.003_421), "-0.34 %");
        assert_eq!(relative_text(0.2), "+20 %");
        assert_eq!(relative_text(1.0), "+100 %");
        assert_eq!(relative_text(0.000_012_34), "+0.001 %");
        assert_eq!(relative_text(f64::INFINITY), "from nothing");
        assert_eq!(relative_text(8.9), "+890 %");
        assert_eq!(relative_text(20.26), "+2026 %");
        assert_eq!(ends_text((-0.705, 7.29), relative_to), "-70.5 % … +729 %");
        assert_eq!(ends_text((-0.762, 12.7), relative_to), "-76.2 % … +1270 %");
        assert_eq!(
            ends_text((0.0250101, 0.0250102), points_to),
            "+2.50101 points … +2.50102 points"
        );
        assert_eq!(points_text(0.025), "+2.5 points");
        assert_eq!(points_text(-0.01), "-1 point");
    }
}
