//! `veeksha-host plugin test`.

use std::path::PathBuf;

use clap::Args;

use veeksha_app::CommandFailure;
use veeksha_plugin_tools::table_test::{TestOptions, test_project};
use veeksha_present::terminal;

#[derive(Debug, Args)]
pub(crate) struct TestPluginArgs {
    /// The folder of the project.
    #[arg(default_value = ".")]
    project: PathBuf,
    /// Write snapshots that are missing or differ.
    #[arg(long)]
    update: bool,
    /// Run only the tests whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    no_cache: bool,
}

pub(super) fn test(args: &TestPluginArgs) -> Result<u8, CommandFailure> {
    let options = TestOptions {
        update: args.update,
        filter: args.filter.clone(),
        no_cache: args.no_cache,
    };
    let report = test_project(&args.project, &options, &mut |_| {})?;
    if args.json {
        let text = serde_json::to_string_pretty(&report.json()).map_err(CommandFailure::internal)?;
        terminal::out(text);
    } else {
        terminal::out(veeksha_model::printable_lines(&report.text()));
    }
    Ok(match report.failed() {
        0 => veeksha_exit::DONE,
        _ => veeksha_exit::PLUGIN,
    })
}
