//! Errors of reading a scenario, before it is checked.

/// Why a scenario, or an override of one, could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not YAML.
    #[error("{file}:{line}: not valid YAML: {message}")]
    Yaml {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
        /// What the parser says.
        message: String,
    },
    /// The text is YAML, but of a form that a scenario cannot have.
    #[error("{file}:{line}: {message}")]
    Form {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
        /// What is wrong, and what to write instead.
        message: String,
    },
    /// The text is too long to be a scenario.
    #[error("{file}: {bytes} bytes are too many for a scenario; the limit is 10 MiB")]
    TooLarge {
        /// The file.
        file: String,
        /// Its length.
        bytes: usize,
    },
    /// An override's path cannot be read or followed.
    #[error("cannot set `{path}`: {message}")]
    Path {
        /// The path as typed.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// An override's value is missing, or begins like a YAML list, table or quoted text and is none.
    #[error("cannot set `{path}` to `{value}`: {message}")]
    Value {
        /// The path as typed.
        path: String,
        /// The value as typed.
        value: String,
        /// What is wrong with it.
        message: String,
    },
}
