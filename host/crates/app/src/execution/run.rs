//! Execution of plans: runs in real time, and simulations in virtual time.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use veeksha_page::LivePage;
use veeksha_pipeline::Control;
use veeksha_present::{AccuracyContext, Clock, SelfTestOutcome, ThreadSettings, terminal};
use veeksha_report::RunFolder;
use veeksha_scenario::{Scenario, Traffic};
use veeksha_simulator::SimServer;

use crate::evaluation::compat_output::CompatOptions;
use crate::evaluation::conclusion::{Conclusion, FinishedRun, conclude};
use crate::evaluator_plugins::{PluginThread, RequestEvaluator};
use crate::execution::collect::{self, Collected, Collector, OpenedPlugins, ProgressOutput, interim_lines};
use crate::execution::drive::{SharedRefusals, drive, realtime_priority};
use crate::execution::plan::{RunPlan, SimulationPlan};
use crate::execution::self_test;
use crate::execution::wiring::Wired;
use crate::failure::{CommandFailure, OUTPUT_DIR};
use crate::record::decisions;
use crate::scenario::scenario_copy::ScenarioCopy;
use crate::workload::prompts;

/// Options of a run that are not part of its scenario.
#[derive(Default)]
pub struct RunOptions {
    /// Output in the definitions and files of other tools.
    pub compat: CompatOptions,
    /// Suppresses the progress line.
    pub quiet: bool,
    /// Prints lines of interim metrics. The inner value is an interval in seconds that overrides
    /// the scenario's.
    pub stream_metrics: Option<Option<f64>>,
    /// Live page to update.
    pub page: Option<Arc<LivePage>>,
    /// The `veeksha-host` binary, which serves as the reference server of a self-test. Without it a
    /// planned self-test is an error.
    pub program: Option<PathBuf>,
}

/// Carries out a run until its scenario ends it or `control` stops it, and writes its folder.
///
/// # Errors
/// If the run could not start or could not be carried out. An unsuccessful run is a [`Conclusion`]
/// with a nonzero exit code.
pub fn run(plan: RunPlan, options: &RunOptions, control: &Control) -> Result<Conclusion, CommandFailure> {
    let RunPlan {
        copy,
        scenario,
        config,
        mut wired,
        mut targets,
        self_test,
    } = plan;
    // A run whose evaluation plugins cannot be opened leaves no folder.
    let opened = OpenedPlugins::<PluginThread>::open(&wired.evaluators)?;
    let folder = run_folder(&scenario, &config, &copy)?;
    wired.plan.run_id = Some(veeksha_record::new_run_id());
    let decisions = decisions::record(&scenario, &mut wired, &folder)?;
    log_plugins(&scenario, &wired, &folder)?;
    let collector = Collector::start(&scenario, &wired, &folder, &options.compat, config, opened)?;
    let collector = collector.with_decisions(decisions);
    let output = ProgressOutput {
        interim: interim_lines(&scenario, options.quiet, options.stream_metrics),
        quiet: options.quiet,
        sessions_planned: scenario.runtime.session_limit(),
        page: options.page.clone(),
    };
    let (events, thread) = collect::on_a_thread(collector, output)?;
    let refused = SharedRefusals::default();
    let simulators: Vec<_> = targets
        .iter_mut()
        .filter_map(|settled| settled.simulator.take())
        .collect();
    let ended = drive(&scenario, &mut wired, targets, &events, control, &refused);
    drop(events);
    let mut collected = thread
        .join()
        .map_err(|_| CommandFailure::internal("the collector of results panicked"))?;
    collected.compare_decisions(&wired, &folder);
    collected.analysis.plugin_usage = wired.registry.reports();
    simulators.into_iter().for_each(SimServer::stop);
    prompts::report(&wired.materializer);
    let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let threads = ThreadSettings::new(&scenario.runtime, realtime_priority(&scenario), refused);
    let mut accuracy = AccuracyContext::new(&scenario, Clock::Real, Some(threads));
    let end = match ended {
        Ok(end) => end,
        Err(failure) => {
            write_failed_start(&folder, collected, accuracy);
            return Err(failure);
        }
    };
    let mut test = CompletedSelfTest::default();
    if self_test {
        test = CompletedSelfTest::measure(&scenario, &collected.analysis, options, control);
        accuracy.self_test = test.outcome;
    }
    let finished = FinishedRun::new(collected, Some(end), accuracy);
    let mut conclusion = conclude(Some(&folder), finished, OUTPUT_DIR);
    if let Some(page) = &options.page {
        page.publish(conclusion.page.json().into());
    }
    conclusion.messages.extend(ramp_hint(&scenario, &conclusion));
    if test.interrupted {
        let message = "the self-test was interrupted; the results of the run are complete";
        conclusion.messages.push(message.to_owned());
        conclusion.code = veeksha_exit::INTERRUPTED;
    }
    conclusion.failure = conclusion.failure.or(test.failure);
    Ok(conclusion)
}

/// Writes the files of a run that its plugin prevented from starting, so that they report the
/// failure as the record does. Other failures are not part of the record.
fn write_failed_start(folder: &RunFolder, collected: Collected, accuracy: AccuracyContext) {
    if collected.analysis.evaluation.workload_failures.is_empty() {
        return;
    }
    let finished = FinishedRun::new(collected, None, accuracy);
    if let Some(failure) = conclude(Some(folder), finished, OUTPUT_DIR).failure {
        terminal::err(failure);
    }
}

