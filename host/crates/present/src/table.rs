//! The closing table of a run.

use veeksha_certificate::Certificate;
use veeksha_events::{NeverSentReason, PluginRole, ToolDropReason};
use veeksha_health::{HealthOutcome, HealthReport};
use veeksha_metrics::{Evaluation, LabelGroups, Metric, PluginVerdict, SloResult, Stated};
use veeksha_model::ErrorClass;
use veeksha_report::{RowMark, Section, SummaryRow, duration, number, share};
use veeksha_slo::ComparisonOperator;
use veeksha_stats::DurationUnit;

use crate::accuracy::{AccuracyContext, Clock};
use crate::cache_section;
use crate::certificate_section;
use crate::description::RunDescription;
use crate::group_columns::{GroupColumn, group_columns};
use crate::rows::row;
use crate::session_section;
use crate::units::{objective_unit, verdict_unit};

/// Share of merged chunks above which the gaps describe the client's reads rather than the server.
const MANY_MERGED: f64 = 0.05;

pub(crate) fn sections(
    evaluation: &Evaluation,
    certificate: &Certificate,
    accuracy_context: &AccuracyContext,
) -> Vec<Section> {
    let mut sections = vec![
        requests(evaluation),
        plugin_failures(evaluation),
        latencies(evaluation, certificate),
        custom(evaluation),
        session_section::critical_path(evaluation),
        session_section::tools(evaluation),
        session_section::what_if(evaluation),
        cache_section::section(evaluation),
        throughput(evaluation, certificate),
    ];
    sections.extend(evaluation.groups.iter().map(groups));
    sections.push(slos(evaluation));
    // In virtual time nothing can be late.
    if accuracy_context.clock == Clock::Real {
        let mut accuracy = accuracy(evaluation);
        accuracy.rows.extend(accuracy_context.threads.rows());
        sections.push(accuracy);
    }
    sections.push(certificate_section::section(certificate));
    sections
}

fn requests(evaluation: &Evaluation) -> Section {
    let counts = &evaluation.counts;
    let mut rows = vec![
        row("Sessions", vec![counts.sessions.to_string()]),
        row("Requests answered", vec![counts.completed.to_string()]),
    ];
    let mut count_row = |name: &str, count: u64, mark: RowMark| {
        if count > 0 {
            rows.push(SummaryRow {
                mark,
                ..row(name, vec![count.to_string()])
            });
        }
    };
    count_row("Requests failed", counts.errored, RowMark::Bad);
    for (class, count) in counts
        .error_classes
        .iter()
        // Requests cancelled at the end have a separate line.
        .filter(|(class, _)| **class != ErrorClass::Cancelled)
    {
        count_row(&format!("  {}", class.name()), *count, RowMark::Plain);
    }
    count_row("Requests cancelled", counts.cancelled, RowMark::Warning);
    count_row(
        "Requests cancelled by the workload",
        counts.cancelled_by_client,
        RowMark::Plain,
    );
    count_row("Requests never sent", counts.never_sent_total(), RowMark::Warning);
    for (reason, count) in &counts.never_sent {
        count_row(&format!("  {}", why_never_sent(*reason)), *count, RowMark::Plain);
    }
    let missing = counts.missing_tool_runs();
    count_row(
        "Tool runs due that did not end",
        missing.values().sum(),
        RowMark::Warning,
    );
    for (reason, count) in &missing {
        let why = match reason {
            ToolDropReason::InService => "served when the run ended",
            ToolDropReason::NotServed(NeverSentReason::Held) => "waiting for a server or a slot",
            ToolDropReason::NotServed(reason) => why_never_sent(*reason),
        };
        count_row(&format!("  {why}"), *count, RowMark::Plain);
    }
    count_row(
        "Sessions due but never started",
        counts.arrivals_missed,
        RowMark::Warning,
    );
    count_row(
        "Sessions with a failed agent",
        counts.failed_agent_sessions,
        RowMark::Warning,
    );
    count_row("Answers without tokens", counts.empty_answers, RowMark::Warning);
    count_row(
        "Requests sent after the timeout, not measured",
        counts.drained,
        RowMark::Plain,
    );
    if counts.by_server.len() > 1 {
        for (server, of) in &counts.by_server {
            let failed = (of.failed > 0).then(|| format!("{} failed", of.failed));
            rows.push(SummaryRow {
                note: failed,
                ..row(
                    &format!("Requests to server {server}"),
                    vec![of.requests.to_string()],
                )
            });
        }
    }
    Section {
        title: "Requests".into(),
        columns: Vec::new(),
        rows,
    }
}

