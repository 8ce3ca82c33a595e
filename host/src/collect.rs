//! What happens to the events of a run while it goes on: figures, files, plugins, progress.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_page::{Live, RunState};
use veeksha_pipeline::Entry;
use veeksha_ports::PluginFailure;
use veeksha_report::{Progress, ProgressFigures, RecordWriter, RunFolder, Trace, stream_line};
use veeksha_scenario::{Evaluator as EvaluatorConfig, Scenario};

use crate::analysis::{Analysed, Analysis, Setup};
use crate::compat::Wanted;
use crate::failure::Failure;
use crate::judges::{Judges, Observer, Watching, judge_run, verdicts_as_events};
use crate::prefixes::Prefixes;
use crate::recording::Recording;
use crate::wire_up::Wired;

/// How often the progress line moves.
const REDRAW: Duration = Duration::from_millis(200);

/// How often the page is told something new.
const PAGE_EVERY: f64 = 1.0;

/// What is known when all events have been taken in.
pub(crate) struct Collected {
    /// All figures.
    pub(crate) analysed: Analysed,
    /// Whether everything of the record reached its files; else why not.
    pub(crate) written: Result<(), String>,
    /// What went wrong in plugins that measure and judge.
    pub(crate) plugin_failures: Vec<PluginFailure>,
}

/// How a run says where it stands.
pub(crate) struct Shown {
    /// Whether a line moves on the terminal: not if the run is to be quiet.
    pub(crate) quiet: bool,
    /// Lines of interim figures.
    pub(crate) lines: Lines,
    /// Sessions that there will be, if that is known.
    pub(crate) sessions_planned: Option<u64>,
    /// The page that is told, if one is served.
    pub(crate) page: Option<Arc<Live>>,
}

/// Where lines of interim figures are printed, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lines {
    /// Nowhere.
    None,
    /// Where nothing moves: standard error is no terminal.
    WhereNothingMoves(Duration),
    /// Everywhere: they were asked for.
    Everywhere(Duration),
}

/// What the scenario and the command line say of interim figures.
pub(crate) fn lines_of(scenario: &Scenario, quiet: bool, asked: Option<Option<f64>>) -> Lines {
    let performance = scenario.evaluators.iter().find_map(|evaluator| match evaluator {
        EvaluatorConfig::Performance(performance) => Some(performance),
        _ => None,
    });
    let interval = |seconds: Option<f64>| {
        let of_scenario = performance.map_or(5.0, |performance| performance.stream_metrics_interval);
        Duration::try_from_secs_f64(seconds.unwrap_or(of_scenario)).unwrap_or(Duration::MAX)
    };
    match asked {
        Some(seconds) => Lines::Everywhere(interval(seconds)),
        None if quiet || !performance.is_some_and(|performance| performance.stream_metrics) => Lines::None,
        None => Lines::WhereNothingMoves(interval(None)),
    }
}

/// Takes in events one by one. The same for a real run (on a thread) and a simulated one (in its loop).
pub(crate) struct Collector {
    analysis: Analysis,
    writer: RecordWriter,
    recording: Recording,
    prefixes: Option<Prefixes>,
    judges: Judges,
    judging: Option<Watching>,
}

impl Collector {
    pub(crate) fn new(
        scenario: &Scenario,
        wired: &Wired,
        folder: &RunFolder,
        wanted: &Wanted,
        config: String,
    ) -> Result<Self, Failure> {
        let trace = if scenario.trace_recorder.enabled {
            Trace::On
        } else {
            Trace::Off
        };
        let recording = Recording::start(folder.path(), &config)?;
        let setup = Setup::of_run(scenario, wired, folder, wanted, config)?;
        let analysis = Analysis::new(setup);
        Ok(Collector {
            analysis,
            writer: folder
                .writer(trace, veeksha_metrics::latencies)
                .map_err(Failure::internal)?,
            recording,
            prefixes: wired
                .plan
                .track_prefixes
                .then(|| Prefixes::new(wired.tokenizer.clone(), &wired.plan.warmup)),
            judges: wired.judges.clone(),
            judging: None,
        })
    }

    /// Opens the plugins that measure and judge requests on a thread of their own.
    pub(crate) fn watch(&mut self) -> Result<(), Failure> {
        self.judging = Watching::start(&self.judges)?;
        self.hear();
        Ok(())
    }

    pub(crate) fn take(&mut self, entry: Entry) {
        match &mut self.prefixes {
            None => self.pass_on(entry),
            Some(prefixes) => {
                for entry in prefixes.take(entry) {
                    self.pass_on(entry);
                }
            }
        }
    }

    fn pass_on(&mut self, entry: Entry) {
        let Entry { event, content, .. } = entry;
        let event = Arc::new(event);
        let content = content.map(|content| Arc::from(content.text()));
        if let Some(watching) = &self.judging {
            watching.show(&event);
        }
        self.keep(event, content);
    }

    /// Into the figures and onto the disk.
    fn keep(&mut self, event: Arc<Event>, content: Option<Arc<str>>) {
        self.analysis.on(&event);
        self.recording.record(&event);
        self.writer.record(event, content);
    }

