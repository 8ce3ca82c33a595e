//! Verdicts on differences.

use std::fmt;

use veeksha_model::Better;

/// Verdict on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DifferenceVerdict {
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
    /// The server had more of the prompts of one side in its prefix cache, and that side does not
    /// look worse.
    CacheStatesDiffer,
    /// There are too few samples, or a single value whose error only several runs show.
    NotEnoughData,
    /// The runs did not do the same work, are not valid, or the metric cannot be compared between
    /// runs.
    NotComparable,
}

impl DifferenceVerdict {
    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            DifferenceVerdict::Better => "better",
            DifferenceVerdict::Worse => "worse",
            DifferenceVerdict::Differs => "differs",
            DifferenceVerdict::NoDifference => "no_difference_seen",
            DifferenceVerdict::WithinClientError => "within_client_error",
            DifferenceVerdict::TooSmall => "too_small",
            DifferenceVerdict::TooFewRuns => "too_few_runs",
            DifferenceVerdict::SurvivorsOnly => "survivors_only",
            DifferenceVerdict::CacheStatesDiffer => "cache_states_differ",
            DifferenceVerdict::NotEnoughData => "not_enough_data",
            DifferenceVerdict::NotComparable => "not_comparable",
        }
    }

    /// Returns the verdict on a significant difference.
    pub(crate) fn of_direction(difference: f64, better: Better) -> DifferenceVerdict {
        match (better, difference > 0.0) {
            (Better::Neither, _) => DifferenceVerdict::Differs,
            (Better::Higher, true) | (Better::Less, false) => DifferenceVerdict::Better,
            _ => DifferenceVerdict::Worse,
        }
    }

    /// Returns the rank for sorting: worse first, then possibly worse, better, different, and no
    /// difference.
    pub fn rank(self) -> u8 {
        match self {
            DifferenceVerdict::Worse => 0,
            DifferenceVerdict::TooFewRuns => 1,
            DifferenceVerdict::SurvivorsOnly => 2,
            DifferenceVerdict::CacheStatesDiffer => 3,
            DifferenceVerdict::Better => 4,
            DifferenceVerdict::Differs => 5,
            DifferenceVerdict::WithinClientError => 6,
            DifferenceVerdict::TooSmall => 7,
            DifferenceVerdict::NoDifference => 8,
            DifferenceVerdict::NotEnoughData => 9,
            DifferenceVerdict::NotComparable => 10,
        }
    }

    /// Returns true for a verdict that deserves attention.
    pub fn stands_out(self) -> bool {
        self.rank() <= DifferenceVerdict::Differs.rank()
    }

    /// Returns the verdict with the sides exchanged: worse becomes better.
    pub fn mirrored(self) -> DifferenceVerdict {
        match self {
            DifferenceVerdict::Better => DifferenceVerdict::Worse,
            DifferenceVerdict::Worse => DifferenceVerdict::Better,
            other => other,
        }
    }
}

/// Text for the terminal.
impl fmt::Display for DifferenceVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DifferenceVerdict::Better => "better",
            DifferenceVerdict::Worse => "worse",
            DifferenceVerdict::Differs => "differs",
            DifferenceVerdict::NoDifference => "no difference seen",
            DifferenceVerdict::WithinClientError => "within the clients' error",
            DifferenceVerdict::TooSmall => "too small to matter",
            DifferenceVerdict::TooFewRuns => "too few runs to tell",
            DifferenceVerdict::SurvivorsOnly => "survivors only",
            DifferenceVerdict::CacheStatesDiffer => "cache states differ",
            DifferenceVerdict::NotEnoughData => "not enough data",
            DifferenceVerdict::NotComparable => "not comparable",
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
