//! State of one client thread that its tasks share: the flights with their deadlines, and one
//! buffer for all reads.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::AbortHandle;
use veeksha_endpoint::{BodyEnd, Failure};
use veeksha_model::{ErrorClass, Nanos, RequestId};

use crate::alarm::Alarm;
use crate::connecting::OpeningStep;
use crate::flight::Flight;
use crate::receive_stats::ThreadCounters;
use crate::received::MIN_BUDGET;
use crate::receiver::Receiver;
use crate::route::Route;
use crate::ticket::{Delivery, Ticket};

/// Size in bytes of the buffer that all reads of a thread share.
const READ_BUFFER: usize = 64 * 1024;

/// Maximum number of bytes that may wait to be decoded, over all answers of a thread.
const WAITING_BYTES: usize = 4 << 20;

/// Maximum number of those bytes in one answer.
const MAX_BUDGET: usize = 16 * 1024;

/// State that the tasks of one client thread share, except its connections.
pub(crate) struct ClientContext {
    pub(crate) route: Arc<Route>,
    pub(crate) receiver: Rc<Receiver>,
    pub(crate) buffer: RefCell<Box<[u8]>>,
    delivery: Arc<Delivery>,
    counters: Arc<ThreadCounters>,
    flights: RefCell<FlightTable>,
    pub(crate) alarm: Alarm,
}

/// All flights of a thread. They have the same time limit, so the first flight has the earliest
/// deadline.
#[derive(Default)]
struct FlightTable {
    entries: BTreeMap<u64, FlightEntry>,
    numbers: HashMap<RequestId, u64>,
    next: u64,
    looked_at: Nanos,
    /// Flights whose connections are or were being opened, ordered by their connect deadline.
    opening: VecDeque<(Nanos, u64)>,
}

impl FlightTable {
    fn remove(&mut self, number: u64) -> Option<FlightEntry> {
        let entry = self.entries.remove(&number)?;
        self.numbers.remove(&entry.request);
        Some(entry)
    }
}

struct FlightEntry {
    request: RequestId,
    flight: Rc<RefCell<Flight>>,
    /// `None` until the task has been spawned.
    task: Option<AbortHandle>,
}

