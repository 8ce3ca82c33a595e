//! Verdicts on differences.

use std::fmt;

use veeksha_model::Better;

/// Verdict on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The candidate is better.
    Better,
    /// The candidate is worse.
    Worse,
    /// The candidate differs in a metric without a better side.
    Differs,
    /// The difference may be chance.
    NoDifference,
    /// The difference is significant, but within the clients' measurement error.
    WithinClientError,
    /// The difference is significant, but smaller than the smallest relevant change.
    TooSmall,
    /// The difference is large, but the runs are too few to distinguish it from chance.
    TooFewRuns,
    /// The side that lost more requests does not look worse in its answered ones, but the slowest
    /// requests may be among the lost ones.
    SurvivorsOnly,
    /// There are too few samples, or a single value whose error only several runs show.
    NotEnoughData,
    /// The runs did not do the same work, are not valid, or the metric cannot be compared between
    /// runs.
    NotComparable,
}

impl Verdict {
    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Differs => "differs",
            Verdict::NoDifference => "no_difference_seen",
            Verdict::WithinClientError => "within_client_error",
            Verdict::TooSmall => "too_small",
            Verdict::TooFewRuns => "too_few_runs",
            Verdict::SurvivorsOnly => "survivors_only",
            Verdict::NotEnoughData => "not_enough_data",
            Verdict::NotComparable => "not_comparable",
        }
    }

    /// Returns the verdict on a significant difference.
    pub(crate) fn of_direction(difference: f64, better: Better) -> Verdict {
        match (better, difference > 0.0) {
            (Better::Neither, _) => Verdict::Differs,
            (Better::Higher, true) | (Better::Less, false) => Verdict::Better,
            _ => Verdict::Worse,
        }
    }

    /// Returns the rank for sorting: worse first, then possibly worse, better, different, and no
    /// difference.
    pub fn rank(self) -> u8 {
        match self {
            Verdict::Worse => 0,
            Verdict::TooFewRuns => 1,
            Verdict::SurvivorsOnly => 2,
            Verdict::Better => 3,
            Verdict::Differs => 4,
            Verdict::WithinClientError => 5,
            Verdict::TooSmall => 6,
            Verdict::NoDifference => 7,
            Verdict::NotEnoughData => 8,
            Verdict::NotComparable => 9,
        }
    }

    /// Returns true for a verdict that deserves attention.
    pub fn stands_out(self) -> bool {
        self.rank() <= Verdict::Differs.rank()
    }

    /// Returns the verdict with the sides exchanged: worse becomes better.
    pub fn mirrored(self) -> Verdict {
        match self {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        }
    }
}

/// Text for the terminal.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Differs => "differs",
            Verdict::NoDifference => "no difference seen",
            Verdict::WithinClientError => "within the clients' error",
            Verdict::TooSmall => "too small to matter",
            Verdict::TooFewRuns => "too few runs to tell",
            Verdict::SurvivorsOnly => "survivors only",
            Verdict::NotEnoughData => "not enough data",
            Verdict::NotComparable => "not comparable",
        })
    }
}

/// Returns Holm's adjusted probabilities: the `k`-th smallest of `n` times `n - k + 1`, and never
/// below the preceding one.
pub(crate) fn holm(probabilities: &[f64]) -> Vec<f64> {
    let count = probabilities.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut adjusted = vec![0.0; count];
    let mut least: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        least = least.max((probabilities[index] * (count - place) as f64).min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_by_hand() {
        // 0.01 × 4, 0.02 × 3, 0.03 × 2 = 0.06 as before, 0.5 × 1.
        let adjusted = holm(&[0.03, 0.01, 0.5, 0.02]);
        for (seen, expected) in adjusted.iter().zip([0.06, 0.04, 0.5, 0.06]) {
            assert!((seen - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
