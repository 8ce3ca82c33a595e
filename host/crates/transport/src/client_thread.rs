//! A client thread: a current-thread runtime, its idle connections, one buffer for all reads, and a
//! task for each request in flight.
//!
//! The hot path is a task that only waits for its socket. The thread itself handles deadlines,
//! cancellation and the check for answers whose data have ended without the end of the body: it
//! holds a list of all flights, lands those that are due, and aborts their tasks.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use veeksha_endpoint::Failure;
use veeksha_model::{ErrorClass, Nanos};

use crate::alarm::Alarm;
use crate::config::HttpVersion;
use crate::config::ThreadStart;
use crate::connecting::Step;
use crate::error::TransportError;
use crate::exchange;
use crate::figures::ThreadFigures;
use crate::flight::Flight;
use crate::http2;
use crate::pool::Pool;
use crate::received::MIN_BUDGET;
use crate::receiver::Receiver;
use crate::route::Route;
use crate::ticket::{Delivery, Ticket};

/// Maximum number of threads with which one client thread resolves names. Each new connection
/// resolves its own name.
const MAX_RESOLVERS: usize = 8;

/// Size in bytes of the buffer that all reads of a thread share.
const READ_BUFFER: usize = 64 * 1024;

/// Maximum number of bytes that may wait to be decoded, over all answers of a thread.
const WAITING_BYTES: usize = 4 << 20;

/// Maximum number of those bytes in one answer.
const MAX_BUDGET: usize = 16 * 1024;

/// A command to a client thread.
pub(crate) enum Command {
    /// Sends this request.
    Send(Box<Ticket>),
    /// Cancels everything in flight.
    CancelAll,
    /// Cancels everything in flight and ends the thread.
    Stop,
}

/// A running client thread.
pub(crate) struct ClientThread {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) figures: Arc<ThreadFigures>,
    pub(crate) thread: Option<JoinHandle<()>>,
}

impl ClientThread {
    /// Starts the thread.
    pub(crate) fn start(
        index: usize,
        route: Arc<Route>,
        delivery: Arc<Delivery>,
        on_start: Option<ThreadStart>,
    ) -> Result<Self, TransportError> {
        let failed = |source| TransportError::Thread { index, source };
        let (commands, inbox) = mpsc::unbounded_channel();
        let figures = Arc::new(ThreadFigures::default());
        let counted = Arc::clone(&figures);
        // A runtime for tasks that stay on their thread must be built on that thread, so the thread
        // reports the result of building it.
        let (started, start) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(format!("client-{index}"))
            .spawn(move || {
                let runtime = Builder::new_current_thread()
                    .enable_io()
                    .max_blocking_threads(MAX_RESOLVERS)
                    .build_local(LocalOptions::default());
                let alarmed = runtime.and_then(|runtime| {
                    let alarm = runtime.block_on(async { Alarm::new(route.clock) })?;
                    Ok((runtime, alarm))
                });
                match alarmed {
                    Ok((runtime, alarm)) => {
                        if let Some(on_start) = on_start {
                            on_start(index);
                        }
                        let _ = started.send(Ok(()));
                        run(runtime, inbox, Thread::new(route, delivery, counted, alarm));
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                    }
                }
            })
            .map_err(failed)?;
        match start.recv() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed(error)),
            Err(_) => return Err(failed(std::io::Error::other("it ended as it started"))),
        }
        Ok(ClientThread {
            commands,
            figures,
            thread: Some(thread),
        })
    }
}

fn run(runtime: LocalRuntime, mut inbox: mpsc::UnboundedReceiver<Command>, thread: Rc<Thread>) {
    runtime.block_on(async {
        loop {
            if let Some(at) = thread.next_look() {
                thread.alarm.ring_by(at);
            }
            tokio::select! {
                biased;
                command = inbox.recv() => match command {
                    Some(Command::Send(ticket)) => thread.launch(*ticket),
                    Some(Command::CancelAll) => thread.cancel_all(),
                    Some(Command::Stop) | None => break,
                },
                _ = thread.alarm.rings() => thread.look(),
            }
        }
        inbox.close();
        thread.cancel_all();
        // Jobs that were not started: their tickets deliver the outcomes when they are dropped.
        while inbox.recv().await.is_some() {}
    });
    // A name resolution that is still in progress must not delay the shutdown.
    runtime.shutdown_background();
}