impl ClientContext {
    pub(crate) fn new(
        route: Arc<Route>,
        delivery: Arc<Delivery>,
        counters: Arc<ThreadCounters>,
        alarm: Alarm,
    ) -> Self {
        let receiver = Receiver::new(route.clock, route.realtime, Arc::clone(&counters));
        ClientContext {
            receiver,
            route,
            delivery,
            counters,
            buffer: RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()),
            flights: RefCell::default(),
            alarm,
        }
    }

    /// Returns the number of bytes of one answer that may wait to be decoded. It decreases as the
    /// number of requests in flight increases.
    pub(crate) fn budget(&self) -> usize {
        let in_flight = self.delivery.in_flight.load(Ordering::Relaxed).max(1);
        (WAITING_BYTES / in_flight).clamp(MIN_BUDGET, MAX_BUDGET)
    }

    /// Creates the flight of a ticket that the thread takes now.
    pub(crate) fn take_off(&self, ticket: Ticket) -> Rc<RefCell<Flight>> {
        let picked_up_at = self.route.clock.now();
        let request = ticket.request();
        let (route, counters) = (Arc::clone(&self.route), Arc::clone(&self.counters));
        let mut flights = self.flights.borrow_mut();
        let number = flights.next;
        flights.next += 1;
        let flight = Flight::new(ticket, number, route, counters, picked_up_at);
        let flight = Rc::new(RefCell::new(flight));
        flights.numbers.insert(request, number);
        let entry = FlightEntry {
            request,
            flight: Rc::clone(&flight),
            task: None,
        };
        flights.entries.insert(number, entry);
        flight
    }

    /// Records the task of a flight. Has no effect if the flight is no longer in the list.
    pub(crate) fn set_task(&self, number: u64, task: AbortHandle) {
        if let Some(entry) = self.flights.borrow_mut().entries.get_mut(&number) {
            entry.task = Some(task);
        }
    }

    /// Removes a flight from the list.
    pub(crate) fn remove(&self, number: u64) {
        self.flights.borrow_mut().remove(number);
    }

    /// Returns the next instant at which a flight reaches its deadline or the flights must be
    /// checked, or `None` if there is none.
    pub(crate) fn next_look(&self) -> Option<Nanos> {
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
    pub(crate) fn look(&self) {
        let now = self.route.clock.now();
        let timeout = nanos(self.route.request_timeout);
        loop {
            let Some(entry) = self.take_first_if(|flight| flight.began_at().saturating_add(timeout) <= now)
            else {
                break;
            };
            let words = format!("the total deadline of {:?} passed", self.route.request_timeout);
            entry.end(BodyEnd::Broken(Failure::new(ErrorClass::Timeout, words)));
        }
        while let Some(entry) = self.take_unopened(now) {
            let failure = self.not_opened(&entry.flight.borrow());
            entry.end(BodyEnd::Broken(failure));
        }
        let mut flights = self.flights.borrow_mut();
        if now.saturating_sub(flights.looked_at) < self.look_every() {
            return;
        }
        flights.looked_at = now;
        let over: Vec<u64> = flights
            .entries
            .iter()
            .filter(|(_, entry)| entry.flight.borrow_mut().poll_lingering(now))
            .map(|(number, _)| *number)
            .collect();
        let over: Vec<FlightEntry> = over.iter().filter_map(|number| flights.remove(*number)).collect();
        drop(flights);
        over.into_iter().for_each(|entry| entry.end(BodyEnd::Complete));
    }

    /// Takes a flight whose connection was not opened in time.
    fn take_unopened(&self, now: Nanos) -> Option<FlightEntry> {
        let mut flights = self.flights.borrow_mut();
        loop {
            let (by, number) = flights.opening.front().copied().filter(|(by, _)| *by <= now)?;
            flights.opening.pop_front();
            let entry = flights.entries.get(&number);
            if entry.is_some_and(|entry| entry.flight.borrow().opening().by.get() == Some(by)) {
                return flights.remove(number);
            }
        }
    }

    fn not_opened(&self, flight: &Flight) -> Failure {
        let opening = flight.opening();
        let (step, server) = (opening.step.get(), opening.used.get().server);
        let server = &self.route.servers[usize::from(server)];
        let (class, place) = match step {
            OpeningStep::Handshaking => (ErrorClass::Tls, server.address.place()),
            _ => (ErrorClass::Connect, server.first_hop()),
        };
        let limit = self.route.connect_timeout.unwrap_or_default();
        let words = step.description();
        Failure::new(
            class,
            format!("{place}: the limit of {limit:?} for connecting passed {words}"),
        )
    }

    /// Cancels a request as its workload wishes: the outcome is the part of the answer that has
    /// arrived. Has no effect on one that is not in flight.
    pub(crate) fn cancel(&self, request: RequestId) {
        let mut flights = self.flights.borrow_mut();
        let number = flights.numbers.get(&request).copied();
        let entry = number.and_then(|number| flights.remove(number));
        drop(flights);
        if let Some(entry) = entry {
            entry.end(BodyEnd::Cancelled);
        }
    }

    /// Cancels all flights.
    pub(crate) fn cancel_all(&self) {
        while let Some(entry) = self.take_first_if(|_| true) {
            let words = "the request was withdrawn";
            entry.end(BodyEnd::Broken(Failure::new(ErrorClass::Cancelled, words)));
        }
    }

    fn take_first_if(&self, wanted: impl FnOnce(&Flight) -> bool) -> Option<FlightEntry> {
        let mut flights = self.flights.borrow_mut();
        let (&number, first) = flights.entries.first_key_value()?;
        let is_wanted = wanted(&first.flight.borrow());
        is_wanted.then(|| flights.remove(number))?
    }
}

impl FlightEntry {
    /// Delivers the outcome and aborts the task, which drops its connection.
    fn end(self, end: BodyEnd) {
        self.flight.borrow_mut().land(end);
        if let Some(task) = self.task {
            task.abort();
        }
    }
}

fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
