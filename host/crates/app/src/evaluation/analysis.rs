//! Analysis of the events of a run that is in progress, simulated, or recorded.

use std::collections::BTreeMap;
use std::path::Path;

use veeksha_compat::View;
use veeksha_events::{Event, RunInfo, Status};
use veeksha_health::{Expected, Health};
use veeksha_metrics::{
    DecodeWindowRules, DecodeWindows, Fidelity, FidelitySchedule, PrefillStats, RunEvaluator,
    Setup as MetricSetup,
};
use veeksha_model::ErrorClass;
use veeksha_page::{PageData, RequestSample, RunState};
use veeksha_present::{FailureClass, RunAnalysis, RunDescription, page};
use veeksha_report::{ChromeTrace, ChromeTraceLimits, ProgressStats, RunFolder};
use veeksha_scenario::{Client, NamedClient, Scenario};

use crate::cores::cores;
use crate::evaluation::builtin_evaluator;
use crate::evaluation::compat_output::{CompatOptions, Exporting};
use crate::evaluation::health_expectation;
use crate::execution::wiring::Wired;
use crate::failure::CommandFailure;
use crate::workload::tokenizers;

/// Maximum number of requests on the page of a finished run.
const PAGE_REQUESTS: usize = 20_000;

/// Maximum number of requests on the live page, which is made every second.
const LIVE_REQUESTS: usize = 3_000;

/// The configuration of an analysis.
pub(crate) struct AnalysisSetup {
    /// Built-in metrics and objectives.
    pub(crate) metrics: MetricSetup,
    /// Expectations of the health checks.
    pub(crate) expected: Expected,
    /// Windows in which gaps are measured separately.
    pub(crate) decode_windows: Option<DecodeWindowRules>,
    /// Mapping of recorded arrivals to the clock of the run, if it replays a trace.
    pub(crate) fidelity: Option<Option<FidelitySchedule>>,
    /// Views of the run in the definitions of other tools.
    pub(crate) views: Vec<View>,
    /// Files in the format of another tool.
    pub(crate) exporting: Option<Exporting>,
    /// Facts about the run for its page.
    pub(crate) about: RunDescription,
}

/// Describes a run of `scenario` in `folder`; `config` is the resolved scenario as YAML.
pub(crate) fn describe(scenario: &Scenario, folder: &Path, config: String) -> RunDescription {
    let client = &scenario.client;
    let target = address(client);
    let facts = [
        ("Target", target),
        ("Model", client.model.clone()),
        ("Endpoint", Some(client.kind.name().to_owned())),
        ("Tokenizer", Some(tokenizers::describe(client))),
        ("Traffic", Some(scenario.traffic_scheduler.description())),
        ("Seed", Some(scenario.seed.to_string())),
    ];
    RunDescription {
        name: scenario.name.clone(),
        description: scenario.description.clone(),
        tags: scenario.tags.clone(),
        folder: folder.to_owned(),
        config,
        facts: facts
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .chain(scenario.all_clients().skip(1).map(client_fact))
            .collect(),
        plugins: Vec::new(),
        remarks: Vec::new(),
        cores: cores(),
        planned: scenario.runtime.timeout().map(|timeout| timeout.as_secs_f64()),
    }
}

fn address(client: &Client) -> Option<String> {
    match client.targets.as_slice() {
        [] => client.api_base.as_deref().map(veeksha_model::redact_address),
        several => Some(format!("{} servers", several.len())),
    }
}

