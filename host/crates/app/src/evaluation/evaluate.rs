//! Evaluation of a recorded run, optionally with other objectives or plugins.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use veeksha_events::{Event, FailedPlugin, PluginRole};
use veeksha_metrics::{Evaluation, Objectives, WhatIf};
use veeksha_model::MetricDefinition;
use veeksha_ports::PluginFailure;
use veeksha_present::{AccuracyContext, Clock, RunAnalysis, terminal};
use veeksha_report::RunFolder;
use veeksha_scenario::Scenario;

use crate::evaluation::analysis::{Analysis, AnalysisSetup, describe};
use crate::evaluation::builtin_evaluator;
use crate::evaluation::compat_output::{CompatOptions, Exporting};
use crate::evaluation::conclusion::{Conclusion, FinishedRun, conclude};
use crate::evaluation::health_expectation;
use crate::evaluation::objectives;
use crate::evaluator_plugins::{
    EvaluatorPlugins, RequestEvaluator, open_files, open_scenario, run_slo_checks,
};
use crate::failure::CommandFailure;
use crate::record::recorded_run::RecordedRun;
use crate::workload::tokenizers;

/// Hint if the results cannot be written.
const OTHER_FOLDER: &str = "free some space or choose another folder with --to";

/// Number of labels that a message lists.
const LISTED_LABELS: usize = 20;

/// Options of an evaluation, which override the scenario of the run.
#[derive(Default)]
pub struct EvaluateOptions {
    /// Components and Lua files with further metrics and checks.
    pub plugins: Vec<PathBuf>,
    /// Configuration of the last plugin, as JSON; empty for none.
    pub plugin_config: String,
    /// Objectives in place of the scenario's.
    pub slos: Vec<String>,
    /// Goodput conditions in place of the scenario's.
    pub goodput: Vec<String>,
    /// Seconds of a time slice in place of the scenario's.
    pub slice: Option<f64>,
    /// Labels by which results are grouped, in place of the scenario's; empty for the scenario's.
    pub group_by: Vec<String>,
    /// Changes whose effect on the makespans of sessions is computed.
    pub what_if: Vec<WhatIf>,
    /// Disables the cache of compiled components.
    pub no_cache: bool,
}

/// An evaluation of a recorded run, ready to start.
pub struct Reevaluation {
    run: RecordedRun,
    folder: PathBuf,
    scenario: Scenario,
    config: String,
    evaluators: EvaluatorPlugins,
    repeated: Repeated,
    definitions: Vec<MetricDefinition>,
    objectives: Objectives,
    has_own_slos: bool,
    /// Labels by which results are grouped; empty for the scenario's.
    group_by: Vec<String>,
    what_if: Vec<WhatIf>,
    /// True if the scenario's plugins could not be opened.
    plugins_lost: bool,
}

