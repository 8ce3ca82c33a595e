//! `veeksha-host plugin`: tools for the authors of plugins, with one file per command.

mod bench;
mod build;
mod check;
mod conform;
mod inspect;
mod keys;
mod lock;
mod new;
mod pack;
mod project_failure;
mod run;
mod settings;
mod test;
mod transfer;
mod verify;

use clap::Subcommand;

use crate::interrupt::Interrupts;
use bench::BenchPluginArgs;
use build::BuildPluginArgs;
use check::CheckPluginArgs;
use conform::ConformPluginArgs;
use inspect::InspectPluginArgs;
use keys::{KeygenArgs, SignArgs};
use lock::LockArgs;
use new::NewPluginArgs;
use pack::PackArgs;
pub(super) use project_failure::project_failure;
use run::RunPluginArgs;
use test::TestPluginArgs;
use transfer::{PullArgs, PushArgs};
use veeksha_app::CommandFailure;
use verify::VerifyArgs;

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
    /// Make a key for signatures.
    Keygen(KeygenArgs),
    /// Pin the plugins of scenarios: their digests, imports and grants.
    Lock(LockArgs),
    /// Make a bundle of a plugin: one file with its component, scenarios and documentation.
    Pack(PackArgs),
    /// Get a bundle from a registry.
    Pull(PullArgs),
    /// Put a bundle into a registry.
    Push(PushArgs),
    /// Sign a bundle.
    Sign(SignArgs),
    /// Check a bundle: digest, signature, contract.
    Verify(VerifyArgs),
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
        PluginCommand::Keygen(args) => keys::keygen(args),
        PluginCommand::Lock(args) => lock::lock(args),
        PluginCommand::Pack(args) => pack::pack(args),
        PluginCommand::Pull(args) => transfer::pull(args),
        PluginCommand::Push(args) => transfer::push(args),
        PluginCommand::Sign(args) => keys::sign(args),
        PluginCommand::Verify(args) => verify::verify(args),
    }
}
