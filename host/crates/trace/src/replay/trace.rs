//! An open trace.

use std::sync::Arc;

use veeksha_model::{Nanos, Session};
use veeksha_ports::{
    FlavorFactory, Grouping, Layout, PluginFailure, TraceFacts, TraceGroup, WorkloadFactory,
};
use veeksha_stats::RandomStream;

use crate::columns::Columns;
use crate::error::{Place, Skipped};
use crate::index::{Groups, NONE, Rows};
use crate::replay::read::GroupReader;
use crate::replay::sequence::{Sequence, arrival_of};
use crate::replay::source::Factory;
use crate::row::Header;
use crate::store::Store;
use crate::text::numbers;

/// An open trace: its rows are checked and indexed. Cheap to clone.
#[derive(Clone)]
pub struct Trace(pub(crate) Arc<Inner>);

/// Shared by all clones, instances and threads.
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) layout: Layout,
    pub(crate) columns: Columns,
    pub(crate) headers: Vec<Header>,
    pub(crate) rows: Rows,
    pub(crate) groups: Groups,
    /// With kept values: the rank of each row's value.
    pub(crate) kept: Option<Vec<u32>>,
    pub(crate) sequence: Sequence,
    pub(crate) facts: TraceFacts,
    pub(crate) skipped: Skipped,
    pub(crate) flavor: Arc<dyn FlavorFactory>,
    pub(crate) seed: u64,
    pub(crate) wrap: bool,
    /// Rows that may be drawn from each file, where files are pools.
    pub(crate) pools: Vec<Pool>,
}

/// The rows of one file of a trace of pools.
pub(crate) struct Pool {
    /// Name of its stream of random numbers.
    pub(crate) stream: String,
    /// The file's rows.
    pub(crate) rows: Vec<u32>,
}

impl Trace {
    /// Returns facts about the rows and groups in use.
    pub fn facts(&self) -> &TraceFacts {
        &self.0.facts
    }

    /// Returns the flavor's layout.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Returns the skipped rows.
    pub fn skipped(&self) -> &Skipped {
        &self.0.skipped
    }

    /// Returns the size of all files, decompressed, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.store.bytes()
    }

    /// Returns the time from the earliest to the latest arrival of the replayed groups; a group
    /// arrives with its earliest row. `None` without arrivals.
    pub fn span(&self) -> Option<Nanos> {
        if let Sequence::Arrivals { first, last, .. } = self.0.sequence {
            return Some(last - first);
        }
        let arrivals =
            (0..self.0.groups.len()).filter_map(|group| arrival_of(&self.0.rows, &self.0.groups, group));
        let (first, last) = arrivals.fold((Nanos::MAX, 0), |(first, last), at| (first.min(at), last.max(at)));
        last.checked_sub(first)
    }

    /// Returns the number of sessions in one pass over the trace; for pools, which have no end, the
    /// rows of the longest.
    pub fn sessions_per_epoch(&self) -> u64 {
        self.0.sequence.len()
    }

    /// Returns the workload of the trace, under the flavor's name.
    pub fn factory(&self) -> Arc<dyn WorkloadFactory> {
        Arc::new(Factory(Arc::clone(&self.0)))
    }

    /// Returns the sessions to send before the run; none if the flavor does not warm up. With kept
    /// values, one group per value, consisting of its first row, the most frequent value first;
    /// else one group, consisting of the trace's first row.
    ///
    /// # Errors
    /// Returns the flavor's failure, or an error if the file has changed.
    pub fn warmup(&self) -> Result<Vec<Session>, PluginFailure> {
        let trace = &*self.0;
        if !trace.layout.warms_up {
            return Ok(Vec::new());
        }
        let mut reader = GroupReader::new(trace);
        let mut groups = Vec::new();
        for (index, row) in trace.warmup_rows().into_iter().enumerate() {
            let mut group = reader.group(trace, index as u64, [row])?;
            if let Some(slot) = trace.columns.keep {
                group.key = reader.key(trace, row, slot)?;
            }
            groups.push(group);
        }
        let mut flavor = trace.flavor.open()?;
        flavor.warmup(&trace.facts, &groups)
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace")
            .field("path", &self.0.store.path)
            .field("facts", &self.0.facts)
            .field("skipped", &self.0.skipped.total)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Returns true if sessions are drawn from pools.
    pub(crate) fn draws(&self) -> bool {
        self.layout.grouping == Grouping::Pools
    }

    /// Returns the number of sessions; `None`: endless.
    pub(crate) fn length(&self) -> Option<u64> {
        (!self.wrap && !self.draws()).then(|| self.sequence.len())
    }

    /// Returns the position of a row, without its line, which is not stored.
    pub(crate) fn place(&self, row: u32) -> Place {
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

    fn warmup_rows(&self) -> Vec<u32> {
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

pub(crate) fn place(store: &Store, rows: &Rows, row: u32) -> Place {
    Place {
        file: store.regions[rows.file_of(row)].path.clone(),
        row: rows.number(row),
        line: None,
    }
}
