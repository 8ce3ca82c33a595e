//! Paths in messages.

use std::path::Path;

use veeksha_model::printable;

/// Formats a path for a line of text, without characters that would control the terminal.
pub(super) fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}
