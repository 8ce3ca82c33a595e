//! Execution of plans: runs in real time, and simulations in virtual time.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use veeksha_page::Live;
use veeksha_pipeline::Control;
use veeksha_present::{AccuracyContext, Clock, ThreadSettings};
use veeksha_report::RunFolder;
use veeksha_scenario::Scenario;

use crate::collect::{self, Collector, ProgressOutput, interim_lines};
use crate::compat_output::CompatOptions;
use crate::conclusion::{Conclusion, FinishedRun, conclude};
use crate::drive::{Refused, drive, realtime_priority};
use crate::evaluator_plugins::{PluginThread, RequestEvaluator};
use crate::failure::{Failure, OUTPUT_DIR};
use crate::plan::{RunPlan, SimulationPlan};
use crate::scenario_copy::ScenarioCopy;
use crate::{prompts, self_test};

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
    pub page: Option<Arc<Live>>,
    /// The `veeksha-host` binary, which serves as the reference server of a self-test. Without it a
    /// planned self-test is an error.
    pub program: Option<PathBuf>,
}

/// Carries out a run until its scenario ends it or `control` stops it, and writes its folder.
///
/// # Errors
/// If the run could not start or could not be carried out. An unsuccessful run is a [`Conclusion`]
/// with a nonzero exit code.
pub fn run(plan: RunPlan, options: &RunOptions, control: &Control) -> Result<Conclusion, Failure> {
    let RunPlan {
        copy,
        scenario,
        config,
        mut wired,
        target,
        simulator,
        self_test,
    } = plan;
    let folder = run_folder(&scenario, &config, &copy)?;
    let collector = Collector::<PluginThread>::start(&scenario, &wired, &folder, &options.compat, config)?;
    let output = ProgressOutput {
        interim: interim_lines(&scenario, options.quiet, options.stream_metrics),
        quiet: options.quiet,
        sessions_planned: scenario.runtime.session_limit(),
        page: options.page.clone(),
    };
    let (events, thread) = collect::on_a_thread(collector, output)?;
    let refused = Refused::default();
    let ended = drive(&scenario, &mut wired, target, &events, control, &refused);
    drop(events);
    let collected = thread
        .join()
        .map_err(|_| Failure::internal("the collector of results panicked"))?;
    if let Some(server) = simulator {
        server.stop();
    }
    prompts::report(&wired.materializer);
    let end = ended?;
    let test = if self_test {
        SelfTestResult::measure(&scenario, &collected.analysis, options, control)
    } else {
        SelfTestResult::default()
    };
    let refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = ThreadSettings::new(
        &scenario.runtime,
        realtime_priority(&scenario),
        refused.iter().cloned().collect(),
    );
    let accuracy = AccuracyContext {
        self_test: test.measured,
        ..AccuracyContext::new(&scenario, Clock::Real, Some(threads))
    };
    let finished = FinishedRun {
        results: collected.analysis,
        plugin_failures: collected.plugin_failures,
        end: Some(end),
        written: collected.written,
        accuracy,
    };
    let mut conclusion = conclude(Some(&folder), finished, OUTPUT_DIR);
    if let Some(page) = &options.page {
        page.publish(conclusion.page.json().into());
    }
    if test.interrupted {
        let message = "the self-test was interrupted; the results of the run are complete";
        conclusion.messages.push(message.to_owned());
        conclusion.code = veeksha_exit::INTERRUPTED;
    }
    conclusion.failure = conclusion.failure.or(test.failure);
    Ok(conclusion)
}

/// Result of the self-test after a run. The results of the run are written in any case.
#[derive(Default)]
struct SelfTestResult {
    /// Measured error of the client; `None` if the test was not made or was interrupted.
    measured: Option<veeksha_certificate::SelfTest>,
    failure: Option<Failure>,
    interrupted: bool,
}

impl SelfTestResult {
    fn measure(
        scenario: &Scenario,
        analysis: &veeksha_present::RunAnalysis,
        options: &RunOptions,
        control: &Control,
    ) -> Self {
        // An interrupted run is not followed by a test.
        if control.is_stopped() {
            return SelfTestResult::default();
        }
        let measured = self_test::measure(
            scenario,
            &analysis.evaluation,
            options.program.as_deref(),
            control,
        );
        let interrupted = control.is_stopped();
        match measured {
            Ok(measured) => SelfTestResult {
                // An incomplete test is not evidence.
                measured: measured.filter(|_| !interrupted),
                failure: None,
                interrupted,
            },
            Err(failure) => SelfTestResult {
                measured: None,
                failure: Some(failure),
                interrupted,
            },
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
) -> Result<Conclusion, Failure> {
    let SimulationPlan {
        copy,
        scenario,
        config,
        wired,
        target,
    } = plan;
    let folder = run_folder(&scenario, &config, &copy)?;
    let mut collector = Collector::<RequestEvaluator>::start(&scenario, &wired, &folder, compat, config)?;
    let end = veeksha_pipeline::simulate(
        &wired.plan,
        &target,
        &wired.factory,
        &wired.tokenizer,
        &wired.materializer,
        &mut |entry| collector.take(entry),
        control,
    )?;
    let collected = collector.finish();
    let finished = FinishedRun {
        results: collected.analysis,
        plugin_failures: collected.plugin_failures,
        end: Some(end),
        written: collected.written,
        accuracy: AccuracyContext::new(&scenario, Clock::Virtual, None),
    };
    Ok(conclude(Some(&folder), finished, OUTPUT_DIR))
}

/// Creates the folder of a run, named by date in the scenario's `output_dir`.
fn run_folder(scenario: &Scenario, config: &str, copy: &ScenarioCopy) -> Result<RunFolder, Failure> {
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    let name = scenario.name.as_deref();
    let folder = RunFolder::create_named(&scenario.output_dir, name, config, &stamp);
    let folder = folder.and_then(|folder| copy.write(&folder).map(|()| folder));
    folder.map_err(|error| Failure::no_folder(error, OUTPUT_DIR))
}
