//! Command-line arguments for clap. Dotted flags are removed before parsing (see
//! [`veeksha_scenario::dotted_flags`]).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use veeksha_app::{CommandFailure, CompatOptions, ShardSpec};
use veeksha_metrics::WhatIf;

use crate::cli::plugin::PluginCommand;

/// Benchmarks LLM inference servers and reports how accurate each measurement is.
#[derive(Debug, Parser)]
#[command(name = "veeksha-host", version, after_help = veeksha_exit::HELP, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario against its target and write the results.
    Run(RunArgs),
    /// Resolve a scenario, load its plugins and print the plan without sending anything.
    Check(ScenarioArgs),
    /// Run a scenario in virtual time against the built-in simulator.
    Simulate(SimulateArgs),
    /// Simulate a scenario again at each change of its files, and print the difference.
    Dev(DevArgs),
    /// Recompute a run's metrics from its record, optionally with other SLOs or plugins.
    Evaluate(EvaluateArgs),
    /// Check whether a run matched its scenario.
    Health(HealthArgs),
    /// Test whether runs differ, and by how much.
    Compare(CompareArgs),
    /// List the metrics that objectives can refer to, or explain one of them.
    Metrics(MetricsArgs),
    /// Make, build, check, test and share plugins.
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Inspect, convert or synthesize request traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Serve the built-in simulator over HTTP (OpenAI-compatible).
    Sim(SimArgs),
    /// Check whether this machine can measure accurately.
    Doctor(DoctorArgs),
    /// Print the JSON schema of scenarios, or the annotations for Lua editors.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// Arguments of every command that reads a scenario.
#[derive(Debug, Args)]
#[command(
    after_help = "Any key of the scenario is a flag too: --traffic_scheduler.interval_generator.arrival_rate 5"
)]
pub(crate) struct ScenarioArgs {
    /// The scenario: a .lua, .yml, .yaml or .json file, or the folder of a run, which repeats it.
    pub(crate) scenario: PathBuf,
    /// Set a key of the scenario, for example `runtime.max_sessions=100`. Can be given more than
    /// once.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Grant a capability to a plugin for this invocation: `coder=blob:read data/*.jsonl` or
    /// `coder=env:NAME`. Can be given more than once.
    #[arg(long = "grant", value_name = "PLUGIN=CAPABILITY")]
    pub(crate) grants: Vec<veeksha_app::CommandLineGrant>,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    pub(crate) no_cache: bool,
}

/// Arguments of every command that carries out a scenario.
#[derive(Debug, Args)]
pub(crate) struct DriveArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Run shard N of M (e.g. 1/4); all shards together send exactly what one process would.
    #[arg(long, value_name = "N/M", default_value = "1/1", hide_default_value = true)]
    pub(crate) shard: ShardSpec,
    /// Print neither progress nor the summary table.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Output in the definitions and file formats of other tools.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Also write the result files of another tool.
    #[arg(long, value_enum, value_name = "TOOL")]
    pub(crate) compat: Option<Compat>,
    /// Also show the run in the definitions of another tool: vllm, sglang, guidellm, genai-perf,
    /// inference-perf or aiperf. Can be given more than once.
    #[arg(long = "as", value_name = "TOOL", value_parser = tool)]
    pub(crate) as_tools: Vec<veeksha_compat::Tool>,
    /// Set a goodput threshold with a tool's own metric name and unit: `vllm=ttft:500`. Without a
    /// tool it applies to all of `--as` and `--compat` that define the metric. Can be given more
    /// than once.
    #[arg(long, value_name = "[TOOL=]METRIC:VALUE", value_parser = goodput)]
    pub(crate) as_goodput: Vec<veeksha_compat::GoodputThreshold>,
}

impl OutputArgs {
    /// Checks the options of other tools before anything is done.
    pub(crate) fn options(&self) -> Result<CompatOptions, CommandFailure> {
        CompatOptions::new(&self.as_tools, self.compat.is_some(), &self.as_goodput)
    }
}

/// A tool whose files can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// NVIDIA AIPerf: `profile_export_aiperf.json`, `.csv` and `profile_export.jsonl`.
    Aiperf,
}

fn tool(text: &str) -> Result<veeksha_compat::Tool, String> {
    text.parse::<veeksha_compat::Tool>()
        .map_err(|error| error.to_string())
}

