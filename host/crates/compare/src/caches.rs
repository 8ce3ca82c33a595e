//! Remark on different states of the server's prefix cache: such runs are not repeats, even with
//! the same requests.

use veeksha_stats::share;

use crate::input::{RunData, Side};

/// Cached shares of prompt tokens that differ by no more than this are equal, because of evicted
/// blocks and requests that overtake one another.
const ALIKE: f64 = 0.01;

/// Returns the remark on runs with different shares of cached prompt tokens.
pub(crate) fn remark(baseline: &Side, candidate: &Side) -> Option<String> {
    let ends = |side: &Side| {
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
    let of = |side: &Side, ends: Option<(f64, f64)>| {
        let shares = match ends {
            None => "an unknown share".to_owned(),
            Some((least, most)) if least == most => share(most),
            Some((least, most)) => format!("{} to {}", share(least), share(most)),
        };
        format!("{shares} of the prompt tokens of {}", side.label)
    };
    Some(format!(
        "the server had {} and {} in its prefix cache: what is cached costs next to no prefill, so a run that finds the cache warm is no repeat of one that finds it cold; \
         empty the cache before each run, or restart the server",
        of(baseline, a),
        of(candidate, b)
    ))
}

fn cached(run: &RunData) -> Option<f64> {
    run.cached_share.filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(label: &str, shares: &[Option<f64>]) -> Side {
        let run = |share: &Option<f64>| RunData {
            cached_share: *share,
            ..RunData::default()
        };
        Side {
            label: label.into(),
            runs: shares.iter().map(run).collect(),
        }
    }

    #[test]
    fn caches_in_different_states_are_told_between_and_within_sides() {
        let said = |a: &[Option<f64>], b: &[Option<f64>]| remark(&side("A", a), &side("B", b));
        let cold = Some(0.02);
        let between = said(&[cold], &[Some(0.945)]).unwrap_or_default();
        assert!(
            between.starts_with(
                "the server had 2 % of the prompt tokens of A and 94.5 % of the prompt tokens of B in its prefix cache: "
            ),
            "{between}"
        );
        let within = said(&[cold, Some(0.9), Some(0.95)], &[None]).unwrap_or_default();
        assert!(
            within.contains(
                "2 % to 95 % of the prompt tokens of A and an unknown share of the prompt tokens of B"
            ),
            "{within}"
        );
        // One percentage point, not one percent of the share.
        assert_eq!(said(&[Some(0.02), Some(0.029)], &[Some(0.025)]), None);
        assert_eq!(said(&[Some(0.9)], &[None]), None);
        assert_eq!(said(&[None], &[None]), None);
    }
}
