//! Rows that are shown but not judged, or rejected.

use super::*;

#[test]
fn different_work_and_invalid_runs_are_not_judged() {
    let mut other = side("B", even(1.5));
    other.runs[0].workload = Some(vec![(1, "a".into()), (2, "other".into())]);
    let comparison = compare(&[side("A", even(1.0)), other], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::NotComparable);
    near(mean(&comparison).relative.unwrap(), 0.5);
    assert_eq!(
        comparison.candidates[0].obstacles,
        ["the workloads of A and B differ within the first 2 sessions"]
    );

    let mut invalid = side("B", even(1.5));
    invalid.runs[0].trust.validity = Validity::Invalid;
    let comparison = compare(&[side("A", even(1.0)), invalid], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::NotComparable);
    assert!(comparison.candidates[0].obstacles[0].contains("B is INVALID"));
    assert!(comparison.candidates[0].obstacles[0].contains("--allow-invalid"));

    let mut degraded = side("B", even(1.5));
    degraded.runs[0].trust.validity = Validity::Degraded;
    let comparison = compare(&[side("A", even(1.0)), degraded], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::Worse);
    assert!(
        comparison.candidates[0]
            .remark_texts()
            .iter()
            .any(|remark| remark.contains("B is DEGRADED"))
    );
}

#[test]
fn runs_that_are_degraded_for_the_same_reason_share_a_remark() {
    let degraded = |label: &str, why: &str| {
        let mut side = side(label, even(1.0));
        side.runs[0].trust.validity = Validity::Degraded;
        side.runs[0].trust.why = vec![why.into()];
        side
    };
    let about = |of_b: &str| -> Vec<String> {
        let sides = [degraded("A", "no self-test"), degraded("B", of_b)];
        let comparison = compare(&sides, &[], &options()).unwrap();
        let remarks = comparison.candidates[0].remark_texts().into_iter();
        remarks.filter(|remark| remark.contains("DEGRADED")).collect()
    };
    assert_eq!(about("no self-test"), ["A and B are DEGRADED: no self-test"]);
    assert_eq!(
        about("late reads"),
        ["A is DEGRADED: no self-test", "B is DEGRADED: late reads"]
    );
}

/// Creates a side with two metrics; the certificate of B does not vouch for the second.
fn with_one_invalid_metric(label: &str, centre: f64, validity: Validity) -> CompareSide {
    let mut metrics = vec![
        metric("ttfc", Better::Less, even(centre)),
        metric("tbc", Better::Less, even(centre)),
    ];
    metrics[1].trust.validity = validity;
    metrics[1].trust.why = vec!["error 12 % of its P50".into()];
    CompareSide {
        label: label.into(),
        runs: vec![run(label, metrics)],
    }
}

#[test]
fn invalid_metric_does_not_affect_others() {
    let sides = [
        with_one_invalid_metric("A", 1.0, Validity::Valid),
        with_one_invalid_metric("B", 1.5, Validity::Invalid),
    ];
    let comparison = compare(&sides, &[], &options()).unwrap();
    let candidate = &comparison.candidates[0];
    assert_eq!(candidate.obstacles, Vec::<String>::new());
    for row in &candidate.rows {
        let expected = match row.name.as_str() {
            "ttfc" => DifferenceVerdict::Worse,
            _ => DifferenceVerdict::NotComparable,
        };
        assert_eq!(row.verdict, expected, "{row:?}");
    }
    let tbc = candidate.rows.iter().find(|row| row.name == "tbc").unwrap();
    assert_eq!(
        tbc.remark.as_deref(),
        Some("INVALID by the certificate of B; --allow-invalid judges it nevertheless")
    );
    assert!(tbc.relative.is_some(), "the values are shown");
    assert!(
        candidate
            .remark_texts()
            .contains(&"tbc of B is INVALID: error 12 % of its P50".to_owned())
    );
    // Rows that are not judged do not affect the others.
    assert!(
        candidate
            .remark_texts()
            .iter()
            .any(|remark| remark.starts_with("4 values")),
        "{:?}",
        candidate.remark_texts()
    );

    let options = CompareOptions {
        invalid: Invalid::Judged,
        ..options()
    };
    let comparison = compare(&sides, &[], &options).unwrap();
    let rows = &comparison.candidates[0].rows;
    assert!(rows.iter().all(|row| row.verdict == DifferenceVerdict::Worse));
    let remark = rows
        .iter()
        .find(|row| row.name == "tbc")
        .unwrap()
        .remark
        .as_deref();
    assert_eq!(
        remark,
        Some("judged although it is INVALID by the certificate of B")
    );
}

