//! The end of a run, new or evaluated anew: what is computed from its events becomes files, a table, a page, and an exit code.

mod files;
mod page;
mod plots;
mod table;
mod threads;
mod units;
mod verdict;

use serde_json::Value;
use veeksha_certificate::{Certificate, SelfTest, Thresholds, Verdict};
use veeksha_health::HealthReport;
use veeksha_metrics::Evaluation;
use veeksha_page::PageData;
use veeksha_pipeline::RunEnd;
use veeksha_ports::PluginFailure;
use veeksha_report::{Colour, RunFolder, summary_table};
use veeksha_scenario::Scenario;

pub(crate) use page::so_far;
pub(crate) use threads::Threads;

use crate::analysis::Analysed;
use crate::collect::Collected;
use crate::exit;
use crate::failure::Failure;
use crate::sweep::Table;
use crate::{replay_section, say};
use verdict::{certificate, code, say_of};

/// Width of the table where the terminal's is not known.
const WIDTH: usize = 110;

/// Whose time the run was measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The machine's.
    Real,
    /// The simulation's.
    Virtual,
}

/// What a run is judged by, besides its own record.
pub(crate) struct Judged {
    /// Whose time it was.
    pub(crate) clock: Clock,
    /// When it does not trust itself.
    pub(crate) thresholds: Thresholds,
    /// What the self-test found, if there was one.
    pub(crate) self_test: Option<SelfTest>,
    /// What was done for the threads that measure.
    pub(crate) threads: Threads,
}

/// When a run of this scenario does not trust itself.
pub(crate) fn thresholds(scenario: &Scenario) -> Thresholds {
    Thresholds {
        degraded: scenario.certificate.degraded,
        invalid: scenario.certificate.invalid,
        ..Thresholds::default()
    }
}

/// What a run came to, for whoever goes on with it.
pub(crate) struct Concluded {
    /// How it went.
    pub(crate) code: u8,
    /// Where its files are.
    pub(crate) folder: std::path::PathBuf,
    /// Its figures.
    pub(crate) evaluation: Evaluation,
    /// Its verdict on itself.
    pub(crate) verdict: Verdict,
    /// `prefill_stats.json`.
    pub(crate) prefill_stats: Value,
    /// `decode_window_metrics.json`, if it is written.
    pub(crate) decode_windows: Option<Value>,
    /// Whether it did what its scenario asks for.
    pub(crate) health: HealthReport,
    /// Its page.
    pub(crate) page: PageData,
}

/// Writes the files, prints the table unless it is not wanted, and says how the run went.
pub(crate) fn conclude(
    folder: &RunFolder,
    collected: Collected,
    end: &RunEnd,
    judged: &Judged,
    table: Table,
) -> Result<Concluded, Failure> {
    let Collected {
        analysed,
        written,
        plugin_failures,
    } = collected;
    let failures: Vec<PluginFailure> = end
        .plugin_failures
        .iter()
        .cloned()
        .chain(plugin_failures)
        .collect();
    let certificate = certificate(&analysed.evaluation, judged);
    let page = page::whole(folder, &analysed, &certificate, judged);
    let files = files::write(folder, &analysed, &certificate, judged, &page);
    if table == Table::Printed {
        print_table(&analysed, &certificate, judged);
        say::out(format!("results: {}", folder.path().display()));
    }
    say_failures(&analysed);
    if end.target_lost {
        say::err(
            "the run was stopped: one request after another could not connect; is the server still running?",
        );
    }
    if let Some(first) = &end.first_warmup_failure {
        say::err(format!(
            "{} of the warm-up failed; the first: {first}",
            say::counted(u64::from(end.warmup_failures), "request")
        ));
    }
    for failure in &failures {
        say::err(Failure::from(failure.clone()));
    }
    let evaluation = &analysed.evaluation;
    say_of(evaluation, &certificate);
    if let Err(error) = written.and(files) {
        return Err(Failure::internal(format!("the results are incomplete: {error}"))
            .hinted("free some space or choose another --output_dir"));
    }
    let code = if end.interrupted {
        exit::INTERRUPTED
    } else if !failures.is_empty() {
        exit::PLUGIN
    } else if end.target_lost {
        exit::TARGET
    } else {
        code(evaluation, &certificate)
    };
    Ok(Concluded {
        code,
        folder: folder.path().to_owned(),
        verdict: certificate.verdict,
        prefill_stats: analysed.prefill_stats,
        decode_windows: analysed.decode_windows,
        page,
        health: analysed.health,
        evaluation: analysed.evaluation,
    })
}

/// Writes the files of a run that was evaluated anew, prints its table, and says how it went.
pub(crate) fn conclude_again(
    folder: Option<&RunFolder>,
    analysed: Analysed,
    failures: &[PluginFailure],
    judged: &Judged,
    quiet: bool,
) -> Result<u8, Failure> {
    let certificate = certificate(&analysed.evaluation, judged);
    if let Some(folder) = folder {
        let page = page::whole(folder, &analysed, &certificate, judged);
        files::write(folder, &analysed, &certificate, judged, &page).map_err(|error| {
            Failure::internal(format!("the results are incomplete: {error}"))
                .hinted("free some space or choose another folder with --to")
        })?;
        if !quiet {
            print_table(&analysed, &certificate, judged);
            say::out(format!("results: {}", folder.path().display()));
        }
    } else {
        let stats = serde_json::to_string_pretty(&analysed.evaluation.summary_stats());
        say::out(stats.map_err(Failure::internal)?);
    }
    say_failures(&analysed);
    for failure in failures {
        say::err(Failure::from(failure.clone()));
    }
    say_of(&analysed.evaluation, &certificate);
    Ok(match failures.is_empty() {
        true => code(&analysed.evaluation, &certificate),
        false => exit::PLUGIN,
    })
}

/// Says what failed, one line for each class.
fn say_failures(analysed: &Analysed) {
    for (class, failed) in &analysed.failures {
        say::err(format!(
            "{} failed ({class}); the first: {}",
            say::counted(failed.count, "request"),
            failed.message
        ));
    }
}

fn print_table(analysed: &Analysed, certificate: &Certificate, judged: &Judged) {
    let mut sections = table::sections(&analysed.evaluation, certificate, judged);
    sections.extend(analysed.fidelity.as_ref().map(replay_section::section));
    sections.extend(table::health(&analysed.health));
    say::out(summary_table(&sections, WIDTH, Colour::of_stdout()));
    for view in &analysed.views {
        say::out(format!("\n{}", view.text()));
    }
}
