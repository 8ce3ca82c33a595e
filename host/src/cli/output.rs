//! Results of a run on the terminal.

use veeksha_app::{CommandFailure, Conclusion};
use veeksha_present::terminal;

/// Output on standard output at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// The closing table and the folder.
    Table,
    /// `summary_stats.json`.
    Json,
    /// Nothing: the user disabled the table, or the run is part of a sweep, whose overview follows.
    Nothing,
}

/// Prints the remarks on a run before it starts. Runs of a sweep share most of them.
pub(super) fn notes(notes: &[String]) {
    for note in notes {
        terminal::note(note);
    }
}

/// Prints the results of a run and the lines that explain its exit code.
///
/// # Errors
/// If the results are incomplete.
pub(super) fn conclusion(mut conclusion: Conclusion, printed: Printed) -> Result<Conclusion, CommandFailure> {
    match printed {
        Printed::Table => {
            terminal::out(conclusion.table());
            if let Some(folder) = &conclusion.folder {
                terminal::out(format!("results: {}", folder.display()));
            }
        }
        Printed::Json => {
            let stats = conclusion.results.evaluation.summary_stats();
            terminal::out(serde_json::to_string_pretty(&stats).map_err(CommandFailure::internal)?);
        }
        Printed::Nothing => {}
    }
    for line in &conclusion.messages {
        terminal::err(line);
    }
    conclusion.failure.take().map_or(Ok(conclusion), Err)
}
