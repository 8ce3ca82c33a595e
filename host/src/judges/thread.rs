//! The thread on which metric plugins and request checks work while a run goes on: they never hold up a dispatch or a completion.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_ports::PluginFailure;

use crate::failure::Failure;
use crate::judges::observer::Observer;
use crate::judges::open::Judges;

/// The thread's name, in the record too.
pub(super) const NAME: &str = "metrics-0";

/// The running thread.
pub(crate) struct Watching {
    requests: Option<Sender<Arc<Event>>>,
    said: Receiver<Event>,
    thread: JoinHandle<Vec<PluginFailure>>,
}

impl Watching {
    /// Opens the plugins on a new thread, and waits until they are open. `None` if there is nothing to open.
    pub(crate) fn start(judges: &Judges) -> Result<Option<Watching>, Failure> {
        if !judges.observe_requests() {
            return Ok(None);
        }
        let (requests, inbox) = unbounded::<Arc<Event>>();
        let (outbox, said) = unbounded::<Event>();
        let (opened, ready) = bounded::<Result<(), PluginFailure>>(1);
        let judges = judges.clone();
        let body = move || work(&judges, &inbox, &outbox, &opened);
        let thread = std::thread::Builder::new()
            .name(NAME.into())
            .spawn(body)
            .map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
        match ready.recv() {
            Ok(Ok(())) => Ok(Some(Watching {
                requests: Some(requests),
                said,
                thread,
            })),
            Ok(Err(failure)) => Err(failure.into()),
            Err(_) => Err(Failure::internal("the thread of the metrics has died")),
        }
    }

    /// Shows a finished request to the plugins; returns at once.
    pub(crate) fn show(&self, event: &Arc<Event>) {
        if let Some(requests) = &self.requests
            && matches!(**event, Event::Finished(_) | Event::RunStarted(_))
        {
            // If the thread is gone, `end` says so.
            let _ = requests.send(Arc::clone(event));
        }
    }

    /// What the plugins have said since somebody looked.
    pub(crate) fn said(&self) -> impl Iterator<Item = Event> + '_ {
        self.said.try_iter()
    }

    /// Waits for the plugins to be done; `take` is given what they still have to say. Gives back what went wrong.
    pub(crate) fn end(mut self, mut take: impl FnMut(Event)) -> Vec<PluginFailure> {
        self.requests = None;
        self.said.iter().for_each(&mut take);
        self.thread.join().unwrap_or_default()
    }
}

fn work(
    judges: &Judges,
    inbox: &Receiver<Arc<Event>>,
    outbox: &Sender<Event>,
    opened: &Sender<Result<(), PluginFailure>>,
) -> Vec<PluginFailure> {
    // Nobody listens any more only where the collector has died, and then nothing is wanted.
    let mut said = |event| drop(outbox.send(event));
    let mut observer = match Observer::open(judges, &mut said) {
        Ok(observer) => observer,
        Err(failure) => {
            let _ = opened.send(Err(failure));
            return Vec::new();
        }
    };
    let _ = opened.send(Ok(()));
    while let Ok(event) = inbox.recv() {
        if let Event::RunStarted(info) = &*event {
            observer = observer.timed(RunClock::with_origin(info.epoch_monotonic_nanos));
        }
        observer.take(&event, &mut said);
        // What has come in the meantime joins the batch; where nothing has, nobody waits for a full one.
        while let Ok(event) = inbox.try_recv() {
            observer.take(&event, &mut said);
        }
        observer.flush(&mut said);
    }
    observer.finish(&mut said)
}
