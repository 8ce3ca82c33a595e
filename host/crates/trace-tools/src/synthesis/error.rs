//! Why no trace can be made.

/// What keeps a likeness from being fitted, read or made something of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CannotSynthesize {
    /// A trace without requests.
    #[error("the trace has no session with a request; there is nothing to be like")]
    Nothing,
    /// The JSON is not a likeness.
    #[error("the likeness cannot be read: {0}")]
    Unreadable(String),
    /// Another version's.
    #[error("the likeness has the form {version}, this program knows the form {known}; fit it again")]
    Version {
        /// What it says.
        version: u32,
        /// What is known.
        known: u32,
    },
    /// It was changed so that it means nothing.
    #[error("the likeness is unsound: {what}; fit it again")]
    Unsound {
        /// Where.
        what: &'static str,
    },
    /// An option out of its range.
    #[error("`{name}` is {value}; it must be {range}")]
    Option {
        /// Which.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
}
