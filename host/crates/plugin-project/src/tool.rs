//! Programs of the languages: finding, asking and running them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::error::ProjectError;

/// Returns the program of this name on the search path.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| is_program(program))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Returns the output of a program, without blanks at its ends; none if it cannot be run or fails.
pub(crate) fn ask(program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a program whose messages go to standard error. Its standard output is returned.
///
/// # Errors
/// If it cannot be started, or ends with a failure.
pub(crate) fn run(tool: &str, command: &mut Command) -> Result<Vec<u8>, ProjectError> {
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| ProjectError::Tool {
            tool: tool.to_owned(),
            why: error.to_string(),
        })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(ProjectError::Failed {
        tool: tool.to_owned(),
        end: end_of(output.status),
    })
}

/// Runs a step of an installation. Its last message is the reason of a failure.
pub(crate) fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let messages = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let last = messages.iter().rev().find_map(|text| text.trim().lines().last());
    Err(last.unwrap_or("failed without a message").to_owned())
}

/// Installs tools in a folder of the cache, unless `is_installed` finds them there. The folder
/// appears as a whole, so that builds at the same time do not use one that is half installed.
pub(crate) fn install_once(
    folder: &Path,
    is_installed: impl Fn(&Path) -> bool,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    if is_installed(folder) {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    let temporary = tempfile::tempdir_in(parent).map_err(|error| error.to_string())?;
    let draft = temporary.path().join("tools");
    install(&draft)?;
    match std::fs::rename(&draft, folder) {
        // Another build was faster.
        Err(_) if is_installed(folder) => Ok(()),
        renamed => renamed.map_err(|error| error.to_string()),
    }
}

/// Makes a folder with its parents.
pub(crate) fn make_folder(path: &Path) -> Result<(), ProjectError> {
    std::fs::create_dir_all(path).map_err(|error| unwritable(path, &error))
}

/// Returns the error of a file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> ProjectError {
    ProjectError::Unwritable {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

/// Returns how a program ended: `failed with exit status 1`.
pub(crate) fn end_of(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("failed with exit status {code}"),
        None => "was ended by a signal".to_owned(),
    }
}

/// Returns an environment variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(PathBuf::from(value))
}

/// Returns the user's cache folder of this program; none without a home folder.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
    Some(cache.join("veeksha-host"))
}
