//! One file per command.

pub(crate) mod args;
mod check;
mod run;
mod schema;
mod sim;
mod simulate;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::exit;
use crate::failure::Failure;
use args::{Command, CommandLine};

/// Parses the command line, runs the command, reports its failure. The process's exit code is one of [`crate::exit`].
pub fn main() -> ExitCode {
    let code = match dispatch(std::env::args().collect()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            failure.code
        }
    };
    ExitCode::from(code)
}

fn dispatch(arguments: Vec<String>) -> Result<u8, Failure> {
    // Only what reads a scenario takes its keys as flags; `sim --seed` is its own.
    let reads_a_scenario = matches!(
        arguments.get(1).map(String::as_str),
        Some("run" | "check" | "simulate")
    );
    let (arguments, overrides) = if reads_a_scenario {
        veeksha_scenario::dotted_flags(arguments)
    } else {
        (arguments, Vec::new())
    };
    let command = match CommandLine::try_parse_from(arguments) {
        Ok(line) => line.command,
        Err(error) => {
            // Help and version are answers, not errors; clap prints each where it belongs.
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::DONE
            };
            error.print().map_err(Failure::internal)?;
            return Ok(code);
        }
    };
    match command {
        Command::Run(args) => run::run(&args, &overrides),
        Command::Check(args) => check::check(&args, &overrides),
        Command::Simulate(args) => simulate::simulate(&args, &overrides),
        Command::Sim(args) => sim::sim(&args),
        Command::Schema(args) => schema::schema(args.format),
        Command::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut CommandLine::command(),
                "veeksha-host",
                &mut std::io::stdout(),
            );
            Ok(exit::DONE)
        }
    }
}
