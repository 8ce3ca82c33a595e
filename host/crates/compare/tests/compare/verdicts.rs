//! Effects worked out by hand, and what is said of them.

use veeksha_compare::{
    ClientError, CompareError, Comparison, Correction, FigureData, Invalid, MetricData, Options, Row,
    RunData, Side, Statistic, TimedSamples, Validity, Verdict, compare,
};
use veeksha_model::Better;
use veeksha_slo::Aggregate;

use crate::synthetic::{even, metric, run, side};

fn options() -> Options {
    Options {
        resamples: 200,
        ..Options::default()
    }
}

fn one(comparison: &Comparison, aggregate: Aggregate) -> &Row {
    let wanted = Statistic::OfSamples(aggregate);
    let rows = &comparison.candidates[0].rows;
    let place = rows.iter().position(|row| row.statistic == wanted);
    &rows[place.unwrap_or(rows.len())]
}

fn mean(comparison: &Comparison) -> &Row {
    one(comparison, Aggregate::Mean)
}

fn near(seen: f64, expected: f64) {
    assert!((seen - expected).abs() < 1e-9, "{seen} is not {expected}");
}

#[test]
fn effects_by_hand() {
    // 0.95 to 1.05 s in 999 equal steps, and half as much again: the p-quantile is 0.95 + 0.1 p.
    let comparison = compare(&[side("A", even(1.0)), side("B", even(1.5))], &[], &options()).unwrap();
    for (aggregate, a) in [
        (Aggregate::Mean, 1.0),
        (Aggregate::Percentile(50.0), 1.0),
        (Aggregate::Percentile(90.0), 1.04),
        (Aggregate::Percentile(99.0), 1.049),
    ] {
        let row = one(&comparison, aggregate);
        near(row.baseline.unwrap().value, a);
        near(row.candidate.unwrap().value, 1.5 * a);
        near(row.difference.unwrap(), 0.5 * a);
        near(row.relative.unwrap(), 0.5);
        let (low, high) = row.relative_interval.unwrap();
        assert!(low < 0.5 && 0.5 < high && high - low < 0.03, "{low} … {high}");
        assert_eq!(row.verdict, Verdict::Worse);
        assert_eq!(row.baseline.unwrap().samples, 1000);
    }
    // The spread of each is 0.1 / √12 of its centre. Means of 1000: errors of 0.0289 / √1000 relative each, together √2 times; times 1.96.
    let (low, high) = mean(&comparison).relative_interval.unwrap();
    let width = 2.0 * 1.96 * 1.5 * std::f64::consts::SQRT_2 * 0.1 / 12f64.sqrt() / 1000f64.sqrt();
    assert!(
        ((high - low) / width - 1.0).abs() < 0.25,
        "{} is not {width}",
        high - low
    );
}

#[test]
fn which_way_is_good_decides() {
    for (better, verdict) in [
        (Better::Less, Verdict::Worse),
        (Better::Higher, Verdict::Better),
        (Better::Neither, Verdict::Differs),
    ] {
        let of = |label: &str, centre| Side {
            label: label.into(),
            runs: vec![run(label, vec![metric("m", better, even(centre))])],
        };
        let comparison = compare(&[of("A", 1.0), of("B", 1.5)], &[], &options()).unwrap();
        assert_eq!(mean(&comparison).verdict, verdict);
    }
}

#[test]
fn what_the_clients_may_be_wrong_by_is_no_difference_between_servers() {
    let of = |label: &str, centre, error| {
        let mut side = side(label, even(centre));
        side.runs[0].metrics[0].client_error = Some(ClientError {
            mean: error,
            p99: 0.001,
        });
        side
    };
    // 20 ms more; together the clients are wrong by 30 ms in the mean, by 2 ms in the tail.
    let comparison = compare(&[of("A", 1.0, 0.015), of("B", 1.02, 0.015)], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, Verdict::WithinClientError);
    near(mean(&comparison).client_error.unwrap(), 0.03);
    let p90 = one(&comparison, Aggregate::Percentile(90.0));
    assert_eq!(p90.verdict, Verdict::Worse);
    near(p90.client_error.unwrap(), 0.002);
    // And only 18 ms of error leave 20 ms to the server.
    let comparison = compare(&[of("A", 1.0, 0.009), of("B", 1.02, 0.009)], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, Verdict::Worse);
}