fn goodput(text: &str) -> Result<veeksha_compat::GoodputThreshold, String> {
    text.parse::<veeksha_compat::GoodputThreshold>()
        .map_err(|error| error.to_string())
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) drive: DriveArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Print a line of interim metrics at this interval in seconds (0.1 to 86400), also on a
    /// terminal. Default interval: `stream_metrics_interval` of the scenario.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, value_parser = interval)]
    pub(crate) stream_metrics: Option<Option<f64>>,
    /// Serve the report during the run, for example at 127.0.0.1:8080 (port 0 picks a free port).
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) live: Option<std::net::SocketAddr>,
    /// Access token for the live page. Required for addresses that other machines can reach.
    /// Default: the environment variable `VEEKSHA_LIVE_TOKEN`.
    #[arg(long, value_name = "TOKEN", requires = "live")]
    pub(crate) live_token: Option<String>,
    /// After the run, measure a reference server with known timings on this machine at the rate of
    /// the run; its error becomes the error bound of each metric.
    #[arg(long)]
    pub(crate) self_test: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) run: DriveArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The engine to simulate: the name of a profile or a YAML file. Default: that of a `sim://`
    /// target, else `default`.
    #[arg(long)]
    pub(crate) profile: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// The number of sessions to simulate, from the first on.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: u32,
    /// The engine to simulate: the name of a profile or a YAML file. Default: that of a `sim://`
    /// target, else `default`.
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// End after the first simulation, with its exit code.
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Print the format, lengths, turns, think times, arrivals and prefix-cache potential of a
    /// trace.
    Inspect(InspectArgs),
    /// Write a trace in another format.
    Convert(ConvertArgs),
    /// Write a new trace with the lengths, turns, think times, arrivals and shared prefixes of a
    /// given one.
    Synthesize(SynthesizeArgs),
}

/// Arguments of every command that reads a trace.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The trace: a file, a folder, or a scenario (.lua, .yml, .yaml) that replays one.
    pub(crate) trace: PathBuf,
    /// The flavor of the trace. Default: detected from its columns.
    #[arg(long)]
    pub(crate) flavor: Option<String>,
    /// Set a key of the trace or of its flavor, for example `on_bad_row=skip` or
    /// `flavor.block_size=16`. Can be given more than once.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The tokenizer for verbatim text: a `tokenizer.json`, a model folder, a hub name, or
    /// `embedded`.
    #[arg(long)]
    pub(crate) tokenizer: Option<String>,
    /// Read only the first N sessions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sessions: Option<u64>,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    pub(crate) no_cache: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Plot the distributions into this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// The format to write.
    #[arg(long, value_name = "FLAVOR")]
    pub(crate) to: String,
    /// The file to write. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Tokens per hash block, for formats with hash blocks. Default: that of the trace's flavor,
    /// else 512.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) block_size: Option<std::num::NonZeroU32>,
}

#[derive(Debug, Args)]
pub(crate) struct SynthesizeArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// The file to write, in the format `mooncake`. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Tokens per hash block; shared prefixes are multiples of it. Default: that of the trace's
    /// flavor, else 512.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) block_size: Option<std::num::NonZeroU32>,
    /// Number of sessions. Default: that of the trace.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) make: Option<u64>,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Scale the shared part of each prompt.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) prefix_multiplier: f64,
    /// Multiply the number of distinct shared prefixes.
    #[arg(long, default_value_t = 1, value_name = "TIMES")]
    pub(crate) root_multiplier: u32,
    /// Scale the unshared part of each prompt.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) prompt_multiplier: f64,
    /// Scale the length of answers.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) output_multiplier: f64,
    /// Divide the time between session arrivals.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) speedup: f64,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// Port to listen on; 0 picks a free one and prints it.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,
    /// The name of a profile or a YAML file.
    #[arg(long, default_value = "default")]
    pub(crate) profile: String,
    /// Seed of the simulated noise and faults.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Write the true send time of every chunk to this file, as one JSON line per finished request.
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,
    /// Time to the first token in nanoseconds, whatever the load, instead of a profile (for
    /// self-tests).
    #[arg(
        long,
        value_name = "NANOS",
        requires = "reference_gap",
        conflicts_with = "profile",
        hide = true
    )]
    pub(crate) reference_ttft: Option<u64>,
    /// Time between further tokens in nanoseconds.
    #[arg(long, value_name = "NANOS", requires = "reference_ttft", hide = true)]
    pub(crate) reference_gap: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Expected number of concurrent streams.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) streams: u32,
    /// Expected requests per second.
    #[arg(long, value_name = "R", default_value_t = 100.0, value_parser = positive)]
    pub(crate) rate: f64,
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The bounds of the scenario keys `stream_metrics_interval` and `slice_seconds`.
const INTERVAL_BOUNDS: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;

/// Parses an interval in seconds, within the bounds of the scenario's keys.
fn interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if INTERVAL_BOUNDS.contains(&seconds) => Ok(seconds),
        _ => Err(format!(
            "expected seconds from {} to {}",
            INTERVAL_BOUNDS.start(),
            INTERVAL_BOUNDS.end()
        )),
    }
}

