//! `veeksha-host bench`: the project's own figures on this machine.

use veeksha_bench::{BenchError, BenchOptions, Figure};

use crate::cli::args::BenchArgs;
use crate::exit;
use crate::failure::Failure;
use crate::say;

/// Takes the figures and prints them. A figure that misses its goal is no failure: goals were set on another machine.
pub(super) fn bench(args: &BenchArgs) -> Result<u8, Failure> {
    let exe = std::env::current_exe()
        .map_err(|error| Failure::internal(format!("this program cannot be found: {error}")))?;
    let mut options = BenchOptions::new(exe);
    options.repeats = args.repeats;
    if let Some(only) = &args.only {
        options.only = Figure::list(only).map_err(told)?;
    }
    let report = veeksha_bench::run(&options, &mut |doing| say::err(doing)).map_err(told)?;
    if args.json {
        say::out(serde_json::to_string_pretty(&report).map_err(Failure::internal)?);
    } else {
        say::out(report.table());
    }
    Ok(exit::DONE)
}

/// The bench's own child process: told on standard input what it is for.
pub(super) fn child() -> Result<u8, Failure> {
    veeksha_bench::serve(std::io::stdin(), std::io::stdout()).map_err(told)?;
    Ok(exit::DONE)
}

fn told(error: BenchError) -> Failure {
    match error {
        BenchError::NoSuchFigure(_) | BenchError::Repeats(_) => Failure::usage(error),
        other => Failure::internal(other),
    }
}
