//! Key values and metrics.

use veeksha_certificate::Certificate;
use veeksha_metrics::{Catalogue, Evaluation, LiveDistribution, Metric as BuiltIn, MetricInfo};
use veeksha_page::{KeyMetric, Metric, MetricStatistics};
use veeksha_stats::Summary;

pub(super) fn key_metrics(evaluation: &Evaluation, certificate: &Certificate) -> Vec<KeyMetric> {
    let (counts, throughput) = (&evaluation.counts, &evaluation.throughput);
    let key_metric = |name: &str, label: &str, value: Option<f64>, unit: &str| KeyMetric {
        name: name.to_owned(),
        label: label.to_owned(),
        value,
        unit: unit.to_owned(),
        count: Some(counts.completed),
        count_of: Some("answered requests".to_owned()),
        ..KeyMetric::default()
    };
    let mut key_metrics = Vec::new();
    if let Some(goodput) = evaluation.slos.goodput {
        let good = (goodput * counts.intended() as f64).round();
        key_metrics.push(KeyMetric {
            count: Some(counts.intended()),
            count_of: Some("intended requests".to_owned()),
            detail: Some(format!("{good} were good")),
            ..key_metric("goodput", "Goodput", Some(goodput), "share")
        });
    }
    key_metrics.extend([
        key_metric(
            "requests_per_second",
            "Requests",
            throughput.requests_per_second,
            "requests/s",
        ),
        key_metric(
            "output_tokens_per_second",
            "Output tokens",
            throughput.output_tokens_per_second,
            "tokens/s",
        ),
        KeyMetric {
            detail: certificate.prompt_doubt.map(|doubt| doubt.to_string()),
            ..key_metric(
                "input_tokens_per_second",
                "Input tokens",
                throughput.input_tokens_per_second,
                "tokens/s",
            )
        },
        KeyMetric {
            count: Some(counts.requests),
            count_of: Some("requests sent".to_owned()),
            detail: Some(match counts.cancelled_by_client {
                0 => format!("{} failed", counts.errored),
                cancelled => format!("{} failed, {cancelled} cancelled by the workload", counts.errored),
            }),
            ..key_metric("error_rate", "Errors", counts.error_rate(), "share")
        },
    ]);
    let lateness = evaluation.host.dispatch_lateness.as_ref();
    key_metrics.extend(lateness.map(|late| KeyMetric {
        name: "dispatch_lateness".to_owned(),
        label: "Dispatch lateness, P99".to_owned(),
        value: Some(late.p99),
        unit: "s".to_owned(),
        count: Some(late.count as u64),
        count_of: Some("dispatches".to_owned()),
        ..KeyMetric::default()
    }));
    key_metrics
}

/// Returns the metrics with samples: first the main latencies, then those of plugins, then the
/// rest.
pub(super) fn metrics(evaluation: &Evaluation, certificate: &Certificate) -> Vec<Metric> {
    let samples = &evaluation.samples;
    let mut infos: Vec<_> = samples.catalogue().iter().collect();
    let first: Vec<BuiltIn> = BuiltIn::ranked()
        .into_iter()
        .filter(|metric| metric.unit() == "s")
        .collect();
    let rank = |name: &str, plugin: bool| {
        let first = first.iter().position(|known| known.name() == name);
        first.unwrap_or(if plugin { usize::MAX - 1 } else { usize::MAX })
    };
    infos.sort_by_key(|info| rank(&info.name, info.plugin.is_some()));
    let shown = infos
        .into_iter()
        .filter(|info| info.plugin.is_some() || samples.summary(&info.name).is_some());
    shown
        .map(|info| Metric {
            name: info.name.clone(),
            label: label(info),
            unit: info.unit.clone(),
            better: info.better.name().to_owned(),
            definition: info.definition.clone(),
            plugin: info.plugin.clone(),
            doubt: info.metric.and_then(|metric| certificate.doubts(metric)),
            summary: samples.summary(&info.name).map(summary),
        })
        .collect()
}

/// Returns the name of a metric on the page: as in the files, except for Veeksha's name of the
/// prompt tokens, which counts only new messages. The page's table of requests has whole prompts,
/// so the two need different names.
fn label(info: &MetricInfo) -> String {
    match info.metric {
        Some(BuiltIn::PromptTokens) => "New Prompt Tokens (without history)".to_owned(),
        _ => info.display.clone(),
    }
}

/// Returns a metric during a run; values that are known only at the end are NaN and shown as
/// unknown.
pub(super) fn on_the_way(name: &str, live: LiveDistribution) -> Option<Metric> {
    let catalogue = Catalogue::built_in();
    let info = catalogue.get(name)?;
    Some(Metric {
        name: info.name.clone(),
        label: info.display.clone(),
        unit: info.unit.clone(),
        better: info.better.name().to_owned(),
        definition: info.definition.clone(),
        plugin: None,
        doubt: None,
        summary: Some(MetricStatistics {
            count: live.count,
            mean: live.mean,
            std: f64::NAN,
            min: f64::NAN,
            max: live.max,
            p50: live.p50,
            p90: live.p90,
            p95: live.p95,
            p99: live.p99,
        }),
    })
}

fn summary(summary: &Summary) -> MetricStatistics {
    MetricStatistics {
        count: summary.count as u64,
        mean: summary.mean,
        std: summary.std,
        min: summary.min,
        max: summary.max,
        p50: summary.p50,
        p90: summary.p90,
        p95: summary.p95,
        p99: summary.p99,
    }
}
