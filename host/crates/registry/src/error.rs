//! Failures of a registry.

use veeksha_bundle::BundleError;

/// A bundle that could not be pushed or pulled. The message names the address; credentials are
/// never part of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The registry does not answer, after several attempts.
    #[error("the registry {host} cannot be reached: {reason}")]
    Unreachable {
        /// The host of the reference.
        host: String,
        /// The reason of the last attempt.
        reason: String,
    },
    /// The registry does not accept the credentials, or wants some.
    #[error("the registry {host} refuses access to {repository}: {reason}")]
    Denied {
        /// The host of the reference.
        host: String,
        /// The repository.
        repository: String,
        /// The problem, and where credentials come from.
        reason: String,
    },
    /// The registry does not have the bundle.
    #[error("{0} does not exist in the registry")]
    NotFound(String),
    /// The registry answers with another error.
    #[error("the registry {host} answered {action} with {status}{message}")]
    Status {
        /// The host of the reference.
        host: String,
        /// The request.
        action: String,
        /// The status of HTTP.
        status: u16,
        /// The message of the registry, after a colon, or nothing.
        message: String,
    },
    /// The answer is not one of a registry.
    #[error("the answer of the registry {host} cannot be used: {reason}")]
    Protocol {
        /// The host of the reference.
        host: String,
        /// The problem.
        reason: String,
    },
    /// The bundle is refused.
    #[error("the bundle {reference} is refused: {source}")]
    Bundle {
        /// The reference.
        reference: String,
        /// The reason.
        source: BundleError,
    },
    /// The file with credentials cannot be used.
    #[error("the credentials of {path} cannot be used: {reason}")]
    Credentials {
        /// The file.
        path: String,
        /// The problem.
        reason: String,
    },
    /// The client cannot be made.
    #[error("no connection can be made: {0}")]
    Client(String),
}