/// Returns the section on plugins that failed; without rows if none did.
fn plugin_failures(evaluation: &Evaluation) -> Section {
    let failed = evaluation.failed.iter().map(|failed| SummaryRow {
        mark: RowMark::Bad,
        note: Some(failed.message.clone()),
        ..row(
            &format!("{} ({})", failed.plugin, failed.part.name()),
            vec!["failed".to_owned()],
        )
    });
    let lost = evaluation.workload_failures.iter().map(|failures| SummaryRow {
        mark: RowMark::Bad,
        note: Some(failures.first.clone()),
        ..row(
            &format!("{} ({})", failures.plugin, PluginRole::Workload.name()),
            vec![format!(
                "failed in {}",
                veeksha_stats::counted(failures.count, "session")
            )],
        )
    });
    Section {
        title: "Plugin failures".into(),
        columns: Vec::new(),
        rows: failed.chain(lost).collect(),
    }
}

fn latencies(evaluation: &Evaluation, certificate: &Certificate) -> Section {
    let with_errors = !certificate.bounds.is_empty();
    let rows = Metric::ranked().into_iter().filter_map(|metric| {
        let summary = evaluation.metric(metric)?;
        let show = |value: f64| {
            if metric.unit() == "s" {
                duration(value)
            } else {
                number(value)
            }
        };
        let mut cells = [summary.mean, summary.p50, summary.p90, summary.p99, summary.max]
            .map(show)
            .to_vec();
        // The error bound of a sample, which does not exist in virtual time.
        if with_errors {
            let bound = certificate.bound(metric);
            cells.push(bound.map_or_else(String::new, |bound| format!("± {}", duration(bound.p99_error))));
        }
        let thin = summary.p99_is_thin().then(|| format!("P99 of {}", summary.count));
        let doubt = certificate.doubts(metric);
        let notes: Vec<String> = thin.into_iter().chain(doubt).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        Some(SummaryRow {
            note,
            ..row(metric.title(), cells)
        })
    });
    let columns = ["mean", "P50", "P90", "P99", "max"].into_iter();
    let error = with_errors.then_some("error (P99)");
    Section {
        title: "Latencies and lengths".into(),
        columns: columns.chain(error).map(String::from).collect(),
        rows: rows.collect(),
    }
}

fn throughput(evaluation: &Evaluation, certificate: &Certificate) -> Section {
    let throughput = &evaluation.throughput;
    let prompt_doubt = certificate.prompt_doubt.map(|doubt| doubt.to_string());
    let metrics = [
        ("Requests per second", throughput.requests_per_second, None),
        (
            "Input tokens per second",
            throughput.input_tokens_per_second,
            prompt_doubt,
        ),
        (
            "Output tokens per second",
            throughput.output_tokens_per_second,
            None,
        ),
    ];
    let rows = metrics.into_iter().filter_map(|(name, value, note)| {
        Some(SummaryRow {
            note,
            ..row(name, vec![number(value?)])
        })
    });
    Section {
        title: "Throughput".into(),
        columns: Vec::new(),
        rows: rows.collect(),
    }
}

fn groups(grouped: &LabelGroups) -> Section {
    let columns = group_columns(grouped);
    let cells: Vec<Vec<String>> = columns
        .iter()
        .map(|column| {
            let values: Vec<Option<f64>> = grouped.groups.iter().map(&column.value).collect();
            // The heading has the unit of a rate.
            let unit = if column.unit == "tokens/s" {
                ""
            } else {
                column.unit
            };
            column_cells(&values, unit)
        })
        .collect();
    let rows = grouped.groups.iter().enumerate().map(|(place, group)| {
        let of_group = cells.iter().map(|column| column[place].clone());
        row(&group.key.to_string(), of_group.collect())
    });
    let remark = grouped.remark().map(|remark| row(&remark, Vec::new()));
    let heading = |column: &GroupColumn| match column.unit {
        "tokens/s" => format!("{} tok/s", column.label),
        _ => column.label.clone(),
    };
    Section {
        title: format!("By label {:?}", grouped.label),
        columns: columns.iter().map(heading).collect(),
        rows: rows.chain(remark).collect(),
    }
}

