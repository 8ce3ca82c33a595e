//! Properties: canonical text reads back as the same objective, and no text makes the reader panic.

use std::time::Duration;

use proptest::prelude::*;
use veeksha_slo::{Aggregate, BoundUnit, ComparisonOperator, Objective, Quantity, SloBound};

fn aggregate() -> impl Strategy<Value = Aggregate> {
    prop_oneof![
        (0.0..=100.0f64).prop_map(Aggregate::Percentile),
        prop::sample::select(vec![50.0, 99.0, 99.9, 99.99, 0.0, 100.0]).prop_map(Aggregate::Percentile),
        prop::sample::select(vec![
            Aggregate::Mean,
            Aggregate::Min,
            Aggregate::Max,
            Aggregate::Std,
            Aggregate::Sum,
            Aggregate::Count
        ]),
    ]
}

fn quantity() -> impl Strategy<Value = Quantity> {
    let window = prop::option::of((1..=8_640_000_000_000_000u64).prop_map(Duration::from_nanos));
    let filter = prop::collection::btree_map(any::<String>(), any::<String>(), 0..4);
    let samples = (aggregate(), "[a-z][a-z0-9_]{0,20}", filter, window);
    prop_oneof![
        // Names of aggregates contain no underscore.
        "[a-z][a-z0-9]{0,8}_[a-z0-9_]{0,20}".prop_map(Quantity::RunMetric),
        samples.prop_map(|(aggregate, metric, filter, window)| Quantity::Samples {
            aggregate,
            metric,
            filter: filter.into_iter().collect(),
            window,
        }),
    ]
}

fn objective() -> impl Strategy<Value = Objective> {
    let comparison = prop::sample::select(vec![
        ComparisonOperator::Below,
        ComparisonOperator::AtMost,
        ComparisonOperator::Above,
        ComparisonOperator::AtLeast,
    ]);
    let unit = prop::sample::select(vec![BoundUnit::None, BoundUnit::Time, BoundUnit::Percent]);
    // Every finite double down to where a nanosecond's part of it would vanish.
    let value = prop_oneof![
        -1e6..1e6f64,
        0.0..1.0f64,
        any::<f64>().prop_filter("finite", |v| v.is_finite() && (*v == 0.0 || v.abs() > 1e-290))
    ];
    (quantity(), comparison, value, unit).prop_map(|(quantity, comparison, value, unit)| Objective {
        name: None,
        quantity,
        comparison,
        bound: SloBound { value, unit },
    })
}

/// Texts made of the language's own pieces reach deeper than arbitrary ones.
fn near_misses() -> impl Strategy<Value = String> {
    let pieces = vec![
        "p99",
        "p99.9",
        "mean",
        "(",
        ")",
        "ttfc",
        "{",
        "}",
        "a",
        "=",
        "\"",
        "\\",
        "'x'",
        ",",
        "window",
        "<",
        "<=",
        "≥",
        "5",
        "1e",
        "ms",
        "µs",
        "%",
        " ",
        "-",
        "e9999999999999999999",
        "\u{0}",
        "é",
        "and",
        "\\u{",
        "_",
        ".",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..30).prop_map(|pieces| pieces.concat())
}

fn is_well_said(text: &str) {
    for result in [Objective::parse(text), Objective::parse_condition(text)] {
        if let Err(error) = result {
            assert!(
                error.column >= 1 && error.column <= text.chars().count() + 1,
                "{error:?}"
            );
            assert!(!error.problem.contains('\n'), "{error:?}");
            assert_eq!(error.to_string().lines().count(), 3, "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn canonical_text_parses_to_the_same_objective(objective in objective()) {
        let text = objective.to_string();
        prop_assume!(text.len() <= veeksha_slo::LONGEST);
        prop_assert_eq!(Objective::parse(&text), Ok(objective), "{}", text);
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in ".*") {
        is_well_said(&text);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        is_well_said(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn near_misses_do_not_panic(text in near_misses()) {
        is_well_said(&text);
    }

    #[test]
    fn valid_text_round_trips(text in near_misses()) {
        if let Ok(objective) = Objective::parse(&text) {
            prop_assert_eq!(Objective::parse(&objective.to_string()), Ok(objective));
        }
    }
}
