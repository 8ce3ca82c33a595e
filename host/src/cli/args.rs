//! The command line, as clap sees it. Dotted flags have been taken out before (see [`veeksha_scenario::dotted_flags`]).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use veeksha_app::{CompatOptions, Failure, Part};

/// Benchmarks LLM inference servers and proves how accurately it did so.
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
    /// Resolve a scenario, load its plugins and print the plan; send nothing.
    Check(ScenarioArgs),
    /// Run a scenario in virtual time against the simulated engine.
    Simulate(SimulateArgs),
    /// Compute the figures of a run anew from its record, with other objectives or plugins if you like.
    Evaluate(EvaluateArgs),
    /// Check whether a run did what its scenario asked for.
    Health(HealthArgs),
    /// Say whether runs differ, and by how much.
    Compare(CompareArgs),
    /// List the metrics and figures that objectives can be about, or explain one.
    Metrics(MetricsArgs),
    /// Look at a recorded trace, convert it, or make another one like it.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Serve the simulated engine over HTTP (OpenAI-compatible).
    Sim(SimArgs),
    /// Look at this machine and say what stands in the way of an accurate measurement.
    Doctor(DoctorArgs),
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

/// What every command that carries a scenario out takes.
#[derive(Debug, Args)]
pub(crate) struct DriveArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Do only one part of the sessions, for example 1/4: the parts of one scenario, each in a process of its own, send
    /// together exactly what one process would.
    #[arg(
        long,
        value_name = "PART/PARTS",
        default_value = "1/1",
        hide_default_value = true
    )]
    pub(crate) shard: Part,
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
    /// Also show the run in the definitions of another tool: vllm, sglang, guidellm, genai-perf, inference-perf or
    /// aiperf. Can be given more than once.
    #[arg(long = "as", value_name = "TOOL", value_parser = tool)]
    pub(crate) as_tools: Vec<veeksha_compat::Tool>,
    /// Set a goodput threshold with a tool's own metric name and unit: `vllm=ttft:500`. Without a tool it applies to all
    /// of `--as` and `--compat` that define the metric. Can be given more than once.
    #[arg(long, value_name = "[TOOL=]METRIC:VALUE", value_parser = goodput)]
    pub(crate) as_goodput: Vec<veeksha_compat::GoodputThreshold>,
}

impl OutputArgs {
    /// Checks the options of other tools before anything is done.
    pub(crate) fn options(&self) -> Result<CompatOptions, Failure> {
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
    /// Print a line of interim figures every so many seconds (0.1 to 86400), on a terminal too. Default of the seconds: the scenario's.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, value_parser = stretch)]
    pub(crate) stream_metrics: Option<Option<f64>>,
    /// Serve the report while the run goes on, for example at 127.0.0.1:8080 (port 0 takes a free one).
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) live: Option<std::net::SocketAddr>,
    /// What a viewer of `--live` must show. Needed for addresses that other machines reach; `VEEKSHA_LIVE_TOKEN` is used if it is set.
    #[arg(long, value_name = "TOKEN", requires = "live")]
    pub(crate) live_token: Option<String>,
    /// After the run, measure a twin whose timings are known, on this machine and at the run's own rate: its error becomes the bound
    /// printed beside each metric.
    #[arg(long)]
    pub(crate) self_test: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) run: DriveArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The engine to simulate: the name of a profile or a YAML file. Default: that of a `sim://` target, else `default`.
    #[arg(long)]
    pub(crate) profile: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Say what a trace is like: its format, lengths, turns, think times, arrivals, and how much of its prompts a prefix cache
    /// could know.
    Inspect(InspectArgs),
    /// Write a trace in another format.
    Convert(ConvertArgs),
    /// Write a new trace that is like one: lengths, turns, think times, arrivals and shared prefixes.
    Synthesize(SynthesizeArgs),
}

/// What every command that reads a trace takes.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The trace: a file or a folder; or a scenario (.lua, .yml, .yaml) that replays one.
    pub(crate) trace: PathBuf,
    /// The flavor that reads it. Default: the one that its columns tell.
    #[arg(long)]
    pub(crate) flavor: Option<String>,
    /// Set a key of the trace or of its flavor, for example `on_bad_row=skip` or `flavor.block_size=16`. Can be given more
    /// than once.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The tokenizer that verbatim text is measured with: a `tokenizer.json`, a model's folder, a hub name, or `embedded`.
    #[arg(long)]
    pub(crate) tokenizer: Option<String>,
    /// Look at so many sessions only.
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
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the distributions into this file (SVG).
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
    /// Tokens of a hash block, for formats that have them. Default: that of the trace's flavor, else 512.
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
    /// Tokens of a hash block: beginnings that prompts share are kept in whole blocks. Default: that of the trace's flavor, else 512.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) block_size: Option<std::num::NonZeroU32>,
    /// How many sessions to make. Default: as many as the trace has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) make: Option<u64>,
    /// The seed of what is drawn.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Longer or shorter beginnings that prompts share.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) prefix_multiplier: f64,
    /// So many times as many different prefixes, each shared by its part of the sessions.
    #[arg(long, default_value_t = 1, value_name = "TIMES")]
    pub(crate) root_multiplier: u32,
    /// Longer or shorter what prompts have for themselves; with the same factor for both, whole prompts.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) prompt_multiplier: f64,
    /// Longer or shorter answers.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) output_multiplier: f64,
    /// How much faster sessions arrive.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) speedup: f64,
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
    /// Write the true send time of every chunk to this file (JSON lines, one for each request that is over).
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,
    /// In place of a profile: every first token after so many nanoseconds, whatever the load (for self-tests).
    #[arg(
        long,
        value_name = "NANOS",
        requires = "twin_gap",
        conflicts_with = "profile",
        hide = true
    )]
    pub(crate) twin_ttft: Option<u64>,
    /// And every further token after so many.
    #[arg(long, value_name = "NANOS", requires = "twin_ttft", hide = true)]
    pub(crate) twin_gap: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// How many answers will stream at a time.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) streams: u32,
    /// How many requests a second will be sent.
    #[arg(long, value_name = "R", default_value_t = 100.0, value_parser = positive)]
    pub(crate) rate: f64,
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The bounds of `stream_metrics_interval` and `slice_seconds`.
const STRETCHES: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;

