//! `veeksha-host plugin bench`.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use veeksha_app::CommandFailure;
use veeksha_plugin_tools::PluginFile;
use veeksha_present::terminal;

use super::settings::PluginSettingArgs;

#[derive(Debug, Args)]
pub(crate) struct BenchPluginArgs {
    /// The plugin: a component, a core module, a Lua file, or the folder of a project.
    plugin: PathBuf,
    #[command(flatten)]
    settings: PluginSettingArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn bench(args: &BenchPluginArgs) -> Result<u8, CommandFailure> {
    let file = PluginFile::read(&args.plugin)?;
    let mut settings = args.settings.settings()?;
    // Lines of the log would be measured.
    settings.silent = true;
    let bench = veeksha_plugin_tools::bench(&file, &settings, &mut |part| {
        if std::io::stderr().is_terminal() {
            terminal::err(format!("measuring: {part}"));
        }
    })?;
    if args.json {
        let text = serde_json::to_string_pretty(&bench.json()).map_err(CommandFailure::internal)?;
        terminal::out(text);
    } else {
        terminal::out(bench.text());
    }
    Ok(veeksha_exit::DONE)
}
