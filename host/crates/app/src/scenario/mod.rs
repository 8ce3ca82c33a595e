//! Scenarios: their sources, copies in run folders, and secrets.

pub(crate) mod absolute_paths;
pub(crate) mod command_line_grant;
pub(crate) mod decision_redaction;
pub(crate) mod scenario_copy;
pub mod secrets;
pub(crate) mod source;
pub(crate) mod variants;
