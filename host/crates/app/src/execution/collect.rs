//! Distribution of a run's events while it is in progress: to the analysis, the record, the plugins
//! and the progress output.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use veeksha_clock::RunClock;
use veeksha_decisions::DecisionWriter;
use veeksha_events::Event;
use veeksha_page::{LivePage, RunState};
use veeksha_pipeline::EventEntry;
use veeksha_ports::PluginFailure;
use veeksha_present::RunAnalysis;
use veeksha_report::{LineWriter, ProgressLine, ProgressStats, RunFolder, TraceFile, stream_line};
use veeksha_scenario::{Evaluator as EvaluatorConfig, Scenario};

use crate::evaluation::analysis::{Analysis, AnalysisSetup};
use crate::evaluation::compat_output::CompatOptions;
use crate::evaluator_plugins::{
    EvaluatorPlugins, PluginThread, RequestEvaluator, run_slo_checks, verdict_events,
};
use crate::execution::prefix_tracking::Prefixes;
use crate::execution::wiring::Wired;
use crate::failure::CommandFailure;
use crate::record::recording::Recording;
use crate::workload::recorded_decisions;

/// Interval between updates of the progress line.
const REDRAW: Duration = Duration::from_millis(200);

/// Interval between updates of the live page, in seconds.
const PAGE_EVERY: f64 = 1.0;

/// Result of a collector, after all events.
pub(crate) struct Collected {
    /// Results that were computed from the events.
    pub(crate) analysis: RunAnalysis,
    /// Reason why the record is incomplete on disk, if it is.
    pub(crate) written: Result<(), String>,
    /// Failures of metrics, request checks and SLO checks.
    pub(crate) plugin_failures: Vec<PluginFailure>,
}

impl Collected {
    /// Compares the decisions of the run with those of the run that its scenario names.
    pub(crate) fn compare_decisions(&mut self, wired: &Wired, folder: &RunFolder) {
        let recorded = wired.recorded_run.as_ref();
        self.analysis.divergence =
            recorded.and_then(|recorded| recorded_decisions::divergence(recorded, folder.path()));
    }
}

/// Progress output of a run.
pub(crate) struct ProgressOutput {
    /// Suppresses the progress line.
    pub(crate) quiet: bool,
    /// Lines of interim metrics.
    pub(crate) interim: InterimLines,
    /// Number of sessions of the run, if it is known.
    pub(crate) sessions_planned: Option<u64>,
    /// Live page to update.
    pub(crate) page: Option<Arc<LivePage>>,
}

/// Condition and interval of lines with interim metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum InterimLines {
    /// Never.
    Off,
    /// Only if standard error is not a terminal, where the progress line replaces them.
    WithoutTerminal(Duration),
    /// Always: the command line requested them.
    Always(Duration),
}

/// Returns the interim output that the scenario and the command line request. `requested` is the
/// flag of the command line, with its optional interval in seconds.
pub(crate) fn interim_lines(
    scenario: &Scenario,
    quiet: bool,
    requested: Option<Option<f64>>,
) -> InterimLines {
    let performance = scenario.evaluators.iter().find_map(|evaluator| match evaluator {
        EvaluatorConfig::Performance(performance) => Some(performance),
        _ => None,
    });
    let interval = |seconds: Option<f64>| {
        let of_scenario = performance.map_or(5.0, |performance| performance.stream_metrics_interval);
        Duration::try_from_secs_f64(seconds.unwrap_or(of_scenario)).unwrap_or(Duration::MAX)
    };
    match requested {
        Some(seconds) => InterimLines::Always(interval(seconds)),
        None if quiet || !performance.is_some_and(|performance| performance.stream_metrics) => {
            InterimLines::Off
        }
        None => InterimLines::WithoutTerminal(interval(None)),
    }
}

/// Plugins that evaluate requests, opened before the folder of a run is created: a run that cannot
/// start because of them leaves no folder.
pub(crate) struct OpenedPlugins<P> {
    /// `None` if no plugin needs the requests.
    plugins: Option<P>,
    /// The metrics that they define.
    definitions: Vec<Event>,
}

impl<P: RequestPlugins> OpenedPlugins<P> {
    /// Opens the plugins of a run.
    ///
    /// # Errors
    /// If a plugin cannot be opened.
    pub(crate) fn open(evaluators: &EvaluatorPlugins) -> Result<Self, CommandFailure> {
        let mut definitions = Vec::new();
        let plugins = if evaluators.need_requests() {
            Some(P::open(evaluators, &mut |event| definitions.push(event))?)
        } else {
            None
        };
        Ok(OpenedPlugins { plugins, definitions })
    }
}

