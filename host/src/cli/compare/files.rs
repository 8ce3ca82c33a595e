//! Machine-readable outputs of a comparison and their destinations: standard output, or files that
//! are replaced atomically.

use std::path::{Path, PathBuf};

use crate::cli::args::CompareArgs;
use veeksha_app::CommandFailure;
use veeksha_present::terminal;

/// Returns true if one of the outputs replaces the table on standard output.
pub(super) fn take_output(args: &CompareArgs) -> bool {
    forms(args).iter().any(|(_, path)| path.is_some_and(is_output))
}

/// Writes one output to its destination, if it was requested.
///
/// # Errors
/// If it cannot be written. An existing file is then unchanged.
pub(super) fn write(
    path: Option<&Path>,
    text: impl FnOnce() -> Result<String, CommandFailure>,
) -> Result<(), CommandFailure> {
    match path {
        None => Ok(()),
        Some(path) if is_output(path) => {
            terminal::out(text()?.trim_end());
            Ok(())
        }
        Some(path) => veeksha_report::write_named(path, &text()?).map_err(CommandFailure::internal),
    }
}

/// Rejects two outputs with the same destination: the last one would overwrite the others, or be
/// mixed with them.
pub(super) fn check(args: &CompareArgs) -> Result<(), CommandFailure> {
    let mut printed: Vec<&str> = Vec::new();
    let mut taken: Vec<(&str, PathBuf)> = Vec::new();
    for (flag, path) in forms(args) {
        let Some(path) = path else { continue };
        if is_output(path) {
            printed.push(flag);
            continue;
        }
        let place = place(path);
        if let Some((other, _)) = taken.iter().find(|(_, known)| *known == place) {
            return Err(CommandFailure::usage(format!(
                "{other} and {flag} both name {}: each needs a separate file",
                super::path::shown(path)
            )));
        }
        taken.push((flag, place));
    }
    let second = match printed.get(1) {
        Some(second) => Some(format!("{second} -")),
        None => args.github.then(|| "--github".to_owned()),
    };
    match (printed.first(), second) {
        (Some(first), Some(second)) => Err(CommandFailure::usage(format!(
            "{first} - and {second} both write to standard output"
        ))
        .hinted(format!("{first} FILE writes the comparison to a file"))),
        _ => Ok(()),
    }
}

/// Returns each output by its flag, with its destination.
fn forms(args: &CompareArgs) -> [(&'static str, Option<&Path>); 3] {
    [
        ("--json", args.json.as_deref()),
        ("--html", args.html.as_deref()),
        ("--junit", args.junit.as_deref()),
    ]
}

fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns the canonical path of the file. For a file that does not exist yet, this is its name in
/// the canonical folder.
fn place(path: &Path) -> PathBuf {
    let found = path.canonicalize().or_else(|_| {
        let absolute = std::path::absolute(path)?;
        let folder = absolute.parent().unwrap_or(Path::new("/")).canonicalize()?;
        Ok::<_, std::io::Error>(folder.join(absolute.file_name().unwrap_or_default()))
    });
    found.unwrap_or_else(|_| path.to_owned())
}
