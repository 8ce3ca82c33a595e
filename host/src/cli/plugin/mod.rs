//! `veeksha-host plugin`: tools for the authors of plugins, with one file per command.

mod inspect;

use clap::Subcommand;

use crate::interrupt::Interrupts;
use inspect::InspectPluginArgs;
use veeksha_app::CommandFailure;

/// The commands. Each is a file of this folder with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Describe a plugin: kinds, imports, configuration, size and digest.
    Inspect(InspectPluginArgs),
}

pub(super) fn plugin(command: &PluginCommand, interrupts: &Interrupts) -> Result<u8, CommandFailure> {
    // Commands that take long ask for interrupts.
    let _ = interrupts;
    match command {
        PluginCommand::Inspect(args) => inspect::inspect(args),
    }
}