impl Reevaluation {
    /// Opens a run folder and the plugins of its scenario and of `options`.
    ///
    /// # Errors
    /// If the folder has no record, or an option is wrong.
    pub fn open(folder: &Path, options: &EvaluateOptions) -> Result<Self, CommandFailure> {
        let mut run = RecordedRun::open(folder, options.no_cache)?;
        let tokenizer = tokenizers::tokenizer(&run.loaded, &mut Vec::new())?.tokenizer;
        let mut evaluators = EvaluatorPlugins::default();
        let config = if options.plugin_config.is_empty() {
            "{}"
        } else {
            &options.plugin_config
        };
        open_files(&mut evaluators, &run.loaded, &options.plugins, config, &tokenizer)?;
        // The samples of the scenario's own plugins are in the record; its SLO checks are called
        // again.
        let mut recorded_checks = run.lua_request_checks.clone();
        let mut plugins_lost = false;
        match open_scenario(&run.loaded, &tokenizer) {
            Ok(own) => {
                recorded_checks.extend(own.request_check_names());
                evaluators.add_slo_checks_of(own);
            }
            Err(failure) => {
                plugins_lost = true;
                run.about_scenario.push(format!(
                    "the scenario's plugins cannot be opened, so its SLO checks are not called: {}",
                    failure.message
                ));
            }
        }
        let measured = evaluators.definitions()?;
        let repeated = Repeated::of(&evaluators, measured.iter().map(|metric| metric.name.clone()));
        let mut definitions = run.definitions()?;
        definitions.retain(|metric| !repeated.metrics.contains(&metric.name));
        definitions.extend(measured);
        let catalogue = objectives::catalogue(&definitions)?;
        let mut checks = evaluators.request_check_names();
        recorded_checks.retain(|plugin| !repeated.checks.contains(plugin));
        checks.extend(recorded_checks);
        let objectives =
            objectives::of_arguments(&options.slos, &options.goodput, &run.loaded, checks, &catalogue)?;
        let scenario = run.loaded.scenario.clone();
        let (scenario, config) = match options.slice {
            Some(slice) => (
                builtin_evaluator::with_slice(scenario, slice),
                builtin_evaluator::config_with_slice(&run.config, slice),
            ),
            None => (scenario, run.config.clone()),
        };
        Ok(Reevaluation {
            run,
            folder: folder.to_owned(),
            scenario,
            config,
            evaluators,
            repeated,
            definitions,
            objectives,
            has_own_slos: !options.slos.is_empty(),
            group_by: options.group_by.clone(),
            what_if: options.what_if.clone(),
            plugins_lost,
        })
    }

    /// Returns the `config.yml` of the evaluation.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// Reads the record, computes the results, and writes their files into `folder`, if there is
    /// one.
    ///
    /// # Errors
    /// If the record cannot be read or a plugin cannot be opened.
    pub fn carry_out(
        mut self,
        folder: Option<&RunFolder>,
        compat: &CompatOptions,
    ) -> Result<Conclusion, CommandFailure> {
        let setup = self.setup(folder, compat)?;
        let mut replayed = self.replay(Analysis::of_a_record(setup))?;
        let results = &mut replayed.results;
        self.check_labels(&results.evaluation)?;
        results.evaluation.end.requests_unread = self.run.requests_unread();
        if self.run.is_damaged() {
            results.evaluation.mark_record_damaged();
        }
        let notes = self.judge(results, &mut replayed.plugin_failures);
        for note in notes.iter().chain(&replayed.failed_in_the_run) {
            terminal::err(format!("note: {note}"));
        }
        for failures in &results.evaluation.workload_failures {
            terminal::err(format!("note: in the run, {failures}"));
        }
        for name in self.evaluators_not_called(&results.evaluation) {
            terminal::err(format!("note: {name}"));
        }
        results.about.remarks = notes;
        let clock = if results.is_simulated() {
            Clock::Virtual
        } else {
            Clock::Real
        };
        let finished = FinishedRun {
            results: replayed.results,
            plugin_failures: replayed.plugin_failures,
            end: None,
            written: Ok(()),
            accuracy: AccuracyContext::new(&self.scenario, clock, None),
        };
        Ok(conclude(folder, finished, OTHER_FOLDER))
    }

