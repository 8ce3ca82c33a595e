//! Reads files named by a scenario, if they are regular files of limited size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Returns the contents of a regular file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Checked before opening: opening a pipe would block until its other end is opened, and a
    // device may be endless.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let too_large = || io::Error::other(format!("it is larger than {} MiB", limit >> 20));
    if metadata.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // The file may grow while it is read.
    let read = File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if read as u64 > limit {
        Err(too_large())
    } else {
        Ok(bytes)
    }
}
