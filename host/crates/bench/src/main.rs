//! `cargo run --release -p veeksha-bench`: benchmarks of the client on this machine.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, error::ErrorKind};
use veeksha_bench::{BenchError, BenchOptions, Benchmark, run, serve};

/// Benchmark the client of veeksha-host against a minimal epoll client.
#[derive(Debug, Parser)]
#[command(name = "veeksha-bench", version, args_conflicts_with_subcommands = true)]
struct BenchCommandLine {
    #[command(subcommand)]
    command: Option<BenchCommand>,
    #[command(flatten)]
    bench: BenchArgs,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Serve or drive a load as a child process of this program (commands on standard input).
    #[command(name = veeksha_bench::CHILD_COMMAND, hide = true)]
    Child,
}

#[derive(Debug, Args)]
struct BenchArgs {
    /// Run only these benchmarks, for example `P1,P4` [default: P1 to P11, A1, E1 and E2].
    #[arg(long, value_name = "BENCHMARKS")]
    only: Option<String>,
    /// Repetitions of each cost measurement; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    repeats: u32,
    /// The `veeksha-host` binary for benchmarks of whole runs [default: the one next to this
    /// program].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = BenchCommandLine::parse();
    let result = match arguments.command {
        Some(BenchCommand::Child) => serve(stdin(), stdout()).map_err(Into::into),
        None => bench(arguments.bench),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error leaves nothing to report to.
            let _ = writeln!(stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the benchmarks and prints the report. A missed goal is not a failure: the goals were set on
/// another machine.
fn bench(args: BenchArgs) -> Result<(), Box<dyn Error>> {
    let mut options = BenchOptions::new(std::env::current_exe()?);
    options.repeats = args.repeats;
    if let Some(program) = args.program {
        options.program = program;
    }
    if let Some(only) = &args.only {
        options.only = Benchmark::list(only).map_err(usage)?;
    }
    let report = run(&options, &mut |benchmark| {
        let _ = writeln!(stderr(), "{benchmark} ...");
    })
    .map_err(usage)?;
    let mut out = stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        out.write_all(report.table().as_bytes())?;
    }
    Ok(())
}

/// Reports options that cannot be used the way clap does, with exit status 2; passes other errors
/// on.
fn usage(error: BenchError) -> BenchError {
    if matches!(error, BenchError::UnknownBenchmark(_) | BenchError::Repeats(_)) {
        BenchCommandLine::command()
            .error(ErrorKind::InvalidValue, error)
            .exit();
    }
    error
}
