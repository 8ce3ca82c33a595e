//! The data of an open trace, which all its clones, instances and threads share.

use std::sync::Arc;

use veeksha_ports::{FlavorFactory, Grouping, Layout, TraceFacts, TraceGroup};
use veeksha_stats::RandomStream;

use crate::columns::TraceColumns;
use crate::error::{RowPosition, SkippedRows};
use crate::index::{Groups, NONE, RowIndex};
use crate::replay::sequence::GroupSequence;
use crate::row::CellPositions;
use crate::store::Store;
use crate::text::numbers;

/// Files, rows, groups and flavor of an open trace.
pub(crate) struct TraceData {
    pub(crate) store: Store,
    pub(crate) layout: Layout,
    pub(crate) columns: TraceColumns,
    pub(crate) headers: Vec<CellPositions>,
    pub(crate) rows: RowIndex,
    pub(crate) groups: Groups,
    /// With kept values: the rank of each row's value.
    pub(crate) kept: Option<Vec<u32>>,
    pub(crate) sequence: GroupSequence,
    pub(crate) facts: TraceFacts,
    pub(crate) skipped: SkippedRows,
    pub(crate) flavor: Arc<dyn FlavorFactory>,
    pub(crate) seed: u64,
    pub(crate) wrap: bool,
    /// Rows that may be drawn from each file, where files are pools.
    pub(crate) pools: Vec<RowPool>,
}

/// The rows of one file of a trace of pools.
pub(crate) struct RowPool {
    /// Name of its stream of random numbers.
    pub(crate) stream: String,
    /// The file's rows.
    pub(crate) rows: Vec<u32>,
}

impl TraceData {
    /// Returns true if sessions are drawn from pools.
    pub(crate) fn draws(&self) -> bool {
        self.layout.grouping == Grouping::Pools
    }

    /// Returns the number of sessions; `None`: endless.
    pub(crate) fn length(&self) -> Option<u64> {
        (!self.wrap && !self.draws()).then(|| self.sequence.len())
    }

    /// Returns the position of a row, without its line, which is not stored.
    pub(crate) fn place(&self, row: u32) -> RowPosition {
        place(&self.store, &self.rows, row)
    }

    /// Returns the rows of a drawn session: one of each pool.
    pub(crate) fn draw(&self, session: u64) -> impl Iterator<Item = u32> + '_ {
        self.pools.iter().map(move |pool| {
            let mut draws = RandomStream::new(self.seed, session, &pool.stream).draws();
            pool.rows[draws.below(pool.rows.len() as u32) as usize]
        })
    }

    /// Returns row `place` of each pool, wrapping around in shorter pools.
    pub(crate) fn abreast(&self, place: u64) -> impl Iterator<Item = u32> + '_ {
        self.pools
            .iter()
            .map(move |pool| pool.rows[(place % pool.rows.len() as u64) as usize])
    }

    /// Describes the rows of some groups, for a message.
    pub(crate) fn described(&self, epoch: u64, groups: &[TraceGroup]) -> String {
        let rows: Vec<u64> = groups
            .iter()
            .flat_map(|group| &group.rows)
            .map(|row| row.number)
            .collect();
        let word = if rows.len() == 1 { "row" } else { "rows" };
        let epoch = if epoch > 0 {
            format!(" (epoch {epoch})")
        } else {
            String::new()
        };
        format!("{}, {word} {}{epoch}", self.store.path.display(), numbers(&rows))
    }

    /// Returns the rows of the sessions before the run: the first row of each kept value, else the
    /// first row.
    pub(crate) fn warmup_rows(&self) -> Vec<u32> {
        let used = (0..self.groups.len()).flat_map(|group| self.groups.rows(group));
        let Some(kept) = &self.kept else {
            return used.min().into_iter().collect();
        };
        let mut firsts: Vec<u32> = Vec::new();
        for row in used {
            let rank = kept[row as usize] as usize;
            if firsts.len() <= rank {
                firsts.resize(rank + 1, NONE);
            }
            firsts[rank] = firsts[rank].min(row);
        }
        firsts.retain(|row| *row != NONE);
        firsts
    }
}

/// Returns the position of a row, without its line.
pub(crate) fn place(store: &Store, rows: &RowIndex, row: u32) -> RowPosition {
    RowPosition {
        file: store.regions[rows.file_of(row)].path.clone(),
        row: rows.number(row),
        line: None,
    }
}
