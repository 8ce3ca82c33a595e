//! A folder that only its owner can read, with files that only the owner can have written.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawMode, Stat, fstat, linkat, openat, renameat, unlinkat,
};
use rustix::process::{geteuid, getpid};

/// Maximum size of a file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Reason for running without a cache. Reported as a note, not as a failure: the cache is optional.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("cannot make or open the folder {}: {error}", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("{} belongs to another user", .0.display())]
    Foreign(PathBuf),
    #[error("{} can be opened by other users (mode {mode:o}); make it private with `chmod {wanted:o}`", path.display())]
    Open {
        path: PathBuf,
        mode: RawMode,
        wanted: RawMode,
    },
    #[error("the key {} cannot be used; remove it to have a new one made", .0.display())]
    Key(PathBuf),
    #[error("the system gives no randomness for a key: {0}")]
    NoRandom(io::Error),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot store what was compiled: {0}")]
    Serialize(String),
}

/// An open folder. Files are opened relative to its descriptor, so that it cannot be replaced
/// concurrently.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder. Creates it and missing parents, accessible to the owner only.
    pub(super) fn open(path: &Path) -> Result<Self, CacheError> {
        let failed = |error: io::Error| CacheError::Folder {
            path: path.to_owned(),
            error,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let stat = fstat(&fd).map_err(|error| failed(error.into()))?;
        private(&stat, path, 0o700)?;
        Ok(Folder {
            fd,
            path: path.to_owned(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes of a file, if it exists and only the owner can have written it.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).ok()?;
        let stat = fstat(&fd).ok()?;
        let size = u64::try_from(stat.st_size).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || size > MAX_BYTES {
            return None;
        }
        private(&stat, Path::new(name), 0o600).ok()?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        File::from(fd).take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes a file atomically, replacing an existing one.
    pub(super) fn write(&self, name: &str, seal: &[u8], content: &[u8]) -> Result<(), CacheError> {
        let failed = |error: io::Error| CacheError::Write {
            path: self.path.join(name),
            error,
        };
        let temporary = self.temporary(&[seal, content]).map_err(failed)?;
        renameat(&self.fd, &temporary, &self.fd, name).map_err(|error| {
            self.discard(&temporary);
            failed(error.into())
        })
    }

    /// Creates a file atomically, unless it exists.
    pub(super) fn create(&self, name: &str, content: &[u8]) -> Result<(), CacheError> {
        let failed = |error: io::Error| CacheError::Write {
            path: self.path.join(name),
            error,
        };
        let temporary = self.temporary(&[content]).map_err(failed)?;
        let linked = linkat(&self.fd, &temporary, &self.fd, name, AtFlags::empty());
        self.discard(&temporary);
        match linked {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Writes a new file under a unique name.
    fn temporary(&self, parts: &[&[u8]]) -> io::Result<String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}-{number}.tmp", getpid().as_raw_nonzero());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&self.fd, &name, flags, Mode::RUSR | Mode::WUSR);
        let fd = match open() {
            // Left by an earlier process with the same process id.
            Err(rustix::io::Errno::EXIST) => {
                self.discard(&name);
                open()
            }
            other => other,
        }?;
        let mut file = File::from(fd);
        match parts.iter().try_for_each(|part| file.write_all(part)) {
            Ok(()) => Ok(name),
            Err(error) => {
                self.discard(&name);
                Err(error)
            }
        }
    }

    fn discard(&self, name: &str) {
        // Errors have no effect: a remaining file is overwritten or ignored.
        let _ = unlinkat(&self.fd, name, AtFlags::empty());
    }
}

fn private(stat: &Stat, path: &Path, wanted: RawMode) -> Result<(), CacheError> {
    if stat.st_uid != geteuid().as_raw() {
        return Err(CacheError::Foreign(path.to_owned()));
    }
    let mode = stat.st_mode & 0o777;
    if mode & 0o077 != 0 {
        return Err(CacheError::Open {
            path: path.to_owned(),
            mode,
            wanted,
        });
    }
    Ok(())
}
