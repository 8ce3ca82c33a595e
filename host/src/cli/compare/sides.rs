//! Runs in the folders of the command line: a single run, repeats of a run, or the cells of a
//! sweep.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use veeksha_compare::Remark;
use veeksha_model::printable;

use veeksha_app::CommandFailure;
use veeksha_app::RecordedRun;
use veeksha_app::secrets::is_redacted;
use veeksha_app::sweep_manifest::{self, SweptRun, is_run, is_sweep};

/// A cell of a sweep, or the whole comparison, with the folders of the runs of each side.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ComparedCell {
    /// `arrival_rate = 2`; `None` if the sides are not sweeps.
    pub(super) name: Option<String>,
    /// Keys of its settings whose values are redacted.
    pub(super) redacted: Vec<String>,
    /// Sides in the order of the command line.
    pub(super) sides: Vec<Folders>,
}

/// A side with its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folders {
    pub(super) label: String,
    pub(super) runs: Vec<PathBuf>,
}

impl ComparedCell {
    /// Returns the remark on settings whose values are redacted, if there are any.
    pub(super) fn redaction_remark(&self) -> Option<Remark> {
        (!self.redacted.is_empty()).then(|| Remark::RedactedSettings(self.redacted.clone()))
    }
}

/// Content of a folder.
enum Holds {
    Runs(Vec<PathBuf>),
    Sweep(Vec<SweptRun>),
}

/// Returns the cells of the folders.
///
/// # Errors
/// If a folder has no run, or if only some of the folders are sweeps.
pub(super) fn cells(paths: &[PathBuf]) -> Result<Vec<ComparedCell>, CommandFailure> {
    let labels = labels(paths);
    let mut runs = Vec::new();
    let mut sweeps = Vec::new();
    for (path, label) in paths.iter().zip(&labels) {
        match holds(path)? {
            Holds::Runs(found) => runs.push(Folders {
                label: label.clone(),
                runs: found,
            }),
            Holds::Sweep(found) => sweeps.push((path, label, found)),
        }
    }
    if sweeps.is_empty() {
        return Ok(vec![ComparedCell {
            name: None,
            redacted: Vec::new(),
            sides: runs,
        }]);
    }
    if let (Some(run), Some((path, _, swept))) = (runs.first(), sweeps.first()) {
        return Err(mixed(path, swept, &run.label));
    }
    Ok(paired(&labels, &sweeps))
}

/// Returns the cells of all sweeps, in the order of their first occurrence.
fn paired(labels: &[String], sweeps: &[(&PathBuf, &String, Vec<SweptRun>)]) -> Vec<ComparedCell> {
    let all = || sweeps.iter().flat_map(|(_, _, runs)| runs);
    let keys: BTreeSet<&str> = all()
        .flat_map(|run| run.settings.iter().map(|(key, _)| key.as_str()))
        .collect();
    let mut seen: Vec<&Vec<(String, String)>> = Vec::new();
    for run in all() {
        if !seen.contains(&&run.settings) {
            seen.push(&run.settings);
        }
    }
    let of_cell = |settings: &Vec<(String, String)>| ComparedCell {
        name: Some(name_of(settings, &keys)),
        redacted: settings
            .iter()
            .filter(|(_, value)| is_redacted(value))
            .map(|(key, _)| short(key, &keys).to_owned())
            .collect(),
        sides: labels
            .iter()
            .zip(sweeps)
            .map(|(label, (_, _, runs))| Folders {
                label: label.clone(),
                runs: runs
                    .iter()
                    .filter(|run| run.settings == *settings)
                    .filter_map(|run| run.folder.clone())
                    .collect(),
            })
            .collect(),
    };
    seen.into_iter().map(of_cell).collect()
}

/// Formats `arrival_rate = 2, seed = 7`, with each key shortened to a unique suffix of its path.
fn name_of(settings: &[(String, String)], keys: &BTreeSet<&str>) -> String {
    let texts = texts(settings, |key| short(key, keys));
    if texts.is_empty() {
        "the only cell".to_owned()
    } else {
        texts.join(", ")
    }
}

fn texts<'a>(settings: &'a [(String, String)], called: impl Fn(&'a str) -> &'a str) -> Vec<String> {
    settings
        .iter()
        .map(|(key, value)| format!("{} = {value}", called(key)))
        .collect()
}

/// Returns the shortest suffix of a path that no other path has. A generic suffix (`value`) is
/// extended by the preceding key.
fn short<'a>(key: &'a str, keys: &BTreeSet<&str>) -> &'a str {
    let starts = key.rmatch_indices('.').map(|(at, _)| at + 1).chain([0]);
    let mut ends = starts.map(|start| &key[start..]);
    let is_distinctive = |end: &&str| {
        let is_unique = keys
            .iter()
            .filter(|other| **other == *end || other.ends_with(&format!(".{end}")))
            .count()
            <= 1;
        is_unique && !["value", "type", "min", "max"].contains(end)
    };
    ends.find(is_distinctive).unwrap_or(key)
}

