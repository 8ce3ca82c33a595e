//! The runs of a sweep, and their groups by output folder.

use std::path::PathBuf;

use veeksha_scenario::Setting;

use crate::config::CellConfig;
use crate::outcome::CellOutcome;

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRun {
    /// Settings that distinguish it from the other runs.
    pub settings: Vec<Setting>,
    /// Settings of its scenario for the summary.
    pub config: CellConfig,
    /// Index of its group.
    pub group: usize,
    /// Number within the group, from 0: Veeksha's `run_index`.
    pub run_index: usize,
    /// Number within the sweep, from 1: `run`.
    pub number: usize,
    /// Outcome, once it has finished.
    pub outcome: Option<CellOutcome>,
}

/// Runs of a sweep with the same output folder.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepGroup {
    /// `output_dir` of its scenarios.
    pub output_dir: PathBuf,
    /// Folder of the sweep in it, once it has been created.
    pub folder: Option<PathBuf>,
}

/// Returns the paths of all settings of some runs, in order of first appearance.
pub(crate) fn setting_paths<'c>(cells: impl IntoIterator<Item = &'c SweepRun>) -> Vec<&'c str> {
    let mut paths: Vec<&str> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for cell in cells {
        for setting in &cell.settings {
            if known.insert(setting.path.as_str()) {
                paths.push(&setting.path);
            }
        }
    }
    paths
}
