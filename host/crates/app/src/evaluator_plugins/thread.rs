//! Thread for metric plugins and request checks during a run, so that they never delay a dispatch
//! or a completion.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_ports::PluginFailure;

use crate::evaluator_plugins::open::EvaluatorPlugins;
use crate::evaluator_plugins::request_evaluator::{RequestEvaluator, THREAD};
use crate::failure::CommandFailure;

/// The running thread.
pub(crate) struct PluginThread {
    requests: Option<Sender<Arc<Event>>>,
    events: Receiver<Event>,
    thread: JoinHandle<Vec<PluginFailure>>,
}

impl PluginThread {
    /// Starts the thread and waits until it has opened every plugin.
    ///
    /// # Errors
    /// If a plugin cannot be opened; the run does not start without it.
    pub(crate) fn start(plugins: &EvaluatorPlugins) -> Result<PluginThread, CommandFailure> {
        let (requests, inbox) = unbounded::<Arc<Event>>();
        let (outbox, events) = unbounded::<Event>();
        let (opened, ready) = bounded::<Result<(), PluginFailure>>(1);
        let plugins = plugins.clone();
        let body = move || work(&plugins, &inbox, &outbox, &opened);
        let thread = std::thread::Builder::new()
            .name(THREAD.into())
            .spawn(body)
            .map_err(|error| CommandFailure::internal(format!("cannot start a thread: {error}")))?;
        match ready.recv() {
            Ok(Ok(())) => Ok(PluginThread {
                requests: Some(requests),
                events,
                thread,
            }),
            Ok(Err(failure)) => Err(failure.into()),
            Err(_) => Err(CommandFailure::internal("the metrics thread panicked")),
        }
    }

    /// Sends a finished request to the plugins without blocking.
    pub(crate) fn send(&self, event: &Arc<Event>) {
        if let Some(requests) = &self.requests
            && matches!(**event, Event::Finished(_) | Event::RunStarted(_))
        {
            // `finish` reports a thread that has ended.
            let _ = requests.send(Arc::clone(event));
        }
    }

    /// Takes the events that the plugins have produced so far.
    pub(crate) fn drain(&self) -> impl Iterator<Item = Event> + '_ {
        self.events.try_iter()
    }

    /// Waits until the plugins are done. Returns their last events, and their failures.
    pub(crate) fn finish(mut self) -> (Vec<Event>, Vec<PluginFailure>) {
        self.requests = None;
        let events = self.events.iter().collect();
        (events, self.thread.join().unwrap_or_default())
    }
}

fn work(
    plugins: &EvaluatorPlugins,
    inbox: &Receiver<Arc<Event>>,
    outbox: &Sender<Event>,
    opened: &Sender<Result<(), PluginFailure>>,
) -> Vec<PluginFailure> {
    // The channel is closed only if the collector panicked; the events are not needed then.
    let mut emit = |event| drop(outbox.send(event));
    let mut evaluator = match RequestEvaluator::open(plugins, &mut emit) {
        Ok(evaluator) => evaluator,
        Err(failure) => {
            let _ = opened.send(Err(failure));
            return Vec::new();
        }
    };
    let _ = opened.send(Ok(()));
    while let Ok(event) = inbox.recv() {
        if let Event::RunStarted(info) = &*event {
            evaluator = evaluator.timed(RunClock::with_origin(info.epoch_monotonic_nanos));
        }
        evaluator.take(&event, &mut emit);
        // Requests that arrived meanwhile join the batch; an incomplete batch does not wait for
        // more.
        while let Ok(event) = inbox.try_recv() {
            evaluator.take(&event, &mut emit);
        }
        evaluator.flush(&mut emit);
    }
    evaluator.finish(&mut emit)
}
