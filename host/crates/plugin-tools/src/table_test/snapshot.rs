//! Snapshots: results of tests in files.

use std::path::{Path, PathBuf};

use veeksha_app::CommandFailure;

use super::diff::diff;
use super::outcome::TestProblem;

/// The folder of snapshots below that of the tests.
const FOLDER: &str = "snapshots";

/// Returns the file of a test's snapshot.
fn path(tests: &Path, name: &str) -> PathBuf {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let letters: String = name.chars().map(letter).collect();
    let words: Vec<&str> = letters.split('-').filter(|word| !word.is_empty()).collect();
    tests.join(FOLDER).join(format!("{}.json", words.join("-")))
}

/// Compares a result with its snapshot. With `update`, writes a snapshot that is missing or
/// differs, and returns true.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn compare(
    tests: &Path,
    name: &str,
    result: &str,
    update: bool,
) -> Result<(Option<TestProblem>, bool), CommandFailure> {
    let path = path(tests, name);
    let kept = std::fs::read_to_string(&path).ok();
    if kept.as_deref().map(str::trim_end) == Some(result.trim_end()) {
        return Ok((None, false));
    }
    if update {
        let write = || {
            std::fs::create_dir_all(tests.join(FOLDER))?;
            std::fs::write(&path, format!("{}\n", result.trim_end()))
        };
        write().map_err(|error: std::io::Error| {
            CommandFailure::internal(format!("cannot write {}: {error}", path.display()))
        })?;
        return Ok((None, true));
    }
    Ok((
        Some(match kept {
            Some(kept) => TestProblem::Snapshot(diff(&kept, result)),
            None => TestProblem::NoSnapshot(path.display().to_string()),
        }),
        false,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_written_compared_and_updated() {
        let folder = tempfile::tempdir().unwrap();
        let compare = |result: &str, update| compare(folder.path(), "Two sessions!", result, update).unwrap();
        assert!(matches!(
            compare("{}", false),
            (Some(TestProblem::NoSnapshot(_)), false)
        ));
        assert_eq!(compare("{}", true), (None, true));
        assert_eq!(compare("{}\n", false), (None, false));
        assert_eq!(
            compare("[]", false),
            (Some(TestProblem::Snapshot("- {}\n+ []".to_owned())), false)
        );
        let file = folder.path().join("snapshots/two-sessions.json");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "{}\n");
    }
}
