//! Curves and time slices.

use veeksha_metrics::{CurvePoint, Evaluation, TimeSlices};
use veeksha_model::{Nanos, seconds};
use veeksha_page::{RunCurves, SliceRow, Slices, ValueColumn};
use veeksha_stats::Summary;

/// Number of steps in the curves of a run whose requests do not fit on its page.
const STEPS: usize = 600;

/// Returns the curves of a run whose page lists only some of its requests.
pub(super) fn load(evaluation: &Evaluation) -> Option<RunCurves> {
    let curves = &evaluation.curves;
    let (from, to) = curves.window?;
    let step = ((to - from) / STEPS as u64).max(1);
    let stepped = |points: &[CurvePoint]| -> Vec<f64> {
        let steps = steps(points, from, to, step).into_iter();
        steps.map(|step| step.mean).collect()
    };
    let in_flight = steps(&curves.in_flight.points, from, to, step);
    Some(RunCurves {
        from: seconds(from),
        step: seconds(step),
        in_flight: in_flight.iter().map(|step| step.mean).collect(),
        least_in_flight: in_flight.iter().map(|step| step.least).collect(),
        most_in_flight: in_flight.iter().map(|step| step.most).collect(),
        in_prefill: stepped(&curves.in_prefill.points),
        in_decode: stepped(&curves.in_decode.points),
        output_tokens_per_second: stepped(&curves.output_tokens.points),
        input_tokens_per_second: Vec::new(),
        requests_per_second: Vec::new(),
    })
}

/// Values of a curve in one step of time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CurveStep {
    /// Mean over the step, weighted by time.
    mean: f64,
    least: f64,
    most: f64,
}

/// Divides a curve into steps of equal length. A short peak is visible in the `most` of its step,
/// but hardly in the `mean`.
fn steps(points: &[CurvePoint], from: Nanos, to: Nanos, step: Nanos) -> Vec<CurveStep> {
    let mut steps = Vec::new();
    let mut next = points.partition_point(|point| point.at <= from);
    let before = next.checked_sub(1).map(|at| points[at]);
    let (mut value, mut peak) = before.map_or((0.0, 0.0), |point| (point.value, point.max));
    let mut begin = from;
    while begin < to {
        let end = (begin + step).min(to);
        let (mut at, mut sum) = (begin, 0.0);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut hold = |value: f64, peak: f64, lasted: Nanos| {
            if lasted > 0 {
                sum += value * lasted as f64;
                (least, most) = (least.min(value), most.max(peak));
            }
        };
        while let Some(point) = points.get(next).filter(|point| point.at < end) {
            hold(value, peak, point.at.max(at) - at);
            (at, value, peak) = (point.at.max(at), point.value, point.max);
            next += 1;
        }
        hold(value, peak, end - at);
        steps.push(CurveStep {
            mean: sum / (end - begin) as f64,
            least,
            most,
        });
        begin = end;
    }
    steps
}

pub(super) fn slices(slices: &TimeSlices) -> Option<Slices> {
    use veeksha_metrics::Metric as BuiltIn;
    if slices.slices.len() < 2 {
        return None;
    }
    let column = |label: &str, unit: &str| ValueColumn {
        label: label.to_owned(),
        unit: unit.to_owned(),
    };
    let rows = slices.slices.iter().map(|slice| {
        let of = |metric, statistic: fn(&Summary) -> f64| slice.metric(metric).map(statistic);
        SliceRow {
            from: seconds(slice.from),
            to: seconds(slice.to),
            values: vec![
                slice.requests_per_second(),
                slice.output_tokens_per_second(),
                slice.totals.error_rate(),
                of(BuiltIn::Ttfc, |ttfc| ttfc.p50),
                of(BuiltIn::Ttfc, |ttfc| ttfc.p99),
                of(BuiltIn::Tbc, |tbc| tbc.p50),
                of(BuiltIn::Tbc, |tbc| tbc.p99),
            ],
        }
    });
    Some(Slices {
        columns: vec![
            column("Answered", "requests/s"),
            column("Output", "tokens/s"),
            column("Errors", "share"),
            column("TTFC P50", "s"),
            column("TTFC P99", "s"),
            column("TBC P50", "s"),
            column("TBC P99", "s"),
        ],
        rows: rows.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 from 0 to 10, 4 from 10 to 15, then 0: steps of 10 from 5 to 25 have the means (2*5 +
    /// 4*5)/10 = 3 and 0.
    #[test]
    fn steps_average_over_time_and_keep_peaks() {
        let point = |at, value| CurvePoint {
            at,
            value,
            max: value,
        };
        let points = [point(0, 2.0), point(10, 4.0), point(15, 0.0)];
        let of = |mean, least, most| CurveStep { mean, least, most };
        assert_eq!(steps(&points, 5, 25, 10), [of(3.0, 2.0, 4.0), of(0.0, 0.0, 0.0)]);
        assert_eq!(steps(&points, 0, 10, 4), [of(2.0, 2.0, 2.0); 3]);
        assert_eq!(steps(&[], 0, 4, 4), [of(0.0, 0.0, 0.0)]);
        // A point that covers an interval keeps the peak within it.
        let stretch = CurvePoint {
            max: 9.0,
            ..point(0, 2.0)
        };
        assert_eq!(steps(&[stretch], 0, 4, 4), [of(2.0, 2.0, 9.0)]);
    }
}
