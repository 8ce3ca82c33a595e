//! Errors of writing and reading a record.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use thiserror::Error;
use veeksha_model::{printable, shortened};

/// The reason for which a record could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A file could not be written, made or removed.
    #[error("cannot write the record at {}: {source}", display(path))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read the record at {}: {source}", display(path))]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Columns could not be encoded.
    #[error("cannot encode {}: {reason}", display(path))]
    Encode {
        /// The file that they were meant for.
        path: PathBuf,
        /// The encoder's message.
        reason: String,
    },
    /// There is a record already.
    #[error("{} already holds a record: use a new folder for the run", display(path))]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no record.
    #[error(
        "{} holds no record (record/requests.parquet, record/events.parquet): {hint}",
        display(run)
    )]
    Missing {
        /// The folder that should be a run's.
        run: PathBuf,
        /// The kind of folder that it seems to be, with the remedy.
        hint: &'static str,
    },
    /// It is the folder of a run, and nothing of the run was recorded.
    #[error(
        "the record of {} is empty: the run was killed before anything of it was recorded, or the disk had no space for it; start \
         it again, with `--output_dir` on another disk if this one is full",
        display(run)
    )]
    Empty {
        /// The run's folder.
        run: PathBuf,
    },
    /// The record was written by another version of the program.
    #[error(
        "{} has version {found} of the record's format, and this program reads version {known}: evaluate it with the program that \
         wrote it ({program})",
        display(path)
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the file.
        found: String,
        /// The version that this program reads.
        known: u32,
        /// The program that wrote it, or `unknown`.
        program: String,
    },
    /// There are files, and none can be read.
    #[error("nothing of the record in {} can be read: {}", display(run), shortened(reasons.clone()).join("; "))]
    Unreadable {
        /// The run's folder.
        run: PathBuf,
        /// The problem of each file.
        reasons: Vec<String>,
    },
}

/// Returns an encoder's or decoder's message, without the error kind if that adds nothing.
pub(crate) fn message_of(error: ParquetError) -> String {
    match error {
        ParquetError::General(words) | ParquetError::EOF(words) => words,
        other => other.to_string(),
    }
}

/// A path within a line: the name of a folder may hold what would steer a terminal.
fn display(path: &Path) -> String {
    printable(&path.display().to_string())
}
