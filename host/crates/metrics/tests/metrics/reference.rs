//! Every statistic of every metric against a literal implementation of its definition, for random
//! runs.

use crate::sequences::*;
use proptest::prelude::*;
use veeksha_events::{Event, RequestRecord};
use veeksha_metrics::{Metric, RunSamples, latencies};
use veeksha_model::ChunkKind::{Content, Reasoning, Role};
use veeksha_model::Label;
use veeksha_ports::RunResults;

/// The default percentile of numpy, implemented from its documentation: at `(n - 1) p`, linearly
/// between the neighbours.
fn naive(mut values: Vec<f64>, p: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let place = (values.len().checked_sub(1)?) as f64 * p;
    let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
    Some(low + (high - low) * (place - place.floor()))
}

fn record() -> impl Strategy<Value = RequestRecord> {
    let chunk = (prop_oneof![9 => 0u64..60, 1 => 4000u64..5000], 0u32..4, 0usize..3);
    let chunks = prop::collection::vec(chunk, 0..12);
    let tier = prop::sample::select(vec!["gold", "free", ""]);
    (0u64..3000, chunks, tier, 0u8..8).prop_map(|(intended, chunks, tier, fate)| {
        let mut at = intended + 1;
        let mut arrivals = Vec::new();
        let mut tokens = Vec::new();
        for (gap, count, kind) in chunks {
            at += gap;
            let kind = [Role, Reasoning, Content][kind];
            arrivals.push((at, kind));
            if kind != Role {
                tokens.push(count);
            }
        }
        let record = with_chunks(answered(0, 0, intended, at + 1), 0, &arrivals);
        let mut record = with_chunk_tokens(record, &tokens);
        if !tier.is_empty() {
            record = labelled(record, &[("tier", tier)]);
        }
        match fate {
            0 => failed(record, veeksha_model::ErrorClass::Truncated, Some(200)),
            1 => drained(record),
            _ => record,
        }
    })
}

fn records() -> impl Strategy<Value = Vec<RequestRecord>> {
    prop::collection::vec(record(), 0..25).prop_map(|mut records| {
        for (session, record) in (0..).zip(&mut records) {
            record.id = id(session, 0);
        }
        records
    })
}

/// Returns the samples of a metric, in order, from the record alone.
fn literal(metric: Metric, record: &RequestRecord) -> Vec<f64> {
    let of = latencies(record);
    let generated: Vec<(u64, u32)> = record
        .generated_at()
        .zip(record.chunk_tokens.iter().copied())
        .collect();
    match metric {
        Metric::Ttfc => of.ttfc.into_iter().collect(),
        Metric::EndToEnd => of.end_to_end.into_iter().collect(),
        Metric::Tpot => of.tpot.into_iter().collect(),
        Metric::Tbc => of.tbc,
        Metric::Itl => {
            let mut samples = Vec::new();
            let mut last: Option<u64> = None;
            for (at, tokens) in generated.into_iter().filter(|(_, tokens)| *tokens > 0) {
                if let Some(last) = last {
                    let each = (at - last) as f64 / f64::from(tokens) / 1e9;
                    samples.extend(std::iter::repeat_n(each, tokens as usize));
                }
                last = Some(at);
            }
            samples
        }
        _ => unreachable!("not asked for"),
    }
}

const ASKED: [Metric; 5] = [
    Metric::Ttfc,
    Metric::EndToEnd,
    Metric::Tpot,
    Metric::Tbc,
    Metric::Itl,
];

fn near(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => (one - other).abs() <= 1e-11 * one.abs().max(1e-3),
        _ => false,
    }
}

