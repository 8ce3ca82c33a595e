//! One cycle: load, build, check, simulate.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use veeksha_app::{CommandFailure, Control, Loaded, ShardSpec, collect_errors, plan_simulation};
use veeksha_clock::RunClock;
use veeksha_dev::{CycleResults, MetricValue, SessionText, WatchedInputs};
use veeksha_metrics::{Evaluation, Metric};
use veeksha_plugin_project::{BuildOptions, BuildProfile, build_plugin, project_of};
use veeksha_plugin_tools::{scenario_sessions, session_graph, table_test};
use veeksha_present::terminal;
use veeksha_report::Section;

use crate::cli::args::DevArgs;
use crate::cli::check::plan_sections;
use crate::cli::plugin::project_failure;
use crate::cli::scenarios::scenarios;

/// State of the watch mode between two cycles.
pub(super) struct Cycles<'a> {
    pub(super) args: &'a DevArgs,
    pub(super) overrides: &'a [(String, String)],
    pub(super) control: &'a Control,
    /// The files that the last cycle depended on.
    pub(super) inputs: WatchedInputs,
    /// The projects whose component is that of their sources.
    pub(super) built: BTreeSet<PathBuf>,
}

/// The result of a successful cycle.
pub(super) struct CompletedCycle {
    /// The results that are compared with those of the next cycle.
    pub(super) results: CycleResults,
    /// Sections of the plan.
    pub(super) plan: Vec<Section>,
    /// The drawings of the sessions.
    pub(super) graphs: Vec<String>,
    /// The exit code of the simulation.
    pub(super) code: u8,
}

