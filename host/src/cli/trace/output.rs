//! Where a new trace is written. A file takes its place only when it is whole: what stood there survives a failure.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Stdout, Write};
use std::path::{Path, PathBuf};

use super::subject::Subject;
use crate::failure::Failure;

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
        /// Writes to `unfinished`.
        out: BufWriter<File>,
        unfinished: Unfinished,
        path: PathBuf,
    },
}

/// A file that is removed unless it is given its name.
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nothing is lost with it, and a failure is being reported already.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Output {
    /// Opens `path`, which must not be what is read; without one, standard output.
    pub(super) fn to(path: Option<&Path>, subject: &Subject) -> Result<Output, Failure> {
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
        let file = File::create(&part)
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
        Ok(Output(Sink::File {
            out: BufWriter::new(file),
            unfinished: Unfinished(Some(part)),
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
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let ended = match &mut self.0 {
            Sink::Terminal(out) => out.flush(),
            Sink::File {
                out,
                unfinished,
                path,
            } => out.flush().and_then(|()| match unfinished.0.take() {
                Some(part) => std::fs::rename(&part, &*path).inspect_err(|_| unfinished.0 = Some(part)),
                None => Ok(()),
            }),
        };
        match ended {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(self.failure(&error)),
            _ => Ok(()),
        }
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        let place = match &self.0 {
            Sink::Terminal(_) => "the output".to_owned(),
            Sink::File { path, .. } => path.display().to_string(),
        };
        Failure::internal(format!("cannot write {place}: {error}"))
    }
}
