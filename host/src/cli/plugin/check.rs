//! `veeksha-host plugin check`.

use std::path::PathBuf;

use clap::Args;

use veeksha_app::CommandFailure;
use veeksha_plugin_tools::PluginFile;
use veeksha_present::terminal;

#[derive(Debug, Args)]
pub(crate) struct CheckPluginArgs {
    /// The plugin: a component, a core module, a Lua file, or the folder of a project.
    plugin: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn check(args: &CheckPluginArgs) -> Result<u8, CommandFailure> {
    let check = veeksha_plugin_tools::check(&PluginFile::read(&args.plugin)?)?;
    if args.json {
        let text = serde_json::to_string_pretty(&check.json()).map_err(CommandFailure::internal)?;
        terminal::out(text);
    } else {
        terminal::out(veeksha_model::printable_lines(&check.text()));
    }
    Ok(if check.is_sound() {
        veeksha_exit::DONE
    } else {
        veeksha_exit::PLUGIN
    })
}
