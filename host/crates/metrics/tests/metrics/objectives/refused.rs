//! Rejections before the run.

use super::*;

fn problems(slos: &[&str], goodput: &[&str]) -> Vec<String> {
    let errors = check_in(&Catalogue::built_in(), slos, goodput, &[]).unwrap_err();
    errors.iter().map(ObjectiveError::to_string).collect()
}

#[test]
fn what_cannot_be_answered_is_refused_with_its_place_and_the_remedy() {
    let errors = problems(
        &[
            "p99(ttcf) < 500ms",
            "p99(ttfc) < 5%",
            "error_rate < 3s",
            "p99(num_output_tokens) < 500ms",
            "p99(error_rate) < 0.1",
            "ttfc < 500ms",
            "errorrate < 0.1",
            "count(ttfc) > 5s",
            "qwertz > 1",
        ],
        &[],
    );
    let expected = [
        "the objective `p99(ttcf) < 500ms`: there is no metric `ttcf`; did you mean `ttfc`?",
        "the objective `p99(ttfc) < 5%`: `5%` is a share, but the metric's unit is `s`; give a number in that unit",
        "the objective `error_rate < 3s`: `3s` is a time, but the metric's unit is a plain ratio; leave `s` out, or bound another metric",
        "the objective `p99(num_output_tokens) < 500ms`: `500ms` is a time, but the metric's unit is `tokens`; leave `ms` out, or bound another metric",
        "the objective `p99(error_rate) < 0.1`: `error_rate` is a run metric: it has no aggregate, labels or window; write it alone",
        "the objective `ttfc < 500ms`: `ttfc` is a metric with many samples; write an aggregate of them, such as p99(ttfc)",
        "the objective `errorrate < 0.1`: there is no run metric `errorrate`; did you mean `error_rate`?",
        "the objective `count(ttfc) > 5s`: a number of samples has no unit; write the bound as a number",
        "the objective `qwertz > 1`: there is no run metric `qwertz`; `veeksha-host metrics` lists them",
    ];
    assert_eq!(errors, expected);
    let errors = problems(&["p99(ttfc) < 1s", "p99(ttcf) < 1s"], &[]);
    assert_eq!(errors.len(), 1);
}

#[test]
fn conditions_are_about_requests() {
    let errors = problems(&[], &["session_duration <= 3s", "ttcf <= 1s"]);
    assert_eq!(
        errors,
        [
            "the condition `session_duration <= 3s`: `session_duration` is not a metric of requests; a condition must be on one",
            "the condition `ttcf <= 1s`: there is no metric `ttcf`; did you mean `ttfc`?",
        ]
    );
    // Cannot be parsed from text, but can be constructed by a caller.
    let mut windowed = Objective::parse_condition("ttfc <= 1s").unwrap();
    if let Quantity::Samples { window, .. } = &mut windowed.quantity {
        *window = Some(std::time::Duration::from_secs(1));
    }
    let catalogue = Catalogue::built_in();
    let run_metric = Objective::parse("error_rate < 0.1").unwrap();
    let errors =
        Objectives::check(Vec::new(), vec![windowed, run_metric], Vec::new(), &catalogue).unwrap_err();
    assert_eq!(errors[0].problem, ObjectiveProblem::ConditionWithWindow);
    assert!(matches!(
        errors[1].problem,
        ObjectiveProblem::NotOfRequests { .. }
    ));
    assert!(errors.iter().all(|error| error.is_condition));
}

#[test]
fn goodput_needs_something_that_a_good_request_keeps() {
    let built_in = Catalogue::built_in();
    let check =
        |slos: &[&str], goodput: &[&str], judges: &[&str]| check_in(&built_in, slos, goodput, judges).is_ok();
    assert!(!check(&["goodput > 0.9"], &[], &[]));
    assert!(!check(
        &["good_requests_per_second > 1", "error_rate < 0.1"],
        &[],
        &[]
    ));
    assert!(!check(&["goodput > 0.9", "p99(session_duration) < 3s"], &[], &[]));
    // A sum over all requests does not imply a condition on a single one.
    assert!(!check(&["goodput > 0.9", "sum(num_output_tokens) > 3"], &[], &[]));
    assert!(check(&["goodput > 0.9", "p99(ttfc) < 3s"], &[], &[]));
    assert!(check(&["goodput > 0.9"], &["ttfc <= 1s"], &[]));
    assert!(check(&["goodput > 0.9"], &[], &["judge"]));
}

#[test]
fn what_cannot_exist_in_this_run_is_refused() {
    let mut catalogue = Catalogue::built_in();
    catalogue.exclude("tbc", "answers are not streamed (`client.stream: false`)");
    let errors = check_in(
        &catalogue,
        &["p99(tbc) < 1s", "p99(ttfc) < 1s"],
        &["tbc < 1s"],
        &[],
    )
    .unwrap_err();
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "the objective `p99(tbc) < 1s`: `tbc` cannot exist in this run: answers are not streamed (`client.stream: false`)",
            "the condition `tbc < 1s`: `tbc` cannot exist in this run: answers are not streamed (`client.stream: false`)",
        ]
    );
    let constant = ConstantSlo {
        name: None,
        metric: Metric::Tbc,
        percentile: 0.99,
        value: 1.0,
    };
    assert!(Objectives::check(vec![constant.into()], Vec::new(), Vec::new(), &catalogue).is_err());
}

#[test]
fn constants_are_checked_too() {
    let slo = |percentile, value| {
        let slo = ConstantSlo {
            name: None,
            metric: Metric::Ttfc,
            percentile,
            value,
        };
        Objectives::check(vec![slo.into()], Vec::new(), Vec::new(), &Catalogue::built_in())
    };
    assert!(slo(0.99, 1.0).is_ok());
    assert_eq!(
        slo(99.0, 1.0).unwrap_err()[0].problem.to_string(),
        "the percentile 99 is not between 0 and 1"
    );
    assert_eq!(
        slo(0.99, f64::NAN).unwrap_err()[0].problem,
        ObjectiveProblem::Bound
    );
}
