//! `veeksha-host plugin inspect`.

use std::path::PathBuf;

use clap::Args;

use veeksha_app::{CommandFailure, StandaloneHost};
use veeksha_plugin_tools::PluginFile;
use veeksha_present::terminal;

#[derive(Debug, Args)]
pub(crate) struct InspectPluginArgs {
    /// The plugin: a component, or the folder of a project.
    plugin: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    no_cache: bool,
}

pub(super) fn inspect(args: &InspectPluginArgs) -> Result<u8, CommandFailure> {
    let file = PluginFile::read(&args.plugin)?;
    let host = StandaloneHost::new(PathBuf::new(), &[], args.no_cache)?;
    let inspection = veeksha_plugin_tools::inspect(&host, &file)?;
    if args.json {
        let text = serde_json::to_string_pretty(&inspection.json()).map_err(CommandFailure::internal)?;
        terminal::out(text);
    } else {
        terminal::out(veeksha_model::printable_lines(&inspection.text()));
    }
    Ok(veeksha_exit::DONE)
}
