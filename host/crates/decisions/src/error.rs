//! Errors of reading recorded decisions.

use veeksha_model::SessionId;

/// The reason for which `decisions.jsonl` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DecisionsError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It was written in another format.
    #[error("its format version is {found}; this program reads version {known}")]
    OtherVersion {
        /// The versions of the file.
        found: String,
        /// The versions that this program reads.
        known: String,
    },
    /// A line is damaged.
    #[error("line {line} is damaged: {why}")]
    Damaged {
        /// Its number, from 1.
        line: u64,
        /// The reason.
        why: String,
    },
    /// The file ends before its first line does.
    #[error("it is empty: the run ended before it was written")]
    Empty,
    /// The file changed after it was opened.
    #[error("it changed while it was read: session {0} is different now")]
    Changed(SessionId),
}