    /// Takes in what plugins on another thread have said.
    fn hear(&mut self) {
        if let Some(watching) = &self.judging {
            let said: Vec<Event> = watching.said().collect();
            said.into_iter()
                .for_each(|event| self.keep(Arc::new(event), None));
        }
    }

    /// What went wrong first with the files, if anything did so far.
    fn disk_failure(&self) -> Option<&str> {
        self.writer.failed().or_else(|| self.recording.failed())
    }

    pub(crate) fn finish(mut self) -> Collected {
        let mut said = Vec::new();
        let mut plugin_failures = self
            .judging
            .take()
            .map_or_else(Vec::new, |watching| watching.end(|event| said.push(event)));
        said.into_iter()
            .for_each(|event| self.keep(Arc::new(event), None));
        let mut analysed = self.analysis.finish();
        plugin_failures.extend(judge_run(&mut analysed.evaluation, &self.judges.slo_checks));
        for verdict in verdicts_as_events(&analysed.evaluation).map(Arc::new) {
            self.recording.record(&verdict);
            self.writer.record(verdict, None);
        }
        let recorded = self.recording.finish();
        Collected {
            analysed,
            written: self
                .writer
                .finish()
                .map_err(|error| error.to_string())
                .and(recorded),
            plugin_failures,
        }
    }

    fn figures(&self, elapsed: f64, sessions_planned: Option<u64>) -> ProgressFigures {
        self.analysis.progress(elapsed, sessions_planned)
    }
}

/// Collects where the events come from, with the plugins that measure and judge requests in the same place: in virtual time nothing is
/// late.
pub(crate) struct Inline {
    collector: Collector,
    observer: Option<Observer>,
}

impl Inline {
    pub(crate) fn open(mut collector: Collector) -> Result<Self, Failure> {
        let mut said = Vec::new();
        let observer = match collector.judges.observe_requests() {
            true => Some(Observer::open(&collector.judges, |event| said.push(event))?),
            false => None,
        };
        said.into_iter()
            .for_each(|event| collector.keep(Arc::new(event), None));
        Ok(Inline { collector, observer })
    }

    pub(crate) fn take(&mut self, entry: Entry) {
        let finished = match (&self.observer, &entry.event) {
            (Some(_), Event::Finished(_)) => Some(Arc::new(entry.event.clone())),
            _ => None,
        };
        self.collector.take(entry);
        if let (Some(observer), Some(finished)) = (&mut self.observer, finished) {
            let mut said = Vec::new();
            observer.take(&finished, &mut |event| said.push(event));
            said.into_iter()
                .for_each(|event| self.collector.keep(Arc::new(event), None));
        }
    }

    pub(crate) fn finish(mut self) -> Collected {
        let mut said = Vec::new();
        let mut failures = self.observer.map_or_else(Vec::new, |observer| {
            observer.finish(&mut |event| said.push(event))
        });
        said.into_iter()
            .for_each(|event| self.collector.keep(Arc::new(event), None));
        let mut collected = self.collector.finish();
        failures.append(&mut collected.plugin_failures);
        collected.plugin_failures = failures;
        collected
    }
}

/// Starts a thread that collects until every sender is gone.
pub(crate) fn on_a_thread(
    collector: Collector,
    shown: Shown,
) -> Result<(Sender<Entry>, JoinHandle<Collected>), Failure> {
    let (sender, entries) = unbounded();
    let body = move || collect(collector, &shown, &entries);
    let thread = std::thread::Builder::new().name("collector".into()).spawn(body);
    let thread = thread.map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
    Ok((sender, thread))
}

fn collect(mut collector: Collector, shown: &Shown, entries: &Receiver<Entry>) -> Collected {
    let progress = match shown.quiet {
        true => Progress::hidden(),
        false => Progress::on_stderr(),
    };
    let every = match shown.lines {
        Lines::Everywhere(every) => every.as_secs_f64(),
        Lines::WhereNothingMoves(every) if progress.is_hidden() => every.as_secs_f64(),
        Lines::WhereNothingMoves(_) | Lines::None => f64::INFINITY,
    };
    let clock = RunClock::starting_now();
    let (mut drawn, mut said, mut told) = (0.0, 0.0, 0.0);
    let mut disk_named = false;
    loop {
        match entries.recv_timeout(REDRAW) {
            Ok(entry) => collector.take(entry),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        collector.hear();
        let elapsed = clock.now() as f64 / 1e9;
        if elapsed - drawn >= REDRAW.as_secs_f64() && !progress.is_hidden() {
            drawn = elapsed;
            progress.show(&collector.figures(elapsed, shown.sessions_planned));
        }
        if elapsed - said >= every {
            said = elapsed;
            progress.say(&stream_line(&collector.figures(elapsed, shown.sessions_planned)));
        }
        if let Some(page) = shown.page.as_ref().filter(|_| elapsed - told >= PAGE_EVERY) {
            told = elapsed;
            let data = collector.analysis.page_so_far(RunState::Running, elapsed);
            page.publish(data.json().into());
        }
        if !disk_named && let Some(failure) = collector.disk_failure() {
            disk_named = true;
            progress.say(&format!(
                "warning: {failure}; the run goes on, its record is incomplete"
            ));
        }
    }
    progress.finish();
    collector.finish()
}
