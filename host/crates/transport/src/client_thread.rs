//! One client thread: a current-thread runtime, a connection pool, and a task for each request in flight.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};
use veeksha_model::{ErrorClass, FailureReason, Nanos, StampSource};
use veeksha_ports::{Outcome, Timings};

use crate::TransportError;
use crate::exchange::{Progress, Route, exchange};
use crate::flight::Ticket;
use crate::pool::Pool;
use veeksha_dialect::Failure;

/// Threads that one client thread may use to resolve names; each new connection resolves its own.
const MAX_RESOLVERS: usize = 8;

/// What a client thread is told.
pub(crate) enum Command {
    /// Send this request.
    Send(Box<Ticket>),
    /// Give up everything in flight.
    CancelAll,
    /// Give up everything in flight and end.
    Stop,
}

/// A running client thread.
pub(crate) struct ClientThread {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) thread: Option<JoinHandle<()>>,
}

impl ClientThread {
    /// Starts the thread.
    pub(crate) fn start(index: usize, route: Route, timeout: Duration) -> Result<Self, TransportError> {
        let failed = |source| TransportError::Thread { index, source };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_RESOLVERS)
            .build()
            .map_err(failed)?;
        let (commands, inbox) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new()
            .name(format!("client-{index}"))
            .spawn(move || run(runtime, inbox, route, timeout))
            .map_err(failed)?;
        Ok(ClientThread {
            commands,
            thread: Some(thread),
        })
    }
}

fn run(runtime: Runtime, mut inbox: mpsc::UnboundedReceiver<Command>, route: Route, timeout: Duration) {
    let (cancel, _) = watch::channel(());
    LocalSet::new().block_on(&runtime, async {
        let shared = Rc::new(Shared { route, timeout, pool: RefCell::new(Pool::default()) });
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                command = inbox.recv() => match command {
                    Some(Command::Send(ticket)) => {
                        let picked_up_at = shared.route.clock.now();
                        tasks.spawn_local(serve(Rc::clone(&shared), ticket, picked_up_at, cancel.subscribe()));
                    }
                    Some(Command::CancelAll) => {
                        cancel.send_replace(());
                    }
                    Some(Command::Stop) | None => break,
                },
                // A task that panicked has paid its outcome through its ticket.
                Some(_) = tasks.join_next() => {}
            }
        }
        inbox.close();
        cancel.send_replace(());
        // Jobs that were not begun: their tickets pay.
        while inbox.recv().await.is_some() {}
        while tasks.join_next().await.is_some() {}
    });
    // A name that still resolves must not hold up the end.
    runtime.shutdown_background();
}

/// What the tasks of one client thread share.
struct Shared {
    route: Route,
    timeout: Duration,
    pool: RefCell<Pool>,
}

/// Brings one job to its outcome.
async fn serve(
    shared: Rc<Shared>,
    ticket: Box<Ticket>,
    picked_up_at: Nanos,
    mut cancel: watch::Receiver<()>,
) {
    let Some(job) = ticket.job() else { return };
    let mut progress = Progress::default();
    let end = tokio::select! {
        biased;
        _ = cancel.changed() => Err(Failure::new(ErrorClass::Cancelled, "the request was withdrawn")),
        ended = tokio::time::timeout(shared.timeout, exchange(&shared.route, &shared.pool, job, &mut progress)) => {
            match ended {
                Ok(end) => end,
                Err(_) => Err(Failure::new(ErrorClass::Timeout, String::new())),
            }
        }
    };
    let end = end.map_err(|failure| with_phase(failure, &progress, shared.timeout));
    let timings = Timings {
        picked_up_at: Some(picked_up_at),
        sent_at: progress.stamps.as_ref().and_then(|stamps| stamps.sent_at()),
        first_byte_at: progress.stamps.as_ref().and_then(|stamps| stamps.first_byte_at()),
        completed_at: 0,
        stamps: StampSource::Read,
    };
    let (connection, status) = (progress.connection, progress.status);
    let verdict = progress.verdict(end);
    let completed_at = verdict.completed_at.unwrap_or_else(|| shared.route.clock.now());
    ticket.deliver(|job| Outcome {
        timings: Timings {
            completed_at,
            ..timings
        },
        connection,
        status,
        chunks: verdict.chunks,
        result: verdict.result.map_err(|failure| FailureReason {
            request: job.id,
            class: failure.class,
            status: failure.status,
            message: shared.route.target.redact(&failure.message),
            at: completed_at,
        }),
        codec_failure: None,
        job,
    });
}

/// Says where a request was when it was given up.
fn with_phase(failure: Failure, progress: &Progress, timeout: Duration) -> Failure {
    match failure.class {
        ErrorClass::Timeout => {
            let message = format!("the total deadline of {timeout:?} passed {}", progress.phase());
            Failure { message, ..failure }
        }
        ErrorClass::Cancelled => {
            let message = format!("{} {}", failure.message, progress.phase());
            Failure { message, ..failure }
        }
        _ => failure,
    }
}
