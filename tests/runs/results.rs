//! Reading of the files of a run.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the newest run below an output folder.
pub(crate) fn latest(output_dir: &Path) -> PathBuf {
    output_dir
        .join("latest")
        .canonicalize()
        .expect("a link to the latest run")
}

/// Reads a JSON file of a run. The parser is strict: it rejects `NaN` and `Infinity` outside of
/// strings.
pub(crate) fn json(run: &Path, file: &str) -> Value {
    let text = std::fs::read_to_string(run.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Reads a JSON-lines file of a run.
pub(crate) fn lines(run: &Path, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "{file} ends in the middle of a line"
    );
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object on each line"))
        .collect()
}
