//! `veeksha-host plugin`: tools for the authors of plugins, with one file per command.

mod bench;
mod build;
mod check;
mod conform;
mod inspect;
mod new;
mod project_failure;
mod run;
mod settings;
mod test;

use clap::Subcommand;

use crate::interrupt::Interrupts;
use bench::BenchPluginArgs;
use build::BuildPluginArgs;
use check::CheckPluginArgs;
use conform::ConformPluginArgs;
use inspect::InspectPluginArgs;
use new::NewPluginArgs;
use run::RunPluginArgs;
use test::TestPluginArgs;
use veeksha_app::CommandFailure;

/// The commands. Each is a file of this folder with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Make a project from a template.
    New(NewPluginArgs),
    /// Build a project, or make a component of a module.
    Build(BuildPluginArgs),
    /// Describe a plugin: kinds, imports, configuration, size and digest.
    Inspect(InspectPluginArgs),
    /// Check what a plugin imports and exports, without compiling or executing it.
    Check(CheckPluginArgs),
    /// Print the first sessions, arrivals or metrics of a plugin.
    Run(RunPluginArgs),
    /// Check what the contract requires of a plugin beyond its types.
    Conform(ConformPluginArgs),
    /// Measure the costs of a plugin: loading, instances, calls.
    Bench(BenchPluginArgs),
    /// Run the table tests of a plugin project.
    Test(TestPluginArgs),
}

pub(super) fn plugin(command: &PluginCommand, interrupts: &Interrupts) -> Result<u8, CommandFailure> {
    // Commands that take long ask for interrupts.
    let _ = interrupts;
    match command {
        PluginCommand::New(args) => new::new(args),
        PluginCommand::Build(args) => build::build(args),
        PluginCommand::Inspect(args) => inspect::inspect(args),
        PluginCommand::Check(args) => check::check(args),
        PluginCommand::Run(args) => run::run(args),
        PluginCommand::Conform(args) => conform::conform(args),
        PluginCommand::Bench(args) => bench::bench(args),
        PluginCommand::Test(args) => test::test(args),
    }
}
