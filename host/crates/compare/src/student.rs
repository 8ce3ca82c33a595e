//! Student's distribution, by which differences are judged.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Degrees of freedom from which on the normal distribution is accurate enough.
const MANY: f64 = 1e6;

/// Returns half the width of an interval of this confidence (`0.0..1.0`), in standard errors.
pub(crate) fn reach(confidence: f64, freedom: f64) -> f64 {
    let upper = 0.5 + confidence / 2.0;
    match student(freedom) {
        Some(student) => student.inverse_cdf(upper),
        None => Normal::standard().inverse_cdf(upper),
    }
}

/// Returns the two-sided probability of a difference of at least this many standard errors where
/// there is none.
pub(crate) fn two_sided(errors: f64, freedom: f64) -> f64 {
    let beyond = -errors.abs();
    let one_side = match student(freedom) {
        Some(student) => student.cdf(beyond),
        None => Normal::standard().cdf(beyond),
    };
    (2.0 * one_side).clamp(0.0, 1.0)
}

/// Returns Student's distribution; `None` if the normal one is accurate enough.
fn student(freedom: f64) -> Option<StudentsT> {
    if freedom >= MANY {
        return None;
    }
    StudentsT::new(0.0, 1.0, freedom.max(1e-3)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abramowitz and Stegun, table 26.10, and the normal quantile.
    #[test]
    fn quantiles_match_published_tables() {
        for (freedom, expected) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (10.0, 2.228),
            (30.0, 2.042),
            (f64::INFINITY, 1.960),
        ] {
            let seen = reach(0.95, freedom);
            assert!(
                (seen - expected).abs() < 6e-4,
                "{freedom}: {seen} is not {expected}"
            );
            assert!((two_sided(expected, freedom) - 0.05).abs() < 1e-4);
        }
        assert!((reach(0.99, 10.0) - 3.169).abs() < 6e-4);
        assert_eq!(two_sided(f64::INFINITY, 5.0), 0.0);
        assert_eq!(two_sided(0.0, 5.0), 1.0);
    }
}