/// Returns the section on the name, description and tags of the scenario; without rows if it has
/// none of them.
pub(crate) fn scenario(about: &RunDescription) -> Section {
    let name = about.name.iter().map(|name| row("Name", vec![name.clone()]));
    let tags = (!about.tags.is_empty()).then(|| row("Tags", vec![about.tags.join(", ")]));
    let description = about.description.iter().map(|text| row(text, Vec::new()));
    Section {
        title: "Scenario".into(),
        columns: Vec::new(),
        rows: name.chain(tags).chain(description).collect(),
    }
}

/// Formats a value in its unit.
fn shown(value: f64, unit: &str) -> String {
    shown_as(value, unit, DurationUnit::of(value))
}

/// Formats the values of a column; durations have the unit that suits the largest.
fn column_cells(values: &[Option<f64>], unit: &str) -> Vec<String> {
    let largest = values
        .iter()
        .flatten()
        .fold(0.0, |most: f64, value| most.max(value.abs()));
    let durations = DurationUnit::of(largest);
    let cell =
        |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| shown_as(value, unit, durations));
    values.iter().map(cell).collect()
}

/// Formats a value in its unit, a duration in this one.
fn shown_as(value: f64, unit: &str, durations: DurationUnit) -> String {
    match unit {
        "s" => durations.text(value),
        "share" => share(value),
        "" | "1" => number(value),
        unit => match unit.strip_prefix("s/") {
            Some(per) => format!("{}/{per}", durations.text(value)),
            None => format!("{} {unit}", number(value)),
        },
    }
}

fn why_never_sent(reason: NeverSentReason) -> &'static str {
    match reason {
        NeverSentReason::SessionCancelled => "cancelled after a failure",
        NeverSentReason::RunEnded => "not due before the end of the run",
        NeverSentReason::PluginFailed => "plugin failed",
        NeverSentReason::Held => "delayed by a limit",
        NeverSentReason::Missed => "missed by the client",
        NeverSentReason::CancelledByClient => "cancelled by the workload",
    }
}

/// Returns the section on the objectives of the run and their results.
pub(crate) fn slos(evaluation: &Evaluation) -> Section {
    let results = evaluation.slos.results.iter().map(slo);
    let verdicts = evaluation.slos.verdicts.iter().map(verdict);
    let not_judged = evaluation.slos.not_asked.iter().map(|unknown| SummaryRow {
        mark: RowMark::Warning,
        ..row(unknown, Vec::new())
    });
    let mut rows: Vec<SummaryRow> = results.chain(verdicts).chain(not_judged).collect();
    let (goodput, remarks) = (evaluation.slos.goodput, &evaluation.slos.remarks);
    if goodput.is_some() || !remarks.is_empty() {
        let goodput = goodput.map_or("unknown".into(), share);
        rows.push(SummaryRow {
            mark: if remarks.is_empty() {
                RowMark::Plain
            } else {
                RowMark::Warning
            },
            note: (!remarks.is_empty()).then(|| remarks.join("; ")),
            ..row("Goodput (share of all intended requests)", vec![goodput])
        });
    }
    Section {
        title: "SLOs".into(),
        columns: Vec::new(),
        rows,
    }
}

fn slo(result: &SloResult) -> SummaryRow {
    let unit = objective_unit(result);
    let observed = match (result.observed, &result.unknown) {
        (Some(observed), _) => shown(observed, unit),
        (None, Some(_)) => "unknown".into(),
        (None, None) => "no samples".into(),
    };
    let name = name_of(result);
    let mut notes: Vec<String> = result.detail.iter().cloned().collect();
    if let Some(worst) = &result.worst_window {
        notes.push(format!(
            "worst of {}: {} to {}",
            veeksha_stats::counted(worst.windows, "window"),
            duration(worst.from as f64 / 1e9),
            duration(worst.to as f64 / 1e9)
        ));
    }
    if result.thin
        && let Some(samples) = result.sample_count.filter(|samples| *samples > 0)
    {
        notes.push(format!("of only {}", veeksha_stats::counted(samples, "sample")));
    }
    SummaryRow {
        mark: match (result.met, &result.unknown) {
            (true, _) => RowMark::Good,
            (false, Some(_)) => RowMark::Warning,
            (false, None) => RowMark::Bad,
        },
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        ..row(
            &name,
            vec![
                observed,
                format!("{} {}", side(result.comparison), shown(result.threshold, unit)),
            ],
        )
    }
}

