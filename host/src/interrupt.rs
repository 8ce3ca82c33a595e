//! Ctrl-C: a run that is going on is asked to stop and keeps its results; what else a command does ends at once, and leaves nothing half done.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use veeksha_clock::RunClock;
use veeksha_pipeline::Control;

use veeksha_app::Failure;
use veeksha_present::terminal;

/// Programs such as `timeout` signal the process and its group: what comes this soon is the same wish.
const SAME_WISH_NANOS: u64 = 300_000_000;

/// What a signal meets, shared by all who start something.
#[derive(Clone, Default)]
pub(crate) struct Interrupts {
    current: Arc<Mutex<Current>>,
}

#[derive(Default)]
struct Current {
    under_way: UnderWay,
    interrupted: bool,
}

/// What is under way.
#[derive(Default)]
enum UnderWay {
    /// Something that leaves nothing behind: reading, checking, computing.
    #[default]
    Nothing,
    /// A run, which can be asked to stop.
    Run(Control),
    /// A file or folder that is worth nothing before it is whole.
    Unfinished(Unfinished),
}

impl Interrupts {
    /// Listens for SIGINT, SIGTERM, SIGHUP and SIGXFSZ on a thread of its own, for the life of the process.
    pub(crate) fn listen() -> Result<Interrupts, Failure> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGXFSZ])
            .map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))?;
        let interrupts = Interrupts::default();
        let shared = interrupts.clone();
        let listen = move || {
            let clock = RunClock::starting_now();
            let mut first = None;
            // A write beyond the limit on the size of files then fails as one to a full disk does.
            let wishes = signals.forever().filter(|signal| *signal != SIGXFSZ);
            for _ in wishes {
                let now = clock.now();
                let begun = *first.get_or_insert(now);
                if now != begun && now - begun < SAME_WISH_NANOS {
                    continue;
                }
                if now != begun {
                    terminal::err("\nstopped at once; the results may be incomplete");
                    end();
                }
                shared.interrupt();
            }
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(listen);
        thread
            .map(|_| interrupts)
            .map_err(|error| Failure::internal(format!("cannot start the signal thread: {error}")))
    }

    /// The control of the next run; stopped already if the user has asked for that.
    pub(crate) fn next_run(&self) -> Control {
        let control = Control::default();
        let mut current = self.lock();
        if current.interrupted {
            control.stop();
        }
        current.under_way = UnderWay::Run(control.clone());
        control
    }

    /// What is being made at `path` is removed if the command ends before it is whole, by a signal or by a failure; and so are the folders
    /// `above` it, if nothing else is in them.
    pub(crate) fn unfinished(&self, path: &Path, above: Vec<PathBuf>) -> Finishing {
        self.lock().under_way = UnderWay::Unfinished(Unfinished {
            path: path.to_owned(),
            above,
        });
        Finishing {
            interrupts: self.clone(),
        }
    }

    /// Whether the user has asked to stop.
    pub(crate) fn happened(&self) -> bool {
        self.lock().interrupted
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first wish of the user.
    fn interrupt(&self) {
        // Held to the end of the process, so that nothing is finished while it is removed.
        let mut current = self.lock();
        current.interrupted = true;
        match &current.under_way {
            UnderWay::Run(control) => {
                terminal::err(
                    "\nstopping: requests in flight are given up, results are kept (again to stop at once)",
                );
                control.stop();
            }
            UnderWay::Nothing => {
                terminal::err("\ninterrupted before there were results: nothing is written");
                end();
            }
            UnderWay::Unfinished(unfinished) => {
                unfinished.remove();
                terminal::err(format!(
                    "\ninterrupted before the results were complete: {} is removed",
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

/// The folders above `path` that are not there yet, the deepest first.
pub(crate) fn missing_above(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    above
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .map(Path::to_owned)
        .collect()
}

/// A file or folder in the making.
struct Unfinished {
    path: PathBuf,
    /// Folders that were made for it, the deepest first.
    above: Vec<PathBuf>,
}

impl Unfinished {
    /// As far as it can be removed: it is told elsewhere why the command ends.
    fn remove(&self) {
        // Another thread may be writing into it for the last time.
        for _ in 0..3 {
            let removed = match self.path.is_dir() {
                true => std::fs::remove_dir_all(&self.path),
                false => std::fs::remove_file(&self.path),
            };
            if removed.is_ok() || !self.path.exists() {
                break;
            }
        }
        for folder in &self.above {
            // One in which there is something else stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Something in the making: removed when this is dropped, unless it was kept.
pub(crate) struct Finishing {
    interrupts: Interrupts,
}

impl Finishing {
    /// It is whole. `last` is the step that makes it so; after it, nothing is removed any more.
    pub(crate) fn keep<T, E>(self, last: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut current = self.interrupts.lock();
        let done = last()?;
        current.under_way = UnderWay::Nothing;
        Ok(done)
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.interrupts.lock().under_way);
        if let UnderWay::Unfinished(unfinished) = left {
            unfinished.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_to_stop_holds_for_the_runs_that_follow() {
        let interrupts = Interrupts::default();
        let first = interrupts.next_run();
        assert!(!first.is_stopped() && !interrupts.happened());
        interrupts.interrupt();
        assert!(first.is_stopped() && interrupts.happened());
        assert!(interrupts.next_run().is_stopped());
    }

    #[test]
    fn what_was_not_finished_is_gone_and_what_was_there_before_is_not() {
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
