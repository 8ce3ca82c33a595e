//! Errors of traces. Each message names the file, the place in it and, where there is one, the
//! remedy.

use std::fmt;
use std::path::PathBuf;

use veeksha_ports::PluginFailure;

use crate::problem::RowProblem;
use crate::text::{list, quoted};

/// Position of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPosition {
    /// The file.
    pub file: PathBuf,
    /// Number of the row in the trace, from 1. In a folder, the rows of earlier files count too.
    pub row: u64,
    /// Line of the file on which the row begins, from 1, if it is known.
    pub line: Option<u64>,
}

impl fmt::Display for RowPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}", self.file.display(), self.row)?;
        match self.line {
            Some(line) if line != self.row => write!(f, " (line {line})"),
            _ => Ok(()),
        }
    }
}

/// An unusable row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct BadRow {
    /// Its position.
    pub place: RowPosition,
    /// Its problem.
    pub problem: RowProblem,
}

/// Rows that were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedRows {
    /// Number of skipped rows.
    pub total: u64,
    /// The first ones, up to [`SkippedRows::LISTED`].
    pub listed: Vec<BadRow>,
}

impl SkippedRows {
    /// Maximum number of listed rows.
    pub const LISTED: usize = 100;

    pub(crate) fn add(&mut self, bad: BadRow) {
        self.total += 1;
        if self.listed.len() < Self::LISTED {
            self.listed.push(bad);
        }
    }
}

/// An error while opening a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file does not exist.
    #[error("{}: file or folder not found", path.display())]
    Missing {
        /// Path as given.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{}: cannot be read: {why}", path.display())]
    Unreadable {
        /// Path as given.
        path: PathBuf,
        /// Message of the operating system.
        why: String,
    },
    /// The folder has no files.
    #[error("{}: the folder has no files (hidden files and sub-folders are not read)", path.display())]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The trace has no rows.
    #[error("{}: no rows", path.display())]
    NoRows {
        /// Path as given.
        path: PathBuf,
    },
    /// Every row was skipped.
    #[error("{}: none of its {total} rows can be used; the first is {first}", path.display())]
    NoGoodRows {
        /// Path as given.
        path: PathBuf,
        /// Number of rows.
        total: u64,
        /// The first row.
        first: Box<BadRow>,
    },
    /// A recognized format that is not supported.
    #[error("{}: this is {found}; traces are JSON Lines, JSON or CSV, optionally compressed with gzip or Zstandard", path.display())]
    Format {
        /// Path as given.
        path: PathBuf,
        /// Name of the format.
        found: &'static str,
    },
    /// A compressed file that cannot be decompressed.
    #[error("{}: cannot be decompressed ({format}): {why}", path.display())]
    Packed {
        /// Path as given.
        path: PathBuf,
        /// `gzip` or `Zstandard`.
        format: &'static str,
        /// Message of the decoder.
        why: String,
    },
    /// The decompressed file cannot be written.
    #[error("cannot write decompressed trace files to  {}: {why}", folder.display())]
    Scratch {
        /// The folder.
        folder: PathBuf,
        /// Message of the operating system.
        why: String,
    },
    /// A JSON file whose outer structure is broken, so that its rows cannot be found.
    #[error("{}, line {line}: {problem}", file.display())]
    Frame {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The problem.
        problem: RowProblem,
    },
    /// An unusable row.
    #[error(transparent)]
    BadRow(#[from] BadRow),
    /// A header with a duplicate column.
    #[error("{}, line 1: duplicate column {} in the header", file.display(), quoted(column))]
    DuplicateHeader {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
    },
    /// A header that cannot be read.
    #[error("{}, line 1: invalid header:  {problem}", file.display())]
    Header {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: RowProblem,
    },
    /// A header without a required column.
    #[error("{}, line 1: the header has no column {}{}; its columns are {}", file.display(), quoted(column), .hint.as_deref().unwrap_or(""), list(found))]
    MissingColumn {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// Possible cause.
        hint: Option<String>,
        /// Columns of the header.
        found: Vec<String>,
    },
    /// A rename of a column that no file has.
    #[error("{}: `columns` renames {}, which the trace does not have (expected NAME_IN_FILE: NAME); its columns are {}", path.display(), quoted(column), list(found))]
    RenameFrom {
        /// The trace.
        path: PathBuf,
        /// Name that was to be renamed.
        column: String,
        /// Columns of the trace's first rows.
        found: Vec<String>,
    },
    /// A rename to a column that the flavor does not read.
    #[error(
        "`columns` renames {} to {}, which the flavor does not read; its columns are {}",
        quoted(from),
        quoted(to),
        list(known)
    )]
    RenameTo {
        /// Name in the file.
        from: String,
        /// Unknown name.
        to: String,
        /// Columns that the flavor reads.
        known: Vec<String>,
    },
    /// Arrivals are to be replayed, but the flavor has none.
    #[error("recorded arrivals cannot be replayed: this flavor reads none from its trace")]
    NoArrivals,
    /// Arrivals are to be replayed, but draws from pools have no order.
    #[error("recorded arrivals cannot be replayed: this flavor draws its sessions at random")]
    ArrivalsOfPools,
    /// An empty window.
    #[error("no session arrived {window}; those of the trace arrived from 0 s to {last} s")]
    EmptyWindow {
        /// The window.
        window: String,
        /// Last arrival in seconds.
        last: String,
    },
    /// An arrival too late to be replayed.
    #[error("{place}: it arrived {days} days after the first; arrivals up to 104 days apart can be replayed")]
    SpanTooLong {
        /// The row.
        place: RowPosition,
        /// Days after the first arrival.
        days: u64,
    },
    /// A pool without rows.
    #[error("{}: no rows; each file of this trace is a pool and must have at least one row", file.display())]
    EmptyPool {
        /// The file.
        file: PathBuf,
    },
    /// More rows than the index can hold.
    #[error("{}: more than {limit} rows; split the trace", path.display())]
    TooManyRows {
        /// Path as given.
        path: PathBuf,
        /// Maximum number of rows.
        limit: u64,
    },
    /// The flavor failed or refused rows.
    #[error(transparent)]
    Plugin(#[from] PluginFailure),
}