/// Execution of the plugins that evaluate requests.
pub(crate) trait RequestPlugins: Sized {
    /// Opens the plugins; their metric definitions go to `emit`.
    fn open(plugins: &EvaluatorPlugins, emit: &mut dyn FnMut(Event)) -> Result<Self, CommandFailure>;

    /// Passes on a finished request. Events that are ready go to `emit`.
    fn take(&mut self, event: &Arc<Event>, emit: &mut dyn FnMut(Event));

    /// Passes the events that the plugins have produced meanwhile to `emit`.
    fn drain(&mut self, emit: &mut dyn FnMut(Event));

    /// Waits for the plugins. Their last events go to `emit`; returns their failures.
    fn finish(self, emit: &mut dyn FnMut(Event)) -> Vec<PluginFailure>;
}

/// Runs the plugins on a separate thread, because they must not delay the collector of a run in
/// real time.
impl RequestPlugins for PluginThread {
    fn open(plugins: &EvaluatorPlugins, emit: &mut dyn FnMut(Event)) -> Result<Self, CommandFailure> {
        let mut thread = PluginThread::start(plugins)?;
        RequestPlugins::drain(&mut thread, emit);
        Ok(thread)
    }

    fn take(&mut self, event: &Arc<Event>, _: &mut dyn FnMut(Event)) {
        self.send(event);
    }

    fn drain(&mut self, emit: &mut dyn FnMut(Event)) {
        PluginThread::drain(self).for_each(emit);
    }

    fn finish(self, emit: &mut dyn FnMut(Event)) -> Vec<PluginFailure> {
        let (events, failures) = PluginThread::finish(self);
        events.into_iter().for_each(emit);
        failures
    }
}

/// Runs the plugins in the collector, because in virtual time nothing is late.
impl RequestPlugins for RequestEvaluator {
    fn open(plugins: &EvaluatorPlugins, emit: &mut dyn FnMut(Event)) -> Result<Self, CommandFailure> {
        Ok(RequestEvaluator::open(plugins, emit)?)
    }

    fn take(&mut self, event: &Arc<Event>, emit: &mut dyn FnMut(Event)) {
        RequestEvaluator::take(self, event, emit);
    }

    fn drain(&mut self, _: &mut dyn FnMut(Event)) {}

    fn finish(self, emit: &mut dyn FnMut(Event)) -> Vec<PluginFailure> {
        RequestEvaluator::finish(self, emit)
    }
}

/// Takes in the events of a run one by one.
pub(crate) struct Collector<P> {
    analysis: Analysis,
    writer: LineWriter,
    recording: Recording,
    /// `None` if the decisions of agents are not recorded.
    decisions: Option<DecisionWriter>,
    prefixes: Prefixes,
    evaluators: EvaluatorPlugins,
    /// `None` if no plugin needs the requests.
    request_plugins: Option<P>,
}

impl<P: RequestPlugins> Collector<P> {
    /// Starts the record of a run in `folder`.
    pub(crate) fn start(
        scenario: &Scenario,
        wired: &Wired,
        folder: &RunFolder,
        compat: &CompatOptions,
        config: String,
        opened: OpenedPlugins<P>,
    ) -> Result<Self, CommandFailure> {
        let trace = if scenario.trace_recorder.enabled {
            TraceFile::On
        } else {
            TraceFile::Off
        };
        let recording = Recording::start(folder.path(), &config, wired.plan.run_id.as_deref())?;
        let setup = AnalysisSetup::of_run(scenario, wired, folder, compat, config)?;
        let writer = folder.writer(trace);
        let mut collector = Collector {
            analysis: Analysis::new(setup),
            writer: writer.map_err(CommandFailure::internal)?,
            recording,
            decisions: None,
            prefixes: Prefixes::new(
                wired.tokenizer.clone(),
                &wired.plan.warmup,
                wired.tracked,
                wired.caches.clone(),
            ),
            evaluators: wired.evaluators.clone(),
            request_plugins: opened.plugins,
        };
        collector.keep_all(opened.definitions);
        Ok(collector)
    }

    /// Notifies the writer of decisions of the sessions that start.
    pub(crate) fn with_decisions(self, decisions: Option<DecisionWriter>) -> Self {
        Collector { decisions, ..self }
    }

    /// Processes the next event of the pipeline.
    pub(crate) fn take(&mut self, entry: EventEntry) {
        for entry in self.prefixes.take(entry) {
            self.pass_on(entry);
        }
    }

    fn pass_on(&mut self, entry: EventEntry) {
        let EventEntry { event, content, .. } = entry;
        let event = Arc::new(event);
        let content = content.map(|content| Arc::from(content.text()));
        let mut events = Vec::new();
        if let Some(plugins) = &mut self.request_plugins {
            plugins.take(&event, &mut |event| events.push(event));
        }
        self.keep(event, content);
        self.keep_all(events);
    }

