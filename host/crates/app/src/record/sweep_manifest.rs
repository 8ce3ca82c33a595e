//! Manifest of a sweep folder: its runs and their settings.

use std::path::{Path, PathBuf};

use serde_json::Value;
use veeksha_model::printable;

use crate::failure::CommandFailure;

/// File with the runs of a sweep.
const MANIFEST: &str = "sweep_manifest.json";
/// Maximum number of runs in a message.
const NAMED: usize = 3;

/// A run of a sweep.
pub struct SweptRun {
    /// Swept keys with their values, in the order of the keys.
    pub settings: Vec<(String, String)>,
    /// Folder of the run; `None` if the run did not take place or its folder is missing.
    pub folder: Option<PathBuf>,
}

/// Returns true if a folder is that of a run.
pub fn is_run(path: &Path) -> bool {
    path.join("record").is_dir()
}

/// Returns true if a folder is that of a sweep.
pub fn is_sweep(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// Returns the runs of a sweep. Their folders are in the sweep's folder, even if it was moved.
pub fn runs(sweep: &Path) -> Result<Vec<SweptRun>, CommandFailure> {
    let path = sweep.join(MANIFEST);
    let error = |why: String| CommandFailure::usage(format!("{}: {why}", shown(&path)));
    let text = std::fs::read_to_string(&path).map_err(|cause| error(cause.to_string()))?;
    let manifest: Value = serde_json::from_str(&text).map_err(|cause| error(cause.to_string()))?;
    let runs = manifest.get("runs").and_then(Value::as_array);
    let runs = runs.ok_or_else(|| error("`runs` is not a list".to_owned()))?;
    let folder = |run: &Value| {
        let name = Path::new(run.get("run_dir")?.as_str()?).file_name()?;
        Some(sweep.join(name)).filter(|folder| is_run(folder))
    };
    let settings = |run: &Value| -> Vec<(String, String)> {
        let settings = run.get("settings").and_then(Value::as_object);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        settings
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), text(value)))
            .collect()
    };
    Ok(runs
        .iter()
        .map(|run| SweptRun {
            settings: settings(run),
            folder: folder(run),
        })
        .collect())
}

/// Returns one line for each existing run: its folder and its settings.
pub fn lines(runs: &[SweptRun]) -> Vec<String> {
    let line = |run: &SweptRun| {
        let settings = run.settings.iter();
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key} = {value}")).collect();
        let folder = shown(run.folder.as_ref()?);
        Some(if settings.is_empty() {
            format!("  {folder}")
        } else {
            format!("  {folder}  ({})", printable(&settings.join(", ")))
        })
    };
    runs.iter().filter_map(line).collect()
}

/// Creates the failure of a command that needs one run and was given a sweep.
pub fn not_a_run(sweep: &Path) -> CommandFailure {
    let refused = CommandFailure::usage(format!(
        "{} is a sweep, but this command needs one run",
        shown(sweep)
    ));
    let runs = match runs(sweep) {
        Ok(runs) => lines(&runs),
        Err(failure) => return refused.hinted(failure.message),
    };
    if runs.is_empty() {
        return refused.hinted("none of its runs has a record");
    }
    let more = match runs.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("\n  and {more} more, in its sweep_manifest.json"),
    };
    let first = runs.iter().take(NAMED).cloned().collect::<Vec<_>>().join("\n");
    refused.hinted(format!(
        "choose one of its {}:\n{first}{more}",
        veeksha_stats::counted(runs.len() as u64, "run")
    ))
}

/// Formats a path for a line of text, without characters that would control the terminal.
fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}
