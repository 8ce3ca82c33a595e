//! One pass over all files that checks each row and stores its position and keys.
//!
//! Peak memory is 52 bytes per row and a table of hashes of 5 to 11 bytes per row (trees, which
//! have two hashes); 12 to 32 bytes per row remain.

use std::ops::ControlFlow;

use veeksha_ports::{Grouping, Layout};
use xxhash_rust::xxh3::xxh3_128;

use crate::columns::TraceColumns;
use crate::error::{BadRow, RowPosition, SkippedRows, TraceError};
use crate::index::groups::Groups;
use crate::index::intern::Interner;
use crate::index::row_index::{MAX_ROWS, NO_ARRIVAL, NONE, RowIndex, retain};
use crate::index::tree::{TreeFault, parents_of, roots_of};
use crate::options::BadRowRule;
use crate::problem::RowProblem;
use crate::row::{CellPositions, LocatedRow, RowReader};
use crate::rows::{RawRow, ReadLimits, detect, each_row};
use crate::store::Store;

/// Result of the pass.
#[derive(Debug)]
pub(crate) struct IndexedRows {
    pub(crate) rows: RowIndex,
    pub(crate) groups: Groups,
    /// Cell positions of each file.
    pub(crate) headers: Vec<CellPositions>,
    /// Rows that were skipped.
    pub(crate) skipped: SkippedRows,
    /// With kept values: the rank of each row's value, the most frequent first.
    pub(crate) kept: Option<Vec<u32>>,
}

/// State of the pass.
struct Pass<'a> {
    store: &'a Store,
    columns: &'a TraceColumns,
    on_bad_row: BadRowRule,
    reader: RowReader,
    headers: Vec<CellPositions>,
    rows: RowIndex,
    /// Hash of the grouping column, or of the tree's id.
    keys: Vec<u128>,
    parents: Vec<u128>,
    keep: Vec<u128>,
    /// Rows read, good or bad.
    met: u64,
    skipped: SkippedRows,
}

/// Number of rows from which the number of groups is estimated.
const SAMPLE: usize = 1 << 16;

/// Data stored for a row in addition to its position.
struct RowEntry {
    arrival: i64,
    key: u128,
    parent: u128,
    keep: u128,
}

/// Checks a row and extracts its entry.
fn entry(columns: &TraceColumns, row: &LocatedRow<'_>) -> Result<RowEntry, RowProblem> {
    row.check()?;
    // 0 represents an absent key.
    let hash = |slot: Option<usize>| match slot.map(|slot| row.key(slot)).transpose()?.flatten() {
        Some(key) => Ok::<u128, RowProblem>(xxh3_128(key.as_bytes()).max(1)),
        None => Ok(0),
    };
    let (id, parent) = columns.tree.unzip();
    let is_root = match parent {
        Some(parent) => row.key(parent)?.is_none_or(|parent| parent == "-1"),
        None => true,
    };
    Ok(RowEntry {
        arrival: row.arrival()?.unwrap_or(NO_ARRIVAL),
        key: hash(columns.key.or(id))?,
        parent: if is_root { 0 } else { hash(parent)? },
        keep: hash(columns.keep)?,
    })
}

/// Reads the whole trace.
pub(crate) fn build(
    store: &Store,
    layout: &Layout,
    columns: &TraceColumns,
    on_bad_row: BadRowRule,
    limits: ReadLimits,
) -> Result<IndexedRows, TraceError> {
    let mut pass = Pass {
        store,
        columns,
        on_bad_row,
        reader: RowReader::new(columns),
        headers: Vec::with_capacity(store.regions.len()),
        rows: RowIndex::default(),
        keys: Vec::new(),
        parents: Vec::new(),
        keep: Vec::new(),
        met: 0,
        skipped: SkippedRows::default(),
    };
    let mut names_in_headers = vec![false; columns.names.len()];
    for file in 0..store.regions.len() {
        pass.rows.first_of_file.push(pass.rows.len() as u32);
        let shape = detect(store, file, layout.rows_in.as_deref(), limits)?;
        let header = crate::header::header(store, file, &shape, columns, limits)?;
        if let CellPositions::Csv(positions) = &header {
            for name in positions.iter().flatten() {
                names_in_headers[*name] = true;
            }
        }
        each_row(store, file, &shape, limits, &mut |raw: RawRow<'_>| {
            pass.row(file, &header, raw).map(ControlFlow::Continue)
        })?;
        let empty = pass.rows.of_file(file).is_empty();
        if empty && layout.grouping == Grouping::Pools {
            return Err(match pass.skipped.listed.first() {
                Some(first) => TraceError::NoGoodRows {
                    path: store.regions[file].path.clone(),
                    total: pass.skipped.total,
                    first: Box::new(first.clone()),
                },
                None => TraceError::EmptyPool {
                    file: store.regions[file].path.clone(),
                },
            });
        }
        pass.headers.push(header);
    }
    pass.renames_met(&names_in_headers, layout, limits)?;
    pass.some_rows()?;
    pass.finish(layout)
}

