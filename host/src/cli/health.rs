//! `veeksha-host health`: compares a run with its scenario.

use veeksha_app::{CommandFailure, RecordedRun, health_expectation};
use veeksha_health::{Health, HealthOutcome};
use veeksha_present::terminal;

use crate::cli::args::HealthArgs;

pub(super) fn health(args: &HealthArgs) -> Result<u8, CommandFailure> {
    let mut run = RecordedRun::open(&args.run, true)?;
    let mut health = Health::new(health_expectation::of(&run.loaded.scenario));
    run.for_each(|event| health.on(event))?;
    for note in run.notes.iter().chain(&run.about_scenario) {
        terminal::err(format!("note: {note}"));
    }
    let report = health.finish();
    if args.json {
        let mut json = report.json();
        json["record_is_whole"] = run.is_whole().into();
        terminal::out(serde_json::to_string_pretty(&json).map_err(CommandFailure::internal)?);
    } else {
        if !run.is_whole() {
            terminal::out("The record is incomplete: the checks cover only what it contains.");
        }
        terminal::out(report.text().trim_end());
    }
    if !args.strict || (report.passed() && run.is_whole() && report.failed_plugins.is_empty()) {
        return Ok(veeksha_exit::DONE);
    }
    for failed in &report.failed_plugins {
        terminal::err(format!(
            "--strict: the plugin `{}` ({}) failed {}",
            failed.plugin,
            failed.part.name(),
            failed.message
        ));
    }
    if !run.is_whole() {
        terminal::err("--strict: the record is incomplete, so the run cannot be compared with its scenario");
    }
    if !report.passed() {
        let failed = report
            .checks
            .iter()
            .filter(|check| check.outcome == HealthOutcome::Failed);
        let failed: Vec<&str> = failed.map(|check| check.name).collect();
        terminal::err(format!("--strict: failed checks: {}", failed.join(", ")));
    }
    Ok(veeksha_exit::INVALID)
}