/// State that the tasks of one client thread share.
pub(crate) struct Thread {
    pub(crate) route: Arc<Route>,
    pub(crate) receiver: Rc<Receiver>,
    pub(crate) buffer: RefCell<Box<[u8]>>,
    pub(crate) pool: RefCell<Pool>,
    pub(crate) http2: RefCell<http2::Connections>,
    delivery: Arc<Delivery>,
    figures: Arc<ThreadFigures>,
    flights: RefCell<Flights>,
    alarm: Alarm,
}

/// All flights of a thread. They have the same time limit, so the first flight has the earliest
/// deadline.
#[derive(Default)]
struct Flights {
    entries: BTreeMap<u64, Entry>,
    next: u64,
    looked_at: Nanos,
    /// Flights whose connections are or were being opened, ordered by their connect deadline.
    opening: VecDeque<(Nanos, u64)>,
}

struct Entry {
    flight: Rc<RefCell<Flight>>,
    /// `None` until the task has been spawned.
    task: Option<AbortHandle>,
}

impl Thread {
    fn new(
        route: Arc<Route>,
        delivery: Arc<Delivery>,
        figures: Arc<ThreadFigures>,
        alarm: Alarm,
    ) -> Rc<Self> {
        let receiver = Receiver::new(route.clock, route.realtime, Arc::clone(&figures));
        Rc::new(Thread {
            receiver,
            route,
            delivery,
            figures,
            buffer: RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()),
            pool: RefCell::default(),
            http2: RefCell::default(),
            flights: RefCell::default(),
            alarm,
        })
    }

    /// Returns the number of bytes of one answer that may wait to be decoded. It decreases as the
    /// number of requests in flight increases.
    pub(crate) fn budget(&self) -> usize {
        let in_flight = self.delivery.in_flight.load(Ordering::Relaxed).max(1);
        (WAITING_BYTES / in_flight).clamp(MIN_BUDGET, MAX_BUDGET)
    }

    fn launch(self: &Rc<Self>, ticket: Ticket) {
        let picked_up_at = self.route.clock.now();
        let (route, figures) = (Arc::clone(&self.route), Arc::clone(&self.figures));
        let mut flights = self.flights.borrow_mut();
        let number = flights.next;
        flights.next += 1;
        let flight = Flight::new(ticket, number, route, figures, picked_up_at);
        let flight = Rc::new(RefCell::new(flight));
        let landing = Landing {
            thread: Rc::clone(self),
            number,
        };
        let carried = Rc::clone(&flight);
        let task = tokio::task::spawn_local(async move {
            let thread = &landing.thread;
            let end = match thread.route.http {
                HttpVersion::Http1 => exchange::exchange(thread, &carried).await,
                HttpVersion::Http2 => Box::pin(http2::exchange(thread, &carried)).await,
            };
            carried.borrow_mut().land(end);
        });
        let task = Some(task.abort_handle());
        flights.entries.insert(number, Entry { flight, task });
    }

    /// Returns the next instant at which a flight reaches its deadline or the flights must be
    /// checked, or `None` if there is none.
    fn next_look(&self) -> Option<Nanos> {
        let flights = self.flights.borrow();
        let (_, first) = flights.entries.first_key_value()?;
        let deadline = first
            .flight
            .borrow()
            .began_at()
            .saturating_add(nanos(self.route.request_timeout));
        let look = flights.looked_at.saturating_add(self.look_every());
        let opened = flights.opening.front().map_or(Nanos::MAX, |(by, _)| *by);
        Some(deadline.min(look).min(opened))
    }

    /// Records that a connection is about to be opened for a flight, which starts its connect
    /// timeout.
    pub(crate) fn on_opening(&self, flight: &Flight) {
        let Some(limit) = self.route.connect_timeout else {
            return;
        };
        let by = self.route.clock.now().saturating_add(nanos(limit));
        flight.opening().by.set(Some(by));
        self.flights.borrow_mut().opening.push_back((by, flight.number()));
        self.alarm.ring_by(by);
    }

    fn look_every(&self) -> Nanos {
        (nanos(self.route.linger) / 2).clamp(1_000_000, 60_000_000_000)
    }

    /// Lands the flights that have reached their deadline and, periodically, those whose answers
    /// ended without the end of the body.
    fn look(&self) {
        let now = self.route.clock.now();
        let timeout = nanos(self.route.request_timeout);
        loop {
            let Some(entry) = self.take_first_if(|flight| flight.began_at().saturating_add(timeout) <= now)
            else {
                break;
            };
            let words = format!("the total deadline of {:?} passed", self.route.request_timeout);
            entry.end(Err(Failure::new(ErrorClass::Timeout, words)));
        }
        while let Some(entry) = self.take_unopened(now) {
            let failure = self.not_opened(&entry.flight.borrow());
            entry.end(Err(failure));
        }
        let mut flights = self.flights.borrow_mut();
        if now.saturating_sub(flights.looked_at) < self.look_every() {
            return;
        }
        flights.looked_at = now;
        let over: Vec<u64> = flights
            .entries
            .iter()
            .filter(|(_, entry)| entry.flight.borrow_mut().has_lingered(now))
            .map(|(number, _)| *number)
            .collect();
        let over: Vec<Entry> = over
            .iter()
            .filter_map(|number| flights.entries.remove(number))
            .collect();
        drop(flights);
        over.into_iter().for_each(|entry| entry.end(Ok(())));
    }

    /// Takes a flight whose connection was not opened in time.
    fn take_unopened(&self, now: Nanos) -> Option<Entry> {
        let mut flights = self.flights.borrow_mut();
        loop {
            let (by, number) = flights.opening.front().copied().filter(|(by, _)| *by <= now)?;
            flights.opening.pop_front();
            let entry = flights.entries.get(&number);
            if entry.is_some_and(|entry| entry.flight.borrow().opening().by.get() == Some(by)) {
                return flights.entries.remove(&number);
            }
        }
    }

    fn not_opened(&self, flight: &Flight) -> Failure {
        let opening = flight.opening();
        let (step, server) = (opening.step.get(), opening.used.get().server);
        let class = match step {
            Step::Handshaking => ErrorClass::Tls,
            _ => ErrorClass::Connect,
        };
        let place = self.route.places[usize::from(server)].endpoint.place();
        let limit = self.route.connect_timeout.unwrap_or_default();
        let words = step.words();
        Failure::new(
            class,
            format!("{place}: the limit of {limit:?} for connecting passed {words}"),
        )
    }

    fn cancel_all(&self) {
        while let Some(entry) = self.take_first_if(|_| true) {
            let words = "the request was withdrawn";
            entry.end(Err(Failure::new(ErrorClass::Cancelled, words)));
        }
    }

    fn take_first_if(&self, wanted: impl FnOnce(&Flight) -> bool) -> Option<Entry> {
        let mut flights = self.flights.borrow_mut();
        let first = flights.entries.first_entry()?;
        let is_wanted = wanted(&first.get().flight.borrow());
        is_wanted.then(|| first.remove())
    }
}

impl Entry {
    /// Delivers the outcome and aborts the task, which drops its connection.
    fn end(self, end: Result<(), Failure>) {
        self.flight.borrow_mut().land(end);
        if let Some(task) = self.task {
            task.abort();
        }
    }
}

/// Removes a flight from the thread's list when its task ends for any reason. If the flight has not
/// landed by then, its ticket delivers the outcome.
struct Landing {
    thread: Rc<Thread>,
    number: u64,
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.thread.flights.borrow_mut().entries.remove(&self.number);
    }
}

fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
