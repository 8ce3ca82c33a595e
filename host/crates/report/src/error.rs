//! What can go wrong when results are written.

use std::io;
use std::path::PathBuf;

/// A result could not be written. The text names the path.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The output folder, or the run's folder in it, could not be made.
    #[error("cannot create the folder {}: {source}", path.display())]
    CreateFolder {
        /// Which folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder that is to hold a run holds none.
    #[error("{} is not the folder of a run: it has neither `config.yml` nor `record/` nor `metrics/`", path.display())]
    NoRun {
        /// Which folder.
        path: PathBuf,
    },
    /// `latest` is in use for something else.
    #[error("{} is not a link; move it away, or choose another folder", path.display())]
    LatestNotALink {
        /// Where it is.
        path: PathBuf,
    },
    /// A folder was named for results, and something is in it.
    #[error("the folder {} is not empty; name a new one, or remove what is in it", path.display())]
    NotEmpty {
        /// Where it is.
        path: PathBuf,
    },
    /// The link `latest` could not be made.
    #[error("cannot create the link {}: {source}", path.display())]
    Link {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be opened or written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of records ends early.
    #[error("cannot write {}: {source}; the file ends there, {lines_lost} lines are missing", path.display())]
    RecordCut {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// Lines that are not in the file.
        lines_lost: u64,
    },
    /// A value has no JSON form.
    #[error("cannot put {} into JSON: {source}", path.display())]
    Serialise {
        /// The file it was meant for.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A plot without panels.
    #[error("there is nothing to plot: no panel was given")]
    NothingToPlot,
    /// The plotting library refused; it says why.
    #[error("cannot draw the plot: {0}")]
    Plot(String),
    /// The system gave no thread to the writer.
    #[error("cannot start the thread that writes the record: {0}")]
    Thread(io::Error),
    /// The writer's thread panicked: a defect.
    #[error("the thread that writes the record of {} panicked; this is a defect, please report it", path.display())]
    WriterPanicked {
        /// The run's folder.
        path: PathBuf,
    },
}
