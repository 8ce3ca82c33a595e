//! Granted files: resolves a name to a path that cannot escape the grant, and reads it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use super::error::nearest;
use super::limits::MAX_MEDIA_BYTES;
use crate::media::error::MediaError;

/// Number of bytes that identify a file's format; `format` inspects twelve.
const HEAD: u64 = 32;

/// Returns the folder's canonical path.
pub(super) fn folder(path: PathBuf) -> Result<PathBuf, MediaError> {
    let unreadable = |source| MediaError::Unreadable {
        path: path.clone(),
        source,
    };
    let folder = path.canonicalize().map_err(unreadable)?;
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(MediaError::NotA {
            path,
            expected: "folder",
        })
    }
}

/// Returns the path of a named file: granted by its name, or inside the folder.
pub(super) fn path(
    name: &str,
    files: &BTreeMap<String, PathBuf>,
    folder: Option<&Path>,
) -> Result<PathBuf, MediaError> {
    if let Some(path) = files.get(name) {
        return Ok(path.clone());
    }
    if name.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) {
        return Err(MediaError::Scheme {
            source_name: name.chars().take(200).collect(),
        });
    }
    let not_granted = || MediaError::NotGranted {
        name: name.to_string(),
        nearest: nearest(name, files.keys().map(String::as_str)),
    };
    let folder = folder.ok_or_else(not_granted)?;
    let outside = || MediaError::Outside {
        name: name.to_string(),
    };
    let mut components = Path::new(name).components();
    if name.is_empty() || !components.all(|component| matches!(component, Component::Normal(_))) {
        return Err(outside());
    }
    let path = folder.join(name);
    match path.canonicalize() {
        // Links within the folder are followed, links that leave it are refused.
        Ok(path) if path.starts_with(folder) => Ok(path),
        Ok(_) => Err(outside()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(not_granted()),
        Err(source) => Err(MediaError::Unreadable { path, source }),
    }
}

/// Returns the contents of a file, unless it is too large.
pub(super) fn read(name: &str, path: &Path) -> Result<Vec<u8>, MediaError> {
    let (file, size) = open(name, path)?;
    let mut bytes = Vec::with_capacity(size as usize);
    // The file may grow while it is read.
    let read = file
        .take(MAX_MEDIA_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| unreadable(path, source))?;
    if read as u64 > MAX_MEDIA_BYTES {
        Err(too_large(name, read as u64))
    } else {
        Ok(bytes)
    }
}

/// Returns the first bytes of a file, which identify its format, unless it is too large.
pub(super) fn head(name: &str, path: &Path) -> Result<Vec<u8>, MediaError> {
    let (file, _) = open(name, path)?;
    let mut bytes = Vec::with_capacity(HEAD as usize);
    file.take(HEAD)
        .read_to_end(&mut bytes)
        .map_err(|source| unreadable(path, source))?;
    Ok(bytes)
}

/// Opens a regular file that is not too large, and returns its size.
fn open(name: &str, path: &Path) -> Result<(File, u64), MediaError> {
    // Checked before opening: opening a pipe would block until its other end is opened.
    let metadata = std::fs::metadata(path).map_err(|source| unreadable(path, source))?;
    if !metadata.is_file() {
        return Err(MediaError::NotA {
            path: path.to_path_buf(),
            expected: "file",
        });
    }
    if metadata.len() > MAX_MEDIA_BYTES {
        return Err(too_large(name, metadata.len()));
    }
    let file = File::open(path).map_err(|source| unreadable(path, source))?;
    Ok((file, metadata.len()))
}

fn unreadable(path: &Path, source: std::io::Error) -> MediaError {
    MediaError::Unreadable {
        path: path.to_path_buf(),
        source,
    }
}

fn too_large(name: &str, bytes: u64) -> MediaError {
    MediaError::TooLarge {
        name: name.to_string(),
        bytes,
        limit: MAX_MEDIA_BYTES,
    }
}

/// Returns true if the text before a colon is the scheme of a URL (RFC 3986, 3.1), not a part of a
/// file's name.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphabetic())
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
}
