//! The files that a comparison is written to: each is whole or as it was.

use std::path::{Path, PathBuf};

use crate::cli::args::CompareArgs;
use crate::failure::Failure;

/// Writes one.
///
/// # Errors
/// If it cannot be written; what was there stays.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    veeksha_report::write_named(path, text).map_err(Failure::internal)
}

/// Refuses to write two of them to one place: the last would take the place of the others.
pub(super) fn check(args: &CompareArgs) -> Result<(), Failure> {
    let printed = Path::new("-");
    let files = [
        ("--json", args.json.as_deref().filter(|path| *path != printed)),
        ("--html", args.html.as_deref()),
        ("--junit", args.junit.as_deref()),
    ];
    let mut taken: Vec<(&str, PathBuf)> = Vec::new();
    for (flag, path) in files {
        let Some(path) = path else { continue };
        let place = place(path);
        if let Some((other, _)) = taken.iter().find(|(_, known)| *known == place) {
            return Err(Failure::usage(format!(
                "{other} and {flag} both name {}: each needs a file of its own",
                super::shown(path)
            )));
        }
        taken.push((flag, place));
    }
    Ok(())
}

/// The file behind a path, however it is written; of a file that is not there yet, its name in the folder behind the path's.
fn place(path: &Path) -> PathBuf {
    let found = path.canonicalize().or_else(|_| {
        let absolute = std::path::absolute(path)?;
        let folder = absolute.parent().unwrap_or(Path::new("/")).canonicalize()?;
        Ok::<_, std::io::Error>(folder.join(absolute.file_name().unwrap_or_default()))
    });
    found.unwrap_or_else(|_| path.to_owned())
}
