//! `veeksha-host plugin conform`.

use std::path::PathBuf;

use clap::Args;

use veeksha_app::CommandFailure;
use veeksha_plugin_tools::{OpenedPlugin, PluginFile};
use veeksha_present::terminal;

use super::settings::PluginSettingArgs;

#[derive(Debug, Args)]
pub(crate) struct ConformPluginArgs {
    /// The plugin: a component, a core module, a Lua file, or the folder of a project.
    plugin: PathBuf,
    #[command(flatten)]
    settings: PluginSettingArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn conform(args: &ConformPluginArgs) -> Result<u8, CommandFailure> {
    let settings = args.settings.settings()?;
    let plugin = OpenedPlugin::open(args.settings.host()?, &PluginFile::read(&args.plugin)?)?;
    let report = veeksha_plugin_tools::conform::conform(&plugin, &settings);
    if args.json {
        let text = serde_json::to_string_pretty(&report.json()).map_err(CommandFailure::internal)?;
        terminal::out(text);
    } else {
        terminal::out(veeksha_model::printable_lines(&report.text()));
    }
    Ok(if report.conforms() {
        veeksha_exit::DONE
    } else {
        veeksha_exit::PLUGIN
    })
}
