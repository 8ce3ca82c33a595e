//! The names in a record's folder, and files that are there whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::error::RecordError;

/// The record's folder in the folder of a run.
pub(crate) fn folder(run: &Path) -> PathBuf {
    run.join("record")
}

/// The file of a finished table.
pub(crate) fn whole(folder: &Path, table: &str) -> PathBuf {
    folder.join(format!("{table}.parquet"))
}

/// The file of a part of a table.
pub(crate) fn part(folder: &Path, table: &str, number: usize) -> PathBuf {
    folder.join(format!("{table}-{number:05}.parquet"))
}

/// The file of an increment: rows that are not in a part yet.
pub(crate) fn increment(folder: &Path, table: &str, part: usize, number: usize) -> PathBuf {
    folder.join(format!("{table}-{part:05}-{number:05}.parquet"))
}

/// A file of an unfinished table.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartFile {
    pub(crate) part: usize,
    /// The number of the increment; `None` for the part itself, which replaces its increments.
    pub(crate) increment: Option<usize>,
    pub(crate) path: PathBuf,
}

/// Returns the parts and increments of a table, in order.
pub(crate) fn parts(folder: &Path, table: &str) -> Result<Vec<PartFile>, RecordError> {
    let read = |source| RecordError::Read {
        path: folder.to_owned(),
        source,
    };
    let numbers = |name: &str| -> Option<(usize, Option<usize>)> {
        let numbers = name
            .strip_prefix(table)?
            .strip_prefix('-')?
            .strip_suffix(".parquet")?;
        match numbers.split_once('-') {
            Some((part, increment)) => Some((part.parse().ok()?, Some(increment.parse().ok()?))),
            None => Some((numbers.parse().ok()?, None)),
        }
    };
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder).map_err(read)? {
        let name = entry.map_err(read)?.file_name();
        if let Some((part, increment)) = name.to_str().and_then(numbers) {
            parts.push(PartFile {
                part,
                increment,
                path: folder.join(name),
            });
        }
    }
    parts.sort_unstable();
    Ok(parts)
}

/// Opens a file that must be a plain one: a pipe or a device in its place could keep its reader for
/// ever. For every file of a run's folder, which can come from anywhere.
///
/// # Errors
///
/// If there is none, if it cannot be opened, or if it is not a plain file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    // Checked before it is opened: opening a pipe waits for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    File::open(path)
}

/// Writes a file under another name, makes sure that it is on the disk, and gives it its name:
/// after a crash it is there whole, or not at all.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let failed = |source| RecordError::Write {
        path: path.to_owned(),
        source,
    };
    let temporary = path.with_extension("parquet.tmp");
    let written = File::create(&temporary).map_err(failed).and_then(|mut file| {
        write(&mut file)?;
        file.flush().and_then(|()| file.sync_data()).map_err(failed)?;
        fs::rename(&temporary, path).map_err(failed)
    });
    if written.is_err() {
        // The incomplete file is useless; if it cannot be removed either, it is never read.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Makes sure that the names in a folder are on the disk.
pub(crate) fn sync(folder: &Path) -> Result<(), RecordError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| RecordError::Write {
            path: folder.to_owned(),
            source,
        })
}