fn side(comparison: ComparisonOperator) -> &'static str {
    match comparison {
        ComparisonOperator::Below => "<",
        ComparisonOperator::AtMost => "≤",
        ComparisonOperator::Above => ">",
        ComparisonOperator::AtLeast => "≥",
    }
}

/// Returns the name of an objective: the quantity, after its user-defined name if it has one.
fn name_of(result: &SloResult) -> String {
    let what = match (&result.stated, result.percentile) {
        (Stated::Constant(slo), Some(percentile)) => {
            format!("P{} {}", number(percentile * 100.0), slo.metric.name())
        }
        _ => quantity(result),
    };
    match result.name() {
        Some(name) => format!("{name} ({what})"),
        None => what,
    }
}

/// Returns the bounded quantity as text.
fn quantity(result: &SloResult) -> String {
    match &result.stated {
        Stated::Expression(objective) => objective.quantity.to_string(),
        Stated::Constant(_) => result.key.clone(),
    }
}

fn verdict(of_plugin: &PluginVerdict) -> SummaryRow {
    let verdict = &of_plugin.verdict;
    let (observed, threshold) = observed_and_threshold(of_plugin);
    let detail = if verdict.detail.is_empty() {
        of_plugin.plugin.clone()
    } else {
        format!("{}: {}", of_plugin.plugin, verdict.detail)
    };
    SummaryRow {
        mark: if verdict.met { RowMark::Good } else { RowMark::Bad },
        note: Some(detail),
        ..row(&verdict.name, vec![observed, format!("threshold {threshold}")])
    }
}

/// Formats the numbers of a verdict. A verdict does not state which side of its threshold is good.
fn observed_and_threshold(of_plugin: &PluginVerdict) -> (String, String) {
    let unit = verdict_unit(of_plugin);
    let observed = of_plugin.verdict.observed;
    let observed = observed.map_or("none".into(), |observed| shown(observed, unit));
    (
        format!("observed {observed}"),
        shown(of_plugin.verdict.threshold, unit),
    )
}

/// Describes each missed objective, with the observed and the required value.
pub(crate) fn missed(evaluation: &Evaluation) -> Vec<String> {
    let objectives = evaluation.slos.results.iter().filter(|result| !result.met);
    let objectives = objectives.map(|result| {
        let unit = objective_unit(result);
        let name = name_of(result);
        let bound = format!("{} {}", side(result.comparison), shown(result.threshold, unit));
        match (result.observed, &result.unknown) {
            (_, Some(why)) => format!("{name} is unknown ({why}); required {bound}"),
            (Some(observed), None) => format!("{name} is {}, required {bound}", shown(observed, unit)),
            (None, None) => format!("{name} has no samples; required {bound}"),
        }
    });
    let verdicts = evaluation
        .slos
        .verdicts
        .iter()
        .filter(|of_plugin| !of_plugin.verdict.met);
    let verdicts = verdicts.map(|of_plugin| {
        let (observed, threshold) = observed_and_threshold(of_plugin);
        format!("{} ({observed}, threshold {threshold})", of_plugin.verdict.name)
    });
    objectives.chain(verdicts).collect()
}

