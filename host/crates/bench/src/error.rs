//! What can go wrong while figures are taken.

use std::io;
use std::path::PathBuf;

/// Why a figure, or all of them, could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A name that is no figure.
    #[error("there is no figure `{0}`; the figures are P1 to P11, E1 and E2, for example `P1,P4`")]
    NoSuchFigure(String),
    /// Nothing to do.
    #[error("repeats must be between 1 and 99, not {0}")]
    Repeats(u32),
    /// A child process could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// A child process ended, or answered something else than was asked.
    #[error("the child process for {role} {what}")]
    Child {
        /// What it was started for.
        role: &'static str,
        /// What it did, with its own words where it had any.
        what: String,
    },
    /// The record of a run could not be written.
    #[error("cannot write a record: {0}")]
    Record(String),
    /// A run of the program failed.
    #[error("a run of the program ended with {status}: {words}")]
    Run {
        /// Its exit status.
        status: String,
        /// The end of what it wrote to standard error.
        words: String,
    },
    /// A file that a run should have written is absent, or is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why it is of no use.
        reason: String,
    },
    /// A socket, a pipe or an event queue failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// The bench's own server sent something that the floor client does not understand, or nothing at all.
    #[error("the floor client {0}")]
    Floor(String),
    /// The transport could not be started.
    #[error("the transport could not be started: {0}")]
    Transport(String),
    /// Requests failed, which on loopback none should.
    #[error("{failed} of {all} requests failed, first: {first}")]
    Requests {
        /// Requests that failed.
        failed: u64,
        /// Requests sent.
        all: u64,
        /// The first failure, in words.
        first: String,
    },
    /// What was measured gives no figure.
    #[error("{0}")]
    Empty(&'static str),
}

impl BenchError {
    /// Gives an IO error its place.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| BenchError::Io { what, source }
    }
}
