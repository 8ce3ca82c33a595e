//! Interrupts: a run that is in progress stops and keeps its results; every other command ends
//! immediately and removes incomplete output.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use veeksha_clock::RunClock;
use veeksha_pipeline::Control;

use veeksha_app::CommandFailure;
use veeksha_present::terminal;

/// Interval within which signals count as one: programs such as `timeout` signal the process and
/// its group.
const SAME_SIGNAL_NANOS: u64 = 300_000_000;

/// Current activity of the process, shared with the signal thread.
#[derive(Clone, Default)]
pub(crate) struct Interrupts {
    current: Arc<Mutex<CurrentActivity>>,
}

#[derive(Default)]
struct CurrentActivity {
    activity: Activity,
    interrupted: bool,
}

/// Activity that a signal interrupts.
#[derive(Default)]
enum Activity {
    /// Reading, validating or computing, which leaves no files.
    #[default]
    Nothing,
    /// A run, which can be stopped.
    Run(Control),
    /// Watching files, which an interrupt ends as intended.
    Watching(Control),
    /// A file or folder that is useless until it is complete.
    Unfinished(Unfinished),
}

impl Interrupts {
    /// Listens for SIGINT, SIGTERM, SIGHUP and SIGXFSZ on a separate thread, for the life of the
    /// process.
    pub(crate) fn listen() -> Result<Interrupts, CommandFailure> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGXFSZ])
            .map_err(|error| CommandFailure::internal(format!("cannot listen for signals: {error}")))?;
        let interrupts = Interrupts::default();
        let shared = interrupts.clone();
        let listen = move || {
            let clock = RunClock::starting_now();
            let mut first = None;
            // With a handler for SIGXFSZ, a write beyond the file size limit fails like one to a
            // full disk.
            let signals = signals.forever().filter(|signal| *signal != SIGXFSZ);
            for _ in signals {
                let now = clock.now();
                let begun = *first.get_or_insert(now);
                if now != begun && now - begun < SAME_SIGNAL_NANOS {
                    continue;
                }
                if now != begun {
                    terminal::err("\nstopped immediately; the results may be incomplete");
                    end();
                }
                shared.interrupt();
            }
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(listen);
        thread
            .map(|_| interrupts)
            .map_err(|error| CommandFailure::internal(format!("cannot start the signal thread: {error}")))
    }

    /// Returns the control of the next run. It is already stopped if the user interrupted the
    /// process.
    pub(crate) fn next_run(&self) -> Control {
        let control = Control::default();
        let mut current = self.lock();
        if current.interrupted {
            control.stop();
        }
        current.activity = Activity::Run(control.clone());
        control
    }

    /// Returns the control of a command that watches files until the user interrupts it.
    pub(crate) fn watch(&self) -> Control {
        let control = Control::default();
        self.lock().activity = Activity::Watching(control.clone());
        control
    }

    /// Registers the unfinished file or folder at `path`. It is removed if the command ends before
    /// it is complete, by a signal or by a failure; so are the folders `above` it, if they are
    /// empty.
    pub(crate) fn unfinished(&self, path: &Path, above: Vec<PathBuf>) -> Finishing {
        self.lock().activity = Activity::Unfinished(Unfinished {
            path: path.to_owned(),
            above,
        });
        Finishing {
            interrupts: self.clone(),
        }
    }

    /// Returns true if the user interrupted the process.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.lock().interrupted
    }

    fn lock(&self) -> MutexGuard<'_, CurrentActivity> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles the first signal.
    fn interrupt(&self) {
        // Held until the process ends, so that nothing is completed during its removal.
        let mut current = self.lock();
        current.interrupted = true;
        match &current.activity {
            Activity::Run(control) => {
                terminal::err(
                    "\nstopping: requests in flight are cancelled, results are kept (interrupt again to stop immediately)",
                );
                control.stop();
            }
            Activity::Watching(control) => control.stop(),
            Activity::Nothing => {
                terminal::err("\ninterrupted before there were results: nothing was written");
                end();
            }
            Activity::Unfinished(unfinished) => {
                unfinished.remove();
                terminal::err(format!(
                    "\ninterrupted before the results were complete: {} was removed",
                    unfinished.path.display()
                ));
                end();
            }
        }
    }
}

fn end() -> ! {
    std::process::exit(i32::from(veeksha_exit::INTERRUPTED))
}

/// Returns the folders above `path` that do not exist yet, the deepest first.
pub(crate) fn missing_above(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    above
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .map(Path::to_owned)
        .collect()
}

/// A file or folder that is not complete yet.
struct Unfinished {
    path: PathBuf,
    /// Folders that were made for it, the deepest first.
    above: Vec<PathBuf>,
}

impl Unfinished {
    /// Removes it as far as possible. Errors are ignored, because the command reports why it ends.
    fn remove(&self) {
        // Another thread may still be writing into it.
        for _ in 0..3 {
            let removed = if self.path.is_dir() {
                std::fs::remove_dir_all(&self.path)
            } else {
                std::fs::remove_file(&self.path)
            };
            if removed.is_ok() || !self.path.exists() {
                break;
            }
        }
        for folder in &self.above {
            // A folder with other content stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// An unfinished file or folder: removed when this is dropped, unless it was kept.
pub(crate) struct Finishing {
    interrupts: Interrupts,
}

impl Finishing {
    /// Keeps it. `last` is the step that completes it; after it nothing is removed.
    pub(crate) fn keep<T, E>(self, last: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut current = self.interrupts.lock();
        let done = last()?;
        current.activity = Activity::Nothing;
        Ok(done)
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.interrupts.lock().activity);
        if let Activity::Unfinished(unfinished) = left {
            unfinished.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_stops_the_runs_that_follow() {
        let interrupts = Interrupts::default();
        let first = interrupts.next_run();
        assert!(!first.is_stopped() && !interrupts.is_interrupted());
        interrupts.interrupt();
        assert!(first.is_stopped() && interrupts.is_interrupted());
        assert!(interrupts.next_run().is_stopped());
    }

    #[test]
    fn removes_unfinished_folders_and_keeps_existing_ones() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("a/b/c");
        let make = || {
            let above = missing_above(&made);
            std::fs::create_dir_all(&made).unwrap();
            std::fs::write(made.join("file"), "x").unwrap();
            Interrupts::default().unfinished(&made, above)
        };
        drop(make());
        assert!(!folder.path().join("a").exists() && folder.path().exists());
        let failed: Result<(), &str> = make().keep(|| Err("no"));
        assert!(failed.is_err() && !made.exists());
        let kept: Result<(), &str> = make().keep(|| Ok(()));
        assert!(kept.is_ok() && made.join("file").exists());
    }
}
