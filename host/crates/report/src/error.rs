//! Errors of writing results.

use std::io;
use std::path::PathBuf;

/// A result could not be written. The message names the path.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The output folder, or the run's folder in it, could not be created.
    #[error("cannot create the folder {}: {source}", path.display())]
    CreateFolder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The folder does not contain a run.
    #[error("{} is not the folder of a run: it has neither `config.yml` nor `record/` nor `metrics/`", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// `latest` exists and is not a link.
    #[error("{} is not a link; move it away, or choose another folder", path.display())]
    LatestNotALink {
        /// Its path.
        path: PathBuf,
    },
    /// The folder given for results is not empty.
    #[error("the folder {} is not empty; name a new folder, or remove its contents", path.display())]
    NotEmpty {
        /// Its path.
        path: PathBuf,
    },
    /// The link `latest` could not be created.
    #[error("cannot create the link {}: {source}", path.display())]
    Link {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file could not be opened or written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file of records ends early.
    #[error("cannot write {}: {source}; the file ends there, {lines_lost} lines are missing", path.display())]
    RecordCut {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
        /// Number of lines missing from the file.
        lines_lost: u64,
    },
    /// A value cannot be represented as JSON.
    #[error("cannot put {} into JSON: {source}", path.display())]
    Serialise {
        /// The file to be written.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// A plot without panels.
    #[error("there is nothing to plot: no panel was given")]
    NothingToPlot,
    /// The plotting library's error message.
    #[error("cannot draw the plot: {0}")]
    Plot(String),
    /// The system refused to start the writer's thread.
    #[error("cannot start the thread that writes the record: {0}")]
    Thread(io::Error),
    /// The writer's thread panicked, which is a defect.
    #[error("the thread that writes the record of {} panicked; this is a defect, please report it", path.display())]
    WriterPanicked {
        /// The run's folder.
        path: PathBuf,
    },
}
