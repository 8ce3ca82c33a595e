//! Sections of the closing table on the makespans of sessions.

use veeksha_metrics::{Counterfactual, Evaluation, Metric, PathPart, RunMetric};
use veeksha_page::{GroupTable, GroupValues, ValueColumn};
use veeksha_ports::RunResults;
use veeksha_report::{Section, SummaryRow, duration, number, share};

use crate::rows::row;

/// Returns the section on the critical paths; without rows if every session has one request, whose
/// latencies are the same.
pub(crate) fn critical_path(evaluation: &Evaluation) -> Section {
    let has_edges = evaluation
        .metric(Metric::SessionSize)
        .is_some_and(|size| size.max > 1.0);
    let total = evaluation
        .metric(Metric::SessionMakespan)
        .map(|makespan| makespan.mean);
    let time = |metric: Metric, name: &str| {
        let summary = evaluation.metric(metric)?;
        let mut cells = [summary.mean, summary.p50, summary.p90, summary.p99, summary.max]
            .map(duration)
            .to_vec();
        let whole = total.filter(|total| *total > 0.0);
        cells.extend(whole.map(|whole| share(summary.mean / whole)));
        let note = summary.p99_is_thin().then(|| format!("P99 of {}", summary.count));
        Some(SummaryRow {
            note,
            ..row(name, cells)
        })
    };
    let makespan = time(Metric::SessionMakespan, Metric::SessionMakespan.title());
    let has_tools = !evaluation.counts.tools.is_empty();
    let of_tools = [PathPart::ToolWaiting, PathPart::ToolService];
    let parts = PathPart::ALL
        .into_iter()
        .filter(|part| has_tools || !of_tools.contains(part));
    let parts = parts.filter_map(|part| {
        let metric = part.metric();
        let on_path = time(metric, &format!("  {}", metric.title()))?;
        Some(SummaryRow {
            note: None,
            ..on_path
        })
    });
    let requests = evaluation.metric(Metric::PathRequests).map(|summary| {
        let cells = [summary.mean, summary.p50, summary.p90, summary.p99, summary.max].map(number);
        row(Metric::PathRequests.title(), cells.to_vec())
    });
    let rows = makespan.into_iter().chain(parts).chain(requests);
    Section {
        title: "Sessions by critical path".into(),
        columns: ["mean", "P50", "P90", "P99", "max", "share"]
            .map(String::from)
            .to_vec(),
        rows: if has_edges { rows.collect() } else { Vec::new() },
    }
}

/// Returns the tables of the page: the sessions by critical path and the tool runs, where there are
/// any.
pub(crate) fn tables(evaluation: &Evaluation) -> Vec<GroupTable> {
    let paths = critical_path(evaluation);
    let makespan = evaluation.metric(Metric::SessionMakespan);
    let whole = makespan.map_or(0.0, |makespan| makespan.mean);
    let of = |metric: Metric| {
        let summary = evaluation.metric(metric)?;
        let share = (whole > 0.0).then(|| summary.mean / whole);
        let values = [summary.mean, summary.p50, summary.p90, summary.p99, summary.max];
        Some(GroupValues {
            value: metric.title().to_owned(),
            values: values.map(Some).into_iter().chain([share]).collect(),
        })
    };
    let metrics = std::iter::once(Metric::SessionMakespan).chain(PathPart::ALL.map(PathPart::metric));
    let sessions = GroupTable {
        label: paths.title,
        remark: None,
        columns: columns(&["mean", "P50", "P90", "P99", "max"], "s")
            .chain(columns(&["share"], "share"))
            .collect(),
        rows: metrics.filter_map(of).collect(),
    };
    let runs = evaluation.counts.tools.iter().map(|(class, counts)| {
        let label = [("tool".to_owned(), class.to_string())];
        let times = [Metric::ToolWaitingTime, Metric::ToolServiceTime].map(|metric| {
            let stats = evaluation.samples.stats(metric.name(), &label);
            [stats.mean, stats.p50, stats.p99].map(|time| (stats.count > 0).then_some(time))
        });
        let counts = [
            counts.runs,
            counts.failures,
            counts.cold_starts,
            counts.dropped_total(),
        ];
        GroupValues {
            value: class.to_string(),
            values: counts
                .map(|count| Some(count as f64))
                .into_iter()
                .chain(times.into_iter().flatten())
                .collect(),
        }
    });
    let tools = GroupTable {
        label: "Tool runs".to_owned(),
        remark: None,
        columns: columns(&TOOL_COLUMNS[..4], "")
            .chain(columns(&TOOL_COLUMNS[4..], "s"))
            .collect(),
        rows: runs.collect(),
    };
    let shown = [
        (!paths.rows.is_empty()).then_some(sessions),
        (!tools.rows.is_empty()).then_some(tools),
    ];
    shown.into_iter().flatten().collect()
}

