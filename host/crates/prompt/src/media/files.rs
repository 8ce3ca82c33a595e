//! Granted files: a name becomes a path that cannot lead elsewhere, and the path bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use super::error::nearest;
use super::{MAX_MEDIA_BYTES, MediaError};

/// Bytes that say what a file is; `format` looks at twelve.
const HEAD: u64 = 32;

/// The folder's true path.
pub(super) fn folder(path: PathBuf) -> Result<PathBuf, MediaError> {
    let unreadable = |source| MediaError::Unreadable {
        path: path.clone(),
        source,
    };
    let folder = path.canonicalize().map_err(unreadable)?;
    match folder.is_dir() {
        true => Ok(folder),
        false => Err(MediaError::NotA {
            path,
            expected: "folder",
        }),
    }
}

/// Where a named file lies: granted by its name, or inside the folder.
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
        // Links inside the folder are followed, links that leave it are not.
        Ok(path) if path.starts_with(folder) => Ok(path),
        Ok(_) => Err(outside()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(not_granted()),
        Err(source) => Err(MediaError::Unreadable { path, source }),
    }
}

/// The bytes of a file, unless they are too many.
pub(super) fn read(name: &str, path: &Path) -> Result<Vec<u8>, MediaError> {
    let (file, size) = open(name, path)?;
    let mut bytes = Vec::with_capacity(size as usize);
    // It may grow while it is read.
    let read = file
        .take(MAX_MEDIA_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| unreadable(path, source))?;
    match read as u64 > MAX_MEDIA_BYTES {
        true => Err(too_large(name, read as u64)),
        false => Ok(bytes),
    }
}

/// The first bytes of a file, as many as say what it is, unless it has too many.
pub(super) fn head(name: &str, path: &Path) -> Result<Vec<u8>, MediaError> {
    let (file, _) = open(name, path)?;
    let mut bytes = Vec::with_capacity(HEAD as usize);
    file.take(HEAD)
        .read_to_end(&mut bytes)
        .map_err(|source| unreadable(path, source))?;
    Ok(bytes)
}

/// A file and its size, if it is one and not too large.
fn open(name: &str, path: &Path) -> Result<(File, u64), MediaError> {
    // Before it is opened: opening a pipe would wait for its other end.
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

/// Whether what stands before a colon is the scheme of a URL (RFC 3986, 3.1), not a part of a file's name.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphabetic())
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
}