    /// Returns an error if no request has a label by which results are to be grouped.
    fn check_labels(&self, evaluation: &Evaluation) -> Result<(), CommandFailure> {
        let seen = evaluation.label_names();
        let Some(unknown) = self.group_by.iter().find(|label| !seen.contains(label.as_str())) else {
            return Ok(());
        };
        let labels: Vec<&str> = seen.iter().copied().take(LISTED_LABELS).collect();
        let hint = match seen.len().checked_sub(labels.len()) {
            _ if labels.is_empty() => "the requests have no labels".to_owned(),
            Some(more) if more > 0 => format!("labels: {} and {more} more", labels.join(", ")),
            _ => format!("labels: {}", labels.join(", ")),
        };
        let near = veeksha_slo::nearest(unknown, seen.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        Err(CommandFailure::usage(format!("--by: no request has the label {unknown:?}{near}")).hinted(hint))
    }

    fn setup(
        &self,
        folder: Option<&RunFolder>,
        compat: &CompatOptions,
    ) -> Result<AnalysisSetup, CommandFailure> {
        let scenario = &self.scenario;
        let mut metrics = builtin_evaluator::setup(scenario, self.objectives.clone(), &self.definitions)?;
        if !self.group_by.is_empty() {
            metrics.group_by = Some(self.group_by.clone());
        }
        let about = describe(
            scenario,
            folder.map_or(self.folder.as_path(), RunFolder::path),
            self.config.clone(),
        );
        Ok(AnalysisSetup {
            metrics: veeksha_metrics::Setup {
                repeated_metrics: self.repeated.metrics.clone(),
                what_if: self.what_if.clone(),
                ..metrics
            },
            expected: health_expectation::of(scenario),
            decode_windows: builtin_evaluator::decode_windows(scenario),
            fidelity: builtin_evaluator::fidelity(scenario),
            views: compat.views(scenario)?,
            exporting: match folder {
                Some(_) => Exporting::start(compat, scenario, &about)?,
                None => None,
            },
            about,
        })
    }

    /// Feeds the record to the analysis and to the plugins. The events of a plugin that is called
    /// again replace its recorded ones.
    fn replay(&mut self, mut analysis: Analysis) -> Result<Replayed, CommandFailure> {
        let mut evaluator = None;
        if self.evaluators.need_requests() {
            let opened = RequestEvaluator::open(&self.evaluators, |event| analysis.on(&event))?;
            evaluator = Some(opened);
        }
        let mut failed_in_the_run = Vec::new();
        let (evaluators, repeated) = (&self.evaluators, &self.repeated);
        self.run.for_each(|event| {
            if !repeated.replaces(event, evaluators) {
                analysis.on(event);
                if let Event::PluginFailed(failed) = event
                    && failed.part != PluginRole::Workload
                {
                    failed_in_the_run.push(note_of_failure(failed));
                }
            }
            if let (Some(evaluator), Event::Finished(_)) = (&mut evaluator, event) {
                evaluator.take(&Arc::new(event.clone()), &mut |event| analysis.on(&event));
            }
        })?;
        let plugin_failures = evaluator.map_or_else(Vec::new, |evaluator| {
            evaluator.finish(&mut |event| analysis.on(&event))
        });
        Ok(Replayed {
            results: analysis.finish(),
            plugin_failures,
            failed_in_the_run,
        })
    }

    /// Calls the SLO checks. Returns the remarks on record, scenario and verdicts, and adds the
    /// checks without a verdict to the results.
    fn judge(&self, results: &mut RunAnalysis, failures: &mut Vec<PluginFailure>) -> Vec<String> {
        let recorded = self.recorded_verdicts(&results.evaluation);
        failures.extend(run_slo_checks(results, &self.evaluators.slo_checks));
        let evaluation = &mut results.evaluation;
        let unjudged = self.unjudged(evaluation);
        evaluation.slos.not_asked.extend(unjudged);
        if !self.has_own_slos
            && let Some(why) = &self.run.unknown
        {
            evaluation.slos.not_asked.push(format!(
                "no SLO is judged, because those of the scenario are unknown: {why}; set SLOs with `--slo`"
            ));
        }
        evaluation.slos.remarks.extend(self.run.notes.iter().cloned());
        let notes = self.run.notes.iter().chain(&self.run.about_scenario);
        notes.cloned().chain(recorded).collect()
    }

    /// Returns remarks on verdicts whose checks are not called again: they are those of the run, or
    /// missing.
    fn recorded_verdicts(&self, evaluation: &Evaluation) -> Vec<String> {
        let verdicts = evaluation.slos.verdicts.iter();
        let plugins: BTreeSet<&String> = verdicts.map(|verdict| &verdict.plugin).collect();
        let own = plugins
            .iter()
            .filter(|plugin| !self.evaluators.has_slo_check(plugin))
            .map(|plugin| {
                format!("the verdicts of `{plugin}` are those of the run: its check is not called again")
            });
        let silent = self.silent_checks(evaluation).map(|check| {
            format!(
                "the check of `{check}` is not called again, and the record has no verdict of it (it gave \
                 none, or the recording program did not keep it): its verdict is missing"
            )
        });
        own.chain(silent).collect()
    }

    /// Returns the Lua evaluators with an SLO check but without a known verdict.
    fn silent_checks<'a>(&'a self, evaluation: &'a Evaluation) -> impl Iterator<Item = &'a String> {
        self.run.lua_slo_checks.iter().filter(|check| {
            let mut verdicts = evaluation.slos.verdicts.iter();
            let mut failed = evaluation.failed.iter();
            !verdicts.any(|verdict| verdict.plugin == **check)
                && !self.evaluators.has(check)
                && !failed.any(|failed| failed.part == PluginRole::SloCheck && failed.plugin == **check)
        })
    }

    /// Returns the checks whose verdict is unknown because the record of the run is incomplete.
    fn unjudged(&self, evaluation: &Evaluation) -> Vec<String> {
        if evaluation.end.complete {
            return Vec::new();
        }
        let silent = self.silent_checks(evaluation).map(|check| {
            format!("the verdict of the check of `{check}` is unknown, because the record is incomplete")
        });
        let lost = self.plugins_lost.then(|| {
            "the verdicts of the scenario's plugins, which cannot be opened, are unknown, because the \
             record is incomplete"
                .to_owned()
        });
        silent.chain(lost).collect()
    }

    /// Returns the Lua evaluators of the scenario whose functions are not called again.
    fn evaluators_not_called(&self, evaluation: &Evaluation) -> Vec<String> {
        let left = self.run.lua_evaluators.iter();
        let left = left.filter(|name| !self.evaluators.has(name));
        left.map(|name| {
            let failed = evaluation.failed.iter().any(|failed| failed.plugin == *name);
            let until = if failed { " until it failed" } else { "" };
            format!(
                "the Lua functions of `{name}` are not called again: what they measured and checked{until} \
                 is in the record; `--plugin FILE.lua` calls those of a file"
            )
        })
        .collect()
    }
}

/// A record after it was fed to the analysis.
struct Replayed {
    results: RunAnalysis,
    plugin_failures: Vec<PluginFailure>,
    /// Notes about plugins that had failed in the run itself.
    failed_in_the_run: Vec<String>,
}

fn note_of_failure(failed: &FailedPlugin) -> String {
    let FailedPlugin { plugin, message, .. } = failed;
    format!(
        "the plugin `{plugin}` failed in the run, {message}; it is not called again, so its later results \
         are unknown"
    )
}

/// Metrics and request checks that are evaluated again; their recorded events are ignored.
struct Repeated {
    metrics: BTreeSet<String>,
    checks: BTreeSet<String>,
}

impl Repeated {
    fn of(evaluators: &EvaluatorPlugins, metrics: impl Iterator<Item = String>) -> Self {
        Repeated {
            metrics: metrics.collect(),
            checks: evaluators.request_check_names().into_iter().collect(),
        }
    }

    /// Returns true if the evaluation replaces a recorded event by its own.
    fn replaces(&self, event: &Event, evaluators: &EvaluatorPlugins) -> bool {
        match event {
            Event::MetricDefined(metric) => self.metrics.contains(&metric.name),
            Event::Sampled(sample) => self.metrics.contains(&sample.metric),
            Event::Judged { plugin, .. } => self.checks.contains(plugin),
            Event::RunJudged { plugin, .. } => evaluators.has(plugin),
            Event::PluginFailed(failed) => match failed.part {
                PluginRole::Workload => false,
                PluginRole::SloCheck => {
                    evaluators.has(&failed.plugin) || evaluators.has_slo_check(&failed.plugin)
                }
                PluginRole::Metric | PluginRole::RequestCheck => evaluators.has(&failed.plugin),
            },
            _ => false,
        }
    }
}
