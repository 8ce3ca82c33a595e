//! `veeksha-host health`: compares a run with its scenario.

use serde_json::json;
use veeksha_app::{CommandFailure, RecordedRun, health_expectation};
use veeksha_events::{Event, FailedPlugin};
use veeksha_health::{Health, HealthOutcome};
use veeksha_present::terminal;

use crate::cli::args::HealthArgs;

pub(super) fn health(args: &HealthArgs) -> Result<u8, CommandFailure> {
    let mut run = RecordedRun::open(&args.run, true)?;
    let mut health = Health::new(health_expectation::of(&run.loaded.scenario));
    let mut failed_plugins: Vec<FailedPlugin> = Vec::new();
    run.for_each(|event| {
        if let Event::PluginFailed(failed) = event
            && !failed_plugins.iter().any(|known| known.plugin == failed.plugin)
        {
            failed_plugins.push(failed.clone());
        }
        health.on(event);
    })?;
    for note in run.notes.iter().chain(&run.about_scenario) {
        terminal::err(format!("note: {note}"));
    }
    let report = health.finish();
    if args.json {
        let mut json = report.json();
        json["record_is_whole"] = run.is_whole().into();
        let failed = failed_plugins.iter().map(|failed| {
            json!({
                "plugin": failed.plugin,
                "part": failed.part.name(),
                "message": failed.message,
            })
        });
        json["failed_plugins"] = failed.collect();
        terminal::out(serde_json::to_string_pretty(&json).map_err(CommandFailure::internal)?);
    } else {
        if !run.is_whole() {
            terminal::out("The record is incomplete: the checks cover only what it contains.");
        }
        for failed in &failed_plugins {
            terminal::out(format!(
                "The plugin `{}` failed {}.",
                failed.plugin, failed.message
            ));
        }
        terminal::out(report.text().trim_end());
    }
    if !args.strict || (report.passed() && run.is_whole() && failed_plugins.is_empty()) {
        return Ok(veeksha_exit::DONE);
    }
    for failed in &failed_plugins {
        terminal::err(format!(
            "--strict: the plugin `{}` failed {}",
            failed.plugin, failed.message
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
