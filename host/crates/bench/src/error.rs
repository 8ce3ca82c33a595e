//! Errors of the bench.

use std::io;
use std::path::PathBuf;

/// The reason why one benchmark, or the whole bench, failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Unknown benchmark name.
    #[error("unknown benchmark `{0}`: choose from P1 to P11, A1, E1 and E2, for example `P1,P4`")]
    UnknownBenchmark(String),
    /// Number of repeats out of range.
    #[error("repeats must be between 1 and 99, got {0}")]
    Repeats(u32),
    /// A child process could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// The executable.
        program: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A child process exited early or sent an unexpected message.
    #[error("the child process for {task} {what}")]
    Child {
        /// The child's task.
        task: &'static str,
        /// The observed behavior, with the child's own message if there is one.
        what: String,
    },
    /// The synthetic record could not be written.
    #[error("cannot write a record: {0}")]
    Record(String),
    /// A run of `veeksha-host` failed.
    #[error("a run of the program ended with {status}: {words}")]
    Run {
        /// The exit status.
        status: String,
        /// The end of its standard error.
        words: String,
    },
    /// A file of a run is missing or malformed.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A socket, pipe or event queue failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// The bench server sent something that the baseline client does not understand, or nothing.
    #[error("the baseline client {0}")]
    Baseline(String),
    /// The transport could not be started.
    #[error("the transport could not be started: {0}")]
    Transport(String),
    /// Requests failed; on loopback none should.
    #[error("{failed} of {all} requests failed, first: {first}")]
    Requests {
        /// Number of failed requests.
        failed: u64,
        /// Number of sent requests.
        all: u64,
        /// The first failure's message.
        first: String,
    },
    /// The measurement yielded no value.
    #[error("{0}")]
    Empty(&'static str),
}

impl BenchError {
    /// Attaches the operation to an I/O error.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| BenchError::Io { what, source }
    }
}
