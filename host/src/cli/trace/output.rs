//! Where a new trace is written. A file takes its place only when it is whole: what stood there survives a failure.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Stdout, Write};
use std::path::{Path, PathBuf};

use super::subject::Subject;
use crate::interrupt::{Finishing, Interrupts};
use veeksha_app::Failure;

/// Whether a line went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It did.
    Yes,
    /// The reader has gone away (`| head`): it has seen what it wanted.
    NobodyReads,
}

/// Standard output, or a file to be.
pub(super) struct Output(Sink);

enum Sink {
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
    /// Opens `path`, which must not be what is read; without one, standard output.
    pub(super) fn to(
        path: Option<&Path>,
        subject: &Subject,
        interrupts: &Interrupts,
    ) -> Result<Output, Failure> {
        let Some(path) = path else {
            return Ok(Output(Sink::Terminal(BufWriter::new(std::io::stdout()))));
        };
        subject.guard(path)?;
        if path.is_dir() {
            return Err(Failure::usage(format!(
                "cannot write {}: it is a folder",
                path.display()
            )));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.unfinished", std::process::id()));
        let part = PathBuf::from(name);
        let finishing = interrupts.unfinished(&part, Vec::new());
        let file = File::create(&part)
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
        Ok(Output(Sink::File {
            out: BufWriter::new(file),
            part,
            finishing,
            path: path.to_owned(),
        }))
    }

    /// Writes a line.
    pub(super) fn line(&mut self, line: &str) -> Result<Written, Failure> {
        let written = match &mut self.0 {
            Sink::Terminal(out) => writeln!(out, "{line}"),
            Sink::File { out, .. } => writeln!(out, "{line}"),
        };
        match written {
            Ok(()) => Ok(Written::Yes),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Written::NobodyReads),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Ends the output; a file gets its name.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self.0 {
            Sink::Terminal(mut out) => match out.flush() {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(failed("the output", &error)),
                _ => Ok(()),
            },
            Sink::File {
                mut out,
                part,
                finishing,
                path,
            } => finishing
                .keep(|| out.flush().and_then(|()| std::fs::rename(&part, &path)))
                .map_err(|error| failed(path.display(), &error)),
        }
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        match &self.0 {
            Sink::Terminal(_) => failed("the output", error),
            Sink::File { path, .. } => failed(path.display(), error),
        }
    }
}

fn failed(place: impl std::fmt::Display, error: &std::io::Error) -> Failure {
    Failure::internal(format!("cannot write {place}: {error}"))
}