/// Parses a rate: a finite number above 0.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("expected a number above 0".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateArgs {
    /// The folder of the run.
    pub(crate) run: PathBuf,
    /// A metric or a check: a component (.wasm), or a Lua file that returns an item of
    /// `evaluators`. Can be given more than once.
    #[arg(long = "plugin", value_name = "FILE")]
    pub(crate) plugins: Vec<PathBuf>,
    /// The configuration of the last `--plugin`, as JSON.
    #[arg(
        long,
        value_name = "JSON",
        requires = "plugins",
        default_value = "{}",
        hide_default_value = true
    )]
    pub(crate) plugin_config: String,
    /// An SLO, for example `p99(ttfc) < 500ms`; replaces the scenario's SLOs. Can be given more
    /// than once.
    #[arg(long = "slo", value_name = "OBJECTIVE")]
    pub(crate) slos: Vec<String>,
    /// A condition of a good request, for example `ttfc <= 500ms`; replaces the scenario's goodput
    /// conditions. Can be given more than once.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) goodput: Vec<String>,
    /// Length of a time slice in seconds (0.1 to 86400). Default: `slice_seconds` of the scenario.
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    pub(crate) slice: Option<f64>,
    /// Group results by the values of this label, for example `tier`. Can be given more than once.
    /// Default: `group_by` of the scenario.
    #[arg(long = "by", value_name = "LABEL")]
    pub(crate) group_by: Vec<String>,
    /// Estimate the makespans of sessions with other times, for example `ttfc=0.5,think=0`: factors
    /// of client_queueing, prefill (or ttfc), decode and think. Can be given more than once.
    #[arg(long, value_name = "PART=FACTOR,...")]
    pub(crate) what_if: Vec<WhatIf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// A new or empty folder for the results. Default: a dated folder in `evaluations` of the run.
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
    /// Print `summary_stats.json` instead of the table, and write nothing.
    #[arg(long, conflicts_with = "to")]
    pub(crate) json: bool,
    /// Do not print the summary table.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    pub(crate) no_cache: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// The folder of the run.
    pub(crate) run: PathBuf,
    /// Exit with code 6 if a check fails or the record is incomplete.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The runs to compare: first the baseline, then the candidates. Each is a run folder, a folder
    /// with repeats of one run, or a sweep folder; sweeps are compared cell by cell.
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Compare only these metrics, for example `ttfc,error_rate`, and those in `--fail-if`.
    /// Default: all metrics of the runs.
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,
    /// Show every metric. Default: latencies, rates, plugin metrics, and every metric that differs.
    #[arg(long)]
    pub(crate) all: bool,
    /// Exit with code 3 if this expression holds for a candidate in any cell, or cannot be decided,
    /// for example `worse(ttfc) or error_rate > 1%`.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) fail_if: Option<String>,
    /// Confidence level of the intervals.
    #[arg(long, default_value_t = 0.95, value_name = "SHARE", value_parser = share)]
    pub(crate) confidence: f64,
    /// Ignore relative differences below this share.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub(crate) ignore_below: f64,
    /// Also compare runs and metrics that their certificate marks INVALID.
    #[arg(long)]
    pub(crate) allow_invalid: bool,
    /// Seed of the bootstrap.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Write the comparison as JSON to this file; `-` prints it instead of the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the comparison as an HTML page to this file; `-` prints it instead of the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the comparison as JUnit XML to this file; `-` prints it instead of the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also print annotations for GitHub Actions.
    #[arg(long)]
    pub(crate) github: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// The metric to explain. Default: list all.
    pub(crate) name: Option<String>,
    /// Include the metrics of a plugin: a component (.wasm), or a Lua file that returns an item of
    /// `evaluators`. Can be given more than once.
    #[arg(long = "plugin", value_name = "FILE")]
    pub(crate) plugins: Vec<PathBuf>,
    /// The configuration of the last `--plugin`, as JSON.
    #[arg(
        long,
        value_name = "JSON",
        requires = "plugins",
        default_value = "{}",
        hide_default_value = true
    )]
    pub(crate) plugin_config: String,
    /// Include the metrics of a scenario's `evaluators`.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a number from 0 to 1, or a percentage.
fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match number {
        Ok(number) if (0.0..1.0).contains(&number) => Ok(number),
        _ => Err("expected a share from 0 to 1, or a percentage".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The format.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds every value with this key, at any depth.
    fn named<'a>(value: &'a serde_json::Value, name: &str, found: &mut Vec<&'a serde_json::Value>) {
        match value {
            serde_json::Value::Object(entries) => {
                for (key, value) in entries {
                    if key == name {
                        found.push(value);
                    }
                    named(value, name, found);
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| named(item, name, found)),
            _ => {}
        }
    }

    #[test]
    fn intervals_have_the_bounds_of_the_scenario_keys() {
        let schema = veeksha_scenario::json_schema(&veeksha_app::shipped::schemas());
        for key in ["slice_seconds", "stream_metrics_interval"] {
            let mut found = Vec::new();
            named(&schema, key, &mut found);
            assert!(!found.is_empty(), "{key}");
            for key in found {
                assert_eq!(key["minimum"].as_f64(), Some(*INTERVAL_BOUNDS.start()));
                assert_eq!(key["maximum"].as_f64(), Some(*INTERVAL_BOUNDS.end()));
            }
        }
        for text in ["0.1", "2.5", "86400"] {
            assert!(interval(text).is_ok(), "{text}");
        }
        for text in ["1e-9", "0.09", "-1", "86401", "1e15", "nan", "inf", "x"] {
            assert_eq!(
                interval(text),
                Err("expected seconds from 0.1 to 86400".to_owned())
            );
        }
    }
}
