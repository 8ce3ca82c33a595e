//! Options of a trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use veeksha_model::Nanos;

/// Location of a trace, and how it is read and replayed.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// A file, or a folder whose files are read in the order of their names (hidden files and
    /// sub-folders are skipped).
    pub path: PathBuf,
    /// The user's renames: name in the file to name for the flavor. They take precedence over the
    /// flavor's aliases.
    pub columns: BTreeMap<String, String>,
    /// Treatment of unusable rows.
    pub on_bad_row: BadRowRule,
    /// Extent of the checks before the run.
    pub check: CheckExtent,
    /// Maximum length of a row in bytes. It also bounds the buffers.
    pub max_row_bytes: usize,
    /// Order in which the groups are replayed.
    pub order: Order,
    /// True if the trace begins again when it ends.
    pub wrap: bool,
    /// Seed of orders and draws.
    pub seed: u64,
    /// Folder for decompressed gzip and Zstandard files, which are unnamed there; `None`: the
    /// system's.
    pub scratch: Option<PathBuf>,
}

/// Treatment of unusable rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRowRule {
    /// The trace is refused.
    #[default]
    Refuse,
    /// The row is skipped, counted and listed.
    Skip,
}

/// Extent of the checks before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckExtent {
    /// [`CheckExtent::Whole`] for traces of up to 256 MiB and where bad rows are skipped; else
    /// [`CheckExtent::Rows`].
    #[default]
    Auto,
    /// Every row against the layout, and every group of the first epoch through the flavor.
    Whole,
    /// Every row against the layout.
    Rows,
}

/// Order in which the groups of a trace are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In the order of the file, in every epoch.
    File,
    /// In the order of the file; from the second epoch on shuffled, differently in each.
    #[default]
    ShuffledAfterFirst,
    /// Shuffled, differently in each epoch.
    Shuffled,
    /// By their recorded arrivals, in every epoch.
    ByArrival {
        /// Start of the window, relative to the earliest arrival of the trace; earlier groups are
        /// left out.
        start: Option<Nanos>,
        /// Exclusive end of the window; later groups are left out.
        end: Option<Nanos>,
    },
}
