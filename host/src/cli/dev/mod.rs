//! `veeksha-host dev`: simulates a scenario again at each change, and prints the difference.

mod cycle;
mod file_watcher;
mod print;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use veeksha_app::{CommandFailure, Control};
use veeksha_clock::RunClock;
use veeksha_dev::{CycleResults, Debounce, FileChange, WatchedInputs};
use veeksha_present::terminal;

use crate::cli::args::DevArgs;
use crate::interrupt::Interrupts;
use cycle::{Cycles, StepTimes, resolved};
use file_watcher::FileWatcher;

/// Maximum time until an interrupt is noticed.
const POLL: Duration = Duration::from_millis(100);

pub(super) fn dev(
    args: &DevArgs,
    overrides: &[(String, String)],
    interrupts: &Interrupts,
) -> Result<u8, CommandFailure> {
    let path = std::path::absolute(&args.scenario.scenario).map_err(CommandFailure::usage)?;
    let scenario = resolved(&path);
    let control = interrupts.watch();
    let mut watch = WatchMode {
        cycles: Cycles {
            args,
            overrides,
            control: &control,
            inputs: WatchedInputs {
                scenario_folder: scenario.parent().map(Path::to_owned).unwrap_or_default(),
                files: [scenario].into(),
                projects: BTreeSet::new(),
            },
            built: BTreeSet::new(),
        },
        last: None,
        versions: BTreeMap::new(),
    };
    if args.once {
        return watch.cycle();
    }
    // Before the first cycle, so that a change during it is not lost.
    let mut watcher = FileWatcher::new()?;
    watcher.watch(&watch.cycles.inputs);
    watch.cycle_or_report();
    watch.follow(&mut watcher, &control);
    Ok(veeksha_exit::DONE)
}

/// Length and time of the last write of a file; none if it does not exist.
type FileVersion = Option<(u64, SystemTime)>;

fn version(path: &Path) -> FileVersion {
    let facts = std::fs::metadata(path).ok()?;
    Some((facts.len(), facts.modified().ok()?))
}

struct WatchMode<'a> {
    cycles: Cycles<'a>,
    /// The results of the last successful cycle.
    last: Option<CycleResults>,
    /// The versions of the files that the last cycle read.
    versions: BTreeMap<PathBuf, FileVersion>,
}

impl WatchMode<'_> {
    /// Waits for changes and carries out a cycle after each, until the user interrupts.
    fn follow(&mut self, watcher: &mut FileWatcher, control: &Control) {
        let clock = RunClock::starting_now();
        let mut debounce = Debounce::default();
        while !control.is_stopped() {
            watcher.watch(&self.cycles.inputs);
            terminal::err("watching for changes (Ctrl-C to stop)");
            let changed = loop {
                if control.is_stopped() {
                    return;
                }
                let rest = debounce.remaining(clock.now()).map(Duration::from_nanos);
                if let Some(path) = watcher.next(rest.map_or(POLL, |rest| rest.min(POLL))) {
                    self.note(path, &mut debounce, clock.now());
                }
                if let Some(changed) = debounce.take(clock.now()) {
                    break changed;
                }
            };
            for path in &changed {
                self.versions.insert(path.clone(), version(path));
                if let Some(FileChange::Source(project)) = self.cycles.inputs.change(path) {
                    self.cycles.built.remove(&project);
                }
            }
            print::changed(&changed, &self.cycles.inputs.scenario_folder);
            self.cycle_or_report();
        }
    }

    /// Adds a change, unless it does not matter, or the last cycle read this version of the file or
    /// wrote it.
    fn note(&self, path: PathBuf, debounce: &mut Debounce, now: u64) {
        let is_new = || self.versions.get(&path) != Some(&version(&path));
        if self.cycles.inputs.change(&path).is_some() && is_new() {
            debounce.add(path, now);
        }
    }

    fn cycle_or_report(&mut self) {
        if let Err(failure) = self.cycle() {
            terminal::err(failure);
        }
    }

    /// Carries out a cycle and prints its results. Those of the last successful cycle remain the
    /// basis of the next difference if it fails.
    fn cycle(&mut self) -> Result<u8, CommandFailure> {
        let mut times = StepTimes::default();
        let before: Vec<_> = self
            .cycles
            .inputs
            .files
            .iter()
            .map(|file| (file.clone(), version(file)))
            .collect();
        self.versions.extend(before);
        let completed = self.cycles.run(&mut times);
        for file in &self.cycles.inputs.files {
            // A build of this cycle wrote the component; other files may have changed meanwhile.
            if file.extension().is_some_and(|ending| ending == "wasm") || !self.versions.contains_key(file) {
                self.versions.insert(file.clone(), version(file));
            }
        }
        let completed = completed?;
        match &self.last {
            None => print::first(&completed, &times),
            Some(last) => print::difference(&last.compare(&completed.results), &times),
        }
        self.last = Some(completed.results);
        Ok(completed.code)
    }
}