/// Returns the section on the metrics of plugins.
fn custom(evaluation: &Evaluation) -> Section {
    let catalogue = evaluation.samples.catalogue();
    let rows = catalogue
        .iter()
        .filter(|metric| metric.plugin.is_some())
        .map(|metric| {
            let summary = evaluation.samples.summary(&metric.name);
            // Times are scaled to a suitable unit. Any other unit is shown once, next to the name,
            // because a plugin's unit may be long.
            let is_time = metric.unit == "s" || metric.unit.starts_with("s/");
            let name = match metric.unit.as_str() {
                "" | "1" => metric.name.clone(),
                _ if is_time => metric.name.clone(),
                unit => format!("{} ({unit})", metric.name),
            };
            let cells = summary.map_or(vec!["no samples".to_owned()], |summary| {
                [summary.mean, summary.p50, summary.p90, summary.p99, summary.max]
                    .map(|value| {
                        if is_time {
                            shown(value, &metric.unit)
                        } else {
                            number(value)
                        }
                    })
                    .to_vec()
            });
            let few = summary.filter(|summary| summary.p99_is_thin());
            SummaryRow {
                note: few.map(|summary| format!("P99 of {}", summary.count)),
                ..row(&name, cells)
            }
        });
    Section {
        title: "Plugin metrics".into(),
        columns: ["mean", "P50", "P90", "P99", "max"].map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

fn accuracy(evaluation: &Evaluation) -> Section {
    let host = &evaluation.host;
    let delays = [
        ("Dispatch delay after the intended time", &host.dispatch_lateness),
        ("Pick-up delay after dispatch", &host.pickup_delay),
        ("Last byte sent after dispatch", &host.send_lateness),
    ];
    let mut rows: Vec<SummaryRow> = delays
        .into_iter()
        .filter_map(|(name, summary)| {
            let summary = summary.as_ref()?;
            Some(row(
                name,
                [summary.p50, summary.p99, summary.max].map(duration).to_vec(),
            ))
        })
        .collect();
    let delays_shown = rows.len();
    if let Some(merged) = host.merged_chunk_share {
        let many = merged > MANY_MERGED;
        let mark = if many { RowMark::Warning } else { RowMark::Plain };
        let note = many.then(|| "gaps within a read are 0; interpret chunk times with care".to_owned());
        rows.push(SummaryRow {
            mark,
            note,
            ..row("Chunks that arrived in one read", vec![share(merged)])
        });
    }
    if let Some(lag) = &host.client_lag {
        let cells = [lag.p50, lag.p99, lag.max].map(duration).to_vec();
        rows.insert(
            rows.len().min(delays_shown),
            row("Read delay after kernel receive", cells),
        );
    }
    for (name, held) in [
        ("Delayed by the session limit", &host.held.sessions),
        ("Delayed by the in-flight limit", &host.held.in_flight),
        ("Delayed by the prefill limit", &host.held.in_prefill),
    ] {
        rows.extend(
            held.as_ref()
                .map(|held| row(name, [held.p50, held.p99, held.max].map(duration).to_vec())),
        );
    }
    if host.connections_opened > 0 {
        let opened = veeksha_stats::counted(host.connections_opened, "connection");
        let inside = match host.ttfc_with_opening {
            0 => String::new(),
            count => format!("; included in {count} times to first chunk"),
        };
        rows.push(SummaryRow {
            note: Some(format!("{opened} opened{inside}")),
            ..row(
                "Requests on a reused connection",
                vec![host.connection_reuse_share.map_or("-".into(), share)],
            )
        });
    }
    if host.starvations > 0 {
        let cells = vec![host.starvations.to_string(), duration(host.starved_seconds)];
        rows.push(SummaryRow {
            mark: RowMark::Warning,
            ..row("Sessions delivered late by the plugin", cells)
        });
    }
    let columns = ["P50", "P99", "max"].map(String::from).to_vec();
    Section {
        title: "Accuracy of the client".into(),
        columns,
        rows,
    }
}

/// Returns the section on failed health checks, if there are any.
pub(crate) fn health(report: &HealthReport) -> Option<Section> {
    let failed = report
        .checks
        .iter()
        .filter(|check| check.outcome == HealthOutcome::Failed);
    let rows: Vec<SummaryRow> = failed
        .map(|check| SummaryRow {
            name: check.name.to_owned(),
            mark: RowMark::Warning,
            note: check.findings.first().cloned(),
            ..SummaryRow::default()
        })
        .collect();
    (!rows.is_empty()).then(|| Section {
        title: "Health: run deviated from its scenario".into(),
        columns: Vec::new(),
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_column_have_one_unit() {
        let values = [Some(0.000_8), None, Some(0.25), Some(1.5)];
        assert_eq!(column_cells(&values, "s"), ["0.0008 s", "-", "0.25 s", "1.5 s"]);
        assert_eq!(
            column_cells(&values, "s/token"),
            ["0.0008 s/token", "-", "0.25 s/token", "1.5 s/token"]
        );
        assert_eq!(column_cells(&values[..2], "s"), ["800 µs", "-"]);
    }
}
