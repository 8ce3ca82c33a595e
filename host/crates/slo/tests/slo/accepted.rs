//! The meaning of valid texts.

use std::time::Duration;

use veeksha_slo::{Aggregate, BoundUnit, ComparisonOperator, Objective, Quantity, SloBound};

fn samples(
    aggregate: Aggregate,
    metric: &str,
    filter: &[(&str, &str)],
    window: Option<Duration>,
) -> Quantity {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Quantity::Samples {
        aggregate,
        metric: metric.to_owned(),
        filter: filter.iter().map(owned).collect(),
        window,
    }
}

fn objective(quantity: Quantity, comparison: ComparisonOperator, value: f64, unit: BoundUnit) -> Objective {
    Objective {
        name: None,
        quantity,
        comparison,
        bound: SloBound { value, unit },
    }
}

fn run_metric(name: &str) -> Quantity {
    Quantity::RunMetric(name.to_owned())
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn parses_objectives() {
    use Aggregate::{Count, Max, Mean, Min, Percentile, Std, Sum};
    use BoundUnit::{None as Bare, Percent, Time};
    use ComparisonOperator::{Above, AtLeast, AtMost, Below};
    let plain = |aggregate, metric| samples(aggregate, metric, &[], None);
    let cases = [
        (
            "p99(ttfc) < 500ms",
            objective(plain(Percentile(99.0), "ttfc"), Below, 0.5, Time),
        ),
        (
            "p99.9(tbc) <= 0.05",
            objective(plain(Percentile(99.9), "tbc"), AtMost, 0.05, Bare),
        ),
        (
            "median(e2e)≤2s",
            objective(plain(Percentile(50.0), "e2e"), AtMost, 2.0, Time),
        ),
        (
            "P0(x) ≥ 1m",
            objective(plain(Percentile(0.0), "x"), AtLeast, 60.0, Time),
        ),
        ("mean(x)>1h", objective(plain(Mean, "x"), Above, 3600.0, Time)),
        (
            "AVG ( x ) > 100us",
            objective(plain(Mean, "x"), Above, 0.0001, Time),
        ),
        ("min(x) > 100µs", objective(plain(Min, "x"), Above, 0.0001, Time)),
        ("max(x) > 100μs", objective(plain(Max, "x"), Above, 0.0001, Time)),
        ("std(x) < 5 ns", objective(plain(Std, "x"), Below, 5e-9, Time)),
        (
            "sum(x) < 1_000.5",
            objective(plain(Sum, "x"), Below, 1000.5, Bare),
        ),
        (
            "count(x) >= 1e3",
            objective(plain(Count, "x"), AtLeast, 1000.0, Bare),
        ),
        ("mean(x) > -2.5", objective(plain(Mean, "x"), Above, -2.5, Bare)),
        (
            "error_rate < 1%",
            objective(run_metric("error_rate"), Below, 0.01, Percent),
        ),
        (
            "goodput > 0.95",
            objective(run_metric("goodput"), Above, 0.95, Bare),
        ),
        (
            "goodput >= 95 %",
            objective(run_metric("goodput"), AtLeast, 0.95, Percent),
        ),
        (
            "ttfc < 83.3ms",
            objective(run_metric("ttfc"), Below, 0.0833, Time),
        ),
        (
            " p95(my_metric{tier=\"gold\", region='eu'})<=3\n",
            objective(
                samples(
                    Percentile(95.0),
                    "my_metric",
                    &[("region", "eu"), ("tier", "gold")],
                    None,
                ),
                AtMost,
                3.0,
                Bare,
            ),
        ),
        (
            r#"p95(m{ zone = eu-west-1.a, n=7, "a b"="say \"eu\"", }) <= 3"#,
            objective(
                samples(
                    Percentile(95.0),
                    "m",
                    &[("a b", "say \"eu\""), ("n", "7"), ("zone", "eu-west-1.a")],
                    None,
                ),
                AtMost,
                3.0,
                Bare,
            ),
        ),
        (
            "p99(ttfc, window = 10s) < 1s",
            objective(
                samples(Percentile(99.0), "ttfc", &[], Some(Duration::from_secs(10))),
                Below,
                1.0,
                Time,
            ),
        ),
        (
            "p99(ttfc{}, window=1.5ms) < 1s",
            objective(
                samples(Percentile(99.0), "ttfc", &[], Some(Duration::from_micros(1500))),
                Below,
                1.0,
                Time,
            ),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(Objective::parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn prints_canonical_text() {
    let canonical = |text| Objective::parse(text).unwrap().to_string();
    insta::assert_snapshot!(canonical("median(ttfc)<0.5s"), @"p50(ttfc) < 500ms");
    insta::assert_snapshot!(canonical("avg(m{b=2,a='x y'},window=90s)≥ 1_000"), @r#"mean(m{a="x y", b="2"}, window = 90s) >= 1000"#);
    insta::assert_snapshot!(canonical("p99.90(tbc) ≤ 1500us"), @"p99.9(tbc) <= 1.5ms");
    insta::assert_snapshot!(canonical("error_rate<0.5%"), @"error_rate < 0.5%");
    insta::assert_snapshot!(canonical("e2e < 2h"), @"e2e < 7200s");
}

#[test]
fn conditions_bound_every_sample_of_a_request() {
    let quantity = |text| Objective::parse_condition(text).unwrap().quantity;
    assert_eq!(
        quantity("ttfc <= 500ms"),
        samples(Aggregate::Max, "ttfc", &[], None)
    );
    assert_eq!(
        quantity("output_throughput >= 20"),
        samples(Aggregate::Min, "output_throughput", &[], None)
    );
    assert_eq!(
        quantity("ttfc{tier='(gold)'} > 1s"),
        samples(Aggregate::Min, "ttfc", &[("tier", "(gold)")], None)
    );
    assert_eq!(
        quantity("p99(tbc) > 50ms"),
        samples(Aggregate::Percentile(99.0), "tbc", &[], None)
    );
    // They are printed as they are number.
    for text in [
        "ttfc <= 500ms",
        "output_throughput >= 20",
        "ttfc{tier=\"gold\"} <= 1s",
        "p99(tbc) < 50ms",
        "min(tbc) < 50ms",
        "max(tbc) > 50ms",
        "error_rate < 1%",
    ] {
        assert_eq!(Objective::parse_condition(text).unwrap().condition_text(), text);
    }
    assert_eq!(
        Objective::parse_condition("max(tbc) < 50ms")
            .unwrap()
            .condition_text(),
        "tbc < 50ms"
    );
    let bound = Objective::parse_condition("ttfc <= 500ms").unwrap().bound;
    assert_eq!((bound.value, bound.unit), (0.5, BoundUnit::Time));
}