fn client_fact(named: NamedClient<'_>) -> (String, String) {
    let client = named.client;
    let parts = [
        address(client),
        client.model.clone(),
        Some(client.kind.name().to_owned()),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    (format!("Client {}", named.name), text)
}

impl AnalysisSetup {
    pub(crate) fn of_run(
        scenario: &Scenario,
        wired: &Wired,
        folder: &RunFolder,
        compat: &CompatOptions,
        config: String,
    ) -> Result<Self, CommandFailure> {
        let mut about = describe(scenario, folder.path(), config);
        about.plugins = wired.plugins();
        Ok(AnalysisSetup {
            metrics: builtin_evaluator::setup(scenario, wired.objectives.clone(), &wired.definitions)?,
            expected: health_expectation::of(scenario),
            decode_windows: builtin_evaluator::decode_windows(scenario),
            fidelity: builtin_evaluator::fidelity(scenario),
            views: compat.views(scenario)?,
            exporting: Exporting::start(compat, scenario, &about)?,
            about,
        })
    }
}

/// The state of an analysis.
pub(crate) struct Analysis {
    evaluator: RunEvaluator,
    health: Health,
    prefill: PrefillStats,
    decode_windows: Option<DecodeWindows>,
    fidelity: Option<Fidelity>,
    requests: RequestSample,
    chrome: ChromeTrace,
    views: Vec<View>,
    exporting: Option<Exporting>,
    failures: BTreeMap<&'static str, FailureClass>,
    started: Option<RunInfo>,
    about: RunDescription,
}

impl Analysis {
    pub(crate) fn new(setup: AnalysisSetup) -> Self {
        Analysis {
            evaluator: RunEvaluator::new(setup.metrics),
            health: Health::new(setup.expected),
            prefill: PrefillStats::new(),
            decode_windows: setup.decode_windows.map(DecodeWindows::new),
            fidelity: setup.fidelity.map(Fidelity::new),
            requests: RequestSample::new(PAGE_REQUESTS),
            chrome: ChromeTrace::new(ChromeTraceLimits::default()),
            views: setup.views,
            exporting: setup.exporting,
            failures: BTreeMap::new(),
            started: None,
            about: setup.about,
        }
    }

    /// Creates an analysis without interim values, for a record that is read to its end.
    pub(crate) fn of_a_record(setup: AnalysisSetup) -> Self {
        let analysis = Analysis::new(setup);
        Analysis {
            evaluator: analysis.evaluator.without_live(),
            ..analysis
        }
    }

    /// Processes the next event.
    pub(crate) fn on(&mut self, event: &Event) {
        self.evaluator.on(event);
        self.health.on(event);
        self.requests.on(event);
        self.chrome.on(event);
        if let Some(fidelity) = &mut self.fidelity {
            fidelity.on(event);
        }
        self.views.iter_mut().for_each(|view| view.on(event));
        if let Some(exporting) = &mut self.exporting {
            exporting.on(event);
        }
        match event {
            Event::RunStarted(info) => self.started = Some(info.clone()),
            Event::Finished(record) => {
                self.prefill.on(record);
                if let Some(windows) = &mut self.decode_windows {
                    windows.on(record);
                }
                if let Status::Failed { class, message } = &record.status
                    // Only measured requests count, and a cancellation at the end is not a failure
                    // of the server.
                    && record.measured
                    && *class != ErrorClass::Cancelled
                {
                    let first = || FailureClass {
                        count: 0,
                        message: message.clone(),
                        request: record.id.to_string(),
                        at: record.completed_at as f64 / 1e9,
                    };
                    self.failures.entry(class.name()).or_insert_with(first).count += 1;
                }
            }
            _ => {}
        }
    }

    /// Returns the interim values for the progress line.
    pub(crate) fn progress(&self, elapsed: f64, sessions_planned: Option<u64>) -> ProgressStats {
        builtin_evaluator::progress(&self.evaluator.live(), elapsed, sessions_planned)
    }

    /// Returns the live page.
    pub(crate) fn page_so_far(&self, state: RunState, elapsed: f64) -> PageData {
        page::in_progress(
            &self.about,
            &self.evaluator.live(),
            self.requests.snapshot_of(LIVE_REQUESTS),
            &self.failures,
            state,
            elapsed,
        )
    }

    /// Computes the results.
    pub(crate) fn finish(self) -> RunAnalysis {
        let prefill_groups = self
            .prefill
            .groups()
            .map(|(length, times)| (length, times.to_vec()))
            .collect();
        let evaluation = self.evaluator.finish();
        let slice = evaluation.slices.length;
        RunAnalysis {
            divergence: None,
            evaluation,
            health: self.health.finish(),
            fidelity: self.fidelity.and_then(Fidelity::finish),
            prefill_groups,
            prefill_stats: self.prefill.finish(),
            decode_windows: self.decode_windows.map(DecodeWindows::finish),
            requests: self.requests.finish(),
            chrome: self.chrome,
            views: self.views.into_iter().map(View::finish).collect(),
            export: self.exporting.map(|exporting| exporting.finish(slice)),
            failures: self.failures,
            started: self.started,
            about: self.about,
            plugin_usage: Vec::new(),
        }
    }
}
