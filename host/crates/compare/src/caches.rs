//! Different states of the server's prefix cache: such runs are not repeats, even with the same
//! requests. A side with more cached prompt tokens has less prefill to do, so that its times that
//! contain prefill favor it. If it looks worse nevertheless, it is worse; any other result is
//! inconclusive.

use veeksha_stats::share;

use crate::input::{CompareSide, RunData};
use crate::remark::Remark;
use crate::row::ComparisonRow;
use crate::verdict::DifferenceVerdict;

/// Cached shares of prompt tokens that differ by no more than this are equal, because of evicted
/// blocks and requests that overtake one another.
const ALIKE: f64 = 0.01;

/// Mean cached shares of two sides that differ by more than this make times that contain prefill
/// inconclusive.
const DECISIVE: f64 = 0.05;

/// Allowance for rounding of shares.
const ROUNDING: f64 = 1e-9;

/// Mean cached shares of the prompt tokens of two sides that differ decisively.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachedShares {
    /// Share of the baseline.
    pub baseline: f64,
    /// Share of the candidate.
    pub candidate: f64,
}

impl CachedShares {
    /// Returns the shares if both are known and differ decisively.
    pub(crate) fn that_differ(baseline: &[&RunData], candidate: &[&RunData]) -> Option<CachedShares> {
        let mean = |runs: &[&RunData]| -> Option<f64> {
            let shares: Option<Vec<f64>> = runs.iter().map(|run| cached(run)).collect();
            let shares = shares.filter(|shares| !shares.is_empty())?;
            Some(shares.iter().sum::<f64>() / shares.len() as f64)
        };
        let shares = CachedShares {
            baseline: mean(baseline)?,
            candidate: mean(candidate)?,
        };
        let difference = (shares.candidate - shares.baseline).abs();
        (difference > DECISIVE + ROUNDING).then_some(shares)
    }

    fn candidate_is_warmer(&self) -> bool {
        self.candidate > self.baseline
    }

    /// Returns true if the state of the caches may be the cause of a verdict on a time that
    /// contains prefill.
    pub(crate) fn doubt(&self, row: &ComparisonRow) -> bool {
        match row.verdict {
            DifferenceVerdict::Better => self.candidate_is_warmer(),
            DifferenceVerdict::Worse => !self.candidate_is_warmer(),
            DifferenceVerdict::TooFewRuns => {
                row.tends(DifferenceVerdict::Better) == self.candidate_is_warmer()
            }
            DifferenceVerdict::NoDifference
            | DifferenceVerdict::TooSmall
            | DifferenceVerdict::WithinClientError => true,
            _ => false,
        }
    }

    /// Returns true if a row may have this verdict with equal caches. The side with fewer cached
    /// tokens cannot be worse unless it looks worse.
    pub(crate) fn may_be(&self, verdict: DifferenceVerdict, row: &ComparisonRow) -> bool {
        match verdict {
            DifferenceVerdict::Worse => self.candidate_is_warmer() || row.tends(verdict),
            DifferenceVerdict::Better => !self.candidate_is_warmer() || row.tends(verdict),
            _ => false,
        }
    }

    /// Explains why times that contain prefill decide nothing.
    pub(crate) fn why(&self) -> String {
        format!(
            "{} of the prompt tokens of the baseline and {} of those of the candidate were cached",
            share(self.baseline),
            share(self.candidate)
        )
    }
}

/// Returns the remark on runs with different shares of cached prompt tokens.
pub(crate) fn remark(baseline: &CompareSide, candidate: &CompareSide) -> Option<Remark> {
    let ends = |side: &CompareSide| {
        let shares = || side.runs.iter().filter_map(cached);
        Some((shares().reduce(f64::min)?, shares().reduce(f64::max)?))
    };
    let (a, b) = (ends(baseline), ends(candidate));
    let known = || a.into_iter().chain(b);
    let least = known().map(|(least, _)| least).reduce(f64::min)?;
    let most = known().map(|(_, most)| most).reduce(f64::max)?;
    if most - least <= ALIKE {
        return None;
    }
    Some(Remark::CacheStates([
        (baseline.label.clone(), a),
        (candidate.label.clone(), b),
    ]))
}

fn cached(run: &RunData) -> Option<f64> {
    run.cached_share.filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(label: &str, shares: &[Option<f64>]) -> CompareSide {
        let run = |share: &Option<f64>| RunData {
            cached_share: *share,
            ..RunData::default()
        };
        CompareSide {
            label: label.into(),
            runs: shares.iter().map(run).collect(),
        }
    }

    #[test]
    fn different_cache_states_are_reported_between_and_within_sides() {
        let text = |a: &[Option<f64>], b: &[Option<f64>]| {
            remark(&side("A", a), &side("B", b)).map(|remark| remark.to_string())
        };
        let cold = Some(0.02);
        let between = text(&[cold], &[Some(0.945)]).unwrap_or_default();
        assert!(
            between.starts_with(
                "the server had 2 % of the prompt tokens of A and 94.5 % of the prompt tokens of B in its prefix cache: "
            ),
            "{between}"
        );
        let within = text(&[cold, Some(0.9), Some(0.95)], &[None]).unwrap_or_default();
        assert!(
            within.contains(
                "2 % to 95 % of the prompt tokens of A and an unknown share of the prompt tokens of B"
            ),
            "{within}"
        );
        // One percentage point, not one percent of the share.
        assert_eq!(text(&[Some(0.02), Some(0.029)], &[Some(0.025)]), None);
        assert_eq!(text(&[Some(0.9)], &[None]), None);
        assert_eq!(text(&[None], &[None]), None);
    }
}
