//! Choice of the scale for samples. `report.html` uses the same rule (`scale.js` of the page).

use veeksha_stats::percentile;

use crate::drawing::AxisScale;

/// Fewer samples get a linear axis: a quarter of them is too few.
const SAMPLES: u64 = 10;

/// Minimum ratio of the largest sample to the lower quartile for a log axis.
const RATIO: f64 = 10.0;

/// Returns the scale for `count` samples, given as their values, or as quantiles at equal
/// distances, in ascending order: logarithmic if an axis from 0 to the largest would squeeze at
/// least a quarter of the samples above 0 into its lowest tenth. One slow answer suffices, which
/// ratios of inner percentiles do not detect. Samples below 0 cannot be shown on a log axis.
pub(super) fn scale_for(count: u64, ascending: &[f64]) -> AxisScale {
    let above = &ascending[ascending.partition_point(|value| *value <= 0.0)..];
    let quartile = percentile(above, 0.25);
    match (ascending.first(), quartile, above.last()) {
        (Some(least), Some(quartile), Some(largest)) if *least >= 0.0 => {
            scale_for_quartile(count, quartile, *largest)
        }
        _ => AxisScale::Linear,
    }
}

/// The same for plots that show each sample: linear if some are 0, which a log axis cannot show.
pub(super) fn scale_for_all(count: u64, ascending: &[f64]) -> AxisScale {
    match ascending.first() {
        Some(least) if *least > 0.0 => scale_for(count, ascending),
        _ => AxisScale::Linear,
    }
}

/// The same for samples of which only the lower quartile and the largest are known.
pub(super) fn scale_for_quartile(count: u64, lower_quartile: f64, largest: f64) -> AxisScale {
    if count >= SAMPLES && lower_quartile > 0.0 && largest >= RATIO * lower_quartile {
        AxisScale::Log
    } else {
        AxisScale::Linear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> AxisScale {
        let mut ascending = values.to_vec();
        ascending.sort_by(f64::total_cmp);
        scale_for(values.len() as u64, &ascending)
    }

    #[test]
    fn one_slow_answer_selects_log_scale() {
        // 18 to 64 ms, and one answer of 561: the lower quartile is about 29.5.
        let mut times: Vec<f64> = (0..100)
            .map(|place| 0.018 + 0.000_46 * f64::from(place))
            .collect();
        assert_eq!(of(&times), AxisScale::Linear);
        times.push(0.561);
        assert_eq!(of(&times), AxisScale::Log);
    }

    #[test]
    fn log_scale_from_ten_times_the_lower_quartile() {
        // Of 1, 1, ... and one more the lower quartile is 1.
        let with = |largest: f64| {
            let mut values = vec![1.0; 12];
            values.push(largest);
            of(&values)
        };
        assert_eq!(with(9.9), AxisScale::Linear);
        assert_eq!(with(10.0), AxisScale::Log);
        // Three tenths of the prompts were cached.
        let mut cached = vec![0.005; 30];
        cached.extend([0.5; 70]);
        assert_eq!(of(&cached), AxisScale::Log);
        // Even from 1 to 101: the quartile is 26.
        let even: Vec<f64> = (1..=101).map(f64::from).collect();
        assert_eq!(of(&even), AxisScale::Linear);
    }

    #[test]
    fn few_or_nonpositive_samples_are_linear() {
        assert_eq!(of(&[]), AxisScale::Linear);
        assert_eq!(
            of(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 50.0]),
            AxisScale::Linear
        );
        assert_eq!(of(&[0.0; 20]), AxisScale::Linear);
        // Gaps of 0 count for nothing: of 1, ..., 1, 50 the quartile is 1.
        let mut gaps = vec![0.0; 60];
        gaps.extend([1.0; 20]);
        gaps.push(50.0);
        assert_eq!(of(&gaps), AxisScale::Log);
        gaps.sort_by(f64::total_cmp);
        assert_eq!(scale_for_all(81, &gaps), AxisScale::Linear);
        assert_eq!(scale_for_all(21, &gaps[60..]), AxisScale::Log);
        gaps.push(-1.0);
        assert_eq!(of(&gaps), AxisScale::Linear);
    }
}
