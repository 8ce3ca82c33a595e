//! Axes: range, ticks and units.

use veeksha_stats::{duration, number};

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotAxis {
    /// Its title, without the unit.
    pub label: String,
    /// The unit of the values: `s` and `s/...` are shown in a suitable unit of time, `1` in
    /// percent, any other unit unchanged.
    pub unit: String,
    /// Linear or logarithmic.
    pub scale: AxisScale,
    /// Its range.
    pub span: AxisSpan,
    /// Names at 0, 1, 2, ... in place of numbers; empty for numbers.
    pub names: Vec<String>,
    /// True if the values are counts: labels are whole numbers.
    pub counts: bool,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal differences have equal lengths.
    Linear,
    /// Equal ratios have equal lengths. Lines, points and texts at or below 0 are not drawn; bars,
    /// boxes and bands extend to the lower end.
    Log,
}

/// The range of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AxisSpan {
    /// The values and a margin.
    Values,
    /// The values and 0.
    FromZero,
    /// Exactly this range.
    Fixed(f64, f64),
}

impl PlotAxis {
    /// Creates a linear axis that spans its values.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        PlotAxis {
            label: label.into(),
            unit: unit.into(),
            scale: AxisScale::Linear,
            span: AxisSpan::Values,
            names: Vec::new(),
            counts: false,
        }
    }

    /// Returns true if the axis has a place for a value.
    pub(super) fn can_show(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == AxisScale::Linear || value > 0.0)
    }

    /// Labels only whole numbers.
    pub fn counting(self) -> Self {
        PlotAxis { counts: true, ..self }
    }

    /// Sets the scale.
    pub fn scaled(self, scale: AxisScale) -> Self {
        PlotAxis { scale, ..self }
    }

    /// Sets the range.
    pub fn spanning(self, span: AxisSpan) -> Self {
        PlotAxis { span, ..self }
    }

    /// Sets names at 0, 1, 2, ...
    pub fn named(self, names: Vec<String>) -> Self {
        let span = AxisSpan::Fixed(-0.5, names.len() as f64 - 0.5);
        PlotAxis { names, span, ..self }
    }
}

/// An axis with a computed range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fitted {
    low: f64,
    high: f64,
    scale: AxisScale,
    /// Title with unit.
    pub(super) label: String,
    /// Values with their labels, ascending.
    pub(super) ticks: Vec<(f64, String)>,
    /// Values of minor grid lines.
    pub(super) minor: Vec<f64>,
}

impl Fitted {
    /// Fits the axis to finite values, with at most about `room` labels; `None` if there are no
    /// values.
    pub(super) fn new(axis: &PlotAxis, values: impl Iterator<Item = f64> + Clone, room: f64) -> Option<Self> {
        let (low, high) = ends(axis, values).filter(|(low, high)| (high - low).is_finite())?;
        let (label, ticks, minor) = match (axis.names.is_empty(), axis.scale) {
            (false, _) => (axis.label.clone(), named(&axis.names), Vec::new()),
            (true, AxisScale::Linear) => linear(axis, (low, high), room),
            (true, AxisScale::Log) => logarithmic(axis, low, high),
        };
        Some(Fitted {
            low,
            high,
            scale: axis.scale,
            label,
            ticks,
            minor,
        })
    }

    /// Returns the position of a value, from 0 at the lower end to 1 at the upper; values outside
    /// are clamped.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            AxisScale::Linear => (value - self.low) / (self.high - self.low),
            AxisScale::Log if value <= 0.0 => 0.0,
            AxisScale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    /// Returns the lower end.
    pub(super) fn low(&self) -> f64 {
        self.low
    }
}

fn ends(axis: &PlotAxis, values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let least = values.clone().reduce(f64::min)?;
    let most = values.clone().reduce(f64::max)?;
    if let AxisSpan::Fixed(low, high) = axis.span {
        return Some((low, high));
    }
    if axis.scale == AxisScale::Log {
        let positive = values.filter(|value| *value > 0.0).reduce(f64::min);
        // A value at or below 0 is drawn at the lower end, apart from the smallest positive value.
        let low = match positive {
            Some(positive) if least <= 0.0 => positive / 2.0,
            Some(positive) => positive,
            None => 0.5,
        };
        let high = most.max(low * 10.0);
        // Clamp to 12 decades; smaller values are drawn at the lower bound.
        let low = low.max(high * 1e-12);
        // A margin, by ratio.
        let room = (high / low).powf(0.03);
        return Some((low / room, high * room));
    }
    let zero = axis.span == AxisSpan::FromZero;
    let (low, high) = if zero {
        (least.min(0.0), most.max(0.0))
    } else {
        (least, most)
    };
    let width = high - low;
    if width <= f64::EPSILON * high.abs().max(low.abs()) {
        let around = if high == 0.0 { 1.0 } else { high.abs() / 2.0 };
        return Some(if zero && low >= 0.0 {
            (0.0, high + around)
        } else {
            (low - around, high + around)
        });
    }
    let room = width * 0.04;
    // No margin below zero.
    let below = if low == 0.0 { 0.0 } else { room };
    Some((low - below, high + room))
}

