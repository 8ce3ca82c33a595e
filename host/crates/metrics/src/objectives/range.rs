//! Uninformative bounds: bounds outside of the range that the target's values can have.

use veeksha_slo::{Objective, Quantity, Range, UninformativeBound};

use super::ask::Limit;
use super::checked::ObjectiveTarget;
use crate::catalogue::{Catalogue, MetricInfo};

/// Rejects a bound that no value can meet, and one that every value meets: neither provides
/// information about a run.
pub(super) fn fits(
    objective: &Objective,
    target: &ObjectiveTarget,
    limit: Limit,
    catalogue: &Catalogue,
) -> Result<(), UninformativeBound> {
    let values = match target {
        ObjectiveTarget::Run(metric) => metric.range(),
        ObjectiveTarget::Samples { samples, .. } => catalogue
            .get(&samples.metric)
            .map_or(Range::Any, MetricInfo::range),
    };
    let range = match &objective.quantity {
        Quantity::Samples { aggregate, .. } => values.of(*aggregate),
        Quantity::RunMetric(_) => values,
    };
    range.fits(
        &objective.quantity,
        limit.comparison,
        objective.bound,
        limit.value,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Objectives, RunMetric};

    fn says(text: &str) -> Option<String> {
        let objective = Objective::parse(text).unwrap();
        let judges = vec!["judge".to_owned()];
        let checked = Objectives::check(vec![objective.into()], Vec::new(), judges, &Catalogue::built_in());
        checked.err().map(|errors| errors[0].problem.to_string())
    }

    #[test]
    fn refuses_bounds_that_decide_nothing() {
        for (text, problem) in [
            (
                "goodput > 95",
                "no value can meet it: `goodput` is a share, from 0 to 1; did you mean `goodput > 95%`?",
            ),
            (
                "error_rate < 150%",
                "every value meets it: `error_rate` is a share, from 0 to 1; give a bound above 0%, up to 100%",
            ),
            (
                "goodput >= 0",
                "every value meets it: `goodput` is a share, from 0 to 1; give a bound above 0%, up to 100%",
            ),
            (
                "error_rate <= 100%",
                "every value meets it: `error_rate` is a share, from 0 to 1; give a bound from 0%, below 100%",
            ),
            (
                "p99(ttfc) > -1s",
                "every value meets it: `p99(ttfc)` is never below 0; give a bound above 0",
            ),
            (
                "p99(ttfc) <= -1s",
                "no value can meet it: `p99(ttfc)` is never below 0; give a bound above 0",
            ),
        ] {
            assert_eq!(says(text).as_deref(), Some(problem));
        }
        for never in [
            "goodput > 1",
            "goodput >= 1.01",
            "error_rate < 0",
            "error_rate <= -1%",
            "mean(fluidity) > 100%",
        ] {
            assert!(says(never).unwrap().contains("no value can meet it"), "{never}");
        }
        for always in [
            "error_rate <= 5",
            "error_rate <= 1",
            "error_rate >= 0",
            "goodput > -1%",
            "p10(cached_token_share) >= -0.5",
            "p99(ttfc) > -1s",
            "min(tbc) >= 0ms",
            "requests_per_second >= 0",
            // The existence of samples is expressed by a bound of 1.
            "count(ttfc) >= 0",
            "sum(num_output_tokens, window = 1s) >= -5",
        ] {
            assert!(says(always).unwrap().contains("every value meets it"), "{always}");
        }
        for negative in [
            "mean(tbc) < 0",
            "requests_per_second < -1",
            "count(ttfc) < 0",
            "sum(fluidity) <= -2",
            "std(ttfc) < 0",
        ] {
            assert!(says(negative).unwrap().contains("never below 0"), "{negative}");
        }
    }

    #[test]
    fn bounds_that_can_be_kept_and_missed_or_lie_at_an_end_are_taken() {
        for text in [
            "goodput >= 1",
            "goodput > 99.9%",
            "goodput > 0",
            "error_rate <= 0",
            "error_rate < 100%",
            "error_rate <= 99.9%",
            "sum(fluidity) > 95",
            "count(fluidity) >= 30",
            "mean(session_slowdown) < 3",
            "p99(ttfc) <= 0",
            "p99(ttfc) > 0",
            "count(ttfc) >= 1",
            "std(fluidity) < 0.2",
        ] {
            assert_eq!(says(text), None, "{text}");
        }
    }

    /// Every run metric and metric in plain ratios is classified as a share or not a share.
    #[test]
    fn what_is_a_share_is_known() {
        let shares = crate::Metric::all().filter(|metric| metric.is_share());
        let names: Vec<&str> = shares.map(crate::Metric::name).collect();
        assert_eq!(names, ["cached_token_share", "fluidity", "fluidity_tokens"]);
        for metric in crate::Metric::all().filter(|metric| metric.unit() == "1") {
            assert!(
                metric.is_share() || metric == crate::Metric::SessionSlowdown,
                "{metric}"
            );
        }
        let run_metrics = RunMetric::all().filter(|run_metric| run_metric.is_share());
        assert!(
            run_metrics
                .map(|run_metric| run_metric.info().unit)
                .all(|unit| unit == "1")
        );
    }
}
