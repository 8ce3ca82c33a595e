//! Completion of a run, a simulation, or an evaluation of a record.

use std::path::PathBuf;

use veeksha_certificate::Certificate;
use veeksha_page::PageData;
use veeksha_pipeline::RunEnd;
use veeksha_ports::{PluginFailure, PluginUsageReport};
use veeksha_present::{
    AccuracyContext, RunAnalysis, certificate, exit_code, messages, page, summary, write_files,
};
use veeksha_report::RunFolder;

use crate::execution::collect::Collected;
use crate::failure::CommandFailure;

/// The system's text for EMFILE and, with another ending, ENFILE.
const NO_DESCRIPTOR: &str = "Too many open files";
const MORE_DESCRIPTORS: &str = "raise the limit on open files (`ulimit -n`), which connections use too";

/// A run that has ended, before its files are written.
pub(crate) struct FinishedRun {
    /// Results that were computed from its events.
    pub(crate) results: RunAnalysis,
    /// Failures of plugins, in the order in which they occurred.
    pub(crate) plugin_failures: Vec<PluginFailure>,
    /// End of the pipeline; `None` for an evaluated record and for a run that could not start.
    pub(crate) end: Option<RunEnd>,
    /// Reason why the record is incomplete on disk, if it is.
    pub(crate) written: Result<(), String>,
    /// Inputs of the certificate that are not in the record.
    pub(crate) accuracy: AccuracyContext,
}

impl FinishedRun {
    /// Creates the run of which everything was collected. `end` is `None` if it could not start.
    pub(crate) fn new(collected: Collected, end: Option<RunEnd>, accuracy: AccuracyContext) -> Self {
        FinishedRun {
            results: collected.analysis,
            plugin_failures: collected.plugin_failures,
            end,
            written: collected.written,
            accuracy,
        }
    }
}

/// The results of a run, after its files were written.
pub struct Conclusion {
    /// The exit code: one of [`veeksha_exit`].
    pub code: u8,
    /// The folder with the files; `None` if none were requested.
    pub folder: Option<PathBuf>,
    /// Metrics, health, failures and all other results that were computed from the events.
    pub results: RunAnalysis,
    /// The accuracy of the measurement.
    pub certificate: Certificate,
    /// The data of `report.html`.
    pub page: PageData,
    /// Lines for standard error that explain the exit code.
    pub messages: Vec<String>,
    /// Set if the results are incomplete: a file could not be written, or the self-test failed.
    pub failure: Option<CommandFailure>,
    accuracy: AccuracyContext,
}

impl Conclusion {
    /// Returns the closing table as text.
    pub fn table(&self) -> String {
        summary(&self.results, &self.certificate, &self.accuracy)
    }
}

/// Writes the files of a run into `folder`, if there is one, and derives messages and exit code.
/// `hint` is the advice if the files cannot be written.
pub(crate) fn conclude(folder: Option<&RunFolder>, run: FinishedRun, hint: &str) -> Conclusion {
    let FinishedRun {
        results,
        plugin_failures,
        end,
        written,
        accuracy,
    } = run;
    let mut failures = Vec::new();
    let mut lines = Vec::new();
    let (mut interrupted, mut target_lost) = (false, false);
    let mut unlisted = 0;
    if let Some(end) = end {
        (interrupted, target_lost) = (end.interrupted, end.target_lost.is_some());
        lines = end_messages(&end);
        unlisted = end.unlisted_plugin_failures;
        failures = end.plugin_failures;
    }
    failures.extend(plugin_failures);
    let certificate = certificate(&results.evaluation, &accuracy);
    let page = page::finished(&results, &certificate, &accuracy);
    let files = folder.map_or(Ok(()), |folder| {
        write_files(folder, &results, &certificate, &accuracy, &page)
    });
    let failure = written.and(files).err().map(|error| {
        let hint = if error.contains(NO_DESCRIPTOR) {
            MORE_DESCRIPTORS
        } else {
            hint
        };
        CommandFailure::internal(format!("the results are incomplete: {error}")).hinted(hint)
    });
    let code = if interrupted {
        veeksha_exit::INTERRUPTED
    } else if target_lost {
        // Agents usually fail because of it.
        veeksha_exit::TARGET
    } else if failures.iter().any(|failure| !failure.is_tolerated) {
        veeksha_exit::PLUGIN
    } else {
        exit_code(&results.evaluation, &certificate)
    };
    lines.extend(
        failures
            .into_iter()
            .map(|failure| CommandFailure::from(failure).to_string()),
    );
    if unlisted > 0 {
        lines.push(format!(
            "and {unlisted} more plugin failures of other kinds; the record has all of them"
        ));
    }
    lines.extend(results.plugin_usage.iter().filter_map(near_limits));
    Conclusion {
        code,
        folder: folder.map(|folder| folder.path().to_owned()),
        messages: messages(&results, &certificate, lines),
        results,
        certificate,
        page,
        failure,
        accuracy,
    }
}

/// Returns the line about a plugin that came close to its limits.
fn near_limits(report: &PluginUsageReport) -> Option<String> {
    let near = report.usage.near_limits(&report.allowed);
    (!near.is_empty()).then(|| {
        format!(
            "note: plugin `{}`: {}; metrics/plugin_usage.json has its use of resources",
            report.plugin,
            near.join(", ")
        )
    })
}

/// Returns lines about the end of a run that its events do not contain.
fn end_messages(end: &RunEnd) -> Vec<String> {
    let lost = end.target_lost.as_ref().map(|failure| {
        format!("the run was stopped: one request after another could not connect; the last: {failure}; check the server's log, and repeat the run")
    });
    let warmup = end.first_warmup_failure.iter().map(|first| {
        let failed = veeksha_stats::counted(u64::from(end.warmup_failures), "request");
        format!("{failed} of the warm-up failed; the first: {first}")
    });
    let unstarted = end.unstarted.iter().map(ToString::to_string);
    lost.into_iter().chain(warmup).chain(unstarted).collect()
}