/// Durations of the steps of a cycle, in nanoseconds.
#[derive(Default)]
pub(super) struct StepTimes(pub(super) Vec<(&'static str, u64)>);

impl StepTimes {
    fn measure<T>(&mut self, step: &'static str, run: impl FnOnce() -> T) -> T {
        let clock = RunClock::starting_now();
        let done = run();
        self.0.push((step, clock.now()));
        done
    }
}

impl Cycles<'_> {
    /// Carries out a cycle. Steps up to a failure are in `times`.
    ///
    /// # Errors
    /// That of the first step that failed.
    pub(super) fn run(&mut self, times: &mut StepTimes) -> Result<CompletedCycle, CommandFailure> {
        let loaded = times.measure("load", || self.load())?;
        self.depend_on(&loaded);
        if self
            .inputs
            .projects
            .iter()
            .any(|project| !self.built.contains(project))
        {
            times.measure("build", || self.build())?;
        }
        let count = self.sessions(&loaded);
        let (checked, sessions) = times.measure("check", || {
            let checked = veeksha_app::check(loaded.clone())?;
            let sessions = scenario_sessions(&checked, count)?;
            Ok::<_, CommandFailure>((checked, sessions))
        })?;
        let plan = plan_sections(&checked)?;
        let mut texts = Vec::new();
        for session in &sessions {
            texts.push(SessionText {
                session: session.session.0,
                json: table_test::redacted_sessions_json(std::slice::from_ref(session), checked.redaction())?,
            });
        }
        let graphs = sessions
            .iter()
            .map(|session| checked.redaction().text(&session_graph(session)).into_owned());
        let graphs = graphs.collect();
        let (results, code) = times.measure("simulate", || self.simulate(loaded, count))?;
        Ok(CompletedCycle {
            results: CycleResults {
                sessions: texts,
                ..results
            },
            plan,
            graphs,
            code,
        })
    }

    fn load(&self) -> Result<Loaded, CommandFailure> {
        let cells = collect_errors(scenarios(&self.args.scenario, self.overrides)?)?;
        if cells.len() > 1 {
            terminal::note(&format!(
                "the file has {} scenarios; the first is simulated",
                cells.len()
            ));
        }
        let first = cells.into_iter().next();
        first
            .map(|cell| cell.loaded)
            .ok_or_else(|| CommandFailure::internal("the file has no scenario"))
    }

    /// Takes over the files of a scenario, and the projects of its components.
    fn depend_on(&mut self, loaded: &Loaded) {
        let files: BTreeSet<PathBuf> = loaded.input_files().iter().map(|file| resolved(file)).collect();
        self.inputs.projects = files
            .iter()
            .filter(|file| file.extension().is_some_and(|ending| ending == "wasm"))
            .filter_map(|component| project_of(component))
            .collect();
        self.inputs.files = files;
    }

    fn build(&mut self) -> Result<(), CommandFailure> {
        let options = BuildOptions {
            profile: BuildProfile::Dev,
            ..BuildOptions::default()
        };
        let report = |line: &str| terminal::err(veeksha_model::printable_lines(line));
        for project in &self.inputs.projects {
            if !self.built.contains(project) {
                build_plugin(project, &options, &report).map_err(project_failure)?;
                self.built.insert(project.clone());
            }
        }
        Ok(())
    }

    /// Returns the number of simulated sessions.
    fn sessions(&self, loaded: &Loaded) -> u64 {
        let wanted = u64::from(self.args.sessions);
        let limit = loaded.scenario.runtime.session_limit();
        limit.map_or(wanted, |limit| limit.min(wanted))
    }

    /// Simulates the first sessions. The files of the run are in a temporary folder, which is
    /// removed.
    fn simulate(&self, mut loaded: Loaded, count: u64) -> Result<(CycleResults, u8), CommandFailure> {
        let folder = tempfile::tempdir().map_err(|error| {
            CommandFailure::internal(format!("cannot create a temporary folder: {error}"))
        })?;
        loaded.scenario.output_dir = folder.path().to_owned();
        loaded.scenario.runtime.max_sessions = i64::try_from(count).unwrap_or(i64::MAX);
        let plan = plan_simulation(loaded, ShardSpec::default(), self.args.profile.as_deref())?;
        crate::cli::output::notes(plan.notes());
        let conclusion = veeksha_app::simulate_metrics(plan, self.control)?;
        let evaluation = &conclusion.results.evaluation;
        let results = CycleResults {
            sessions: Vec::new(),
            metrics: metrics(evaluation),
            slos: slos(evaluation),
            messages: conclusion.messages.clone(),
        };
        conclusion.failure.map_or(Ok((results, conclusion.code)), Err)
    }
}

/// Returns a path without links in its folder, as the watcher reports it.
pub(super) fn resolved(path: &Path) -> PathBuf {
    let folder = path.parent().map(Path::canonicalize);
    match (folder, path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Returns the run metrics, and the metrics of the summary table.
fn metrics(evaluation: &Evaluation) -> Vec<MetricValue> {
    let run = evaluation.run_metrics().iter();
    let run = run.map(|(metric, value)| MetricValue {
        name: metric.name().to_owned(),
        unit: metric.info().unit,
        value: *value,
    });
    let ranked = Metric::ranked().into_iter().flat_map(|metric| {
        let summary = evaluation.metric(metric);
        let values = summary.map(|summary| [("p50", summary.p50), ("p99", summary.p99)]);
        values
            .into_iter()
            .flatten()
            .map(move |(statistic, value)| MetricValue {
                name: format!("{statistic}({})", metric.name()),
                unit: metric.unit(),
                value,
            })
    });
    run.chain(ranked).collect()
}

fn slos(evaluation: &Evaluation) -> Vec<String> {
    let results = evaluation.slos.results.iter().map(|result| {
        let end = match (&result.unknown, result.met) {
            (Some(_), _) => "unknown",
            (None, true) => "met",
            (None, false) => "missed",
        };
        format!("{end}: {}", result.objective)
    });
    let verdicts = evaluation.slos.verdicts.iter().map(|verdict| {
        let end = if verdict.verdict.met { "met" } else { "missed" };
        format!("{end}: {} of plugin `{}`", verdict.verdict.name, verdict.plugin)
    });
    results.chain(verdicts).collect()
}
