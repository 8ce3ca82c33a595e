//! Files that a scenario names: read only if they are files, and not too large.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a regular file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a pipe would wait for its other end, and a device may have no end.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let too_large = || io::Error::other(format!("it is larger than {} MiB", limit >> 20));
    if metadata.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // It may grow while it is read.
    let read = File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    match read as u64 > limit {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}
