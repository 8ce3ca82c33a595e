//! A number of requests out of another.

use crate::effect::Variance;
use crate::statistic::ENOUGH;

/// A number of requests out of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestShare {
    /// Requests that count, such as failed ones.
    pub part: u64,
    /// All requests.
    pub whole: u64,
}

impl RequestShare {
    /// Returns `part` ÷ `whole`.
    pub(crate) fn share(self) -> f64 {
        self.part as f64 / self.whole as f64
    }

    /// Returns the sum of both counts.
    pub(crate) fn and(self, other: RequestShare) -> RequestShare {
        RequestShare {
            part: self.part + other.part,
            whole: self.whole + other.whole,
        }
    }

    /// Returns the smallest plausible variance of the share, for independent requests: that of
    /// Agresti and Caffo, "Simple and Effective Confidence Intervals for Proportions and
    /// Differences of Proportions", The American Statistician 54 (2000), who add a request that
    /// counts and one that does not. It is therefore positive even if all requests of a side are
    /// alike.
    pub(crate) fn variance(self) -> Option<Variance> {
        let (part, whole) = (self.part as f64 + 1.0, self.whole as f64 + 2.0);
        let share = part / whole;
        (self.whole as f64 >= ENOUGH).then_some(Variance {
            variance: share * (1.0 - share) / whole,
            freedom: self.whole as f64 - 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (40 + 1) / (120 + 2) = 0.33607, × 0.66393 ÷ 122 = 0.0018289; for 0 of 120, 1/122 × 121/122 ÷
    /// 122 = 0.00006664.
    #[test]
    fn shares_of_counts_have_the_variance_of_agresti_and_caffo() {
        let of = |part, whole| {
            RequestShare { part, whole }
                .variance()
                .map(|known| known.variance)
        };
        assert!((of(40, 120).unwrap() - 0.001_828_9).abs() < 1e-7);
        assert!((of(0, 120).unwrap() - 0.000_066_64).abs() < 1e-8);
        assert!((of(0, 120).unwrap() - of(120, 120).unwrap()).abs() < 1e-15);
        assert_eq!(of(0, 19), None);
        assert!(of(0, 20).is_some());
    }
}
