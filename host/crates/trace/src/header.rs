//! Header of a CSV file: the columns of it that are read.

use std::collections::HashSet;

use crate::columns::TraceColumns;
use crate::error::TraceError;
use crate::problem::RowProblem;
use crate::row::CellPositions;
use crate::rows::{ReadLimits, Shape, header_of};
use crate::store::Store;
use crate::text::{nearest, quoted};

/// Returns the cell positions of a file's rows. A CSV header must name each column once and all
/// required ones.
pub(crate) fn header(
    store: &Store,
    file: usize,
    shape: &Shape,
    columns: &TraceColumns,
    limits: ReadLimits,
) -> Result<CellPositions, TraceError> {
    let Shape::Csv { at } = shape else {
        return Ok(CellPositions::Json);
    };
    let found = names(store, file, *at, limits)?;
    let positions: Vec<Option<usize>> = found.iter().map(|name| columns.find(name)).collect();
    for (slot, column) in columns
        .slots
        .iter()
        .enumerate()
        .filter(|(_, column)| column.required)
    {
        let there = positions.iter().flatten().any(|name| {
            let targets = &columns.names[*name].targets;
            targets.iter().any(|(target, _)| usize::from(*target) == slot)
        });
        if !there {
            return Err(TraceError::MissingColumn {
                file: store.regions[file].path.clone(),
                column: column.name.clone(),
                hint: hint(&column.name, &found, &positions),
                found,
            });
        }
    }
    Ok(CellPositions::Csv(positions))
}

/// Returns the names in the header of a CSV file.
pub(crate) fn names(
    store: &Store,
    file: usize,
    at: u64,
    limits: ReadLimits,
) -> Result<Vec<String>, TraceError> {
    let path = || store.regions[file].path.clone();
    let unusable = |problem| TraceError::Header {
        file: path(),
        problem,
    };
    let cells = header_of(store, file, at, limits)?.map_err(unusable)?;
    let mut names: Vec<String> = Vec::with_capacity(cells.len());
    let mut met = HashSet::with_capacity(cells.len());
    for (position, cell) in cells.iter().enumerate() {
        let name = cell.trim();
        if name.is_empty() && cells.len() > 1 && position > 0 {
            return Err(unusable(RowProblem::NamelessColumn { number: position + 1 }));
        }
        if !met.insert(name) {
            return Err(TraceError::DuplicateHeader {
                file: path(),
                column: name.to_owned(),
            });
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Suggests a cause for a missing column: another separator, or a column with a similar name.
fn hint(wanted: &str, found: &[String], positions: &[Option<usize>]) -> Option<String> {
    if let [only] = found {
        let separator = [';', '\t', '|']
            .into_iter()
            .find(|separator| only.contains(*separator));
        if let Some(separator) = separator {
            let shown = if separator == '\t' {
                "tabs".to_owned()
            } else {
                quoted(&separator.to_string())
            };
            return Some(format!(
                " (its cells seem to be separated by {shown}; use commas)"
            ));
        }
        if only.starts_with(['{', '[', '"', '\'']) {
            return Some(" (the file was read as CSV; is it JSON?)".to_owned());
        }
    }
    let free = found
        .iter()
        .zip(positions)
        .filter(|(_, position)| position.is_none());
    nearest(wanted, free.map(|(name, _)| name.as_str()))
        .map(|name| format!(" (is it {}? `columns` can rename it)", quoted(name)))
}