#[test]
fn what_is_smaller_than_matters_is_not_called_worse() {
    let of = |smallest| {
        let options = Options {
            smallest,
            ..options()
        };
        let comparison = compare(&[side("A", even(1.0)), side("B", even(1.02))], &[], &options).unwrap();
        mean(&comparison).verdict
    };
    assert_eq!(of(None), Verdict::Worse);
    assert_eq!(of(Some(0.05)), Verdict::TooSmall);
    assert_eq!(of(Some(0.01)), Verdict::Worse);
}

#[test]
fn few_samples_are_not_judged_and_are_shown() {
    let few = || even(1.0).take(120);
    let comparison = compare(&[side("A", few()), side("B", even(1.5))], &[], &options()).unwrap();
    let p99 = one(&comparison, Aggregate::Percentile(99.0));
    assert_eq!(
        (p99.verdict, p99.interval, p99.p),
        (Verdict::NotEnoughData, None, None)
    );
    assert!(p99.relative.is_some());
    insta::assert_snapshot!(p99.remark.as_deref().unwrap_or_default(), @"p99 takes 500 samples a run; the baseline has 120");
    assert_eq!(mean(&comparison).verdict, Verdict::Worse);

    let empty = side("B", std::iter::empty());
    let comparison = compare(&[side("A", even(1.0)), empty], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, Verdict::NotEnoughData);
    assert_eq!(
        mean(&comparison).remark.as_deref(),
        Some("the candidate has none")
    );
}

#[test]
fn other_work_and_invalid_runs_are_not_judged() {
    let mut other = side("B", even(1.5));
    other.runs[0].workload = Some(vec![(1, "a".into()), (2, "other".into())]);
    let comparison = compare(&[side("A", even(1.0)), other], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, Verdict::NotComparable);
    near(mean(&comparison).relative.unwrap(), 0.5);
    assert_eq!(
        comparison.candidates[0].obstacles,
        ["the workloads of A and B differ within the first 2 sessions"]
    );

    let mut invalid = side("B", even(1.5));
    invalid.runs[0].trust.validity = Validity::Invalid;
    let comparison = compare(&[side("A", even(1.0)), invalid], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, Verdict::NotComparable);
    assert!(comparison.candidates[0].obstacles[0].contains("B is INVALID"));
    assert!(comparison.candidates[0].obstacles[0].contains("--allow-invalid"));

    let mut degraded = side("B", even(1.5));
    degraded.runs[0].trust.validity = Validity::Degraded;
    let comparison = compare(&[side("A", even(1.0)), degraded], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, Verdict::Worse);
    assert!(
        comparison.candidates[0]
            .remarks
            .iter()
            .any(|remark| remark.contains("B is DEGRADED"))
    );
}

/// Two metrics, of which the run of B cannot vouch for the second.
fn with_one_invalid_metric(label: &str, centre: f64, validity: Validity) -> Side {
    let mut metrics = vec![
        metric("ttfc", Better::Less, even(centre)),
        metric("tbc", Better::Less, even(centre)),
    ];
    metrics[1].trust.validity = validity;
    metrics[1].trust.why = vec!["error 12 % of its P50".into()];
    Side {
        label: label.into(),
        runs: vec![run(label, metrics)],
    }
}

