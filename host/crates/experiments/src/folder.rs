//! The folder of a sweep, and files that appear whole.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::SweepError;

/// Makes `<output_dir>/sweep_<stamp>[-n]`. Making a folder that must not exist is atomic, so no two sweeps share one.
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

/// Writes a file. A reader sees the old content or the whole new one, also after a crash.
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
        // What the umask leaves of it, as for any other file; on its own the library makes files for their owner alone.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(content.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
