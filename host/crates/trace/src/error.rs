//! Why a trace cannot be used. Each message names the file, the place in it and, where there is one, the remedy.

use std::fmt;
use std::path::PathBuf;

use veeksha_ports::PluginFailure;

use crate::problem::RowProblem;
use crate::text::{list, quoted};

/// Where a row stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The row's number in the trace, from 1. In a folder, the rows of earlier files count too.
    pub row: u64,
    /// The line of the file on which the row begins, from 1, where it is known.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}", self.file.display(), self.row)?;
        match self.line {
            Some(line) if line != self.row => write!(f, " (line {line})"),
            _ => Ok(()),
        }
    }
}

/// A row that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct BadRow {
    /// Where it stands.
    pub place: Place,
    /// What is wrong with it.
    pub problem: RowProblem,
}

/// Rows that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many.
    pub total: u64,
    /// The first of them, up to [`Skipped::LISTED`].
    pub listed: Vec<BadRow>,
}

impl Skipped {
    /// How many bad rows are listed.
    pub const LISTED: usize = 100;

    pub(crate) fn add(&mut self, bad: BadRow) {
        self.total += 1;
        if self.listed.len() < Self::LISTED {
            self.listed.push(bad);
        }
    }
}

/// Why a trace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no such file.
    #[error("{}: there is no such file or folder", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("{}: cannot be read: {why}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// A folder without files.
    #[error("{}: the folder has no files (hidden files and sub-folders are not read)", path.display())]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing in it.
    #[error("{}: no rows", path.display())]
    NoRows {
        /// The path.
        path: PathBuf,
    },
    /// Every row was left out.
    #[error("{}: none of its {total} rows can be used; the first is {first}", path.display())]
    NoGoodRows {
        /// The path.
        path: PathBuf,
        /// How many there are.
        total: u64,
        /// The first.
        first: Box<BadRow>,
    },
    /// A format that is known and not read.
    #[error("{}: this is {found}; traces are JSON Lines, JSON or CSV, plain or packed with gzip or Zstandard", path.display())]
    Format {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A compressed file that cannot be unpacked.
    #[error("{}: cannot be unpacked ({format}): {why}", path.display())]
    Packed {
        /// The path.
        path: PathBuf,
        /// `gzip` or `Zstandard`.
        format: &'static str,
        /// What the decoder says.
        why: String,
    },
    /// No room for an unpacked file.
    #[error("cannot write unpacked trace files to {}: {why}", folder.display())]
    Scratch {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        why: String,
    },
    /// A JSON file whose frame is broken, so that its rows cannot be found.
    #[error("{}, line {line}: {problem}", file.display())]
    Frame {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: RowProblem,
    },
    /// A row that cannot be used.
    #[error(transparent)]
    BadRow(#[from] BadRow),
    /// A header that names a column twice.
    #[error("{}, line 1: the header names the column {} twice", file.display(), quoted(column))]
    DuplicateHeader {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
    },
    /// A header that cannot be read.
    #[error("{}, line 1: the header cannot be used: {problem}", file.display())]
    Header {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: RowProblem,
    },
    /// A header without a column that every row must have.
    #[error("{}, line 1: the header has no column {}{}; it has {}", file.display(), quoted(column), .hint.as_deref().unwrap_or(""), list(found))]
    MissingColumn {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// What may be meant.
        hint: Option<String>,
        /// The columns of the header.
        found: Vec<String>,
    },
    /// A rename of a column that no file has.
    #[error("{}: `columns` renames {}, which the trace does not have (the name in the file comes first); it has {}", path.display(), quoted(column), list(found))]
    RenameFrom {
        /// The trace.
        path: PathBuf,
        /// The name that was to be renamed.
        column: String,
        /// Columns of the trace's first rows.
        found: Vec<String>,
    },
    /// A rename to a column that the flavor does not read.
    #[error(
        "`columns` renames {} to {}, which the flavor does not read; it reads {}",
        quoted(from),
        quoted(to),
        list(known)
    )]
    RenameTo {
        /// The name in the file.
        from: String,
        /// The name that is not known.
        to: String,
        /// The columns that the flavor reads.
        known: Vec<String>,
    },
    /// Arrivals are to be replayed and the flavor has none.
    #[error("recorded arrivals are to be replayed, and this flavor reads none from its trace")]
    NoArrivals,
    /// Draws from pools have no order.
    #[error("recorded arrivals are to be replayed, and this flavor draws its sessions at random")]
    ArrivalsOfPools,
    /// A window that holds nothing.
    #[error("no session arrived {window}; those of the trace arrived from 0 s to {last} s")]
    EmptyWindow {
        /// The window.
        window: String,
        /// The last arrival in seconds.
        last: String,
    },
    /// Arrivals that lie too far apart to be replayed.
    #[error("{place}: it arrived {days} days after the first; arrivals up to 104 days apart can be replayed")]
    SpanTooLong {
        /// The row.
        place: Place,
        /// How many days.
        days: u64,
    },
    /// A pool without rows.
    #[error("{}: no rows; each file of this trace is a pool, of which every session takes a row", file.display())]
    EmptyPool {
        /// The file.
        file: PathBuf,
    },
    /// More rows than the index can hold.
    #[error("{}: more than {limit} rows; split the trace", path.display())]
    TooManyRows {
        /// The path.
        path: PathBuf,
        /// How many it can hold.
        limit: u64,
    },
    /// The flavor failed, or refused rows.
    #[error(transparent)]
    Plugin(#[from] PluginFailure),
}
