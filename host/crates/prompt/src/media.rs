//! Media of a message: from a workload's sources to URLs for a server.
//!
//! Servers accept URLs and `data:` URLs. A workload may also name a granted file, or request a
//! generated picture or sound; both become `data:` URLs here, before a request is due:
//!
//! | source | becomes |
//! |---|---|
//! | `https://...`, `http://...`, `data:...` | itself; the server fetches or decodes it |
//! | `pets/cat.png` | the file's bytes, if it is granted by name or lies in the media folder |
//! | `generated:image?width=512&height=512&seed=7` | a PNG of gradients and noise |
//! | `generated:audio?seconds=2.5&rate=16000&seed=7` | a WAV of tones and noise |

mod audio;
mod error;
mod files;
mod format;
mod generated;
mod image;
mod limits;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use veeksha_model::MediaKind;

pub use error::MediaError;
pub use limits::MAX_MEDIA_BYTES;

use crate::cache::TextCache;
use crate::salt::TextSalt;

/// Maximum size of cached `data:` URLs, which are kept when they are used twice.
const CACHE_BYTES: usize = 256 << 20;

/// The files that messages may name, and cached `data:` URLs. By default no file is granted; URLs
/// and generated media need no grant.
#[derive(Debug)]
pub struct MediaStore {
    files: BTreeMap<String, PathBuf>,
    folder: Option<PathBuf>,
    made: Mutex<TextCache<[u8; 32]>>,
}

impl Default for MediaStore {
    fn default() -> Self {
        MediaStore {
            files: BTreeMap::new(),
            folder: None,
            made: Mutex::new(TextCache::new(CACHE_BYTES)),
        }
    }
}

impl MediaStore {
    /// Grants individual files by name, at any path.
    #[must_use]
    pub fn with_files(mut self, files: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        self.files.extend(files);
        self
    }

    /// Grants the files of a folder and its subfolders, by their names relative to it.
    pub fn with_folder(mut self, folder: PathBuf) -> Result<Self, MediaError> {
        self.folder = Some(files::folder(folder)?);
        Ok(self)
    }

    /// Checks that [`MediaStore::resolve`] can succeed for a source: nothing is generated or
    /// encoded, and only the first bytes of a file are read.
    pub(crate) fn check(&self, kind: MediaKind, source: &str) -> Result<(), MediaError> {
        if is_url(source) {
            return Ok(());
        }
        if let Some(wanted) = source.strip_prefix("generated:") {
            return generated::check(kind, wanted);
        }
        let path = files::path(source, &self.files, self.folder.as_deref())?;
        format::mime(kind, source, &files::head(source, &path)?).map(|_| ())
    }

    /// Returns the URL to send for a source.
    pub(crate) fn resolve(
        &self,
        kind: MediaKind,
        source: &str,
        salt: TextSalt,
    ) -> Result<Arc<str>, MediaError> {
        if is_url(source) {
            return Ok(source.into());
        }
        let mut key = blake3::Hasher::new();
        key.update(kind.name().as_bytes())
            .update(b"\n")
            .update(source.as_bytes());
        let key = *key.finalize().as_bytes();
        // A panic with the lock held leaves at worst an incomplete cache.
        if let Some(url) = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Ok(url);
        }
        let (mime, bytes) = if let Some(wanted) = source.strip_prefix("generated:") {
            generated::make(kind, wanted, salt)?
        } else {
            let path = files::path(source, &self.files, self.folder.as_deref())?;
            let bytes = files::read(source, &path)?;
            (format::mime(kind, source, &bytes)?, bytes)
        };
        let mut url = format!("data:{mime};base64,");
        base64::engine::general_purpose::STANDARD.encode_string(&bytes, &mut url);
        let url: Arc<str> = url.into();
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .offer(key, &url);
        Ok(url)
    }
}

/// Returns true if servers accept the source unchanged.
fn is_url(source: &str) -> bool {
    ["http://", "https://", "data:"].iter().any(|scheme| {
        source
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}
