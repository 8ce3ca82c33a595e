//! Validation of a layout: column names are unique, and every reference is declared.

use std::collections::HashSet;

use crate::flavor::{Grouping, Layout};

/// The most columns of a layout.
pub const MAX_COLUMNS: usize = 256;
/// The most names, with aliases, that one column goes by.
const MAX_NAMES: usize = 32;
/// Bytes of one name.
const NAME_BYTES: usize = 256;

/// The reason for which a layout was refused. The message names the column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Nothing to read.
    #[error("the layout has no columns; a flavor reads at least one")]
    NoColumns,
    /// More columns than [`MAX_COLUMNS`].
    #[error("the layout has {0} columns, at most {MAX_COLUMNS} are read")]
    TooManyColumns(usize),
    /// A column without a name, or with an alias that is empty.
    #[error("column {0} of the layout has an empty name")]
    EmptyName(usize),
    /// A name that no file has.
    #[error("a name in the layout has {bytes} bytes, at most {NAME_BYTES} are read: `{begin}…`")]
    LongName {
        /// The first characters of the name.
        begin: String,
        /// Length of the name in bytes.
        bytes: usize,
    },
    /// More aliases than anybody needs.
    #[error("the column `{0}` has {1} names, at most {MAX_NAMES} are tried")]
    TooManyNames(String, usize),
    /// Two columns, or a column and an alias, of one name.
    #[error("the layout has the name `{0}` twice; the names and aliases of its columns must differ")]
    SameName(String),
    /// The layout refers to a column that it does not declare.
    #[error("the layout's `{what}` is the column `{column}`, which is not among its columns")]
    Undeclared {
        /// The referring key: `grouping`, `tree.parent`, `arrival`, ...
        what: &'static str,
        /// The missing column.
        column: String,
    },
    /// The tree's id and parent columns are the same.
    #[error("the layout's tree has the column `{0}` for both `id` and `parent`")]
    OwnParent(String),
    /// `rows-in` without a name.
    #[error("the layout's `rows-in` is empty; leave it out if the file is not an object")]
    EmptyRowsIn,
    /// Nothing would be kept.
    #[error(
        "the layout keeps the rows with the 0 most frequent values of `{0}`; `keep` needs a count of 1 or more"
    )]
    KeepsNothing(String),
}

/// Checks a flavor's layout.
///
/// # Errors
/// The first thing that cannot be followed.
pub fn check_layout(layout: &Layout) -> Result<(), LayoutError> {
    check_names(layout)?;
    let declared = |what, column: &str| {
        if layout.columns.iter().any(|known| known.name == column) {
            Ok(())
        } else {
            Err(LayoutError::Undeclared {
                what,
                column: column.to_owned(),
            })
        }
    };
    match &layout.grouping {
        Grouping::Column(column) => declared("grouping", column)?,
        Grouping::Tree { id, parent } => {
            declared("tree.id", id)?;
            declared("tree.parent", parent)?;
            if id == parent {
                return Err(LayoutError::OwnParent(id.clone()));
            }
        }
        Grouping::Row | Grouping::Pools => {}
    }
    if let Some(arrival) = &layout.arrival {
        declared("arrival", &arrival.column)?;
    }
    if let Some(keep) = &layout.keep {
        declared("keep", &keep.column)?;
        if keep.count == 0 {
            return Err(LayoutError::KeepsNothing(keep.column.clone()));
        }
    }
    match layout.rows_in.as_deref() {
        Some("") => Err(LayoutError::EmptyRowsIn),
        _ => Ok(()),
    }
}