#[test]
fn invalid_run_is_judged_on_request() {
    let mut b = side("B", even(1.5));
    b.runs[0].trust.validity = Validity::Invalid;
    b.runs[0].trust.why = vec!["9 of 10 requests were never sent".into()];
    let options = CompareOptions {
        invalid: Invalid::Judged,
        ..options()
    };
    let comparison = compare(&[side("A", even(1.0)), b], &[], &options).unwrap();
    let candidate = &comparison.candidates[0];
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::Worse);
    assert!(candidate.obstacles.is_empty());
    assert!(
        candidate
            .remark_texts()
            .contains(&"B is INVALID and judged nevertheless: 9 of 10 requests were never sent".to_owned())
    );
}

#[test]
fn metrics_relative_to_the_run_are_shown_but_not_judged() {
    let of = |label: &str, centre: f64| {
        let mut side = side(label, even(centre));
        side.runs[0].metrics[0].not_judged = Some("each run is its own yardstick".into());
        side
    };
    let comparison = compare(&[of("A", 1.0), of("B", 3.0)], &[], &options()).unwrap();
    let row = mean(&comparison);
    assert_eq!(row.verdict, DifferenceVerdict::NotComparable);
    assert_eq!(row.remark.as_deref(), Some("each run is its own yardstick"));
    near(row.relative.unwrap(), 2.0);
}

#[test]
fn different_units_are_not_compared() {
    let mut b = side("B", even(1000.0));
    b.runs[0].metrics[0].unit = "ms".into();
    let comparison = compare(&[side("A", even(1.0)), b], &[], &options()).unwrap();
    let row = mean(&comparison);
    assert_eq!(
        (row.verdict, row.difference),
        (DifferenceVerdict::NotEnoughData, None)
    );
    assert_eq!(row.remark.as_deref(), Some("the units differ: `s` and `ms`"));
}

#[test]
fn single_values_are_shown_but_not_judged() {
    let of = |label: &str, value| CompareSide {
        label: label.into(),
        runs: vec![RunData {
            label: label.into(),
            run_metrics: vec![
                RunValueData::new("error_rate", "1", Better::Less, value),
                RunValueData::new("broken", "1", Better::Less, f64::NAN),
            ],
            ..RunData::default()
        }],
    };
    let comparison = compare(&[of("A", 0.01), of("B", 0.03)], &[], &options()).unwrap();
    let rows = &comparison.candidates[0].rows;
    assert_eq!(rows.len(), 1);
    near(rows[0].difference.unwrap(), 0.02);
    assert_eq!(rows[0].verdict, DifferenceVerdict::NotEnoughData);
    assert_eq!(
        rows[0].remark.as_deref(),
        Some("one value on each side; several runs show how much it varies")
    );
}

#[test]
fn rejects_invalid_input() {
    let a = || side("A", even(1.0));
    let refused = |sides: &[CompareSide], options: &CompareOptions| {
        compare(sides, &[], options).unwrap_err().to_string()
    };
    let wrong = |change: fn(&mut CompareOptions)| {
        let mut options = options();
        change(&mut options);
        refused(&[a(), side("B", even(1.0))], &options)
    };
    let empty = CompareSide {
        label: "B".into(),
        runs: Vec::new(),
    };
    let text = [
        refused(&[], &options()),
        refused(&[a()], &options()),
        refused(&[a(), empty], &options()),
        refused(&[a(), a()], &options()),
        wrong(|options| options.confidence = 95.0),
        wrong(|options| options.resamples = 10),
        wrong(|options| options.smallest = Some(f64::NAN)),
    ];
    insta::assert_snapshot!(text.join("\n"), @r"
    a comparison needs at least two sides, and there are none
    a comparison needs at least two sides, and there is one
    the side `B` has no runs; give at least one
    two sides are called `A`; give them different names
    a confidence of 95 is none; it lies between 0 and 1, such as 0.95
    10 resamples are too few or too many; give 100 to 1000000, such as 1000
    the smallest change that matters is a share of 0 or more, such as 0.01, and NaN is not
    ");
    assert_eq!(compare(&[], &[], &options()), Err(CompareError::TooFewSides(0)));
}
