//! Creation of a sweep's folder, and atomic writes.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::SweepError;

/// Creates `<output_dir>/sweep_<stamp>[-n]`. Creating a folder that must not exist is atomic, so
/// two sweeps never share one.
pub(crate) fn create(output_dir: &Path, utc_stamp: &str) -> Result<PathBuf, SweepError> {
    let refuse = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| SweepError::CreateFolder { path, source }
    };
    fs::create_dir_all(output_dir).map_err(refuse(output_dir))?;
    let mut path = output_dir.join(format!("sweep_{utc_stamp}"));
    let mut number = 2u64;
    loop {
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                path = output_dir.join(format!("sweep_{utc_stamp}-{number}"));
                number += 1;
            }
            Err(source) => return Err(refuse(&path)(source)),
        }
    }
}

/// Writes a file atomically: a reader sees the old or the new content, also after a crash.
pub(crate) fn write(path: &Path, content: &str) -> Result<(), SweepError> {
    replace(path, content).map_err(|source| SweepError::Write {
        path: path.to_owned(),
        source,
    })
}

fn replace(path: &Path, content: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Restricted by the umask like any other file; by default the library creates files for
        // their owner alone.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(content.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
