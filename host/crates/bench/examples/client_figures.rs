//! The figures that need only the client, without the rest of the program: P1, P2, P3, P7 and P8.
//!
//! `cargo run --release --package veeksha-bench --example client_figures -- [--json] [P1,P3,...]`

use std::io::{stderr, stdin, stdout};
use std::process::ExitCode;

use veeksha_bench::{BenchError, BenchOptions, CHILD_COMMAND, Figure, run, serve};

fn main() -> ExitCode {
    match figures() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_fmt(&mut stderr(), format_args!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn figures() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .first()
        .is_some_and(|argument| argument == CHILD_COMMAND)
    {
        return Ok(serve(stdin(), stdout())?);
    }
    let json = arguments.iter().any(|argument| argument == "--json");
    arguments.retain(|argument| argument != "--json");
    let mut options = BenchOptions::new(std::env::current_exe()?);
    options.only = match arguments.first() {
        Some(list) => Figure::list(list)?,
        None => [Figure::P1, Figure::P2, Figure::P3, Figure::P7, Figure::P8].into(),
    };
    let whole = [
        Figure::P4,
        Figure::P5,
        Figure::P6,
        Figure::P9,
        Figure::P10,
        Figure::P11,
    ];
    if let Some(figure) = whole.into_iter().find(|figure| options.only.contains(figure)) {
        // This program is not the one that runs scenarios.
        return Err(Box::new(BenchError::NoSuchFigure(format!(
            "{figure}` here, only in `veeksha-host bench"
        ))));
    }
    let report = run(&options, &mut |line| {
        let _ = std::io::Write::write_fmt(&mut stderr(), format_args!("{line} ...\n"));
    })?;
    if json {
        serde_json::to_writer_pretty(stdout(), &report)?;
    } else {
        let _ = std::io::Write::write_all(&mut stdout(), report.table().as_bytes());
    }
    Ok(())
}