/// Seconds between interim figures, or of a time slice: within the bounds of the scenario's keys for them.
fn stretch(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if STRETCHES.contains(&seconds) => Ok(seconds),
        _ => Err(format!(
            "expected seconds from {} to {}",
            STRETCHES.start(),
            STRETCHES.end()
        )),
    }
}

/// A rate: a finite number above 0.
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
    /// A metric or a check: a component (.wasm) or a Lua file that returns an item of `evaluators`. Can be given more than once.
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
    /// An objective, for example `p99(ttfc) < 500ms`; in place of the scenario's. Can be given more than once.
    #[arg(long = "slo", value_name = "OBJECTIVE")]
    pub(crate) slos: Vec<String>,
    /// What a good request keeps, for example `ttfc <= 500ms`; in place of the scenario's. Can be given more than once.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) goodput: Vec<String>,
    /// Seconds of a time slice, in place of the scenario's `slice_seconds`: 0.1 to 86400.
    #[arg(long, value_name = "SECONDS", value_parser = stretch)]
    pub(crate) slice: Option<f64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The folder to write to: a new or empty one. Default: one by date in `evaluations` of the run.
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
    /// Print `summary_stats.json` in place of the table, and write nothing.
    #[arg(long, conflicts_with = "to")]
    pub(crate) json: bool,
    /// Print no table.
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
    /// End with exit code 6 if a check failed.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON in place of the text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The runs: first the baseline, then what is held against it. Each is the folder of a run, a folder that holds several runs of
    /// one kind (repeats), or the folder of a sweep; sweeps are compared cell by cell.
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Compare only these metrics and figures, for example `ttfc,error_rate`, and what `--fail-if` names. Default: all that the runs have.
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,
    /// Show every figure. Default: the latencies, the rates, the metrics of plugins, and whatever differs.
    #[arg(long)]
    pub(crate) all: bool,
    /// End with exit code 3 if this holds of a candidate in any cell, or cannot be decided; for example `worse(ttfc) or error_rate > 1%`.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) fail_if: Option<String>,
    /// How sure the intervals are.
    #[arg(long, default_value_t = 0.95, value_name = "SHARE", value_parser = share)]
    pub(crate) confidence: f64,
    /// A difference of less than this share does not matter.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub(crate) ignore_below: f64,
    /// Judge runs and metrics too that their certificates call INVALID.
    #[arg(long)]
    pub(crate) allow_invalid: bool,
    /// The seed of the resampling.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Write the comparison as JSON to this file; `-` prints it in place of the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write it as a page to this file; `-` prints it in place of the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write it as JUnit XML to this file; `-` prints it in place of the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Print annotations for GitHub Actions too.
    #[arg(long)]
    pub(crate) github: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// The metric or figure to explain. Default: list all.
    pub(crate) name: Option<String>,
    /// Know the metrics of a plugin too: a component (.wasm) or a Lua file that returns an item of `evaluators`. Can be given more than
    /// once.
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
    /// Know the metrics of a scenario's `evaluators` too.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Do not read or write the cache of compiled components.
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number from 0 to 1, or a percentage.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every object of this name, however deep it lies.
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
    fn stretches_have_the_bounds_of_the_scenario_s_keys() {
        let schema = veeksha_scenario::json_schema(&veeksha_app::shipped::schemas());
        for key in ["slice_seconds", "stream_metrics_interval"] {
            let mut found = Vec::new();
            named(&schema, key, &mut found);
            assert!(!found.is_empty(), "{key}");
            for key in found {
                assert_eq!(key["minimum"].as_f64(), Some(*STRETCHES.start()));
                assert_eq!(key["maximum"].as_f64(), Some(*STRETCHES.end()));
            }
        }
        for text in ["0.1", "2.5", "86400"] {
            assert!(stretch(text).is_ok(), "{text}");
        }
        for text in ["1e-9", "0.09", "-1", "86401", "1e15", "nan", "inf", "x"] {
            assert_eq!(
                stretch(text),
                Err("expected seconds from 0.1 to 86400".to_owned())
            );
        }
    }
}
