//! A sweep: its runs, grouped by output folder, with their outcomes.

use std::fs;
use std::path::Path;

use veeksha_report::link_as_latest;
use veeksha_scenario::{Scenario, Setting};

use crate::config::CellConfig;
use crate::error::SweepError;
use crate::outcome::CellOutcome;
use crate::sweep_run::{SweepGroup, SweepRun};
use crate::{files, folder};

/// A sweep. Runs are identified by their index in the planned order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    cells: Vec<SweepRun>,
    groups: Vec<SweepGroup>,
}

impl Sweep {
    /// Plans the runs of these scenarios in order; each comes with the settings that distinguish
    /// it. Runs with the same `output_dir` share a folder and its files.
    pub fn plan<'s>(scenarios: impl IntoIterator<Item = (&'s Scenario, Vec<Setting>)>) -> Self {
        let mut sweep = Sweep {
            cells: Vec::new(),
            groups: Vec::new(),
        };
        for (scenario, settings) in scenarios {
            sweep.add(CellConfig::of(scenario), settings);
        }
        sweep
    }

    fn add(&mut self, config: CellConfig, settings: Vec<Setting>) {
        let known = |group: &SweepGroup| group.output_dir == config.output_dir;
        let group = self.groups.iter().position(known).unwrap_or_else(|| {
            self.groups.push(SweepGroup {
                output_dir: config.output_dir.clone(),
                folder: None,
            });
            self.groups.len() - 1
        });
        self.cells.push(SweepRun {
            run_index: self.cells.iter().filter(|cell| cell.group == group).count(),
            number: self.cells.len() + 1,
            settings,
            config,
            group,
            outcome: None,
        });
    }

    /// Returns the runs in the order of execution.
    pub fn cells(&self) -> &[SweepRun] {
        &self.cells
    }

    /// Returns the output folders.
    pub fn groups(&self) -> &[SweepGroup] {
        &self.groups
    }

    /// Creates the folder of each group, `<output_dir>/sweep_<utc_stamp>[-n]` (`utc_stamp` is
    /// `DD_MM_YYYY-HH_MM_SS`), points `<output_dir>/latest` at it, and writes its files, which list
    /// no run yet.
    ///
    /// # Errors
    /// Returns an error if a folder or file cannot be written, or `latest` is not a link.
    pub fn begin(&mut self, utc_stamp: &str) -> Result<(), SweepError> {
        for group in &mut self.groups {
            let folder = folder::create(&group.output_dir, utc_stamp)?;
            link_as_latest(&folder).inspect_err(|_| {
                // It is empty, and the sweep does not begin.
                let _ = fs::remove_dir(&folder);
            })?;
            group.folder = Some(folder);
        }
        (0..self.groups.len()).try_for_each(|group| self.write(group))
    }

    /// Returns the folder for a run's output, which replaces its scenario's `output_dir`.
    ///
    /// # Errors
    /// Returns an error if the run does not exist, or the sweep has not begun.
    pub fn run_folder(&self, index: usize) -> Result<&Path, SweepError> {
        let cell = self.cells.get(index).ok_or(SweepError::NoSuchCell {
            index,
            cells: self.cells.len(),
        })?;
        self.folder(cell.group)
    }

    /// Records a run's outcome and rewrites the files of its group.
    ///
    /// # Errors
    /// Returns an error if the run does not exist, the sweep has not begun, or a file cannot be
    /// written.
    pub fn record(&mut self, index: usize, outcome: CellOutcome) -> Result<(), SweepError> {
        let cells = self.cells.len();
        let Some(cell) = self.cells.get_mut(index) else {
            return Err(SweepError::NoSuchCell { index, cells });
        };
        cell.outcome = Some(outcome);
        let group = cell.group;
        self.write(group)
    }

    /// Returns the exit code of the sweep: 130 if a run was interrupted, else the first one that is
    /// not 0, else 0.
    pub fn exit_code(&self) -> u8 {
        let mut codes = self
            .cells
            .iter()
            .filter_map(|cell| cell.outcome.as_ref())
            .map(|outcome| outcome.exit_code)
            .filter(|code| *code != veeksha_exit::DONE);
        if codes.clone().any(|code| code == veeksha_exit::INTERRUPTED) {
            veeksha_exit::INTERRUPTED
        } else {
            codes.next().unwrap_or(veeksha_exit::DONE)
        }
    }

    /// Returns the runs of a group, in order.
    pub(crate) fn of_group(&self, group: usize) -> impl Iterator<Item = &SweepRun> {
        self.cells.iter().filter(move |cell| cell.group == group)
    }

    fn folder(&self, group: usize) -> Result<&Path, SweepError> {
        self.groups
            .get(group)
            .and_then(|group| group.folder.as_deref())
            .ok_or(SweepError::NotBegun)
    }

    fn write(&self, group: usize) -> Result<(), SweepError> {
        let folder = self.folder(group)?;
        let cells: Vec<&SweepRun> = self.of_group(group).collect();
        for (name, content) in files::all(folder, &cells)? {
            folder::write(&folder.join(name), &content)?;
        }
        Ok(())
    }
}
