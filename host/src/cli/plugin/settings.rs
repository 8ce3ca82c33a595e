//! The settings of a plugin on the command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use veeksha_app::CommandFailure;
use veeksha_manifest::PluginKind;
use veeksha_plugin_tools::PluginSettings;

/// Arguments of every command that opens a plugin with a configuration.
#[derive(Debug, Args)]
pub(crate) struct PluginSettingArgs {
    /// The configuration as JSON, or `@FILE`.
    #[arg(
        long,
        value_name = "JSON|@FILE",
        default_value = "{}",
        hide_default_value = true
    )]
    config: String,
    /// The seed of the run.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Grant a file to the plugin. Can be given more than once.
    #[arg(long = "file", value_name = "NAME=PATH")]
    files: Vec<String>,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    pub(super) no_cache: bool,
}

impl PluginSettingArgs {
    /// Reads the settings.
    pub(super) fn settings(&self) -> Result<PluginSettings, CommandFailure> {
        let config = match self.config.strip_prefix('@') {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| CommandFailure::usage(format!("--config: cannot read {path}: {error}")))?,
            None => self.config.clone(),
        };
        let file = |argument: &String| match argument.split_once('=') {
            Some((name, path)) => Ok((name.to_owned(), PathBuf::from(path))),
            None => Err(CommandFailure::usage(format!(
                "--file {argument}: expected NAME=PATH"
            ))),
        };
        let files: Result<BTreeMap<String, PathBuf>, CommandFailure> = self.files.iter().map(file).collect();
        Ok(PluginSettings {
            config,
            seed: self.seed,
            files: files?,
            unchecked: false,
            silent: false,
        })
    }
}

/// Parses the name of a kind.
pub(super) fn kind(text: &str) -> Result<PluginKind, String> {
    veeksha_plugin_tools::table_test::named_kind(text)
}
