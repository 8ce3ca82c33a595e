//! Errors of sweeps.

use std::io;
use std::path::PathBuf;

use veeksha_report::ReportError;

/// A sweep's folder or file could not be written, or an outcome belongs to no run of the sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The output folder, or the sweep's folder in it, could not be created.
    #[error("cannot create the folder {}: {source}", path.display())]
    CreateFolder {
        /// The folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file's content could not be serialized.
    #[error("cannot serialize the content of {}: {reason}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Cause.
        reason: String,
    },
    /// `latest` cannot link to the sweep's folder.
    #[error(transparent)]
    Latest(#[from] ReportError),
    /// The run does not exist.
    #[error("the sweep has no run {index} (number of runs: {cells})")]
    NoSuchCell {
        /// Requested run, from 0.
        index: usize,
        /// Number of runs.
        cells: usize,
    },
    /// The folders do not exist yet.
    #[error("the sweep has not begun: its folders do not exist yet")]
    NotBegun,
}
