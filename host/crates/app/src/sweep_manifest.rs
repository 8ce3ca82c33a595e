//! The folder of a sweep that was carried out: the runs in it, as its manifest says.

use std::path::{Path, PathBuf};

use serde_json::Value;
use veeksha_model::printable;

use crate::failure::Failure;
use veeksha_present::terminal;

/// What a sweep says of its runs.
const MANIFEST: &str = "sweep_manifest.json";
/// Runs that are named to who gave the sweep in the place of one of them.
const NAMED: usize = 3;

/// A run of a sweep.
pub struct SweptRun {
    /// The swept keys with their values, in the order of the keys.
    pub settings: Vec<(String, String)>,
    /// `None` if it was not carried out, or is gone.
    pub folder: Option<PathBuf>,
}

/// Whether a folder is that of a run.
pub fn is_run(path: &Path) -> bool {
    path.join("record").is_dir()
}

/// Whether a folder is that of a sweep.
pub fn is_sweep(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// The runs of a sweep. They lie in its folder, wherever that was moved to.
pub fn runs(sweep: &Path) -> Result<Vec<SweptRun>, Failure> {
    let path = sweep.join(MANIFEST);
    let wrong = |why: String| Failure::usage(format!("{}: {why}", shown(&path)));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let manifest: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let runs = manifest.get("runs").and_then(Value::as_array);
    let runs = runs.ok_or_else(|| wrong("`runs` is no list".to_owned()))?;
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

/// A line for each run that is there: its folder and its settings.
pub fn lines(runs: &[SweptRun]) -> Vec<String> {
    let line = |run: &SweptRun| {
        let settings = run.settings.iter();
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key} = {value}")).collect();
        let folder = shown(run.folder.as_ref()?);
        Some(match settings.is_empty() {
            true => format!("  {folder}"),
            false => format!("  {folder}  ({})", printable(&settings.join(", "))),
        })
    };
    runs.iter().filter_map(line).collect()
}

/// What is said to who gave a sweep where one run is needed.
pub fn is_no_run(sweep: &Path) -> Failure {
    let refused = Failure::usage(format!("{} is a sweep, and one run is needed here", shown(sweep)));
    let runs = match runs(sweep) {
        Ok(runs) => lines(&runs),
        Err(failure) => return refused.hinted(failure.message),
    };
    if runs.is_empty() {
        return refused.hinted("none of its runs is there with its record");
    }
    let more = match runs.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("\n  and {more} more, in its sweep_manifest.json"),
    };
    let first = runs.iter().take(NAMED).cloned().collect::<Vec<_>>().join("\n");
    refused.hinted(format!(
        "give one of its {}:\n{first}{more}",
        terminal::counted(runs.len() as u64, "run")
    ))
}

/// A path within a line: the name of a folder may hold what would steer a terminal.
fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}
