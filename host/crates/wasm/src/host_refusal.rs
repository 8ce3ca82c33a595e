//! The refusal of a call of a host function. The guest's call ends with a trap.

use veeksha_ports::PluginErrorCode;

/// A refusal, passed through wasmtime as an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct HostRefusal {
    pub(crate) code: PluginErrorCode,
    message: String,
}

impl HostRefusal {
    /// A refusal of arguments that exceed a limit or break a rule.
    pub(crate) fn arguments(message: impl Into<String>) -> wasmtime::Error {
        Self::with_code(PluginErrorCode::HostCall, message)
    }

    /// A refusal of a capability that was not granted.
    pub(crate) fn not_granted(message: impl Into<String>) -> wasmtime::Error {
        Self::with_code(PluginErrorCode::NotGranted, message)
    }

    /// A refusal of more handles than a guest may have.
    pub(crate) fn objects(message: impl Into<String>) -> wasmtime::Error {
        Self::with_code(PluginErrorCode::Objects, message)
    }

    fn with_code(code: PluginErrorCode, message: impl Into<String>) -> wasmtime::Error {
        wasmtime::Error::new(HostRefusal {
            code,
            message: message.into(),
        })
    }
}
