//! Helpers of the tests of several files.

use veeksha_plugin::{Random, Segment};

use crate::length::LengthSampler;

/// The words that the host gives for a seed and a session.
pub(crate) fn random(seed: u64, session: u64) -> Random {
    Random::from_words(session, move |session, stream, first, count| {
        let mut words = vec![0; count as usize];
        veeksha_stats::RandomStream::new(seed, session, stream).fill(u64::from(first), &mut words);
        words
    })
}

/// A length distribution from its JSON.
pub(crate) fn sampler(json: &str) -> LengthSampler {
    LengthSampler::new(veeksha_plugin::config::from_json(json).unwrap(), "").unwrap()
}

/// Pearson's statistic: Σ (observed − expected)² / expected.
pub(crate) fn chi_square(observed: &[u32], expected: &[f64]) -> f64 {
    assert_eq!(observed.len(), expected.len());
    observed
        .iter()
        .zip(expected)
        .map(|(&o, e)| (f64::from(o) - e).powi(2) / e)
        .sum()
}

/// The length of a synthetic segment.
pub(crate) fn tokens(segment: &Segment) -> u32 {
    match segment {
        Segment::Synthetic(text) => text.tokens,
        other => unreachable!("{other:?}"),
    }
}