impl Pass<'_> {
    fn row(&mut self, file: usize, header: &CellPositions, raw: RawRow<'_>) -> Result<(), TraceError> {
        self.met += 1;
        let RawRow {
            offset,
            line,
            bytes,
            last,
        } = raw;
        let (reader, columns) = (&mut self.reader, self.columns);
        let entry = bytes.and_then(|bytes| {
            let row = reader.read(columns, header, bytes)?;
            Ok((bytes.len() as u32, entry(columns, &row)?))
        });
        match entry {
            Ok((len, entry)) => self.push(offset, len, entry),
            Err(RowProblem::EndsEarly) if last => self.bad(file, self.met, Some(line), RowProblem::CutOff),
            Err(problem) => self.bad(file, self.met, Some(line), problem),
        }
    }

    fn push(&mut self, offset: u64, len: u32, entry: RowEntry) -> Result<(), TraceError> {
        if self.met > MAX_ROWS as u64 {
            return Err(TraceError::TooManyRows {
                path: self.store.path.clone(),
                limit: MAX_ROWS as u64,
            });
        }
        let columns = self.columns;
        self.rows.offsets.push(offset);
        self.rows.lens.push(len);
        if columns.arrival.is_some() {
            self.rows.arrivals.push(entry.arrival);
        }
        if let Some(numbers) = &mut self.rows.numbers {
            numbers.push(self.met as u32);
        }
        if columns.key.is_some() || columns.tree.is_some() {
            self.keys.push(entry.key);
        }
        if columns.tree.is_some() {
            self.parents.push(entry.parent);
        }
        if columns.keep.is_some() {
            self.keep.push(entry.keep);
        }
        Ok(())
    }

    /// Handles an unusable row: fails, or skips it.
    fn bad(
        &mut self,
        file: usize,
        row: u64,
        line: Option<u64>,
        problem: RowProblem,
    ) -> Result<(), TraceError> {
        let bad = BadRow {
            place: RowPosition {
                file: self.store.regions[file].path.clone(),
                row,
                line,
            },
            problem,
        };
        match self.on_bad_row {
            BadRowRule::Refuse => Err(bad.into()),
            BadRowRule::Skip => {
                // From here on row numbers differ from indices.
                self.rows.fix_numbers();
                self.skipped.add(bad);
                Ok(())
            }
        }
    }

    /// Checks that each renamed column exists in the trace.
    fn renames_met(
        &self,
        in_headers: &[bool],
        layout: &Layout,
        limits: ReadLimits,
    ) -> Result<(), TraceError> {
        let seen = self.reader.seen();
        for (at, name) in self.columns.names.iter().enumerate() {
            if name.renamed && !seen(at) && !in_headers[at] {
                let found = crate::sniff::columns_of(self.store, layout.rows_in.as_deref(), limits)?;
                return Err(TraceError::RenameFrom {
                    path: self.store.path.clone(),
                    column: name.name.clone(),
                    found,
                });
            }
        }
        Ok(())
    }

    fn some_rows(&self) -> Result<(), TraceError> {
        let path = self.store.path.clone();
        match (self.rows.len(), self.skipped.listed.first()) {
            (0, None) => Err(TraceError::NoRows { path }),
            (0, Some(first)) => Err(TraceError::NoGoodRows {
                path,
                total: self.skipped.total,
                first: Box::new(first.clone()),
            }),
            _ => Ok(()),
        }
    }

    fn finish(mut self, layout: &Layout) -> Result<IndexedRows, TraceError> {
        let kept = layout.keep.as_ref().map(|keep| self.keep_frequent(keep.count));
        if kept.as_ref().is_some_and(Vec::is_empty) {
            return Err(TraceError::NoRows {
                path: self.store.path.clone(),
            });
        }
        let groups = match &layout.grouping {
            Grouping::Row | Grouping::Pools => Groups::Rows {
                count: self.rows.len() as u32,
            },
            Grouping::Column(_) => self.by_key(),
            Grouping::Tree { id, parent } => self.by_tree(id, parent)?,
        };
        self.some_rows()?;
        let mut kept = kept;
        if let (Grouping::Tree { .. }, Some(_)) = (&layout.grouping, &kept) {
            // The tree may have dropped rows since; only layouts with both a tree and kept values
            // need the ranks again.
            kept = layout.keep.as_ref().map(|keep| self.keep_frequent(keep.count));
        }
        self.rows.rebase_arrivals();
        self.rows.offsets.shrink_to_fit();
        self.rows.lens.shrink_to_fit();
        self.rows.arrivals.shrink_to_fit();
        Ok(IndexedRows {
            rows: self.rows,
            groups,
            headers: self.headers,
            skipped: self.skipped,
            kept,
        })
    }

    /// Drops all rows except those with the most frequent values; returns the rank of each
    /// remaining row's value.
    fn keep_frequent(&mut self, count: u32) -> Vec<u32> {
        let hashes = &self.keep;
        let mut table = Interner::with_capacity(0);
        let present = |row: &u32| hashes[*row as usize] != 0;
        // The value of each row, numbered by first appearance, and its number of occurrences.
        let mut values: Vec<u32> = vec![NONE; hashes.len()];
        let mut occurrences: Vec<u32> = Vec::new();
        for row in (0..hashes.len() as u32).filter(present) {
            let first = table.insert(row, hashes);
            if first == row {
                values[row as usize] = occurrences.len() as u32;
                occurrences.push(0);
            } else {
                values[row as usize] = values[first as usize];
            }
            occurrences[values[row as usize] as usize] += 1;
        }
        drop(table);
        let mut order: Vec<u32> = (0..occurrences.len() as u32).collect();
        // A stable sort: equally frequent values stay in the order of their first appearance.
        order.sort_by_key(|value| std::cmp::Reverse(occurrences[*value as usize]));
        let mut ranks = vec![NONE; occurrences.len()];
        for (rank, value) in order.iter().take(count as usize).enumerate() {
            ranks[*value as usize] = rank as u32;
        }
        let rank = |row: usize| ranks.get(values[row] as usize).copied().unwrap_or(NONE);
        let wanted = |row: usize| rank(row) != NONE;
        let kept = (0..values.len()).map(rank).filter(|rank| *rank != NONE).collect();
        self.rows.retain(wanted);
        retain(&mut self.keys, wanted);
        retain(&mut self.parents, wanted);
        retain(&mut self.keep, wanted);
        kept
    }

    fn by_key(&mut self) -> Groups {
        let keys = std::mem::take(&mut self.keys);
        let mut table = Interner::with_capacity(0);
        let mut stands_for: Vec<u32> = Vec::with_capacity(keys.len());
        for (row, key) in keys.iter().enumerate() {
            if row == SAMPLE {
                // Estimate the number of groups from the first rows.
                table.reserve(table.len() * (keys.len() / SAMPLE), &keys);
            }
            if row % 32 == 0 {
                table.touch(row as u32..keys.len().min(row + 32) as u32, &keys);
            }
            let same = match row.checked_sub(1) {
                // Rows of a group are often adjacent.
                Some(last) if keys[last] == *key && *key != 0 => stands_for[last],
                _ if *key == 0 => row as u32,
                _ => table.insert(row as u32, &keys),
            };
            stands_for.push(same);
        }
        drop((table, keys));
        Groups::of(stands_for)
    }

    /// Groups rows by tree after refusing or skipping faulty ones. Rows that continue a skipped row
    /// become roots, because the trace lacks their parents.
    fn by_tree(&mut self, id: &str, parent: &str) -> Result<Groups, TraceError> {
        loop {
            let roots = parents_of(&self.keys, &self.parents).and_then(|parents| roots_of(&parents));
            let faults = match roots {
                Ok(roots) => {
                    self.keys = Vec::new();
                    self.parents = Vec::new();
                    return Ok(Groups::of(roots));
                }
                Err(faults) => faults,
            };
            let mut bad = vec![false; self.rows.len()];
            for fault in faults {
                self.tree_fault(fault, id, parent, &mut bad)?;
            }
            let wanted = |row: usize| !bad[row];
            self.rows.retain(wanted);
            retain(&mut self.keys, wanted);
            retain(&mut self.parents, wanted);
            retain(&mut self.keep, wanted);
        }
    }

    fn tree_fault(
        &mut self,
        fault: TreeFault,
        id: &str,
        parent: &str,
        bad: &mut [bool],
    ) -> Result<(), TraceError> {
        match fault {
            TreeFault::Duplicate { row, first } => {
                bad[row as usize] = true;
                let problem = RowProblem::DuplicateId {
                    column: id.to_owned(),
                    id: self.id_of(row).unwrap_or_default(),
                    first: self.rows.number(first),
                };
                self.bad(self.rows.file_of(row), self.rows.number(row), None, problem)
            }
            TreeFault::Cycle(rows) => {
                let numbers: Vec<u64> = rows.iter().map(|row| self.rows.number(*row)).collect();
                for row in rows {
                    bad[row as usize] = true;
                    let problem = RowProblem::Cycle {
                        column: parent.to_owned(),
                        rows: numbers.clone(),
                    };
                    self.bad(self.rows.file_of(row), self.rows.number(row), None, problem)?;
                }
                Ok(())
            }
        }
    }

    /// Returns the id of a row, for a message.
    fn id_of(&self, row: u32) -> Option<String> {
        let (slot, _) = self.columns.tree?;
        let file = self.rows.file_of(row);
        let mut bytes = vec![0; self.rows.lens[row as usize] as usize];
        self.store
            .read_exact_at(file, self.rows.offsets[row as usize], &mut bytes)
            .ok()?;
        let mut reader = RowReader::new(self.columns);
        let row = reader.read(self.columns, &self.headers[file], &bytes).ok()?;
        row.key(slot).ok()?.map(std::borrow::Cow::into_owned)
    }
}
