//! Destination of a new trace. A file is replaced only after the new one is complete, so that a
//! failure preserves the existing file.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Stdout, Write};
use std::path::{Path, PathBuf};

use super::subject::Subject;
use crate::interrupt::{Finishing, Interrupts};
use veeksha_app::CommandFailure;

/// Result of writing a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The line was written.
    Yes,
    /// The reader closed the pipe (`| head`) and needs no more output.
    Disconnected,
}

/// Standard output, or a file that is not complete yet.
pub(super) struct Output(TraceSink);

enum TraceSink {
    Terminal(BufWriter<Stdout>),
    File {
        /// Writes to `part`.
        out: BufWriter<File>,
        part: PathBuf,
        finishing: Finishing,
        path: PathBuf,
    },
}

impl Output {
    /// Opens `path`, which must not be an input file; without a path, standard output.
    pub(super) fn to(
        path: Option<&Path>,
        subject: &Subject,
        interrupts: &Interrupts,
    ) -> Result<Output, CommandFailure> {
        let Some(path) = path else {
            return Ok(Output(TraceSink::Terminal(BufWriter::new(std::io::stdout()))));
        };
        subject.guard(path)?;
        if path.is_dir() {
            return Err(CommandFailure::usage(format!(
                "cannot write {}: it is a folder",
                path.display()
            )));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.unfinished", std::process::id()));
        let part = PathBuf::from(name);
        let finishing = interrupts.unfinished(&part, Vec::new());
        let file = File::create(&part)
            .map_err(|error| CommandFailure::usage(format!("cannot write {}: {error}", path.display())))?;
        Ok(Output(TraceSink::File {
            out: BufWriter::new(file),
            part,
            finishing,
            path: path.to_owned(),
        }))
    }

    /// Writes a line.
    pub(super) fn line(&mut self, line: &str) -> Result<Written, CommandFailure> {
        let written = match &mut self.0 {
            TraceSink::Terminal(out) => writeln!(out, "{line}"),
            TraceSink::File { out, .. } => writeln!(out, "{line}"),
        };
        match written {
            Ok(()) => Ok(Written::Yes),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Written::Disconnected),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Completes the output. A file is renamed to its final name.
    pub(super) fn finish(self) -> Result<(), CommandFailure> {
        match self.0 {
            TraceSink::Terminal(mut out) => match out.flush() {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(failed("the output", &error)),
                _ => Ok(()),
            },
            TraceSink::File {
                mut out,
                part,
                finishing,
                path,
            } => finishing
                .keep(|| out.flush().and_then(|()| std::fs::rename(&part, &path)))
                .map_err(|error| failed(path.display(), &error)),
        }
    }

    fn failure(&self, error: &std::io::Error) -> CommandFailure {
        match &self.0 {
            TraceSink::Terminal(_) => failed("the output", error),
            TraceSink::File { path, .. } => failed(path.display(), error),
        }
    }
}

fn failed(place: impl std::fmt::Display, error: &std::io::Error) -> CommandFailure {
    CommandFailure::internal(format!("cannot write {place}: {error}"))
}
