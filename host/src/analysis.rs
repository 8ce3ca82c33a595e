//! Everything that is computed from the events of a run: the same for a run that goes on, a simulation, and an old record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use veeksha_compat::{View, ViewReport};
use veeksha_events::{Event, RunInfo, Status};
use veeksha_health::{Expected, Health, HealthReport};
use veeksha_metrics::{
    DecodeWindowConfig, DecodeWindows, Evaluation, Evaluator, Fidelity, FidelityReport, FidelitySchedule,
    PrefillStats, Setup as Measuring,
};
use veeksha_model::ErrorClass;
use veeksha_page::{PageData, RequestSample, Requests, RunState};
use veeksha_ports::WorkloadInfo;
use veeksha_report::{ChromeTrace, ChromeTraceLimits, ProgressFigures, RunFolder};
use veeksha_scenario::{Scenario, Traffic};

use crate::compat::{Exported, Exporting, Wanted};
use crate::failure::Failure;
use crate::wire_up::Wired;
use crate::{evaluators, expected, results, tokenizers};

/// Requests on a page.
const PAGE_REQUESTS: usize = 20_000;

/// Requests on the page of a run that goes on: it is made every second.
const LIVE_REQUESTS: usize = 3_000;

/// What is to be computed, and what of it is known before the first event.
pub(crate) struct Setup {
    /// What the built-in metrics are measured with, and what is asked of them.
    pub(crate) measuring: Measuring,
    /// What the scenario leads one to expect.
    pub(crate) expected: Expected,
    /// In which windows gaps are measured apart.
    pub(crate) decode_windows: Option<DecodeWindowConfig>,
    /// How recorded arrivals lie on the run's clock, of a run that replays a trace.
    pub(crate) fidelity: Option<Option<FidelitySchedule>>,
    /// Other tools in whose definitions the run is told.
    pub(crate) views: Vec<View>,
    /// Another tool's files, and where they go.
    pub(crate) exporting: Option<Exporting>,
    /// What the page says of the run.
    pub(crate) about: About,
}

/// What is known of a run besides its events.
#[derive(Clone, Default)]
pub(crate) struct About {
    /// The folder of the run.
    pub(crate) folder: PathBuf,
    /// The resolved scenario as YAML.
    pub(crate) config: String,
    /// The model, the target, the traffic: in a few words each.
    pub(crate) facts: Vec<(String, String)>,
    /// The plugins: what each does.
    pub(crate) plugins: Vec<(String, WorkloadInfo)>,
    /// What the reader must know.
    pub(crate) remarks: Vec<String>,
    /// How long it takes at most, in seconds.
    pub(crate) planned: Option<f64>,
}

impl About {
    /// What the scenario says of its run, in `folder`; `config` is the resolved scenario as YAML.
    pub(crate) fn of(scenario: &Scenario, folder: &Path, config: String) -> Self {
        let client = &scenario.client;
        let target = match client.targets.as_slice() {
            [] => client.api_base.as_deref().map(veeksha_model::shown_address),
            several => Some(format!("{} servers", several.len())),
        };
        let traffic = match &scenario.traffic_scheduler {
            Traffic::Rate(_) => "open loop".to_owned(),
            Traffic::Concurrent(concurrent) => {
                format!("{} sessions at a time", concurrent.target_concurrent_sessions)
            }
            Traffic::FixedSchedule(_) => "arrivals as recorded".to_owned(),
        };
        let facts = [
            ("Target", target),
            ("Model", client.model.clone()),
            ("Interface", Some(client.kind.name().to_owned())),
            ("Tokenizer", Some(tokenizers::words(client))),
            ("Traffic", Some(traffic)),
            ("Seed", Some(scenario.seed.to_string())),
        ];
        About {
            folder: folder.to_owned(),
            config,
            facts: facts
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect(),
            plugins: Vec::new(),
            remarks: Vec::new(),
            planned: scenario.runtime.timeout().map(|timeout| timeout.as_secs_f64()),
        }
    }
}

impl Setup {
    pub(crate) fn of_run(
        scenario: &Scenario,
        wired: &Wired,
        folder: &RunFolder,
        wanted: &Wanted,
        config: String,
    ) -> Result<Self, Failure> {
        let mut about = About::of(scenario, folder.path(), config);
        about.plugins = plugins(wired);
        Ok(Setup {
            measuring: evaluators::setup(scenario, wired.objectives.clone(), &wired.definitions)?,
            expected: expected::of(scenario),
            decode_windows: evaluators::decode_windows(scenario),
            fidelity: evaluators::fidelity(scenario),
            views: wanted.views(scenario)?,
            exporting: Exporting::start(wanted, scenario, &about)?,
            about,
        })
    }
}

