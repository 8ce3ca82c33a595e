//! What happens to the events of a run: evaluator, files, progress line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use veeksha_clock::RunClock;
use veeksha_evaluate::{Evaluation, Evaluator, Fidelity, FidelityReport, FidelitySchedule, Slo};
use veeksha_events::{Event, Status};
use veeksha_model::ErrorClass;
use veeksha_pipeline::Entry;
use veeksha_report::{Progress, ProgressFigures, RecordWriter, ReportError, RunFolder, Trace};
use veeksha_scenario::{Evaluator as EvaluatorConfig, Scenario, Slo as SloConfig};
use veeksha_scheduler::Traffic;

use crate::failure::Failure;
use crate::prefixes::Prefixes;
use crate::say;
use crate::wire_up::Wired;

/// How often the progress line moves.
const REDRAW: Duration = Duration::from_millis(200);

/// What is known when all events have been taken in.
pub(crate) struct Collected {
    /// All figures.
    pub(crate) evaluation: Evaluation,
    /// Whether every line of the record reached its file.
    pub(crate) written: Result<(), ReportError>,
    /// The first message of each kind of failure, and how many there were of the kind.
    pub(crate) failures: BTreeMap<&'static str, (u64, String)>,
    /// How truly a trace was replayed, if one was.
    pub(crate) fidelity: Option<FidelityReport>,
}

/// Whether, and how often, the run says where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Live {
    /// Never.
    Quiet,
    /// A line that moves on a terminal; elsewhere a line each interval, if there is one.
    Every(Option<Duration>),
}

/// Takes in events one by one. The same for a real run (on a thread) and a simulated one (in its loop).
pub(crate) struct Collector {
    evaluator: Evaluator,
    writer: RecordWriter,
    failures: BTreeMap<&'static str, (u64, String)>,
    replay: Option<Replayed>,
}

/// What is kept of a run that replays a trace.
struct Replayed {
    prefixes: Prefixes,
    fidelity: Fidelity,
}

impl Collector {
    pub(crate) fn new(scenario: &Scenario, wired: &Wired, folder: &RunFolder) -> Result<Self, Failure> {
        let trace = if scenario.trace_recorder.enabled {
            Trace::On
        } else {
            Trace::Off
        };
        let writer = folder
            .writer(trace, veeksha_evaluate::latencies)
            .map_err(Failure::internal)?;
        Ok(Collector {
            evaluator: Evaluator::new(slos(scenario)?),
            writer,
            failures: BTreeMap::new(),
            replay: wired.trace.is_some().then(|| Replayed {
                prefixes: Prefixes::new(wired.tokenizer.clone(), &wired.plan.warmup),
                fidelity: Fidelity::new(schedule(wired)),
            }),
        })
    }

    pub(crate) fn take(&mut self, entry: Entry) {
        let Some(replay) = &mut self.replay else {
            self.pass_on(entry);
            return;
        };
        for entry in replay.prefixes.take(entry) {
            if let Some(replay) = &mut self.replay {
                replay.fidelity.on(&entry.event);
            }
            self.pass_on(entry);
        }
    }

    fn pass_on(&mut self, entry: Entry) {
        let Entry { event, content, .. } = entry;
        self.evaluator.on(&event);
        if let Event::Finished(record) = &event
            && let Status::Failed { class, message } = &record.status
            // What was given up at the end is no failure of the server; the table counts it.
            && *class != ErrorClass::Cancelled
        {
            let (count, _) = self
                .failures
                .entry(class.name())
                .or_insert_with(|| (0, message.clone()));
            *count += 1;
        }
        let content = content.map(|content| Arc::from(content.text()));
        self.writer.record(Arc::new(event), content);
    }

    pub(crate) fn finish(self) -> Collected {
        Collected {
            evaluation: self.evaluator.finish(),
            written: self.writer.finish(),
            failures: self.failures,
            fidelity: self.replay.and_then(|replay| replay.fidelity.finish()),
        }
    }

    fn figures(&self, elapsed: f64, sessions_planned: Option<u64>) -> ProgressFigures {
        let live = self.evaluator.live();
        ProgressFigures {
            elapsed,
            sessions: live.sessions_started,
            sessions_planned,
            in_flight: live.in_flight,
            completed: live.completed,
            failed: live.failed,
            ttfc_p50: live.ttfc_p50,
            output_tokens: live.output_tokens,
            client_lag_p99: live.client_lag_p99,
        }
    }
}

/// Starts a thread that collects until every sender is gone.
pub(crate) fn on_a_thread(
    collector: Collector,
    live: Live,
    sessions_planned: Option<u64>,
) -> Result<(Sender<Entry>, JoinHandle<Collected>), Failure> {
    let (sender, entries) = unbounded();
    let body = move || collect(collector, live, sessions_planned, &entries);
    let thread = std::thread::Builder::new().name("collector".into()).spawn(body);
    let thread = thread.map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
    Ok((sender, thread))
}

fn collect(
    mut collector: Collector,
    live: Live,
    sessions_planned: Option<u64>,
    entries: &Receiver<Entry>,
) -> Collected {
    let progress = match live {
        Live::Quiet => Progress::hidden(),
        Live::Every(_) => Progress::on_stderr(),
    };
    let interval = match live {
        Live::Every(Some(interval)) if progress.is_hidden() => interval.as_secs_f64(),
        _ => f64::INFINITY,
    };
    let clock = RunClock::starting_now();
    let (mut drawn, mut said) = (0.0, 0.0);
    let mut disk_named = false;
    loop {
        match entries.recv_timeout(REDRAW) {
            Ok(entry) => collector.take(entry),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let elapsed = clock.now() as f64 / 1e9;
        if elapsed - drawn >= REDRAW.as_secs_f64() && !progress.is_hidden() {
            drawn = elapsed;
            progress.show(&collector.figures(elapsed, sessions_planned));
        }
        if elapsed - said >= interval {
            said = elapsed;
            say::err(collector.figures(elapsed, sessions_planned));
        }
        if !disk_named && let Some(failure) = collector.writer.failed() {
            disk_named = true;
            progress.say(&format!(
                "warning: {failure}; the run goes on, its record is incomplete"
            ));
        }
    }
    progress.finish();
    collector.finish()
}

/// How recorded arrivals lie on the run's clock, where they are replayed.
fn schedule(wired: &Wired) -> Option<FidelitySchedule> {
    let veeksha_pipeline::Schedule { offset, speedup } = wired.plan.schedule;
    (wired.plan.scheduler.traffic == Traffic::Scheduled).then_some(FidelitySchedule {
        offset,
        speedup,
        // The trace counts from the first arrival that is replayed.
        first: Some(0),
    })
}

fn slos(scenario: &Scenario) -> Result<Vec<Slo>, Failure> {
    let mut slos = Vec::new();
    for evaluator in &scenario.evaluators {
        let EvaluatorConfig::Performance(performance) = evaluator;
        for slo in &performance.slos {
            let SloConfig::Constant {
                metric,
                percentile,
                value,
                name,
            } = slo;
            let metric = metric.name().parse().map_err(Failure::usage)?;
            slos.push(Slo {
                name: name.clone(),
                metric,
                percentile: *percentile,
                value: *value,
            });
        }
    }
    Ok(slos)
}

/// How a scenario wants to be told of a run's progress.
pub(crate) fn live_of(scenario: &Scenario) -> Live {
    let every = scenario.evaluators.iter().find_map(|evaluator| {
        let EvaluatorConfig::Performance(performance) = evaluator;
        performance
            .stream_metrics
            .then_some(performance.stream_metrics_interval)
    });
    Live::Every(every.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}
