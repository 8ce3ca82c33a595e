//! The first results of a plugin: sessions, arrivals, or metrics and verdicts on a recorded run.

use std::path::PathBuf;

use serde_json::{Value, json};
use veeksha_app::{CheckedScenario, CommandFailure, CompatOptions, EvaluateOptions, Reevaluation};
use veeksha_manifest::PluginKind;
use veeksha_model::seconds;

use crate::opened::{OpenedPlugin, PluginSettings};
use crate::play::{AnswerScript, PlayError, PlayedSession};
use crate::plugin_file::PluginFile;
use crate::table_test::{open_trace, play_sessions};

/// What is previewed.
#[derive(Clone, Debug, Default)]
pub struct PreviewOptions {
    /// The kind, if the plugin has several.
    pub kind: Option<PluginKind>,
    /// Settings of the plugin.
    pub settings: PluginSettings,
    /// The indices of sessions; for arrival processes, as many arrivals.
    pub sessions: Vec<u64>,
    /// The answers of agents.
    pub script: AnswerScript,
    /// The trace of a flavor.
    pub trace: Option<PathBuf>,
    /// The run on which metrics and checks are computed.
    pub on: Option<PathBuf>,
}

/// The first results of a plugin.
pub enum Preview {
    /// Sessions of a generator or a flavor.
    Sessions(Vec<PlayedSession>),
    /// Arrivals, in seconds.
    Arrivals(Vec<f64>),
    /// Metrics and verdicts on a run.
    Evaluation(Value),
}

/// Makes the first results of a plugin.
///
/// # Errors
/// If the plugin fails, or its kind needs an option that is missing.
pub fn preview(
    plugin: &OpenedPlugin,
    file: &PluginFile,
    options: &PreviewOptions,
) -> Result<Preview, CommandFailure> {
    let kind = match (options.kind, &options.on) {
        // A run shows all metrics and checks at once.
        (None, Some(_)) => plugin.kinds().into_iter().find(|kind| is_evaluator(*kind)),
        (kind, _) => Some(plugin.kind(kind)?),
    };
    match kind {
        Some(kind @ (PluginKind::SessionGenerator | PluginKind::AgentGenerator)) => {
            let factory = plugin.workload(kind, &options.settings)?;
            let mut workload = factory.open()?;
            let played = play_sessions(
                plugin.host().tokenizer(),
                &mut workload,
                &options.sessions,
                &options.script,
            );
            Ok(Preview::Sessions(played.map_err(play_failure)?))
        }
        Some(PluginKind::TraceFlavor) => {
            let trace = options.trace.clone().ok_or_else(|| {
                CommandFailure::usage("a flavor needs a trace").hinted("--trace FILE names one")
            })?;
            let opened = open_trace(plugin, &options.settings, trace)?;
            let mut workload = opened.factory().open()?;
            let played = play_sessions(
                plugin.host().tokenizer(),
                &mut workload,
                &options.sessions,
                &options.script,
            );
            Ok(Preview::Sessions(played.map_err(play_failure)?))
        }
        Some(PluginKind::ArrivalProcess) => {
            let mut process = plugin.arrivals(&options.settings)?.open()?;
            let count = u32::try_from(options.sessions.len()).unwrap_or(u32::MAX);
            Ok(Preview::Arrivals(
                process.next(count)?.into_iter().map(seconds).collect(),
            ))
        }
        Some(PluginKind::EndpointCodec) => Err(CommandFailure::usage("a codec has no sessions")
            .hinted("`veeksha-host plugin test` decodes events, and `run` uses it as `client.codec`")),
        Some(PluginKind::Metric | PluginKind::RequestCheck | PluginKind::SloCheck) | None => {
            let run = options.on.as_ref().ok_or_else(|| {
                CommandFailure::usage("metrics and checks need a recorded run")
                    .hinted("--on FOLDER names the folder of a run")
            })?;
            evaluation(file, run.clone(), options)
        }
    }
}

fn is_evaluator(kind: PluginKind) -> bool {
    matches!(
        kind,
        PluginKind::Metric | PluginKind::RequestCheck | PluginKind::SloCheck
    )
}

/// Makes the first sessions of a checked scenario. Requests of agents get the default answer. Log
/// lines of the plugin are dropped, because the run prints them.
///
/// # Errors
/// If the plugin fails.
pub fn scenario_sessions(
    checked: &CheckedScenario,
    count: u64,
) -> Result<Vec<PlayedSession>, CommandFailure> {
    let mut workload = checked.wired.factory.open_silent()?;
    let indices: Vec<u64> = (0..count).collect();
    let script = AnswerScript::default();
    let played = play_sessions(&checked.wired.tokenizer, &mut workload, &indices, &script);
    played.map_err(play_failure)
}

/// Converts the failure of a session.
pub(crate) fn play_failure(error: PlayError) -> CommandFailure {
    match error {
        PlayError::Plugin(failure) => (*failure).into(),
        other => CommandFailure::usage(other),
    }
}

fn evaluation(file: &PluginFile, run: PathBuf, options: &PreviewOptions) -> Result<Preview, CommandFailure> {
    let evaluate = EvaluateOptions {
        plugins: vec![file.path.clone()],
        plugin_config: options.settings.config.clone(),
        ..EvaluateOptions::default()
    };
    let conclusion = Reevaluation::open(&run, &evaluate)?.carry_out(None, &CompatOptions::default())?;
    let evaluation = &conclusion.results.evaluation;
    let metric = |custom: &veeksha_metrics::CustomSummary| {
        let summary = &custom.summary;
        let value = json!({
            "count": summary.count, "mean": summary.mean, "min": summary.min, "p50": summary.p50,
            "p99": summary.p99, "max": summary.max,
        });
        (custom.name.clone(), value)
    };
    Ok(Preview::Evaluation(json!({
        "metrics": evaluation.custom.iter().map(metric).collect::<serde_json::Map<_, _>>(),
        "slos": evaluation.slo_results(),
    })))
}