#[test]
fn an_invalid_metric_leaves_the_others_as_they_are() {
    let sides = [
        with_one_invalid_metric("A", 1.0, Validity::Valid),
        with_one_invalid_metric("B", 1.5, Validity::Invalid),
    ];
    let comparison = compare(&sides, &[], &options()).unwrap();
    let candidate = &comparison.candidates[0];
    assert_eq!(candidate.obstacles, Vec::<String>::new());
    for row in &candidate.rows {
        let expected = match row.name.as_str() {
            "ttfc" => Verdict::Worse,
            _ => Verdict::NotComparable,
        };
        assert_eq!(row.verdict, expected, "{row:?}");
    }
    let tbc = candidate.rows.iter().find(|row| row.name == "tbc").unwrap();
    assert_eq!(
        tbc.remark.as_deref(),
        Some("INVALID by the certificate of B; --allow-invalid judges it all the same")
    );
    assert!(tbc.relative.is_some(), "the figures are shown");
    assert!(
        candidate
            .remarks
            .contains(&"tbc of B is INVALID: error 12 % of its P50".to_owned())
    );
    // What is not judged takes nothing from what is.
    assert!(
        candidate
            .remarks
            .iter()
            .any(|remark| remark.starts_with("4 figures")),
        "{:?}",
        candidate.remarks
    );

    let options = Options {
        invalid: Invalid::Judged,
        ..options()
    };
    let comparison = compare(&sides, &[], &options).unwrap();
    let rows = &comparison.candidates[0].rows;
    assert!(rows.iter().all(|row| row.verdict == Verdict::Worse));
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
fn an_invalid_run_is_judged_where_that_is_asked_for() {
    let mut b = side("B", even(1.5));
    b.runs[0].trust.validity = Validity::Invalid;
    b.runs[0].trust.why = vec!["9 of 10 requests were never sent".into()];
    let options = Options {
        invalid: Invalid::Judged,
        ..options()
    };
    let comparison = compare(&[side("A", even(1.0)), b], &[], &options).unwrap();
    let candidate = &comparison.candidates[0];
    assert_eq!(mean(&comparison).verdict, Verdict::Worse);
    assert!(candidate.obstacles.is_empty());
    assert!(candidate.remarks.contains(
        &"B is INVALID, and judged as if it were not: 9 of 10 requests were never sent".to_owned()
    ));
}

#[test]
fn what_has_its_yardstick_in_the_run_is_shown_and_not_judged() {
    let of = |label: &str, centre: f64| {
        let mut side = side(label, even(centre));
        side.runs[0].metrics[0].not_judged = Some("each run is its own yardstick".into());
        side
    };
    let comparison = compare(&[of("A", 1.0), of("B", 3.0)], &[], &options()).unwrap();
    let row = mean(&comparison);
    assert_eq!(row.verdict, Verdict::NotComparable);
    assert_eq!(row.remark.as_deref(), Some("each run is its own yardstick"));
    near(row.relative.unwrap(), 2.0);
}

#[test]
fn a_run_against_itself_is_told() {
    let of = |label: &str| {
        let mut side = side(label, even(1.0));
        side.runs[0].place = Some("/runs/one".into());
        side
    };
    let comparison = compare(&[of("A"), of("B")], &[], &options()).unwrap();
    let remarks = &comparison.candidates[0].remarks;
    assert!(
        remarks
            .iter()
            .any(|remark| remark.starts_with("/runs/one is on both sides")),
        "{remarks:?}"
    );
}

/// A copy lies elsewhere and bears the name of the run that it is of; what else is in it may have been lost.
#[test]
fn a_copy_of_a_run_is_told() {
    let of = |label: &str, name: &str, centre: f64| {
        let mut side = side(label, even(centre));
        side.runs[0].place = Some(format!("/runs/{label}"));
        side.runs[0].recorded_as = Some(name.into());
        side
    };
    let said = |b: Side| {
        let comparison = compare(&[of("A", "one", 1.0), b], &[], &options()).unwrap();
        comparison.candidates[0].remarks.join("\n")
    };
    let copy = said(of("B", "one", 1.0));
    assert!(
        copy.contains("/runs/A and /runs/B are copies of one run, which is on both sides: "),
        "{copy}"
    );
    let cut = said(of("B", "one", 1.01));
    assert!(cut.contains("is on both sides"), "{cut}");
    let twin = said(of("B", "two", 1.0));
    assert!(
        twin.contains("/runs/A and /runs/B agree in every sample"),
        "{twin}"
    );
    let other = said(of("B", "two", 1.01));
    assert!(
        !other.contains("both sides: ") && !other.contains("agree"),
        "{other}"
    );

    // Within a side it counts once.
    let mut twice = of("A", "one", 1.0);
    twice.runs.push(of("B", "one", 1.01).runs[0].clone());
    let comparison = compare(&[twice, of("C", "two", 1.2)], &[], &options()).unwrap();
    let remarks = comparison.candidates[0].remarks.join("\n");
    assert!(
        remarks.contains("the 2 runs of A are copies of one another"),
        "{remarks}"
    );
}

#[test]
fn what_the_reader_should_know_is_said() {
    let mut a = side("A", even(1.0));
    let mut b = side("B", even(1.0));
    a.runs[0].window = Some((0, 60_000_000_000));
    b.runs[0].window = Some((0, 30_000_000_000));
    b.runs[0].workload = None;
    b.runs[0].metrics[0].samples.push(0, f64::NAN);
    let comparison = compare(&[a, b], &[], &options()).unwrap();
    insta::assert_snapshot!(comparison.candidates[0].remarks.join("\n"), @r"
    whether the runs did the same work is not known: B has no workload digest
    values of B that are no numbers were left out: 1
    from the first request to the end of the last answer A lasted 60 s, B 30 s
    one run on each side: how much such runs differ by themselves is not known; run each side several times to know it
    4 figures with a better side were judged; verdicts allow for their number (Holm), intervals are those of each figure by itself
    ");
}

/// What 8 runs say of two metrics is told in a line for each metric; their reasons are in the files.
#[test]
fn what_certificates_say_of_many_runs_is_summed_up() {
    let side_of = |label: &str, degraded: usize| Side {
        label: label.into(),
        runs: (0..4)
            .map(|number| {
                let mut metrics = vec![
                    metric("ttfc", Better::Less, even(1.0 + 0.01 * number as f64)),
                    metric("tbc", Better::Less, even(1.0)),
                ];
                for metric in metrics.iter_mut().filter(|_| number < degraded) {
                    metric.trust.validity = Validity::Degraded;
                    metric.trust.why = vec![format!("late reads: {number}")];
                }
                run(&format!("{label}{number}"), metrics)
            })
            .collect(),
    };
    let comparison = compare(&[side_of("A", 3), side_of("B", 4)], &[], &options()).unwrap();
    let candidate = &comparison.candidates[0];
    let about: Vec<&String> = candidate
        .remarks
        .iter()
        .filter(|remark| remark.contains("DEGRADED"))
        .collect();
    assert_eq!(
        about,
        [
            "ttfc is DEGRADED in 3 of 4 runs of A and in 4 of 4 runs of B",
            "tbc is DEGRADED in 3 of 4 runs of A and in 4 of 4 runs of B"
        ]
    );
    let one = "tbc of B3 is DEGRADED: late reads: 3".to_owned();
    assert!(candidate.certificates.len() == 14 && candidate.certificates.contains(&one));
    assert!(comparison.html(None).contains(&one));
    let json = comparison.json(None);
    assert_eq!(
        json["candidates"][0]["certificates"].as_array().map(Vec::len),
        Some(14)
    );
    // One run of each side.
    let single = |label| Side {
        runs: side_of(label, 4).runs[..1].to_vec(),
        ..side_of(label, 4)
    };
    let comparison = compare(&[single("A"), single("B")], &[], &options()).unwrap();
    let remarks = &comparison.candidates[0].remarks;
    assert!(
        remarks.contains(&"tbc is DEGRADED in A and in B".to_owned()),
        "{remarks:?}"
    );
}

/// Of several runs the shortest and the longest, and once; what lasted about as long is not told.
#[test]
fn how_long_runs_lasted_is_said_once() {
    let side_of = |label: &str, seconds: &[u64]| Side {
        label: label.into(),
        runs: seconds
            .iter()
            .map(|seconds| RunData {
                window: Some((5, 5 + seconds * 1_000_000_000)),
                ..run(&format!("{label}{seconds}"), Vec::new())
            })
            .collect(),
    };
    let told = |a: &[u64], b: &[u64]| -> Vec<String> {
        let comparison = compare(&[side_of("A", a), side_of("B", b)], &[], &options()).unwrap();
        let remarks = comparison.candidates[0].remarks.iter();
        remarks
            .filter(|remark| remark.contains("last"))
            .cloned()
            .collect()
    };
    assert_eq!(
        told(&[6, 7, 6], &[47, 48, 47]),
        ["from the first request to the end of the last answer A lasted 6 s to 7 s, B 47 s to 48 s"]
    );
    assert!(told(&[100, 105], &[108, 101]).is_empty());
}

#[test]
fn a_page_has_its_title_once() {
    let comparison = compare(&[side("A", even(1.0)), side("B", even(1.5))], &[], &options()).unwrap();
    let page = comparison.html(None);
    let heading = page.matches(">B against A</h").count();
    assert_eq!(heading, 1, "{page}");
    let three = [side("A", even(1.0)), side("B", even(1.5)), side("C", even(1.5))];
    let page = compare(&three, &[], &options()).unwrap().html(None);
    for heading in [
        "<h1>B, C against A</h1>",
        "<h2>B against A</h2>",
        "<h2>C against A</h2>",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
}

#[test]
fn a_constant_differs_from_another_one() {
    let of = |label: &str, value: f64| side(label, std::iter::repeat_n(value, 200));
    let comparison = compare(&[of("A", 128.0), of("B", 127.0)], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, Verdict::Better);
    let (low, high) = mean(&comparison).relative_interval.unwrap();
    near(low, -1.0 / 128.0);
    near(high, -1.0 / 128.0);
    let comparison = compare(&[of("A", 128.0), of("B", 128.0)], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, Verdict::NoDifference);
}

#[test]
fn many_figures_need_clearer_differences() {
    // Twenty metrics that are the same, and one that differs by about 2.4 standard errors: by itself that is more than chance, among
    // 21 × 4 figures it is not.
    let shifted = |label: &str, shift: f64| {
        let mut metrics: Vec<MetricData> = (0..20)
            .map(|number| metric(&format!("same_{number}"), Better::Less, even(1.0)))
            .collect();
        let error = 0.1 / 12f64.sqrt() / 1000f64.sqrt() * std::f64::consts::SQRT_2;
        metrics.push(metric(
            "shifted",
            Better::Less,
            even(1.0).map(move |value| value + shift * error),
        ));
        Side {
            label: label.into(),
            runs: vec![run(label, metrics)],
        }
    };
    let verdict = |correction| {
        let options = Options {
            correction,
            ..options()
        };
        let comparison = compare(&[shifted("A", 0.0), shifted("B", 2.4)], &[], &options).unwrap();
        let rows = &comparison.candidates[0].rows;
        let row = rows.iter().find(|row| row.name == "shifted").unwrap();
        (row.verdict, row.remark.clone())
    };
    assert_eq!(verdict(Correction::Each), (Verdict::Worse, None));
    let (holm, remark) = verdict(Correction::Holm);
    assert_eq!(holm, Verdict::NoDifference);
    let remark = remark.unwrap();
    assert!(
        remark.contains("by itself more than chance") && remark.contains("one of 84 figures (Holm"),
        "{remark}"
    );
}

#[test]
fn figures_asked_for_are_added() {
    let asked = [
        (
            "ttfc".to_owned(),
            Statistic::OfSamples(Aggregate::Percentile(95.0)),
        ),
        ("ttfc".to_owned(), Statistic::OfSamples(Aggregate::Max)),
        ("ttfc".to_owned(), Statistic::OfSamples(Aggregate::Mean)),
    ];
    let comparison = compare(&[side("A", even(1.0)), side("B", even(1.5))], &asked, &options()).unwrap();
    assert_eq!(comparison.candidates[0].rows.len(), 6);
    let p95 = one(&comparison, Aggregate::Percentile(95.0));
    near(p95.baseline.unwrap().value, 1.045);
    assert_eq!(p95.verdict, Verdict::Worse);
    let max = one(&comparison, Aggregate::Max);
    near(max.candidate.unwrap().value, 1.575);
    assert_eq!((max.verdict, max.interval), (Verdict::NotEnoughData, None));
}

#[test]
fn units_that_differ_are_not_compared() {
    let mut b = side("B", even(1000.0));
    b.runs[0].metrics[0].unit = "ms".into();
    let comparison = compare(&[side("A", even(1.0)), b], &[], &options()).unwrap();
    let row = mean(&comparison);
    assert_eq!((row.verdict, row.difference), (Verdict::NotEnoughData, None));
    assert_eq!(row.remark.as_deref(), Some("the units differ: `s` and `ms`"));
}

#[test]
fn one_value_each_is_shown_and_not_judged() {
    let of = |label: &str, value| Side {
        label: label.into(),
        runs: vec![RunData {
            label: label.into(),
            figures: vec![
                FigureData::new("error_rate", "1", Better::Less, value),
                FigureData::new("broken", "1", Better::Less, f64::NAN),
            ],
            ..RunData::default()
        }],
    };
    let comparison = compare(&[of("A", 0.01), of("B", 0.03)], &[], &options()).unwrap();
    let rows = &comparison.candidates[0].rows;
    assert_eq!(rows.len(), 1);
    near(rows[0].difference.unwrap(), 0.02);
    assert_eq!(rows[0].verdict, Verdict::NotEnoughData);
    assert_eq!(
        rows[0].remark.as_deref(),
        Some("one value on each side; several runs would tell how much it varies")
    );
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let a = || side("A", even(1.0));
    let refused = |sides: &[Side], options: &Options| compare(sides, &[], options).unwrap_err().to_string();
    let wrong = |change: fn(&mut Options)| {
        let mut options = options();
        change(&mut options);
        refused(&[a(), side("B", even(1.0))], &options)
    };
    let empty = Side {
        label: "B".into(),
        runs: Vec::new(),
    };
    let said = [
        refused(&[], &options()),
        refused(&[a()], &options()),
        refused(&[a(), empty], &options()),
        refused(&[a(), a()], &options()),
        wrong(|options| options.confidence = 95.0),
        wrong(|options| options.resamples = 10),
        wrong(|options| options.smallest = Some(f64::NAN)),
    ];
    insta::assert_snapshot!(said.join("\n"), @r"
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

#[test]
fn more_samples_than_are_kept_are_compared_too() {
    let of = |label: &str, factor: f64| {
        let mut samples = TimedSamples::new();
        let count = 150_001u64;
        for i in 0..count {
            samples.push(
                i * 1_000_000,
                factor * (1.0 + (i * 7919 % count) as f64 / count as f64),
            );
        }
        Side {
            label: label.into(),
            runs: vec![run(
                label,
                vec![MetricData::new("tbc", "s", Better::Less, samples)],
            )],
        }
    };
    let comparison = compare(&[of("A", 0.01), of("B", 0.0101)], &[], &options()).unwrap();
    let row = one(&comparison, Aggregate::Percentile(90.0));
    assert!(row.baseline.unwrap().approximate);
    let relative = row.relative.unwrap();
    assert!((relative - 0.01).abs() < 0.002, "{relative}");
    assert_eq!(mean(&comparison).verdict, Verdict::Worse);
}