/// The self-test after a run. The results of the run are written in any case.
#[derive(Default)]
struct CompletedSelfTest {
    outcome: SelfTestOutcome,
    failure: Option<CommandFailure>,
    interrupted: bool,
}

impl CompletedSelfTest {
    fn measure(
        scenario: &Scenario,
        analysis: &veeksha_present::RunAnalysis,
        options: &RunOptions,
        control: &Control,
    ) -> Self {
        if control.is_stopped() {
            return CompletedSelfTest {
                outcome: SelfTestOutcome::Missing("the run was interrupted".to_owned()),
                ..CompletedSelfTest::default()
            };
        }
        let measured = self_test::measure(
            scenario,
            &analysis.evaluation,
            options.program.as_deref(),
            control,
        );
        let interrupted = control.is_stopped();
        let (outcome, failure) = match measured {
            // An incomplete test is not evidence.
            Ok(_) if interrupted => (SelfTestOutcome::Missing("it was interrupted".to_owned()), None),
            Ok(outcome) => (outcome, None),
            Err(failure) => (
                SelfTestOutcome::Missing(format!("it failed: {}", self_test::cause(&failure))),
                Some(failure),
            ),
        };
        CompletedSelfTest {
            outcome,
            failure,
            interrupted,
        }
    }
}

/// Carries out a run in virtual time, and writes its folder.
///
/// # Errors
/// If the run could not start or could not be carried out.
pub fn simulate(
    plan: SimulationPlan,
    compat: &CompatOptions,
    control: &Control,
) -> Result<Conclusion, CommandFailure> {
    simulate_with(plan, compat, control, true)
}

/// Carries out a run in virtual time for its metrics. Its folder has the record, and no result
/// files, tables and plots, whose writing takes most of the time of a short run.
///
/// # Errors
/// If the run could not start or could not be carried out.
pub fn simulate_metrics(plan: SimulationPlan, control: &Control) -> Result<Conclusion, CommandFailure> {
    simulate_with(plan, &CompatOptions::default(), control, false)
}

fn simulate_with(
    plan: SimulationPlan,
    compat: &CompatOptions,
    control: &Control,
    has_files: bool,
) -> Result<Conclusion, CommandFailure> {
    let SimulationPlan {
        copy,
        scenario,
        config,
        mut wired,
        targets,
    } = plan;
    let opened = OpenedPlugins::<RequestEvaluator>::open(&wired.evaluators)?;
    let folder = run_folder(&scenario, &config, &copy)?;
    let decisions = decisions::record(&scenario, &mut wired, &folder)?;
    log_plugins(&scenario, &wired, &folder)?;
    let collector = Collector::start(&scenario, &wired, &folder, compat, config, opened)?;
    let mut collector = collector.with_decisions(decisions);
    let ended = veeksha_pipeline::simulate(
        &wired.plan,
        &targets,
        &wired.factory,
        &wired.tokenizer,
        &wired.materializer,
        &mut |entry| collector.take(entry),
        control,
    );
    let mut collected = collector.finish();
    collected.compare_decisions(&wired, &folder);
    collected.analysis.plugin_usage = wired.registry.reports();
    let accuracy = AccuracyContext::new(&scenario, Clock::Virtual, None);
    let end = match ended {
        Ok(end) => end,
        Err(failure) => {
            write_failed_start(&folder, collected, accuracy);
            return Err(failure.into());
        }
    };
    let finished = FinishedRun::new(collected, Some(end), accuracy);
    let mut conclusion = conclude(Some(&folder).filter(|_| has_files), finished, OUTPUT_DIR);
    conclusion.messages.extend(ramp_hint(&scenario, &conclusion));
    Ok(conclusion)
}

/// Returns the fix for a run that ended before the ramp of its traffic started the first session.
fn ramp_hint(scenario: &Scenario, conclusion: &Conclusion) -> Option<String> {
    let Traffic::Concurrent(traffic) = &scenario.traffic_scheduler else {
        return None;
    };
    let counts = &conclusion.results.evaluation.counts;
    let first = traffic.rampup_seconds / f64::from(traffic.target_concurrent_sessions.max(1));
    let timeout = scenario.runtime.timeout()?.as_secs_f64();
    (counts.requests == 0 && counts.unfinished == 0 && timeout <= first).then(|| {
        format!(
            "fix: the first session starts after {} (traffic_scheduler.rampup_seconds / \
             target_concurrent_sessions), and the run ended after {}: set \
             traffic_scheduler.rampup_seconds=0, or a larger runtime.benchmark_timeout",
            veeksha_report::duration(first),
            veeksha_report::duration(timeout)
        )
    })
}

/// Writes the log of plugins to the folder of a run, if the scenario asks for it.
fn log_plugins(scenario: &Scenario, wired: &Wired, folder: &RunFolder) -> Result<(), CommandFailure> {
    if !scenario.trace_recorder.plugin_logs {
        return Ok(());
    }
    let created = wired.registry.log_to(folder.path());
    created.map_err(|error| CommandFailure::internal(format!("cannot write the log of plugins: {error}")))
}

/// Creates the folder of a run, named by date in the scenario's `output_dir`.
fn run_folder(scenario: &Scenario, config: &str, copy: &ScenarioCopy) -> Result<RunFolder, CommandFailure> {
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    let name = scenario.name.as_deref();
    let folder = RunFolder::create_named(&scenario.output_dir, name, config, &stamp);
    let folder = folder.and_then(|folder| copy.write(&folder).map(|()| folder));
    folder.map_err(|error| CommandFailure::no_folder(error, OUTPUT_DIR))
}
