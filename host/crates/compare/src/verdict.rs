//! What is said of a difference.

use std::fmt;

use veeksha_model::Better;

/// What is said of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The candidate is better.
    Better,
    /// The candidate is worse.
    Worse,
    /// The candidate differs in what has no better side.
    Differs,
    /// What is seen may be chance.
    NoDifference,
    /// It is more than chance, and less than the clients may be wrong by.
    WithinClientError,
    /// It is more than chance, and less than matters.
    TooSmall,
    /// The values lie far apart, and so few runs cannot tell whether that is chance: more of them would.
    TooFewRuns,
    /// The side that lost more requests looks no worse in those that it answered, and the slowest may be among the lost.
    SurvivorsOnly,
    /// There are too few samples, or one value of what only several runs tell the error of.
    NotEnoughData,
    /// The runs did not do the same work, or are not valid, or the figure says nothing across runs.
    NotComparable,
}

impl Verdict {
    /// The snake-case name, as it stands in files.
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

    /// The verdict on a difference that is more than chance.
    pub(crate) fn of_direction(difference: f64, better: Better) -> Verdict {
        match (better, difference > 0.0) {
            (Better::Neither, _) => Verdict::Differs,
            (Better::Higher, true) | (Better::Less, false) => Verdict::Better,
            _ => Verdict::Worse,
        }
    }

    /// What a reader should see first: what is worse, then what may be, what is better, what differs, and what does not.
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

    /// Whether something was seen that a reader should look at.
    pub fn stands_out(self) -> bool {
        self.rank() <= Verdict::Differs.rank()
    }

    /// The verdict from the other side: what is worse in B than in A is better in A than in B.
    pub fn mirrored(self) -> Verdict {
        match self {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        }
    }
}

/// For people.
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

/// Holm's adjusted probabilities: the `k`-th smallest of `n` times `n - k + 1`, and never below the one before it.
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