fn named(names: &[String]) -> Vec<(f64, String)> {
    names
        .iter()
        .enumerate()
        .map(|(place, name)| (place as f64, name.clone()))
        .collect()
}

type AxisTicks = (String, Vec<(f64, String)>, Vec<f64>);

fn linear(axis: &PlotAxis, (low, high): (f64, f64), room: f64) -> AxisTicks {
    let (factor, unit) = shown_unit(&axis.unit, low.abs().max(high.abs()));
    let (from, to) = (low * factor, high * factor);
    let step = nice_step((to - from) / room.max(2.0));
    let step = if axis.counts { step.max(1.0) } else { step };
    let first = (from / step).ceil() as i64;
    let last = (to / step).floor() as i64;
    let largest = from.abs().max(to.abs());
    let ticks = (first..=last)
        .take(50)
        .map(|place| {
            let value = place as f64 * step;
            (value / factor, plain(value, step, largest))
        })
        .collect();
    (with_unit(&axis.label, &unit), ticks, Vec::new())
}

fn logarithmic(axis: &PlotAxis, low: f64, high: f64) -> AxisTicks {
    let decades = (high / low).log10();
    let every = (decades / 9.0).ceil().max(1.0) as i32;
    let within = |value: f64| value >= low && value <= high;
    let (mut ticks, mut minor) = (Vec::new(), Vec::new());
    for exponent in (low.log10().floor() as i32)..=(high.log10().ceil() as i32) {
        for digit in 1..=9 {
            let value = f64::from(digit) * 10f64.powi(exponent);
            let has_number = match digit {
                1 => exponent % every == 0,
                2 | 5 => decades < 2.5,
                3 => decades < 0.7,
                _ => false,
            };
            if !within(value) {
            } else if has_number {
                ticks.push((value, log_label(&axis.unit, value)));
            } else if decades < 6.0 {
                minor.push(value);
            }
        }
    }
    // Durations have units at their labels on a log axis.
    let unit = match axis.unit.strip_prefix('s') {
        Some("") => String::new(),
        Some(per) if per.starts_with('/') => per.replacen('/', "per ", 1),
        _ => axis.unit.clone(),
    };
    let unit = if unit.is_empty() {
        "log scale".to_owned()
    } else {
        format!("{unit}, log scale")
    };
    (with_unit(&axis.label, &unit), ticks, minor)
}

fn log_label(unit: &str, value: f64) -> String {
    if is_time(unit) {
        duration(value)
    } else if unit == "1" {
        format!("{} %", number(value * 100.0))
    } else {
        short(value)
    }
}

fn is_time(unit: &str) -> bool {
    unit == "s" || unit.starts_with("s/")
}

/// Appends the unit to a title, unless the title already contains it (`Number of Output Tokens`).
fn with_unit(label: &str, unit: &str) -> String {
    if unit.is_empty() || label.to_lowercase().contains(&unit.to_lowercase()) && unit.len() > 2 {
        label.to_owned()
    } else {
        format!("{label} ({unit})")
    }
}

