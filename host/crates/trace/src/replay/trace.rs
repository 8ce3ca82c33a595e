//! An open trace.

use std::sync::Arc;

use veeksha_model::{Nanos, Session};
use veeksha_ports::{Layout, PluginFailure, TraceFacts, WorkloadFactory};

use crate::error::SkippedRows;
use crate::replay::read::GroupReader;
use crate::replay::sequence::{GroupSequence, arrival_of};
use crate::replay::source::Factory;
use crate::replay::trace_data::TraceData;

/// An open trace: its rows are checked and indexed. Cheap to clone.
#[derive(Clone)]
pub struct OpenTrace(pub(crate) Arc<TraceData>);

impl OpenTrace {
    /// Returns facts about the rows and groups in use.
    pub fn facts(&self) -> &TraceFacts {
        &self.0.facts
    }

    /// Returns the flavor's layout.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Returns the skipped rows.
    pub fn skipped(&self) -> &SkippedRows {
        &self.0.skipped
    }

    /// Returns the size of all files, decompressed, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.store.bytes()
    }

    /// Returns the time from the earliest to the latest arrival of the replayed groups; a group
    /// arrives with its earliest row. `None` without arrivals.
    pub fn span(&self) -> Option<Nanos> {
        if let GroupSequence::Arrivals { first, last, .. } = self.0.sequence {
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

impl std::fmt::Debug for OpenTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenTrace")
            .field("path", &self.0.store.path)
            .field("facts", &self.0.facts)
            .field("skipped", &self.0.skipped.total)
            .finish_non_exhaustive()
    }
}
