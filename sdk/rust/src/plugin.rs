//! Facts that every kind of plugin states about itself.

use serde::de::DeserializeOwned;

/// The name, version and configuration of a plugin. Every kind of plugin builds on this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Plugin`",
    label = "has no name, version and configuration",
    note = "write `impl Plugin for {Self} {{ .. }}`"
)]
pub trait Plugin: Sized + 'static {
    /// The configuration that the user writes. Derive `Deserialize` and deny unknown fields; an
    /// enum is read as an object tagged by `type` (see [`config`](crate::config)).
    type Config: DeserializeOwned + 'static;

    /// The name of the plugin.
    const NAME: &'static str;
    /// The version of the plugin.
    const VERSION: &'static str;
    /// The purpose of the plugin, in one line.
    const SUMMARY: &'static str;

    /// Returns the JSON schema of the configuration, against which the host validates it before the
    /// plugin reads it. By default everything is allowed.
    fn config_schema() -> String {
        "{}".into()
    }
}
