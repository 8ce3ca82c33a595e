//! Errors of a manifest.

/// A manifest that cannot be read. The message begins with the line; callers put the file in front.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The text is not TOML.
    #[error("line {line}: not TOML: {message}")]
    Syntax {
        /// The line of the error, from 1.
        line: usize,
        /// The problem, from the parser of TOML.
        message: String,
    },
    /// A key that no table of this name has.
    #[error("line {line}: unknown key {key}: {hint}")]
    UnknownKey {
        /// The line of the key, from 1.
        line: usize,
        /// The path of the key: `plugin.nmae`.
        key: String,
        /// The nearest key, or all that exist.
        hint: String,
    },
    /// A key that must exist does not.
    #[error("{key} is missing: {hint}")]
    MissingKey {
        /// The path of the key.
        key: String,
        /// Its form.
        hint: String,
    },
    /// A value of another type, or one that is not allowed.
    #[error("line {line}: {key} is {found}: {hint}")]
    InvalidValue {
        /// The line of the value, from 1.
        line: usize,
        /// The path of its key.
        key: String,
        /// The value, or its type.
        found: String,
        /// The values that are allowed, or the nearest.
        hint: String,
    },
}
