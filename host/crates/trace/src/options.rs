//! What the user chose of a trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use veeksha_model::Nanos;

/// Which trace, and how it is read and replayed.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// A file, or a folder whose files are read in the order of their names (hidden files and sub-folders are left out).
    pub path: PathBuf,
    /// The user's renames: a name in the file, and the name that the flavor knows. They win over the flavor's aliases.
    pub columns: BTreeMap<String, String>,
    /// What happens to a row that cannot be used.
    pub on_bad_row: OnBadRow,
    /// How much is checked before the run.
    pub check: Check,
    /// The longest row, in bytes. It also bounds the buffers.
    pub max_row_bytes: usize,
    /// In which order the groups are replayed.
    pub order: Order,
    /// Whether the trace begins again when it ends.
    pub wrap: bool,
    /// The seed of orders and draws.
    pub seed: u64,
    /// The folder for unpacked gzip and Zstandard files, which have no name there; `None`: the system's.
    pub scratch: Option<PathBuf>,
}

/// What happens to a row that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBadRow {
    /// The trace is refused.
    #[default]
    Refuse,
    /// The row is left out, counted and listed.
    Skip,
}

/// How much is checked before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// [`Check::Whole`] for traces of up to 256 MiB and where bad rows are skipped; else [`Check::Rows`].
    #[default]
    Auto,
    /// Every row against the layout, and every group of the first epoch through the flavor.
    Whole,
    /// Every row against the layout.
    Rows,
}

/// In which order the groups of a trace are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they stand in the file, in every epoch.
    File,
    /// As they stand in the file; from the second epoch on shuffled, differently in each.
    #[default]
    ShuffledAfterFirst,
    /// Shuffled, differently in each epoch.
    Shuffled,
    /// By their recorded arrivals, in every epoch.
    ByArrival {
        /// Groups that arrived earlier are left out; relative to the earliest arrival of the trace.
        start: Option<Nanos>,
        /// Groups that arrived then or later are left out.
        end: Option<Nanos>,
    },
}
