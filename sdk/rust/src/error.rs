//! Errors that a plugin reports on purpose.

use crate::types::Error;

impl Error {
    /// An error with a short constant name for programs and one line for people.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Error {
            code: code.into(),
            message: message.into(),
            hint: None,
            path: None,
        }
    }

    /// A value in the configuration that cannot be: code `config`, at a JSON pointer
    /// (`/channels/0/type`).
    pub fn config(path: impl Into<String>, message: impl Into<String>) -> Self {
        Error::new("config", message).at(path)
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the place in the plugin's configuration, as a JSON pointer.
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}