fn agree(
    samples: &RunSamples,
    metric: Metric,
    filter: &[Label],
    values: Vec<f64>,
) -> Result<(), TestCaseError> {
    let name = metric.name();
    let stats = samples.stats(name, filter);
    prop_assert_eq!(stats.count, values.len() as u64, "{}", name);
    for percent in [0.0, 12.5, 50.0, 90.0, 99.9, 100.0] {
        let seen = samples.percentile(name, percent, filter);
        let expected = naive(values.clone(), percent / 100.0);
        prop_assert!(
            near(seen, expected),
            "{} {}: {:?} and {:?}",
            name,
            percent,
            seen,
            expected
        );
    }
    if values.is_empty() {
        return Ok(());
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    prop_assert!(
        near(Some(stats.mean), Some(mean)),
        "{}: mean {} and {}",
        name,
        stats.mean,
        mean
    );
    prop_assert!(
        (stats.std - variance.sqrt()).abs() <= 1e-9 * (1.0 + mean),
        "{}: std {} and {}",
        name,
        stats.std,
        variance.sqrt()
    );
    Ok(())
}

proptest! {
    #[test]
    fn metrics_are_those_of_the_definitions(records in records(), length in 100u64..2000) {
        let counting: Vec<&RequestRecord> =
            records.iter().filter(|record| record.measured && record.is_ok()).collect();
        let evaluation = evaluate(Vec::new(), records.iter().cloned().map(finished));
        let samples = &evaluation.samples;
        let gold = vec![("tier".to_owned(), "gold".to_owned())];
        let begin = records.iter().filter(|record| record.measured).map(|record| record.intended).min();
        for metric in ASKED {
            let of = |records: &[&RequestRecord]| -> Vec<f64> {
                records.iter().flat_map(|record| literal(metric, record)).collect()
            };
            agree(samples, metric, &[], of(&counting))?;
            let labelled: Vec<&RequestRecord> =
                counting.iter().copied().filter(|record| record.labels == gold).collect();
            agree(samples, metric, &gold, of(&labelled))?;
            for window in samples.windows(metric.name(), &gold, ms(length)) {
                prop_assert_eq!((window.from - begin.unwrap()) % ms(length), 0);
                let within: Vec<&RequestRecord> = labelled
                    .iter()
                    .copied()
                    .filter(|record| (window.from..window.to).contains(&record.intended))
                    .collect();
                let values = of(&within);
                prop_assert_eq!(window.stats.count, values.len() as u64);
                if window.stats.count > 0 {
                    prop_assert!(near(Some(window.stats.p90), naive(values, 0.9)));
                }
            }
            // Windows cover all samples.
            let all: u64 = samples.windows(metric.name(), &gold, ms(length)).iter().map(|window| window.stats.count).sum();
            prop_assert_eq!(all, samples.stats(metric.name(), &gold).count);
            // The distribution contains the extremes and the percentiles.
            let points = samples.quantiles(metric.name(), 101);
            if let Some(summary) = evaluation.metric(metric) {
                prop_assert_eq!(points.len(), 101);
                prop_assert_eq!((points[0], points[100]), ((0.0, summary.min), (1.0, summary.max)));
                prop_assert_eq!((points[50].1, points[90].1, points[99].1), (summary.p50, summary.p90, summary.p99));
                prop_assert!(points.is_sorted_by(|a, b| a.1 <= b.1));
            } else {
                prop_assert!(points.is_empty());
            }
        }
    }
}

#[test]
fn what_does_not_exist_has_no_results() {
    let seen = evaluate(Vec::new(), [Event::RunEnded { at: 5 }]);
    let results: &dyn RunResults = seen.samples.as_ref();
    assert_eq!(results.metrics(), Vec::<String>::new());
    assert_eq!(results.run_metric("qwertz"), None);
    assert_eq!(results.run_metric("error_rate"), None);
    assert_eq!(results.run_metric("num_requests"), Some(0.0));
    assert_eq!(results.stats("qwertz", &[]).count, 0);
    assert_eq!(results.percentile("ttfc", 50.0, &[]), None);
    assert!(results.windows("ttfc", &[], 1).is_empty());
    assert!(seen.samples.quantiles("ttfc", 101).is_empty());
    assert!(seen.samples.quantiles("ttfc", 1).is_empty());
}

#[test]
fn whole_numbers_have_the_share_of_each_value() {
    let events = [1, 2, 2, 5].into_iter().enumerate().map(|(session, tokens)| {
        let record = answered(session as u64, 0, 0, 90);
        finished(with_chunks(record, tokens, &[(51, Content)]))
    });
    let samples = evaluate(Vec::new(), events).samples;
    assert_eq!(
        samples.shares_of_counts("num_output_tokens"),
        [(1.0, 0.25), (2.0, 0.75), (5.0, 1.0)]
    );
    assert!(samples.shares_of_counts("ttfc").is_empty(), "51 ms");
    assert!(samples.shares_of_counts("qwertz").is_empty());
}

#[test]
fn windows_of_no_length_do_not_take_forever() {
    let record = |session, intended| {
        finished(with_chunks(
            answered(session, 0, intended, intended + 90),
            1,
            &[(intended + 51, Content)],
        ))
    };
    let seen = evaluate(Vec::new(), [record(0, 0), record(1, 100_000)]);
    for length in [0, 1] {
        let windows = seen.samples.windows("ttfc", &[], length);
        assert_eq!(
            windows
                .iter()
                .map(|window| window.stats.count)
                .collect::<Vec<_>>(),
            [1, 1]
        );
    }
    // Windows of sufficient length are all present, including empty ones.
    let windows = seen.samples.windows("ttfc", &[], ms(1000));
    assert_eq!(windows.len(), 101);
    assert_eq!(
        windows.iter().filter(|window| window.stats.count == 0).count(),
        99
    );
}

#[test]
fn run_metrics_are_known_by_name() {
    let record = with_chunks(answered(0, 0, 0, 1000), 5, &[(51, Content)]);
    let seen = evaluate(vec![slo(Metric::Ttfc, 0.5, 1.0)], [finished(record)]);
    let run_metric = |name| RunResults::run_metric(seen.samples.as_ref(), name);
    assert_eq!(run_metric("goodput"), Some(1.0));
    assert_eq!(run_metric("output_tokens_per_second"), Some(5.0));
    assert_eq!(run_metric("window_seconds"), Some(1.0));
    assert_eq!(
        seen.summary_stats()["run_metrics"]["goodput"],
        serde_json::json!(1.0)
    );
    for (run_metric, value) in seen.run_metrics() {
        assert_eq!(
            RunResults::run_metric(seen.samples.as_ref(), run_metric.name()),
            Some(*value)
        );
    }
}
