//! Figures as people read them.

use veeksha_stats::{duration, number, share};

use crate::{Row, Scale, Statistic};

/// A value with its unit: `12.3 ms`, `98.2 %`, `120 tokens`.
pub(crate) fn value_text(value: f64, unit: &str) -> String {
    match unit {
        "s" => duration(value),
        "1" | "" if (0.0..=1.0).contains(&value) => share(value),
        "1" | "" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}

/// A value and how far such values lie from one another: `52.6 ± 0.62 tokens/s`.
pub(crate) fn spread_text(value: f64, spread: f64, unit: &str) -> String {
    match unit {
        "s" | "1" | "" => format!("{} ± {}", value_text(value, unit), value_text(spread, unit)),
        unit => format!("{} ± {} {unit}", number(value), number(spread)),
    }
}

/// A difference of shares: `+2.5 points`, of a hundred.
pub(crate) fn points_text(difference: f64) -> String {
    let points = difference * 100.0;
    let name = if points.abs() == 1.0 { "point" } else { "points" };
    signed(
        difference,
        format!("{} {name}", number((points * 1e6).round() / 1e6)),
    )
}

/// A difference of a row with its sign and unit: `+1.2 ms`, of shares in points.
fn row_difference_text(row: &Row, difference: f64) -> String {
    match (row.scale, row.unit.as_str()) {
        (Scale::Difference, "1" | "") if is_share(row) => points_text(difference),
        (_, unit) => difference_text(difference, unit),
    }
}

fn is_share(row: &Row) -> bool {
    let sides = row.baseline.into_iter().chain(row.candidate);
    sides
        .map(|side| side.value)
        .all(|value| (0.0..=1.0).contains(&value))
}

/// A difference with its sign and unit: `+1.2 ms`.
pub(crate) fn difference_text(difference: f64, unit: &str) -> String {
    let text = match unit {
        "s" => duration(difference),
        "1" | "" => number(difference),
        unit => format!("{} {unit}", number(difference)),
    };
    signed(difference, text)
}

/// From this relative change on the factor is easier to read.
const MANY_TIMES: f64 = 9.0;

/// A relative change: `+5.1 %`, and `×21` of what became many times as much.
pub(crate) fn relative_text(relative: f64) -> String {
    if relative.is_infinite() {
        return if relative > 0.0 {
            "from nothing".into()
        } else {
            "to below nothing".into()
        };
    }
    if relative >= MANY_TIMES {
        return factor_text(relative);
    }
    signed(relative, format!("{} %", percent(relative * 100.0)))
}

fn factor_text(relative: f64) -> String {
    format!("×{}", number(1.0 + relative))
}

/// An interval of relative changes, both ends written alike: `+2.1 % … +8 %`, `×9.58 … ×11.9`.
fn relative_interval_text((low, high): (f64, f64)) -> String {
    let text = match high >= MANY_TIMES {
        true => factor_text,
        false => relative_text,
    };
    format!("{} … {}", text(low), text(high))
}

/// To hundredths, or tenths from 10 on; what is smaller, to three digits.
fn percent(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.01 => 2,
        _ => return number(value),
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn signed(value: f64, text: String) -> String {
    if value > 0.0 { format!("+{text}") } else { text }
}

/// `+12.3 ms (+5.1 %)`; empty where there is no difference to speak of.
pub(crate) fn change_text(row: &Row) -> String {
    match (row.difference, row.relative) {
        (Some(difference), Some(relative)) => {
            format!(
                "{} ({})",
                row_difference_text(row, difference),
                relative_text(relative)
            )
        }
        (Some(difference), None) => row_difference_text(row, difference),
        _ => String::new(),
    }
}

/// `+2.1 % … +8 %`, or in the unit where there is no relative change.
pub(crate) fn interval_text(row: &Row) -> String {
    match (row.relative_interval, row.interval) {
        (Some(interval), _) => relative_interval_text(interval),
        (None, Some((low, high))) => {
            let text = |value| row_difference_text(row, value);
            format!("{} … {}", text(low), text(high))
        }
        _ => String::new(),
    }
}

/// `ttfc p99`, or `error_rate`.
pub(crate) fn figure_text(row: &Row) -> String {
    match row.statistic {
        Statistic::OfSamples(aggregate) => format!("{} {aggregate}", row.name),
        Statistic::Value => row.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_units_and_changes_their_signs() {
        assert_eq!(value_text(0.0123, "s"), "12.3 ms");
        assert_eq!(value_text(0.982, "1"), "98.2 %");
        assert_eq!(value_text(3.4, "1"), "3.4");
        assert_eq!(value_text(120.0, "tokens"), "120 tokens");
        assert_eq!(difference_text(0.0012, "s"), "+1.2 ms");
        assert_eq!(difference_text(-3.0, "tokens"), "-3 tokens");
        assert_eq!(difference_text(0.0, "s"), "0 s");
        assert_eq!(relative_text(0.0512), "+5.12 %");
        assert_eq!(relative_text(-0.003_421), "-0.34 %");
        assert_eq!(relative_text(0.2), "+20 %");
        assert_eq!(relative_text(1.0), "+100 %");
        assert_eq!(relative_text(0.000_012_34), "+0.00123 %");
        assert_eq!(relative_text(f64::INFINITY), "from nothing");
        assert_eq!(relative_text(8.9), "+890 %");
        assert_eq!(relative_text(20.26), "×21.3");
        assert_eq!(relative_interval_text((-0.2, 0.5)), "-20 % … +50 %");
        assert_eq!(relative_interval_text((8.58, 10.9)), "×9.58 … ×11.9");
        assert_eq!(relative_interval_text((-0.2, 10.9)), "×0.8 … ×11.9");
        assert_eq!(points_text(0.025), "+2.5 points");
        assert_eq!(points_text(-0.01), "-1 point");
    }
}
