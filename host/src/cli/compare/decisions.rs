//! Comparison of the decisions that agents made in two runs.

use std::path::{Path, PathBuf};

use veeksha_compare::DecisionDifferences;
use veeksha_decisions::{DecisionsError, DecisionsFile, DivergenceSummary, FILE, compare_files};
use veeksha_model::printable;
use veeksha_present::terminal;

/// Compares the runs of a candidate with those of the baseline, in their order. `None` if no pair
/// of runs has recorded decisions.
pub(super) fn differences(baseline: &[PathBuf], candidate: &[PathBuf]) -> Option<DecisionDifferences> {
    let mut all: Option<DivergenceSummary> = None;
    // A baseline of fewer runs is repeated.
    for (one, other) in baseline.iter().cycle().zip(candidate) {
        let (Some(one), Some(other)) = (open(one), open(other)) else {
            continue;
        };
        match compare_files(&one, &other) {
            Ok(summary) => all.get_or_insert_default().merge(summary),
            Err(error) => unreadable(FILE, &error),
        }
    }
    let summary = all?;
    Some(DecisionDifferences {
        lines: summary.lines(),
        json: summary.json(),
    })
}

/// Opens the decisions of a run, if it recorded any.
fn open(run: &Path) -> Option<DecisionsFile> {
    let path = run.join(FILE);
    if !path.exists() {
        return None;
    }
    let opened = DecisionsFile::open(&path);
    opened
        .map_err(|error| unreadable(&path.display().to_string(), &error))
        .ok()
}

fn unreadable(path: &str, error: &DecisionsError) {
    let note = format!("note: {path}: {error}; the decisions of its agents are not compared");
    terminal::err(printable(&note));
}
