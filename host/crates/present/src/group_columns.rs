//! The columns of tables of groups, on the terminal and on the page.

use veeksha_metrics::{LabelGroups, Metric, RequestGroup};
use veeksha_stats::Summary;

type ValueOfGroup = Box<dyn Fn(&RequestGroup) -> Option<f64>>;

/// A column of a table of groups.
pub(crate) struct GroupColumn {
    /// The heading.
    pub(crate) label: String,
    /// The unit of the values.
    pub(crate) unit: &'static str,
    /// The value of a group.
    pub(crate) value: ValueOfGroup,
}

/// Times whose percentiles are columns.
const TIMES: [Metric; 5] = [
    Metric::Ttfc,
    Metric::Tpot,
    Metric::EndToEnd,
    Metric::ToolWaitingTime,
    Metric::ToolServiceTime,
];

type Percentile = (&'static str, fn(&Summary) -> f64);
const PERCENTILES: [Percentile; 2] = [("P50", |summary| summary.p50), ("P99", |summary| summary.p99)];

/// Returns the columns in which at least one group has a value.
pub(crate) fn group_columns(grouped: &LabelGroups) -> Vec<GroupColumn> {
    let column = |label: &str, unit, value: fn(&RequestGroup) -> Option<f64>| GroupColumn {
        label: label.to_owned(),
        unit,
        value: Box::new(value),
    };
    let mut columns = vec![
        column("sent", "", |group| Some(group.totals.requests as f64)),
        column("failed", "", |group| Some(group.totals.errored as f64)),
        column("good of sent", "share", |group| {
            let good = group.totals.good?;
            (group.totals.requests > 0).then(|| good as f64 / group.totals.requests as f64)
        }),
        column("output", "tokens/s", |group| group.output_tokens_per_second),
    ];
    for metric in TIMES {
        for (percentile, of) in PERCENTILES {
            columns.push(GroupColumn {
                label: format!("{} {percentile}", metric.short_name()),
                unit: metric.unit(),
                value: Box::new(move |group| group.metric(metric.name()).map(of)),
            });
        }
    }
    columns.retain(|column| grouped.groups.iter().any(|group| (column.value)(group).is_some()));
    columns
}
