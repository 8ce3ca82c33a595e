//! `veeksha-host trace`: looks at recorded traces, converts them, and makes others like them.

mod convert;
mod detect;
mod inspect;
mod subject;
mod synthesize;

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::cli::args::TraceCommand;
use crate::failure::Failure;

pub(super) fn trace(command: &TraceCommand) -> Result<u8, Failure> {
    match command {
        TraceCommand::Inspect(args) => inspect::inspect(args),
        TraceCommand::Convert(args) => convert::convert(args),
        TraceCommand::Synthesize(args) => synthesize::synthesize(args),
    }
}

/// Where lines are written: a new file, which must not be the trace itself, or standard output.
fn output(path: Option<&Path>, trace: &Path) -> Result<BufWriter<Box<dyn Write>>, Failure> {
    let sink: Box<dyn Write> = match path {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => {
            let same = path.canonicalize().ok();
            if same.is_some() && same == trace.canonicalize().ok() {
                return Err(Failure::usage(format!(
                    "{} is the trace itself; choose another file",
                    path.display()
                )));
            }
            let file = std::fs::File::create(path)
                .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
            Box::new(file)
        }
    };
    Ok(BufWriter::new(sink))
}

/// A line of the output. A reader that has gone away (`| head`) has seen what it wanted.
fn line(out: &mut impl Write, line: &str) -> Result<Written, Failure> {
    match writeln!(out, "{line}") {
        Ok(()) => Ok(Written::Yes),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Written::NobodyReads),
        Err(error) => Err(Failure::internal(format!("cannot write the output: {error}"))),
    }
}

/// Ends the output.
fn finish(mut out: impl Write) -> Result<(), Failure> {
    match out.flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::internal(format!("cannot write the output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Whether a line went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Yes,
    NobodyReads,
}