fn check_names(layout: &Layout) -> Result<(), LayoutError> {
    let count = layout.columns.len();
    if count == 0 {
        return Err(LayoutError::NoColumns);
    }
    if count > MAX_COLUMNS {
        return Err(LayoutError::TooManyColumns(count));
    }
    let mut seen = HashSet::new();
    for (index, column) in layout.columns.iter().enumerate() {
        let names = 1 + column.aliases.len();
        for name in std::iter::once(&column.name).chain(column.aliases.iter().take(MAX_NAMES)) {
            if name.is_empty() {
                return Err(LayoutError::EmptyName(index + 1));
            }
            if name.len() > NAME_BYTES {
                return Err(LayoutError::LongName {
                    begin: name.chars().take(40).collect(),
                    bytes: name.len(),
                });
            }
            if !seen.insert(name.as_str()) {
                return Err(LayoutError::SameName(name.clone()));
            }
        }
        if names > MAX_NAMES {
            return Err(LayoutError::TooManyNames(column.name.clone(), names));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalColumn, CellType, MostFrequent, TimestampUnit, TraceColumn};

    fn column(name: &str, aliases: &[&str]) -> TraceColumn {
        TraceColumn {
            name: name.into(),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            cell: CellType::Text,
            required: false,
        }
    }

    fn layout(columns: Vec<TraceColumn>) -> Layout {
        Layout {
            columns,
            rows_in: None,
            grouping: Grouping::Row,
            arrival: None,
            keep: None,
            warms_up: false,
        }
    }

    fn ab() -> Layout {
        layout(vec![column("a", &["A", "alpha"]), column("b", &[])])
    }

    #[test]
    fn accepts_declared_column_references() {
        let tree = |id: &str, parent: &str| Grouping::Tree {
            id: id.into(),
            parent: parent.into(),
        };
        for grouping in [
            Grouping::Row,
            Grouping::Pools,
            Grouping::Column("b".into()),
            tree("a", "b"),
        ] {
            let whole = Layout {
                grouping,
                rows_in: Some("rows".into()),
                arrival: Some(ArrivalColumn {
                    column: "b".into(),
                    unit: TimestampUnit::Seconds,
                }),
                keep: Some(MostFrequent {
                    column: "a".into(),
                    count: 1,
                }),
                ..ab()
            };
            assert_eq!(check_layout(&whole), Ok(()));
        }
        let most = (0..MAX_COLUMNS).map(|i| column(&i.to_string(), &[])).collect();
        assert_eq!(check_layout(&layout(most)), Ok(()));
    }

    #[test]
    fn rejects_duplicate_or_empty_names() {
        let cases = [
            (vec![], "the layout has no columns; a flavor reads at least one"),
            (
                vec![column("a", &[]), column("a", &[])],
                "the layout has the name `a` twice; the names and aliases of its columns must differ",
            ),
            (
                vec![column("a", &["c"]), column("b", &["c"])],
                "the layout has the name `c` twice; the names and aliases of its columns must differ",
            ),
            (
                vec![column("a", &["b"]), column("b", &[])],
                "the layout has the name `b` twice; the names and aliases of its columns must differ",
            ),
            (
                vec![column("a", &[]), column("", &[])],
                "column 2 of the layout has an empty name",
            ),
            (
                vec![column("a", &[""])],
                "column 1 of the layout has an empty name",
            ),
        ];
        for (columns, message) in cases {
            assert_eq!(check_layout(&layout(columns)).unwrap_err().to_string(), message);
        }
        let many = (0..=MAX_COLUMNS).map(|i| column(&i.to_string(), &[])).collect();
        assert_eq!(
            check_layout(&layout(many)),
            Err(LayoutError::TooManyColumns(MAX_COLUMNS + 1))
        );
        let long = column(&"x".repeat(NAME_BYTES + 1), &[]);
        assert!(matches!(
            check_layout(&layout(vec![long])),
            Err(LayoutError::LongName { bytes: 257, .. })
        ));
        let aliases: Vec<String> = (0..MAX_NAMES).map(|i| i.to_string()).collect();
        let named = TraceColumn {
            aliases,
            ..column("a", &[])
        };
        assert_eq!(
            check_layout(&layout(vec![named])),
            Err(LayoutError::TooManyNames("a".into(), MAX_NAMES + 1))
        );
    }

    #[test]
    fn rejects_undeclared_column_references() {
        let tree = |id: &str, parent: &str| Layout {
            grouping: Grouping::Tree {
                id: id.into(),
                parent: parent.into(),
            },
            ..ab()
        };
        let arrival = Layout {
            arrival: Some(ArrivalColumn {
                column: "t".into(),
                unit: TimestampUnit::DateTime,
            }),
            ..ab()
        };
        let keep = |column: &str, count| Layout {
            keep: Some(MostFrequent {
                column: column.into(),
                count,
            }),
            ..ab()
        };
        let grouping = Layout {
            grouping: Grouping::Column("alpha".into()),
            ..ab()
        };
        let not_there = |what: &str, column: &str| {
            format!("the layout's `{what}` is the column `{column}`, which is not among its columns")
        };
        let cases = [
            // Columns go by their own names; an alias is for files.
            (grouping, not_there("grouping", "alpha")),
            (tree("id", "b"), not_there("tree.id", "id")),
            (tree("a", "up"), not_there("tree.parent", "up")),
            (
                tree("a", "a"),
                "the layout's tree has the column `a` for both `id` and `parent`".to_owned(),
            ),
            (arrival, not_there("arrival", "t")),
            (keep("c", 3), not_there("keep", "c")),
            (
                keep("a", 0),
                "the layout keeps the rows with the 0 most frequent values of `a`; `keep` needs a count of 1 or more"
                    .to_owned(),
            ),
        ];
        for (layout, message) in cases {
            assert_eq!(check_layout(&layout).unwrap_err().to_string(), message);
        }
        let nowhere = Layout {
            rows_in: Some(String::new()),
            ..ab()
        };
        assert_eq!(check_layout(&nowhere), Err(LayoutError::EmptyRowsIn));
    }
}