fn plugins(wired: &Wired) -> Vec<(String, WorkloadInfo)> {
    let workload = ("workload".to_owned(), wired.factory.info().clone());
    let judges = wired.judges.infos().into_iter();
    let judges = judges.map(|(role, info)| (role.to_owned(), info.clone()));
    std::iter::once(workload).chain(judges).collect()
}

/// What has been computed so far.
pub(crate) struct Analysis {
    evaluator: Evaluator,
    health: Health,
    prefill: PrefillStats,
    decode_windows: Option<DecodeWindows>,
    fidelity: Option<Fidelity>,
    requests: RequestSample,
    chrome: ChromeTrace,
    views: Vec<View>,
    exporting: Option<Exporting>,
    failures: BTreeMap<&'static str, FirstFailure>,
    started: Option<RunInfo>,
    about: About,
}

/// Failures of one class: how many, and the first.
#[derive(Clone, Debug)]
pub(crate) struct FirstFailure {
    /// How many.
    pub(crate) count: u64,
    /// What the first one said.
    pub(crate) message: String,
    /// Which request that was.
    pub(crate) request: String,
    /// When it ended, in seconds.
    pub(crate) at: f64,
}

/// What has been computed of a whole run.
pub(crate) struct Analysed {
    /// All figures.
    pub(crate) evaluation: Evaluation,
    /// Whether the run did what its scenario asked for.
    pub(crate) health: HealthReport,
    /// How truly a trace was replayed, if one was.
    pub(crate) fidelity: Option<FidelityReport>,
    /// `prefill_stats.json`.
    pub(crate) prefill_stats: Value,
    /// Times to first chunk by prompt length.
    pub(crate) prefill_groups: Vec<(u32, Vec<f64>)>,
    /// `decode_window_metrics.json`, if it was asked for.
    pub(crate) decode_windows: Option<Value>,
    /// The requests that are shown one by one.
    pub(crate) requests: Requests,
    /// `chrome_trace.json`.
    pub(crate) chrome: ChromeTrace,
    /// The run in other tools' definitions.
    pub(crate) views: Vec<ViewReport>,
    /// Another tool's files.
    pub(crate) export: Option<Exported>,
    /// The first message of each kind of failure, and how many there were of the kind.
    pub(crate) failures: BTreeMap<&'static str, FirstFailure>,
    /// The wall clock at the run's zero, if the run is of this world.
    pub(crate) started: Option<RunInfo>,
    /// What is known besides.
    pub(crate) about: About,
}

impl Analysed {
    /// Whether the run was one in virtual time: it began at no time of this world.
    pub(crate) fn is_simulated(&self) -> bool {
        self.started
            .as_ref()
            .is_some_and(|info| info.epoch_wall_nanos == 0)
    }
}

impl Analysis {
    pub(crate) fn new(setup: Setup) -> Self {
        Analysis {
            evaluator: Evaluator::new(setup.measuring),
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

    /// Without figures on the way, for a record that is read to its end.
    pub(crate) fn of_a_record(setup: Setup) -> Self {
        let analysis = Analysis::new(setup);
        Analysis {
            evaluator: analysis.evaluator.without_live(),
            ..analysis
        }
    }

    /// Takes the next event.
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
                    // The table counts what was measured, and what was given up at the end is no failure of the server.
                    && record.measured
                    && *class != ErrorClass::Cancelled
                {
                    let first = || FirstFailure {
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

    /// Where the run stands, for the progress line.
    pub(crate) fn progress(&self, elapsed: f64, sessions_planned: Option<u64>) -> ProgressFigures {
        evaluators::progress(&self.evaluator.live(), elapsed, sessions_planned)
    }

    /// The page of a run that goes on.
    pub(crate) fn page_so_far(&self, state: RunState, elapsed: f64) -> PageData {
        results::so_far(
            &self.about,
            &self.evaluator.live(),
            self.requests.snapshot_of(LIVE_REQUESTS),
            &self.failures,
            state,
            elapsed,
        )
    }

    /// All that can be computed.
    pub(crate) fn finish(self) -> Analysed {
        let prefill_groups = self
            .prefill
            .groups()
            .map(|(length, times)| (length, times.to_vec()))
            .collect();
        Analysed {
            evaluation: self.evaluator.finish(),
            health: self.health.finish(),
            fidelity: self.fidelity.and_then(Fidelity::finish),
            prefill_groups,
            prefill_stats: self.prefill.finish(),
            decode_windows: self.decode_windows.map(DecodeWindows::finish),
            requests: self.requests.finish(),
            chrome: self.chrome,
            views: self.views.into_iter().map(View::finish).collect(),
            export: self.exporting.map(Exporting::finish),
            failures: self.failures,
            started: self.started,
            about: self.about,
        }
    }
}
