//! A client thread: a current-thread runtime, its idle connections, one buffer for all reads, and a
//! task for each request in flight.
//!
//! The hot path is a task that only waits for its socket. The thread itself handles deadlines,
//! cancellation and the check for answers whose data have ended without the end of the body: it
//! holds a list of all flights, lands those that are due, and aborts their tasks.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc;
use veeksha_model::RequestId;

use crate::alarm::Alarm;
use crate::client_context::ClientContext;
use crate::config::{HttpProtocol, ThreadStart};
use crate::error::TransportError;
use crate::exchange;
use crate::http2::{self, Http2Connections};
use crate::pool::ConnectionPool;
use crate::receive_stats::ThreadCounters;
use crate::route::Route;
use crate::ticket::{Delivery, Ticket};

/// Maximum number of threads with which one client thread resolves names. Each new connection
/// resolves its own name.
const MAX_RESOLVERS: usize = 8;

/// A command to a client thread.
pub(crate) enum ClientCommand {
    /// Sends this request.
    Send(Box<Ticket>),
    /// Cancels this request, as its workload wishes.
    Cancel(RequestId),
    /// Cancels everything in flight.
    CancelAll,
    /// Cancels everything in flight and ends the thread.
    Stop,
}

/// A running client thread.
pub(crate) struct ClientThread {
    pub(crate) commands: mpsc::UnboundedSender<ClientCommand>,
    pub(crate) counters: Arc<ThreadCounters>,
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
        let counters = Arc::new(ThreadCounters::default());
        let counted = Arc::clone(&counters);
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
                        let context = ClientContext::new(route, delivery, counted, alarm);
                        run(runtime, inbox, &Thread::new(context));
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
            counters,
            thread: Some(thread),
        })
    }
}

fn run(runtime: LocalRuntime, mut inbox: mpsc::UnboundedReceiver<ClientCommand>, thread: &Rc<Thread>) {
    let context = &thread.context;
    runtime.block_on(async {
        loop {
            if let Some(at) = context.next_look() {
                context.alarm.ring_by(at);
            }
            tokio::select! {
                biased;
                command = inbox.recv() => match command {
                    Some(ClientCommand::Send(ticket)) => thread.launch(*ticket),
                    Some(ClientCommand::Cancel(request)) => context.cancel(request),
                    Some(ClientCommand::CancelAll) => context.cancel_all(),
                    Some(ClientCommand::Stop) | None => break,
                },
                _ = context.alarm.rings() => context.look(),
            }
        }
        inbox.close();
        context.cancel_all();
        // Jobs that were not started: their tickets deliver the outcomes when they are dropped.
        while inbox.recv().await.is_some() {}
    });
    // A name resolution that is still in progress must not delay the shutdown.
    runtime.shutdown_background();
}

/// A client thread's state and its connections.
struct Thread {
    context: ClientContext,
    pool: RefCell<ConnectionPool>,
    http2: RefCell<Http2Connections>,
}

impl Thread {
    fn new(context: ClientContext) -> Rc<Self> {
        Rc::new(Thread {
            context,
            pool: RefCell::default(),
            http2: RefCell::default(),
        })
    }

    /// Starts the task of a request.
    fn launch(self: &Rc<Self>, ticket: Ticket) {
        let flight = self.context.take_off(ticket);
        let number = flight.borrow().number();
        let landing = Landing {
            thread: Rc::clone(self),
            number,
        };
        let task = tokio::task::spawn_local(async move {
            let Thread { context, pool, http2 } = &*landing.thread;
            let end = match context.route.http {
                HttpProtocol::Http1 => exchange::exchange(context, pool, &flight).await,
                HttpProtocol::Http2 => Box::pin(http2::exchange(context, http2, &flight)).await,
            };
            flight.borrow_mut().land(end.into());
        });
        self.context.set_task(number, task.abort_handle());
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
        self.thread.context.remove(self.number);
    }
}
