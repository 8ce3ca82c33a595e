//! Conversion of layouts and rows between the contract's records and the host's.

use veeksha_ports::{
    ArrivalColumn, CellType, Grouping, Layout, MostFrequent, TimestampUnit, TraceColumn, TraceFacts,
    TraceGroup,
};

use crate::bindings::trace_flavor as wit;

pub(crate) fn facts(facts: &TraceFacts) -> wit::Facts {
    wit::Facts {
        rows: facts.rows,
        groups: facts.groups,
        first_row: facts.first_row.clone(),
    }
}

pub(crate) fn groups(groups: &[TraceGroup]) -> Vec<wit::Group> {
    let group = |group: &TraceGroup| wit::Group {
        index: group.index,
        key: group.key.clone(),
        rows: group
            .rows
            .iter()
            .map(|row| wit::Row {
                number: row.number,
                at: row.at,
                fields: row.fields.clone(),
            })
            .collect(),
    };
    groups.iter().map(group).collect()
}

pub(crate) fn layout(layout: wit::Layout) -> Layout {
    Layout {
        columns: layout.columns.into_iter().map(column).collect(),
        rows_in: layout.rows_in,
        grouping: match layout.grouping {
            wit::Grouping::Row => Grouping::Row,
            wit::Grouping::Column(column) => Grouping::Column(column),
            wit::Grouping::Tree(wit::Tree { id, parent }) => Grouping::Tree { id, parent },
            wit::Grouping::Pools => Grouping::Pools,
        },
        arrival: layout.arrival.map(|arrival| ArrivalColumn {
            column: arrival.column,
            unit: match arrival.unit {
                wit::TimeUnit::Seconds => TimestampUnit::Seconds,
                wit::TimeUnit::Milliseconds => TimestampUnit::Milliseconds,
                wit::TimeUnit::Microseconds => TimestampUnit::Microseconds,
                wit::TimeUnit::Nanoseconds => TimestampUnit::Nanoseconds,
                wit::TimeUnit::DateTime => TimestampUnit::DateTime,
            },
        }),
        keep: layout.keep.map(|keep| MostFrequent {
            column: keep.column,
            count: keep.count,
        }),
        warms_up: layout.warms_up,
    }
}

fn column(column: wit::Column) -> TraceColumn {
    TraceColumn {
        name: column.name,
        aliases: column.aliases,
        cell: match column.cell {
            wit::Cell::Text => CellType::Text,
            wit::Cell::Count => CellType::Count,
            wit::Cell::Integer => CellType::Integer,
            wit::Cell::Number => CellType::Number,
            wit::Cell::Truth => CellType::Truth,
            wit::Cell::Items => CellType::Items,
            wit::Cell::Members => CellType::Members,
            wit::Cell::Anything => CellType::Anything,
        },
        required: column.required,
    }
}
