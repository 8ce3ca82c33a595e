//! Remark on different states of the server's prefix cache: such runs are not repeats, even with
//! the same requests.

use crate::input::{CompareSide, RunData};
use crate::remark::Remark;

/// Cached shares of prompt tokens that differ by no more than this are equal, because of evicted
/// blocks and requests that overtake one another.
const ALIKE: f64 = 0.01;

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
