//! Tables of requests grouped by labels.

use veeksha_metrics::LabelGroups;
use veeksha_page::{GroupTable, GroupValues, ValueColumn};

use crate::group_columns::group_columns;

pub(super) fn groups(groups: &[LabelGroups]) -> Vec<GroupTable> {
    let grouped = groups.iter().map(|grouped| {
        let columns = group_columns(grouped);
        GroupTable {
            label: grouped.label.clone(),
            remark: grouped.remark(),
            columns: columns
                .iter()
                .map(|column| ValueColumn {
                    label: column.label.clone(),
                    unit: column.unit.to_owned(),
                })
                .collect(),
            rows: grouped
                .groups
                .iter()
                .map(|group| GroupValues {
                    value: group.key.to_string(),
                    values: columns.iter().map(|column| (column.value)(group)).collect(),
                })
                .collect(),
        }
    });
    grouped.collect()
}
