//! Notifications about changed files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use veeksha_app::CommandFailure;
use veeksha_dev::{WatchedInputs, is_source_folder};

/// Watches folders, and passes on the paths of changed files.
pub(super) struct FileWatcher {
    watcher: RecommendedWatcher,
    changed: Receiver<PathBuf>,
    watched: BTreeSet<PathBuf>,
}

impl FileWatcher {
    /// Creates a watcher of nothing.
    ///
    /// # Errors
    /// If the system has no further watcher for this user.
    pub(super) fn new() -> Result<Self, CommandFailure> {
        let (sender, changed) = unbounded();
        let watcher = notify::recommended_watcher(move |event| pass_on(event, &sender));
        let watcher = watcher.map_err(|error| {
            CommandFailure::internal(format!("cannot watch files: {error}"))
                .hinted("end other programs that watch files, or raise fs.inotify.max_user_instances")
        })?;
        Ok(FileWatcher {
            watcher,
            changed,
            watched: BTreeSet::new(),
        })
    }

    /// Watches the folders of all inputs in addition to the watched ones. A folder that does not
    /// exist is left out until the next call.
    pub(super) fn watch(&mut self, inputs: &WatchedInputs) {
        let sources = inputs.projects.iter().flat_map(|project| source_folders(project));
        let folders = inputs.folders().into_iter().chain(sources);
        for folder in folders {
            // One folder at a time: a recursive watch would include `target` and `.git`.
            if !self.watched.contains(&folder)
                && self.watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok()
            {
                self.watched.insert(folder);
            }
        }
    }

    /// Returns the path of a changed file; none if there is none within `wait`.
    pub(super) fn next(&self, wait: Duration) -> Option<PathBuf> {
        self.changed.recv_timeout(wait).ok()
    }
}

fn pass_on(event: notify::Result<notify::Event>, sender: &Sender<PathBuf>) {
    let Ok(event) = event else { return };
    let is_change = match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    };
    if is_change {
        for path in event.paths {
            // The receiver is dropped only at the end of the program.
            let _ = sender.send(path);
        }
    }
}

/// Returns the folders below a project that can contain sources.
fn source_folders(project: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![project.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| is_source_folder(&entry.file_name().to_string_lossy()));
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        found.extend(below.iter().cloned());
        open.extend(below);
    }
    found
}