    /// Passes an event to the analysis and to the record.
    fn keep(&mut self, event: Arc<Event>, content: Option<Arc<str>>) {
        if let (Event::SessionStarted { session, .. }, Some(decisions)) = (&*event, &self.decisions) {
            decisions.sender().session_started(*session);
        }
        self.analysis.on(&event);
        self.recording.record(&event);
        self.writer.record(event, content);
    }

    fn keep_all(&mut self, events: Vec<Event>) {
        for event in events {
            self.keep(Arc::new(event), None);
        }
    }

    /// Processes the events that plugins have produced so far.
    fn take_plugin_events(&mut self) {
        let mut events = Vec::new();
        if let Some(plugins) = &mut self.request_plugins {
            plugins.drain(&mut |event| events.push(event));
        }
        self.keep_all(events);
    }

    /// Returns the first error of the files so far.
    fn disk_failure(&self) -> Option<&str> {
        self.writer.failed().or_else(|| self.recording.failed())
    }

    /// Waits for plugins and files, calls the SLO checks, and computes the results.
    pub(crate) fn finish(mut self) -> Collected {
        let mut events = Vec::new();
        let plugins = self.request_plugins.take();
        let mut plugin_failures = plugins.map_or_else(Vec::new, |plugins| {
            plugins.finish(&mut |event| events.push(event))
        });
        self.keep_all(events);
        let mut analysis = self.analysis.finish();
        let checks = &self.evaluators.slo_checks;
        plugin_failures.extend(run_slo_checks(&mut analysis, checks));
        for verdict in verdict_events(&analysis.evaluation).map(Arc::new) {
            self.recording.record(&verdict);
            self.writer.record(verdict, None);
        }
        let recorded = self.recording.finish();
        let decisions = self.decisions.map_or(Ok(()), DecisionWriter::finish);
        let lines = self.writer.finish().map_err(|error| error.to_string());
        analysis.evaluation.end.unrecorded = recorded.is_err();
        Collected {
            analysis,
            written: lines.and(recorded).and(decisions),
            plugin_failures,
        }
    }

    fn progress(&self, elapsed: f64, sessions_planned: Option<u64>) -> ProgressStats {
        self.analysis.progress(elapsed, sessions_planned)
    }
}

/// Starts a thread that collects until all senders are closed.
pub(crate) fn on_a_thread(
    collector: Collector<PluginThread>,
    output: ProgressOutput,
) -> Result<(Sender<EventEntry>, JoinHandle<Collected>), CommandFailure> {
    let (sender, entries) = unbounded();
    let body = move || collect(collector, &output, &entries);
    let thread = std::thread::Builder::new().name("collector".into()).spawn(body);
    let thread =
        thread.map_err(|error| CommandFailure::internal(format!("cannot start a thread: {error}")))?;
    Ok((sender, thread))
}

fn collect(
    mut collector: Collector<PluginThread>,
    output: &ProgressOutput,
    entries: &Receiver<EventEntry>,
) -> Collected {
    let progress = if output.quiet {
        ProgressLine::hidden()
    } else {
        ProgressLine::on_stderr()
    };
    let interval = match output.interim {
        InterimLines::Always(interval) => interval.as_secs_f64(),
        InterimLines::WithoutTerminal(interval) if progress.is_hidden() => interval.as_secs_f64(),
        InterimLines::WithoutTerminal(_) | InterimLines::Off => f64::INFINITY,
    };
    let clock = RunClock::starting_now();
    let (mut drawn, mut printed, mut published) = (0.0, 0.0, 0.0);
    let mut disk_failure_reported = false;
    loop {
        match entries.recv_timeout(REDRAW) {
            Ok(entry) => collector.take(entry),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        collector.take_plugin_events();
        let elapsed = clock.now() as f64 / 1e9;
        if elapsed - drawn >= REDRAW.as_secs_f64() && !progress.is_hidden() {
            drawn = elapsed;
            progress.show(&collector.progress(elapsed, output.sessions_planned));
        }
        if elapsed - printed >= interval {
            printed = elapsed;
            progress.print_line(&stream_line(
                &collector.progress(elapsed, output.sessions_planned),
            ));
        }
        if let Some(page) = output.page.as_ref().filter(|_| elapsed - published >= PAGE_EVERY) {
            published = elapsed;
            let data = collector.analysis.page_so_far(RunState::Running, elapsed);
            page.publish(data.json().into());
        }
        if !disk_failure_reported && let Some(failure) = collector.disk_failure() {
            disk_failure_reported = true;
            progress.print_line(&format!(
                "warning: {failure}; the run continues. The refused part of the record is kept in memory (up to \
                 64 MiB per table) and is lost if it cannot be written by the end of the run"
            ));
        }
    }
    progress.finish();
    collector.finish()
}
