//! The content of the sample run's page, computed from the events.

use std::collections::BTreeMap;

use veeksha_events::{Event, RequestRecord, Status};
use veeksha_model::Nanos;
use veeksha_page::{
    CertificateFinding, CertificateSection, CertificateVerdict, CheckOutcome, DroppedToolRuns, Fact,
    FailedWorkload, Failures, GroupTable, GroupValues, HealthRow, KeyMetric, Metric, MetricError,
    MetricStatistics, NeverSent, PageData, Plugin, PluginUseRow, RequestSample, RunFacts, SliceRow, Slices,
    SloRow, ValueColumn, WorstSloWindow,
};
use veeksha_stats::Summary;

use super::run::nanos;

fn summary(values: &mut Vec<f64>) -> Option<MetricStatistics> {
    Summary::of(values).map(|summary| MetricStatistics {
        count: summary.count as u64,
        mean: summary.mean,
        std: summary.std,
        min: summary.min,
        max: summary.max,
        p50: summary.p50,
        p90: summary.p90,
        p95: summary.p95,
        p99: summary.p99,
    })
}

fn fact(name: &str, value: &str) -> Fact {
    Fact {
        name: name.into(),
        value: value.into(),
    }
}

/// Returns the page's data for these events.
#[expect(clippy::too_many_lines, reason = "one value with every field")]
pub(crate) fn data(events: &[Event], limit: usize) -> PageData {
    let mut sample = RequestSample::new(limit);
    events.iter().for_each(|event| sample.on(event));
    let records: Vec<&RequestRecord> = events
        .iter()
        .filter_map(|event| match event {
            Event::Finished(record) => Some(&**record),
            _ => None,
        })
        .collect();
    let answered: Vec<&RequestRecord> = records.iter().copied().filter(|record| record.is_ok()).collect();
    let seconds = |from: Nanos, to: Nanos| (to as f64 - from as f64) / 1e9;
    let first = |record: &RequestRecord| record.generated_at().next();
    let last = |record: &RequestRecord| record.generated_at().last();
    // Built-in metrics cover answered requests; the values of a request before its failure are not
    // samples.
    let mut ttfc: Vec<f64> = answered
        .iter()
        .filter_map(|record| Some(seconds(record.dispatched_at, first(record)?)))
        .collect();
    let mut tpot: Vec<f64> = answered
        .iter()
        .filter(|record| record.output_tokens > 1)
        .filter_map(|record| {
            Some(seconds(first(record)?, last(record)?) / f64::from(record.output_tokens - 1))
        })
        .collect();
    let mut whole: Vec<f64> = answered
        .iter()
        .filter_map(|record| Some(seconds(record.dispatched_at, last(record)?)))
        .collect();
    let mut gaps: Vec<f64> = answered
        .iter()
        .flat_map(|record| {
            let at: Vec<Nanos> = record.generated_at().collect();
            at.windows(2)
                .map(|pair| seconds(pair[0], pair[1]))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut output: Vec<f64> = answered
        .iter()
        .map(|record| f64::from(record.output_tokens))
        .collect();
    let mut scores: Vec<f64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Sampled(sample) => Some(sample.value),
            _ => None,
        })
        .collect();
    let end = records
        .iter()
        .map(|record| record.completed_at)
        .max()
        .unwrap_or(1) as f64
        / 1e9;
    let tokens: f64 = output.iter().sum();
    let failed = records.len() - answered.len();
    let metric = |name: &str, label: &str, unit: &str, better: &str, definition: &str, summary| Metric {
        name: name.into(),
        label: label.into(),
        unit: unit.into(),
        better: better.into(),
        definition: definition.into(),
        plugin: None,
        doubt: None,
        summary,
    };
    let key_metric = |name: &str, label: &str, value: f64, unit: &str, count: usize, of: &str| KeyMetric {
        name: name.into(),
        label: label.into(),
        value: Some(value),
        unit: unit.into(),
        count: Some(count as u64),
        count_of: Some(of.into()),
        ..KeyMetric::default()
    };
    let metrics = vec![
        metric(
            "ttfc",
            "Time to first chunk",
            "s",
            "less",
            "first generated chunk - dispatched",
            summary(&mut ttfc),
        ),
        metric(
            "tbc",
            "Time between chunks",
            "s",
            "less",
            "gaps between successive generated chunks",
            summary(&mut gaps),
        ),
        metric(
            "tpot",
            "Time per output token",
            "s",
            "less",
            "(last generated chunk - first) / (output tokens - 1)",
            summary(&mut tpot),
        ),
        metric(
            "end_to_end_latency",
            "End-to-end latency",
            "s",
            "less",
            "last generated chunk - dispatched",
            summary(&mut whole),
        ),
        metric(
            "num_output_tokens",
            "Output tokens",
            "tokens",
            "neither",
            "tokens generated",
            summary(&mut output),
        ),
        Metric {
            plugin: Some("scorer".into()),
            ..metric(
                "answer_score",
                "Answer score",
                "1",
                "higher",
                "share of the reference's facts that the answer names",
                summary(&mut scores),
            )
        },
    ];
    let of = |name: &str| {
        metrics
            .iter()
            .find(|metric| metric.name == name)
            .and_then(|metric| metric.summary)
            .unwrap_or_default()
    };
    let slo =
        |expression: &str, observed: f64, bound: f64, unit: &str, comparison: &str, samples: u64| SloRow {
            expression: expression.into(),
            observed: Some(observed),
            bound: Some(bound),
            unit: unit.into(),
            comparison: Some(comparison.into()),
            samples: Some(samples),
            met: Some(if comparison.starts_with('<') {
                observed < bound
            } else {
                observed > bound
            }),
            ..SloRow::default()
        };
    let error_rate = failed as f64 / records.len().max(1) as f64;
    let slos = vec![
        SloRow {
            worst_window: Some(WorstSloWindow {
                from: (end * 0.8 / 10.0).floor() * 10.0,
                to: (end * 0.8 / 10.0).floor() * 10.0 + 10.0,
                of: 12,
            }),
            ..slo(
                "p99(ttfc, window = 10s) < 1500ms",
                of("ttfc").p99 * 1.4,
                1.5,
                "s",
                "<",
                of("ttfc").count,
            )
        },
        slo("p95(tbc) < 40ms", of("tbc").p95, 0.04, "s", "<", of("tbc").count),
        slo(
            "error_rate < 1%",
            error_rate,
            0.01,
            "share",
            "<",
            records.len() as u64,
        ),
        SloRow {
            name: Some("answers are good".into()),
            plugin: Some("tiered".into()),
            detail: Some("gold requests are held to 0.9, standard ones to 0.8".into()),
            ..slo(
                "mean(answer_score) > 0.85",
                of("answer_score").mean,
                0.85,
                "1",
                ">",
                of("answer_score").count,
            )
        },
    ];
    let bound = |name: &str, mean: f64, p99: f64| MetricError {
        metric: name.into(),
        count: of(name).count,
        mean_error: mean,
        p99_error: p99,
        relative: Some(mean / of(name).p50),
        source: "estimated".into(),
    };
    let mut failures: BTreeMap<&str, Failures> = BTreeMap::new();
    for record in &records {
        if let Status::Failed { class, message } = &record.status {
            let entry = failures.entry(class.name()).or_insert_with(|| Failures {
                class: class.name().into(),
                count: 0,
                first_message: message.clone(),
                first_request: Some(record.id.to_string()),
                first_at: Some(record.completed_at as f64 / 1e9),
            });
            entry.count += 1;
        }
    }
    let withdrawn = events
        .iter()
        .filter(|event| matches!(event, Event::NeverSent { .. }))
        .count();
    let slices = (0..10)
        .map(|index| {
            let (from, to) = (end * f64::from(index) / 10.0, end * f64::from(index + 1) / 10.0);
            let within: Vec<&&RequestRecord> = records
                .iter()
                .filter(|record| (nanos(from)..nanos(to)).contains(&record.intended))
                .collect();
            let mut ttfc: Vec<f64> = within
                .iter()
                .filter_map(|record| Some(seconds(record.dispatched_at, first(record)?)))
                .collect();
            let summary = summary(&mut ttfc);
            let tokens: u32 = within.iter().map(|record| record.output_tokens).sum();
            SliceRow {
                from,
                to,
                values: vec![
                    Some(within.len() as f64),
                    Some(f64::from(tokens) / (to - from)),
                    summary.map(|summary| summary.p50),
                    summary.map(|summary| summary.p99),
                    Some(within.iter().filter(|record| !record.is_ok()).count() as f64),
                ],
            }
        })
        .collect();
    let column = |label: &str, unit: &str| ValueColumn {
        label: label.into(),
        unit: unit.into(),
    };
    let check = |name: &str, outcome, summary: &str, details: &[&str]| HealthRow {
        name: name.into(),
        outcome,
        summary: summary.into(),
        details: details.iter().map(|detail| (*detail).into()).collect(),
    };
    PageData {
        run: RunFacts {
            name: "two-phase chat, 8B".into(),
            summary: Some("Chats with branches against one vLLM server; the rate of new sessions doubles half way.".into()),
            facts: vec![
                fact("Model", "meta-llama/Llama-3.1-8B-Instruct"),
                fact("Server", "http://10.0.4.17:8000/v1"),
                fact("Traffic", "Poisson, 3.5 then 7 sessions/s"),
                fact("Seed", "42"),
                fact("Workload digest", "9f2c41d07be8a613"),
            ],
            started_unix: Some(1_795_000_000.0),
            elapsed: Some(end),
            ..RunFacts::default()
        },
        certificate: Some(CertificateSection {
            verdict: CertificateVerdict::Degraded,
            coverage: None,
            basis: Some("the run's own record".into()),
            findings: vec![
                CertificateFinding {
                    verdict: CertificateVerdict::Degraded,
                    metric: Some("tbc".into()),
                    what: "TBC: error 1.4 % of its P50 (253 µs of 18.1 ms): chunks were read up to 0.9 ms after the kernel had them, while another process held a core of a client thread".into(),
                    remedy: Some("leave a core to each client thread (runtime.num_client_threads: 1), or stop what else runs on this machine".into()),
                },
                CertificateFinding {
                    verdict: CertificateVerdict::Valid,
                    metric: None,
                    what: "41 requests opened a connection, and waited for it: that time is part of their time to first chunk".into(),
                    remedy: None,
                },
            ],
            bounds: vec![
                bound("ttfc", 42e-6, 310e-6),
                bound("tbc", 0.014 * of("tbc").p50, 0.9e-3),
                bound("tpot", 4e-6, 22e-6),
                bound("end_to_end_latency", 61e-6, 540e-6),
            ],
        }),
        key_metrics: vec![
            key_metric("goodput", "Goodput", 1.0 - error_rate - 0.03, "share", records.len() + withdrawn, "intended"),
            key_metric("requests_per_second", "Throughput", answered.len() as f64 / end, "requests/s", answered.len(), "answered"),
            key_metric("output_tokens_per_second", "Output", tokens / end, "tokens/s", tokens as usize, "tokens"),
            KeyMetric {
                error: Some(310e-6),
                ..key_metric("p50_ttfc", "TTFC, median", of("ttfc").p50, "s", of("ttfc").count as usize, "")
            },
            KeyMetric {
                error: Some(0.9e-3),
                ..key_metric("p99_tbc", "TBC, P99", of("tbc").p99, "s", of("tbc").count as usize, "gaps")
            },
            key_metric("error_rate", "Errors", error_rate, "share", records.len(), "sent"),
        ],
        metrics,
        slos,
        curves: None,
        requests: sample.finish(),
        failures: failures.into_values().collect(),
        failed_plugins: vec![FailedWorkload {
            plugin: "coder".into(),
            count: 3,
            first_message: "agent.lua:12: attempt to index nil with 'files'".into(),
            sessions: vec![17, 40, 58],
        }],
        sessions: vec![GroupTable {
            label: "Tool runs".into(),
            remark: None,
            columns: vec![column("runs", ""), column("wait mean", "s")],
            rows: vec![GroupValues {
                value: "sandbox".into(),
                values: vec![Some(64.0), Some(0.031)],
            }],
        }],
        cache: Some(GroupTable {
            label: "Requests".into(),
            remark: None,
            columns: vec![column("prompt tokens", ""), column("reused", "share"), column("first seen", "share")],
            rows: vec![GroupValues {
                value: "All".into(),
                values: vec![Some(812_000.0), Some(0.62), Some(0.38)],
            }],
        }),
        groups: vec![GroupTable {
            label: "tier".into(),
            remark: None,
            columns: vec![column("sent", ""), column("output", "tokens/s"), column("TTFC P99", "s")],
            rows: vec![
                GroupValues {
                    value: "free".into(),
                    values: vec![Some(120.0), Some(410.5), Some(0.92)],
                },
                GroupValues {
                    value: "gold".into(),
                    values: vec![Some(60.0), Some(380.25), None],
                },
            ],
        }],
        never_sent: vec![NeverSent {
            reason: "session_cancelled".into(),
            count: withdrawn as u64,
            meaning: "an earlier request of their session had failed".into(),
        }],
        dropped_tool_runs: vec![DroppedToolRuns {
            tool: "sandbox".into(),
            reason: "in_service".into(),
            count: 3,
            meaning: "they were served when the run ended".into(),
        }],
        slices: Some(Slices {
            columns: vec![
                column("Requests", "requests"),
                column("Output", "tokens/s"),
                column("TTFC P50", "s"),
                column("TTFC P99", "s"),
                column("Failed", "requests"),
            ],
            rows: slices,
        }),
        health: vec![
            check("Session dispatch rate", CheckOutcome::Passed, "5.24 sessions/s were asked for, 5.21 were begun", &[]),
            check("Intra-session arrival", CheckOutcome::Passed, "2,046 waits, at most 0.4 ms late", &[]),
            check("Prompt length", CheckOutcome::Passed, "every prompt has the length that was asked for", &[]),
            check("Output length", CheckOutcome::Failed, "31 answers are shorter than asked for", &["request 17/2: 12 of 140 tokens, finish reason stop", "request 88/0: 55 of 60 tokens, finish reason stop"]),
            check("Lifecycle delays", CheckOutcome::Warned, "pick-up after dispatch: P99 0.8 ms, more than the 0.5 ms that are usual", &["client-1 had 71 % of a core"]),
            check("Dirty cache", CheckOutcome::Skipped, "the server does not report cached tokens", &[]),
        ],
        configuration: Some(CONFIGURATION.into()),
        plugin_use: vec![PluginUseRow {
            name: "coder".to_owned(),
            calls: 12_345,
            longest_call: "3.2 ms of 10 s".to_owned(),
            memory: "12.0 MiB of 256.0 MiB".to_owned(),
            output: Some("0.1 MiB".to_owned()),
            log_lines: 17,
            ..PluginUseRow::default()
        }],
        plugins: vec![
            Plugin {
                name: "multi_turn".into(),
                role: "workload".into(),
                version: Some("0.1.0".into()),
                source: Some("shipped".into()),
                digest: Some("blake3:5d2b1f7c9e0a44b3a1fbb0d1d1c7c7f2b8c6f6a07c33ad1d9a7f0f9b7a1c2d3e".into()),
            },
            Plugin {
                name: "scorer".into(),
                role: "metric".into(),
                version: Some("2.0.1".into()),
                source: Some("plugins/scorer.wasm".into()),
                digest: Some("blake3:c0ffee7c9e0a44b3a1fbb0d1d1c7c7f2b8c6f6a07c33ad1d9a7f0f9b7a1c2d3e".into()),
            },
        ],
        machine: vec![
            fact("Processor", "AMD EPYC 7R13, 2 cores"),
            fact("Memory", "15.4 GiB"),
            fact("Kernel", "Linux 6.8.0"),
            fact("Clock", "tsc, resolution 1 ns"),
            fact("Timer slack", "50 µs"),
        ],
        versions: vec![
            fact("veeksha-host", "0.1.0"),
            fact("Contract", "veeksha:plugin 0.1.0"),
            fact("Server", "vLLM 0.11.0"),
            fact("Tokenizer", "meta-llama/Llama-3.1-8B-Instruct"),
        ],
    }
}

const CONFIGURATION: &str = r#"# resolved: defaults written out, secrets removed
seed: 42
session_generator:
  type: multi_turn
  turns: {type: uniform, min: 1, max: 6}
  branches: 3
traffic_scheduler:
  type: rate
  cancel_session_on_failure: true
  interval_generator:
    type: poisson
    arrival_rate: 5.25
client:
  type: openai_chat_completions
  api_base: http://10.0.4.17:8000/v1
  api_key: '***'
  model: meta-llama/Llama-3.1-8B-Instruct
  request_timeout: 30
runtime:
  benchmark_timeout: 180
  num_client_threads: 2
slos:
  - p99(ttfc, window = 10s) < 1500ms
  - p95(tbc) < 40ms
  - error_rate < 1%
"#;
