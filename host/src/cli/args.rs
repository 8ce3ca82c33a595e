//! The command line, as clap sees it. Dotted flags have been taken out before (see [`veeksha_scenario::dotted_flags`]).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::exit;

/// Benchmarks LLM inference servers and proves how accurately it did so.
#[derive(Debug, Parser)]
#[command(name = "veeksha-host", version, after_help = exit::HELP, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario against its target and write the results.
    Run(RunArgs),
    /// Resolve a scenario, load its plugins and print the plan; send nothing.
    Check(ScenarioArgs),
    /// Run a scenario in virtual time against the simulated engine.
    Simulate(SimulateArgs),
    /// Serve the simulated engine over HTTP (OpenAI-compatible).
    Sim(SimArgs),
    /// Print the JSON schema of scenarios, or the annotations for Lua editors.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

/// What every command that reads a scenario takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Any key of the scenario is a flag too: --traffic_scheduler.interval_generator.arrival_rate 5"
)]
pub(crate) struct ScenarioArgs {
    /// The scenario: a .lua, .yml, .yaml or .json file.
    pub(crate) scenario: PathBuf,
    /// Set a key of the scenario, for example `runtime.max_sessions=100`. Can be given more than once.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    pub(crate) no_cache: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Print neither progress nor the summary table.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// The engine to simulate: the name of a profile or a YAML file. Default: that of a `sim://` target, else `default`.
    #[arg(long)]
    pub(crate) profile: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// Port to listen on; 0 takes a free one and prints it.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,
    /// The name of a profile or a YAML file.
    #[arg(long, default_value = "default")]
    pub(crate) profile: String,
    /// Seed of the engine's noise and faults.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// On exit, write the true send time of every chunk to this file (JSON lines).
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// What to print.
    #[arg(long, value_enum, default_value_t = SchemaFormat::Json)]
    pub(crate) format: SchemaFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// JSON schema, draft 2020-12.
    Json,
    /// Annotations for the Lua language server.
    Lua,
}
