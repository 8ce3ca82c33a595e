//! Axis of a forest plot: positions of changes, and ticks.

use crate::effect::ComparisonScale;
use crate::text::{points_text, relative_text};

/// Maximum extent of the axis beyond the furthest estimates, in logarithms and in shares; longer
/// intervals are cut and marked with an arrow.
const BEYOND: [f64; 2] = [2.1, 0.2];

/// Minimum distance between tick labels, as a share of the axis.
const APART: f64 = 0.09;

/// Factors at which a wide axis has ticks, with their reciprocals.
const FACTORS: [f64; 11] = [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 1e4, 1e6];

/// Mapping from changes to positions from 0 to 1. Ratios are placed by their logarithms: factors 2
/// and 1/2 are equally far from no change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForestAxis {
    scale: ComparisonScale,
    low: f64,
    high: f64,
}

/// A tick.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    /// Position, from 0 to 1.
    pub(crate) at: f64,
    pub(crate) label: String,
    /// True for no change.
    pub(crate) is_zero: bool,
}

impl ForestAxis {
    /// Creates an axis for changes with their intervals: relative ones (0.1 is 10 % more), or
    /// differences of shares.
    pub(crate) fn new(scale: ComparisonScale, changes: &[(f64, (f64, f64))]) -> ForestAxis {
        let beyond = match scale {
            ComparisonScale::Ratio => BEYOND[0],
            ComparisonScale::Difference => BEYOND[1],
        };
        let place = |change: f64| along(scale, change);
        let estimates = || changes.iter().map(|(change, _)| place(*change)).chain([0.0]);
        let furthest = estimates().fold(0.0, f64::max) + beyond;
        let nearest = estimates().fold(0.0, f64::min) - beyond;
        let low = changes
            .iter()
            .map(|(_, (low, _))| place(*low))
            .fold(-0.02, f64::min);
        let high = changes
            .iter()
            .map(|(_, (_, high))| place(*high))
            .fold(0.02, f64::max);
        let (low, high) = (low.max(nearest), high.min(furthest));
        let margin = 0.04 * (high - low);
        ForestAxis {
            scale,
            low: low - margin,
            high: high + margin,
        }
    }

    /// Returns the position of a change, clamped to 0 to 1.
    pub(crate) fn at(&self, change: f64) -> f64 {
        self.place(along(self.scale, change)).clamp(0.0, 1.0)
    }

    /// Returns true if a change is beyond an end.
    pub(crate) fn cuts(&self, change: f64) -> bool {
        !(self.low..=self.high).contains(&along(self.scale, change))
    }

    fn place(&self, along: f64) -> f64 {
        (along - self.low) / (self.high - self.low)
    }

    /// Returns ticks at round numbers including no change, from left to right.
    pub(crate) fn ticks(&self) -> Vec<AxisTick> {
        let is_wide =
            self.scale == ComparisonScale::Ratio && self.high.max(-self.low) > std::f64::consts::LN_2;
        let changes = if is_wide { factors() } else { self.steps() };
        let mut ticks = vec![self.tick(0.0)];
        // From the middle outwards, so that ticks near no change survive in a narrow plot.
        for change in changes {
            let tick = self.tick(change);
            let is_free = ticks.iter().all(|other| (other.at - tick.at).abs() >= APART);
            if !self.cuts(change) && is_free {
                ticks.push(tick);
            }
        }
        ticks.sort_by(|one, other| one.at.total_cmp(&other.at));
        ticks
    }

    fn tick(&self, change: f64) -> AxisTick {
        let label = match self.scale {
            _ if change == 0.0 => "no change".to_owned(),
            ComparisonScale::Difference => points_text(change),
            ComparisonScale::Ratio if change >= 1.0 => format!("×{}", veeksha_stats::number(1.0 + change)),
            ComparisonScale::Ratio if change <= -0.5 => {
                format!("÷{}", veeksha_stats::number(1.0 / (1.0 + change)))
            }
            ComparisonScale::Ratio => relative_text(change),
        };
        AxisTick {
            at: self.at(change),
            label,
            is_zero: change == 0.0,
        }
    }

    /// Returns changes in steps of 1, 2 or 5, from the middle outwards.
    fn steps(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let nice = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = nice
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power);
        (1..=20)
            .flat_map(|steps| [f64::from(steps) * step, -f64::from(steps) * step])
            .collect()
    }
}

fn factors() -> Vec<f64> {
    FACTORS
        .into_iter()
        .flat_map(|factor| [factor - 1.0, 1.0 / factor - 1.0])
        .collect()
}

fn along(scale: ComparisonScale, change: f64) -> f64 {
    match scale {
        ComparisonScale::Ratio => change.max(-1.0 + 1e-12).ln_1p(),
        ComparisonScale::Difference => change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &ForestAxis) -> Vec<String> {
        axis.ticks().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn small_changes_have_ticks_in_percent() {
        let axis = ForestAxis::new(
            ComparisonScale::Ratio,
            &[(0.1, (0.05, 0.15)), (-0.08, (-0.12, -0.02))],
        );
        assert_eq!(
            labels(&axis),
            ["-10 %", "-5 %", "no change", "+5 %", "+10 %", "+15 %"]
        );
    }

    #[test]
    fn axis_is_symmetric_for_twice_and_half() {
        let axis = ForestAxis::new(
            ComparisonScale::Ratio,
            &[(3.0, (2.0, 9.0)), (-0.75, (-0.9, -0.6))],
        );
        let (zero, twice, half) = (axis.at(0.0), axis.at(1.0), axis.at(-0.5));
        assert!((twice - zero - (zero - half)).abs() < 1e-12);
        let labels = labels(&axis);
        for expected in ["÷5", "÷2", "no change", "×2", "×5"] {
            assert!(labels.iter().any(|label| label == expected), "{labels:?}");
        }
    }

    #[test]
    fn infinite_interval_does_not_dominate_the_axis() {
        let axis = ForestAxis::new(
            ComparisonScale::Ratio,
            &[(0.1, (0.05, 0.15)), (0.5, (-0.9, 1e30))],
        );
        assert!(axis.cuts(1e30) && !axis.cuts(0.5) && axis.at(1e30) == 1.0);
        assert!(axis.at(0.15) - axis.at(0.05) > 0.01);
        assert!(axis.ticks().iter().all(|tick| (0.0..=1.0).contains(&tick.at)));
    }

    #[test]
    fn shares_have_ticks_in_points() {
        let axis = ForestAxis::new(ComparisonScale::Difference, &[(0.03, (0.01, 0.05))]);
        assert!(
            labels(&axis).contains(&"+2 points".to_owned()),
            "{:?}",
            labels(&axis)
        );
    }
}
