//! Command-line interface, with one file per command.

mod args;
mod check;
mod compare;
mod dev;
mod doctor;
mod evaluate;
mod health;
mod live_page;
mod metrics;
mod output;
mod plugin;
mod run;
mod scenarios;
mod schema;
mod sim;
mod simulate;
mod sweep;
mod trace;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::interrupt::Interrupts;
use args::{Command, CommandLine};
use veeksha_app::CommandFailure;
use veeksha_present::terminal;

/// Parses the command line, runs the command and reports its failure. Returns one of the codes of
/// [`veeksha_exit`].
pub fn main() -> ExitCode {
    let report = |failure: CommandFailure| {
        terminal::err(&failure);
        failure.code
    };
    let code = arguments().and_then(dispatch).unwrap_or_else(report);
    // Incomplete output is reported in any case.
    let code = terminal::output_error().map_or(code, |error| {
        report(CommandFailure::internal(format!(
            "cannot write to standard output: {error}"
        )))
    });
    ExitCode::from(code)
}

fn arguments() -> Result<Vec<String>, CommandFailure> {
    let text = |argument: std::ffi::OsString| {
        argument.into_string().map_err(|argument| {
            CommandFailure::usage(format!(
                "the argument `{}` is not UTF-8",
                argument.to_string_lossy()
            ))
        })
    };
    std::env::args_os().map(text).collect()
}

fn dispatch(arguments: Vec<String>) -> Result<u8, CommandFailure> {
    // Only commands that read a scenario take its keys as flags; `sim --seed` is a flag of `sim`.
    let reads_a_scenario = matches!(
        arguments.get(1).map(String::as_str),
        Some("run" | "check" | "simulate" | "dev")
    );
    let (arguments, overrides) = if reads_a_scenario {
        veeksha_scenario::dotted_flags(arguments)
    } else {
        (arguments, Vec::new())
    };
    let command = match CommandLine::try_parse_from(arguments) {
        Ok(line) => line.command,
        Err(error) => {
            // Help and version are not errors; clap prints each to the correct stream.
            let printed = error.print();
            return Ok(if error.use_stderr() {
                veeksha_exit::USAGE
            } else {
                terminal::written(printed);
                veeksha_exit::DONE
            });
        }
    };
    let interrupts = match &command {
        // A server handles the signals itself.
        Command::Sim(_) => Interrupts::default(),
        _ => Interrupts::listen()?,
    };
    match command {
        Command::Run(args) => run::run(&args, &overrides, &interrupts),
        Command::Check(args) => check::check(&args, &overrides),
        Command::Simulate(args) => simulate::simulate(&args, &overrides, &interrupts),
        Command::Dev(args) => dev::dev(&args, &overrides, &interrupts),
        Command::Evaluate(args) => evaluate::evaluate(&args, &interrupts),
        Command::Health(args) => health::health(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Metrics(args) => metrics::metrics(&args),
        Command::Plugin(command) => plugin::plugin(&command, &interrupts),
        Command::Trace(command) => trace::trace(&command, &interrupts),
        Command::Sim(args) => sim::sim(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Schema(args) => schema::schema(args.format),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut CommandLine::command(), "veeksha-host", &mut script);
            terminal::out(String::from_utf8_lossy(&script).trim_end());
            Ok(veeksha_exit::DONE)
        }
    }
}
