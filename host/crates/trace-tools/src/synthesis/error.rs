//! Errors of synthesis.

/// A model that cannot be fitted, read or used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SynthesisError {
    /// The trace has no requests.
    #[error("the trace has no requests to fit a model to")]
    Nothing,
    /// The JSON is not a model.
    #[error("cannot parse the trace model: {0}")]
    Unreadable(String),
    /// The version is not supported.
    #[error("unsupported version {version} of the trace model (expected {known}); fit it again")]
    Version {
        /// Version of the file.
        version: u32,
        /// Supported version.
        known: u32,
    },
    /// The model is inconsistent, for example after editing.
    #[error("inconsistent trace model: {what}; fit it again")]
    Unsound {
        /// Description of the inconsistency.
        what: &'static str,
    },
    /// An option out of its range.
    #[error("`{name}` must be {range}, got {value}")]
    Option {
        /// Name of the option.
        name: &'static str,
        /// Value as given.
        value: f64,
        /// Valid range.
        range: &'static str,
    },
}