/// Returns the factor from values to displayed values, and the displayed unit.
fn shown_unit(unit: &str, largest: f64) -> (f64, String) {
    if unit == "1" {
        return (100.0, "%".into());
    }
    if !is_time(unit) {
        return (1.0, unit.into());
    }
    let (factor, time) = match largest {
        size if size >= 4.0 * 3600.0 => (1.0 / 3600.0, "h"),
        size if size >= 600.0 => (1.0 / 60.0, "min"),
        size if size >= 1.0 || size == 0.0 => (1.0, "s"),
        size if size >= 1e-3 => (1e3, "ms"),
        size if size >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    (factor, format!("{time}{}", &unit[1..]))
}

/// Returns the smallest step of 1, 2 or 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// Formats a number on an axis with labels `step` apart.
fn plain(value: f64, step: f64, largest: f64) -> String {
    let (divisor, suffix) = match largest {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let decimals = (-(step / divisor).log10().floor()).clamp(0.0, 9.0) as usize;
    let value = value / divisor;
    if value == 0.0 {
        return "0".into();
    }
    if decimals >= 7 {
        return format!("{value:.2e}{suffix}");
    }
    format!("{value:.decimals$}{suffix}")
}

/// Formats a number for a log axis.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{}G", number(value / 1e9)),
        size if size >= 1e6 => format!("{}M", number(value / 1e6)),
        size if size >= 1e3 => format!("{}k", number(value / 1e3)),
        _ => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(axis: &PlotAxis, values: &[f64]) -> Fitted {
        Fitted::new(axis, values.iter().copied(), 6.0).unwrap()
    }

    fn labels(fitted: &Fitted) -> Vec<&str> {
        fitted.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn selects_a_suitable_time_unit() {
        let cases = [
            (0.000_000_4, "ns"),
            (0.000_4, "µs"),
            (0.4, "ms"),
            (4.0, "s"),
            (570.0, "s"),
            (3_000.0, "min"),
            (50_000.0, "h"),
        ];
        for (most, unit) in cases {
            let axis = PlotAxis::new("wait", "s").spanning(AxisSpan::FromZero);
            assert_eq!(fitted(&axis, &[most]).label, format!("wait ({unit})"), "{most}");
        }
        let axis = PlotAxis::new("wait", "s/token").spanning(AxisSpan::FromZero);
        assert_eq!(fitted(&axis, &[0.4]).label, "wait (ms/token)");
        assert_eq!(fitted(&PlotAxis::new("load", ""), &[1.0, 2.0]).label, "load");
        let axis = PlotAxis::new("Number of Output Tokens", "tokens");
        assert_eq!(fitted(&axis, &[1.0, 2.0]).label, "Number of Output Tokens");
    }

    #[test]
    fn ticks_are_round_and_evenly_spaced() {
        let axis = PlotAxis::new("t", "s").spanning(AxisSpan::FromZero);
        // 0 to 0.26 s is 0 to 260 ms (and 4 % more): steps of 50.
        let seen = fitted(&axis, &[0.26]);
        assert_eq!(labels(&seen), ["0", "50", "100", "150", "200", "250"]);
        assert!((seen.ticks[5].0 - 0.25).abs() < 1e-12);
        let axis = PlotAxis::new("n", "tokens");
        let seen = fitted(&axis, &[10_000.0, 12_000.0]);
        assert_eq!(labels(&seen), ["10.0k", "10.5k", "11.0k", "11.5k", "12.0k"]);
        let seen = fitted(
            &PlotAxis::new("share", "1").spanning(AxisSpan::Fixed(0.0, 1.0)),
            &[0.5],
        );
        assert_eq!(labels(&seen), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(seen.label, "share (%)");
    }

    #[test]
    fn counts_have_whole_ticks() {
        let axis = PlotAxis::new("requests", "").spanning(AxisSpan::FromZero);
        assert_eq!(labels(&fitted(&axis, &[2.0])), ["0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(labels(&fitted(&axis.counting(), &[2.0])), ["0", "1", "2"]);
    }

    #[test]
    fn log_axis_has_ticks_at_powers_of_ten() {
        let axis = PlotAxis::new("t", "s").scaled(AxisScale::Log);
        let seen = fitted(&axis, &[0.000_9, 11.0]);
        assert_eq!(labels(&seen), ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
        assert_eq!(seen.label, "t (log scale)");
        assert!(seen.minor.iter().any(|value| (value - 0.002).abs() < 1e-12));
        // The middle of 1 and 100 by ratio is 10.
        let seen = fitted(
            &PlotAxis::new("n", "tokens").scaled(AxisScale::Log),
            &[1.0, 100.0],
        );
        assert!((seen.place(10.0) - 0.5).abs() < 1e-12);
        assert_eq!(labels(&seen), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(seen.label, "n (tokens, log scale)");
        // Values at or below 0 are at the lower end, and the smallest positive value is not.
        let seen = fitted(&axis, &[0.0, 4.0, 800.0]);
        assert_eq!((seen.place(0.0), seen.place(-3.0)), (0.0, 0.0));
        assert!(seen.place(4.0) > 0.1, "{}", seen.place(4.0));
    }

    #[test]
    fn fits_an_axis_to_any_values() {
        assert_eq!(Fitted::new(&PlotAxis::new("", ""), std::iter::empty(), 6.0), None);
        // There are no representable numbers above these.
        assert_eq!(
            Fitted::new(&PlotAxis::new("", ""), [0.0, f64::MAX].into_iter(), 6.0),
            None
        );
        for values in [
            vec![0.0],
            vec![5.0, 5.0],
            vec![-3.0, 7.0],
            vec![1e-300, 1e300],
            vec![-1e-9, 1e12],
            vec![0.1 + 0.2, 0.3],
        ] {
            for scale in [AxisScale::Linear, AxisScale::Log] {
                for span in [AxisSpan::Values, AxisSpan::FromZero] {
                    let axis = PlotAxis::new("", "s").scaled(scale).spanning(span);
                    let seen = fitted(&axis, &values);
                    assert!(
                        seen.low < seen.high && seen.low.is_finite(),
                        "{values:?} {scale:?} {span:?}"
                    );
                    for value in &values {
                        let place = seen.place(*value);
                        assert!(
                            (0.0..=1.0).contains(&place),
                            "{values:?} {scale:?} {span:?}: {place}"
                        );
                    }
                    assert!(seen.ticks.len() < 60);
                    for (_, label) in &seen.ticks {
                        assert!(!label.contains("NaN") && !label.contains("inf"), "{label}");
                    }
                }
            }
        }
    }

    #[test]
    fn puts_names_at_integers() {
        let axis = PlotAxis::new("group", "").named(vec!["a".into(), "b".into()]);
        let seen = fitted(&axis, &[0.0]);
        assert_eq!(labels(&seen), ["a", "b"]);
        assert_eq!((seen.place(0.0), seen.place(1.0)), (0.25, 0.75));
    }
}
