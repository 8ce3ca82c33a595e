//! A file to which whole lines are appended.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use crate::error::ReportError;

/// Lines are buffered until there are this many bytes, or until the next flush.
const BUFFER_BYTES: usize = 256 * 1024;

/// Appends whole lines only. After the first error the file is cut back to its last whole line and
/// accepts no more; lost lines are counted from then on.
#[derive(Debug)]
pub(crate) struct LineFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    lines_in_buffer: u64,
    whole_bytes: u64,
    failure: Option<io::Error>,
    lines_lost: u64,
}

impl LineFile {
    pub(crate) fn open(path: PathBuf) -> Result<Self, ReportError> {
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let opened = folder.and_then(|()| OpenOptions::new().append(true).create(true).open(&path));
        let opened = opened.and_then(|file| file.metadata().map(|metadata| (file, metadata.len())));
        match opened {
            Ok((file, whole_bytes)) => Ok(LineFile {
                path,
                file,
                whole_bytes,
                buffer: Vec::with_capacity(BUFFER_BYTES),
                lines_in_buffer: 0,
                failure: None,
                lines_lost: 0,
            }),
            Err(source) => Err(ReportError::Write { path, source }),
        }
    }

    /// Adds a line, which `write` appends without its line feed.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) {
        if self.failure.is_some() {
            self.lines_lost += 1;
            return;
        }
        let whole = self.buffer.len();
        match write(&mut self.buffer) {
            Ok(()) => {
                self.buffer.push(b'\n');
                self.lines_in_buffer += 1;
                if self.buffer.len() >= BUFFER_BYTES {
                    self.flush();
                }
            }
            Err(error) => {
                self.buffer.truncate(whole);
                self.lines_lost += 1;
                self.failure = Some(error.into());
            }
        }
    }

    /// Writes the buffered lines.
    pub(crate) fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        match self.file.write_all(&self.buffer) {
            Ok(()) => self.whole_bytes += self.buffer.len() as u64,
            Err(error) => {
                // A partial line would break readers. Truncating frees space, so it works on a full
                // disk too; if it fails, the reported error is still the first one.
                let _ = self.file.set_len(self.whole_bytes);
                self.failure.get_or_insert(error);
                self.lines_lost += self.lines_in_buffer;
            }
        }
        self.buffer.clear();
        self.lines_in_buffer = 0;
    }

    /// Returns the first error so far.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure
            .as_ref()
            .map(|source| format!("cannot write {}: {source}", self.path.display()))
    }

    /// Writes the remaining lines.
    pub(crate) fn close(mut self) -> Result<(), ReportError> {
        self.flush();
        match self.failure {
            None => Ok(()),
            Some(source) => Err(ReportError::RecordCut {
                path: self.path,
                source,
                lines_lost: self.lines_lost,
            }),
        }
    }
}
