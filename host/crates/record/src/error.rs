//! What can go wrong with a record.

use std::{io, path::PathBuf};

use parquet::errors::ParquetError;
use thiserror::Error;

/// Why a record could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A file could not be written, made or removed.
    #[error("cannot write the record at {}: {source}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read the record at {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Columns could not be encoded.
    #[error("cannot encode {}: {reason}", path.display())]
    Encode {
        /// The file that they were meant for.
        path: PathBuf,
        /// The encoder's words.
        reason: String,
    },
    /// There is a record already.
    #[error("{} already holds a record: give the run a folder of its own", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// There is no record.
    #[error("{} holds no record (record/requests.parquet, record/events.parquet): {hint}", run.display())]
    Missing {
        /// The folder that should be a run's.
        run: PathBuf,
        /// What the folder looks like, with the remedy.
        hint: &'static str,
    },
    /// It is the folder of a run, and nothing of the run was recorded.
    #[error(
        "the record of {} is empty: the run was killed before anything of it was recorded, so there is nothing to read; start it \
         again",
        run.display()
    )]
    Empty {
        /// The run's folder.
        run: PathBuf,
    },
    /// The record was written by another version of the program.
    #[error(
        "{} has version {found} of the record's format, and this program reads version {known}: evaluate it with the program that \
         wrote it ({program})",
        path.display()
    )]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that this program reads.
        known: u32,
        /// The program that wrote it, or `unknown`.
        program: String,
    },
    /// There are files, and none can be read.
    #[error("nothing of the record in {} can be read: {}", run.display(), reasons.join("; "))]
    Unreadable {
        /// The run's folder.
        run: PathBuf,
        /// What is wrong with each file.
        reasons: Vec<String>,
    },
}

/// An error of the decoder or encoder in its own words, without the name of its kind where that says nothing.
pub(crate) fn words(error: ParquetError) -> String {
    match error {
        ParquetError::General(words) | ParquetError::EOF(words) => words,
        other => other.to_string(),
    }
}
