//! What can go wrong with the files of a sweep.

use std::io;
use std::path::PathBuf;

/// A sweep's folder or file could not be written, or an outcome belongs to no run of the sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The output folder, or the sweep's folder in it, could not be made.
    #[error("cannot create the folder {}: {source}", path.display())]
    CreateFolder {
        /// Which folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file's content could not be put into its form.
    #[error("cannot write {}: its content has no form: {reason}", path.display())]
    Form {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is no such run.
    #[error("the sweep has no run {index}; it has {cells}")]
    NoSuchCell {
        /// The run asked for, counted from 0.
        index: usize,
        /// How many there are.
        cells: usize,
    },
    /// The folders have not been made.
    #[error("the sweep has not begun: its folders are not made yet")]
    NotBegun,
}
