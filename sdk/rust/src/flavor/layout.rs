//! Constructors of layouts.

use crate::bindings::trace_flavor::exports::veeksha::plugin::trace_flavor::{
    Arrival, Cell, Column, Grouping, Layout, TimeUnit, Tree,
};

impl Layout {
    /// A layout of these columns in which each row is a session, without arrivals.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Layout {
            columns: columns.into(),
            rows_in: None,
            grouping: Grouping::Row,
            arrival: None,
            keep: None,
            warms_up: false,
        }
    }

    /// Rows with the same value in a column are one session.
    pub fn grouped_by(mut self, column: impl Into<String>) -> Self {
        self.grouping = Grouping::Column(column.into());
        self
    }

    /// Each row continues the row whose id it names as its parent.
    pub fn tree(mut self, id: impl Into<String>, parent: impl Into<String>) -> Self {
        self.grouping = Grouping::Tree(Tree {
            id: id.into(),
            parent: parent.into(),
        });
        self
    }

    /// Recorded arrivals are in a column.
    pub fn arrivals(mut self, column: impl Into<String>, unit: TimeUnit) -> Self {
        self.arrival = Some(Arrival {
            column: column.into(),
            unit,
        });
        self
    }
}

impl Column {
    /// A column that every row must have.
    pub fn required(name: impl Into<String>, cell: Cell) -> Self {
        Column {
            required: true,
            ..Column::optional(name, cell)
        }
    }

    /// A column that a row may have.
    pub fn optional(name: impl Into<String>, cell: Cell) -> Self {
        Column {
            name: name.into(),
            aliases: Vec::new(),
            cell,
            required: false,
        }
    }

    /// Adds a name that the column may have in a file.
    pub fn or(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_has_short_constructors() {
        let layout = Layout::new([
            Column::required("id", Cell::Text).or("ID").or("key"),
            Column::optional("time", Cell::Number),
        ])
        .tree("id", "up")
        .arrivals("time", TimeUnit::Milliseconds);
        let names = &layout.columns[0];
        assert_eq!(
            (names.required, &names.aliases[..]),
            (true, &["ID".to_owned(), "key".to_owned()][..])
        );
        assert!(!layout.columns[1].required);
        assert!(
            matches!(&layout.grouping, Grouping::Tree(Tree { id, parent }) if id == "id" && parent == "up")
        );
        let column = layout.grouped_by("id");
        assert_eq!(column.grouping, Grouping::Column("id".into()));
        assert!(matches!(
            column.arrival,
            Some(Arrival {
                unit: TimeUnit::Milliseconds,
                ..
            })
        ));
        assert_eq!(
            (column.rows_in, column.keep, column.warms_up),
            (None, None, false)
        );
    }
}