fn mixed(path: &Path, swept: &[SweptRun], other: &str) -> CommandFailure {
    let folders = sweep_manifest::lines(swept);
    CommandFailure::usage(format!(
        "{} is a sweep, but {} is not: the cells of a sweep are not repeats of one another",
        super::path::shown(path),
        printable(other)
    ))
    .hinted(format!(
        "compare it with another sweep, or choose one of its {}:\n{}",
        veeksha_stats::counted(folders.len() as u64, "run"),
        folders.join("\n")
    ))
}

/// Returns a label for each folder. Folders with equal names are distinguished by their paths.
fn labels(paths: &[PathBuf]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (place, path) in paths.iter().enumerate() {
        let name = label(path);
        let is_taken = paths[..place].iter().any(|before| label(before) == name);
        labels.push(if is_taken {
            format!("{name} ({})", place + 1)
        } else {
            name
        });
    }
    labels
}

/// Returns the name of a folder; for a link, that of its target.
pub(super) fn label(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn holds(path: &Path) -> Result<Holds, CommandFailure> {
    if is_run(path) {
        return Ok(Holds::Runs(vec![path.to_owned()]));
    }
    if is_sweep(path) {
        return swept_runs(path).map(Holds::Sweep);
    }
    let (runs, sweeps) = (within(path, is_run), within(path, is_sweep));
    match (runs.is_empty(), sweeps.is_empty()) {
        (false, true) => Ok(Holds::Runs(runs)),
        // Repeats of a sweep: each cell has several runs.
        (true, false) => {
            let mut all = Vec::new();
            for sweep in &sweeps {
                all.extend(swept_runs(sweep)?);
            }
            Ok(Holds::Sweep(all))
        }
        (false, false) => Err(CommandFailure::usage(format!(
            "{} contains both runs and sweeps: the folder of a side may contain only one kind",
            super::path::shown(path)
        ))
        .hinted("name the folder of a run or of a sweep")),
        (true, true) => {
            // Opening the folder reports what is missing.
            RecordedRun::open(path, true)?;
            Ok(Holds::Runs(vec![path.to_owned()]))
        }
    }
}

/// Returns the runs of a sweep, as listed in its manifest.
///
/// # Errors
/// If runs differ only in redacted values: they would be pooled as repeats of one cell.
fn swept_runs(sweep: &Path) -> Result<Vec<SweptRun>, CommandFailure> {
    let runs = sweep_manifest::runs(sweep)?;
    let is_ambiguous = |(place, run): &(usize, &SweptRun)| {
        let is_secret = run.settings.iter().any(|(_, value)| is_redacted(value));
        is_secret
            && runs[..*place]
                .iter()
                .any(|before| before.settings == run.settings)
    };
    let Some((_, run)) = runs.iter().enumerate().find(is_ambiguous) else {
        return Ok(runs);
    };
    Err(CommandFailure::usage(format!(
        "{} has several runs with {}: their redacted values (`***`) may differ, so they cannot be matched",
        super::path::shown(sweep),
        printable(&texts(&run.settings, |key| key).join(", "))
    ))
    .hinted(format!(
        "compare its runs individually:\n{}",
        sweep_manifest::lines(&runs).join("\n")
    )))
}

/// Returns the matching folders within a folder, each only once: a link to one of the others
/// (`latest`) is not counted separately.
fn within(path: &Path, is_meant: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| is_meant(path))
        .collect();
    found.sort_by_key(|path| (path.is_symlink(), path.clone()));
    let mut real = BTreeSet::new();
    found.retain(|path| real.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shortened_to_unique_suffixes() {
        let keys = BTreeSet::from(["seed", "a.length.value", "b.length.value", "traffic.arrival_rate"]);
        for (key, expected) in [
            ("seed", "seed"),
            ("traffic.arrival_rate", "arrival_rate"),
            ("a.length.value", "a.length.value"),
        ] {
            assert_eq!(short(key, &keys), expected);
        }
        assert_eq!(
            short("x.body.value", &BTreeSet::from(["x.body.value"])),
            "body.value"
        );
    }

    fn folder_with_run(root: &Path, name: &str) -> PathBuf {
        let run = root.join(name);
        std::fs::create_dir_all(run.join("record")).unwrap();
        run
    }

    #[cfg(unix)]
    #[test]
    fn links_are_runs_and_a_linked_run_counts_once() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = folder_with_run(root.path(), "elsewhere/b");
        let side = root.path().join("side");
        let own = folder_with_run(&side, "a");
        std::os::unix::fs::symlink(&own, side.join("latest")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, side.join("linked")).unwrap();
        let Ok(Holds::Runs(runs)) = holds(&side) else {
            panic!("no runs");
        };
        assert_eq!(runs, [own, side.join("linked")]);
    }
}