fn columns(labels: &'static [&'static str], unit: &'static str) -> impl Iterator<Item = ValueColumn> {
    labels.iter().map(move |label| ValueColumn {
        label: (*label).to_owned(),
        unit: unit.to_owned(),
    })
}

const TOOL_COLUMNS: [&str; 10] = [
    "runs",
    "failed",
    "cold",
    "not ended",
    "wait mean",
    "wait P50",
    "wait P99",
    "service mean",
    "service P50",
    "service P99",
];

/// Returns the section on tool runs by class; without rows if there were none.
pub(crate) fn tools(evaluation: &Evaluation) -> Section {
    let rows = evaluation.counts.tools.iter().map(|(class, counts)| {
        let label = [("tool".to_owned(), class.to_string())];
        let times = [Metric::ToolWaitingTime, Metric::ToolServiceTime].map(|metric| {
            let stats = evaluation.samples.stats(metric.name(), &label);
            let known = (stats.count > 0).then_some(duration);
            [stats.mean, stats.p50, stats.p99].map(|time| known.map_or_else(String::new, |text| text(time)))
        });
        let counts = [
            counts.runs,
            counts.failures,
            counts.cold_starts,
            counts.dropped_total(),
        ];
        let counts = counts.map(|count| count.to_string());
        row(
            class,
            counts.into_iter().chain(times.into_iter().flatten()).collect(),
        )
    });
    Section {
        title: "Tool runs".into(),
        columns: TOOL_COLUMNS.map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

/// Returns the section on makespans with changed times; without rows if none were requested.
pub(crate) fn what_if(evaluation: &Evaluation) -> Section {
    let counterfactuals = evaluation.samples.counterfactuals();
    let of = |name: String, summary, note| {
        let cells = |summary: veeksha_stats::Summary| {
            [summary.mean, summary.p50, summary.p90, summary.p99, summary.max]
                .map(duration)
                .to_vec()
        };
        SummaryRow {
            note,
            ..row(
                &name,
                Option::map_or(summary, vec!["no samples".to_owned()], cells),
            )
        }
    };
    let measured = counterfactuals
        .first()
        .map(|first| of("Session makespan as measured".to_owned(), first.measured(), None));
    let changed = counterfactuals.iter().map(|counterfactual| {
        let name = format!("  with {}", counterfactual.what_if);
        of(name, counterfactual.changed(), median_change(counterfactual))
    });
    let in_flight = evaluation.run_metrics().get(&RunMetric::MaxRequestsInFlight);
    let load = match in_flight.filter(|most| **most > 1.0) {
        Some(most) => format!(
            "up to {} requests contend as measured: faster servers gain more",
            number(*most)
        ),
        None => "the load on the server stays as measured".to_owned(),
    };
    Section {
        title: format!("What if ({load})"),
        columns: ["mean", "P50", "P90", "P99", "max"].map(String::from).to_vec(),
        rows: measured.into_iter().chain(changed).collect(),
    }
}

/// Returns the change of the median as text.
fn median_change(counterfactual: &Counterfactual) -> Option<String> {
    let change = counterfactual.median_change()?;
    let direction = if change > 0.0 { "longer" } else { "shorter" };
    Some(format!(
        "the median session is {} {direction}",
        share(change.abs())
    ))
}
