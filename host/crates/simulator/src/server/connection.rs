//! The network thread: accepts connections, reads requests, and attends to each answer until it is
//! over.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::answer::Sink;
use super::answer_writer::{After, Flushed};
use super::incoming::{ParseState, RequestReader};
use super::routes::{RouteReply, respond, too_long, unreadable};
use super::service::{OpenConnection, Service};
use super::socket::{drain, read, write_all};

/// Pause after a failed accept (usually: too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Maximum duration of a refusal, including the wait for the client to close the connection.
const LONGEST_REFUSAL: Duration = Duration::from_millis(100);
/// Maximum number of bytes of further requests that are read during an answer.
const READ_AHEAD: usize = 64 << 10;
/// Interval between the fillers of an endless body.
const FILLER_PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is stopped or the server is dropped.
pub(super) async fn serve(listener: TcpListener, service: Arc<Service>, stopped: oneshot::Receiver<()>) {
    if let Some(cut_at) = service.profile.faults.cut_at_ms {
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            sleep(Duration::from_secs_f64(cut_at / 1e3)).await;
            service.cut.notify_waiters();
        });
    }
    tokio::spawn(accept(listener, service));
    // An error means that the sender, and thus the server, was dropped.
    let _ = stopped.await;
}

async fn accept(listener: TcpListener, service: Arc<Service>) {
    let delay = Duration::from_secs_f64(service.profile.faults.accept_delay_ms / 1e3);
    let mut connection = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // The client sees an open connection, because the kernel has accepted it.
                if !delay.is_zero() {
                    sleep(delay).await;
                }
                if service.has_room() {
                    tokio::spawn(serve_connection(
                        Arc::new(stream),
                        service.connected(),
                        Arc::clone(&service),
                        connection,
                    ));
                    connection += 1;
                } else {
                    tokio::spawn(timeout(LONGEST_REFUSAL, refuse(stream)));
                }
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers a connection for which there are too few open files. Left unaccepted, it would wait
/// until its timeout, because the kernel has opened it.
async fn refuse(stream: TcpStream) {
    let reason =
        "the simulator has too few open files for another connection; raise the limit with `ulimit -n`";
    if let RouteReply::Bytes(bytes, _) = unreadable(503, reason) {
        let _ = write_all(&stream, &bytes).await;
    }
    // Closing with unread data would reset the connection, and the answer could be lost.
    let _ = shutdown(&stream, Shutdown::Write);
    drain(&stream).await;
}

async fn serve_connection(
    socket: Arc<TcpStream>,
    _open: OpenConnection,
    service: Arc<Service>,
    connection: u64,
) {
    // Without it small writes would wait for acknowledgments. A socket that refuses is about to
    // fail anyway.
    let _ = socket.set_nodelay(true);
    let current = Current::default();
    let serving = serve_requests(&socket, &service, connection, &current);
    tokio::select! {
        () = service.cut.notified() => {
            if let Some(sink) = current.lock().unwrap_or_else(PoisonError::into_inner).take() {
                sink.answer().writer.cut();
            }
        }
        () = serving => {}
    }
}

/// The current answer of a connection.
type Current = Mutex<Option<Arc<Sink>>>;

async fn serve_requests(socket: &Arc<TcpStream>, service: &Arc<Service>, connection: u64, current: &Current) {
    let mut reader = RequestReader::default();
    loop {
        let reply = match reader.next() {
            ParseState::More => match read(socket, &mut reader).await {
                Ok(count) if count > 0 => continue,
                _ => return,
            },
            ParseState::Continue => {
                if write_all(socket, b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err() {
                    return;
                }
                continue;
            }
            ParseState::Bad(status, message) => unreadable(status, &message),
            ParseState::TooLong(request_head) => too_long(service, socket, connection, request_head),
            ParseState::Whole(request) => respond(service, socket, connection, *request).await,
        };
        let after = match reply {
            RouteReply::Bytes(bytes, after) => match write_all(socket, &bytes).await {
                Ok(()) => after,
                Err(_) => return,
            },
            RouteReply::Answer(sink, ticket) => {
                let remember = |now: Option<Arc<Sink>>| {
                    *current.lock().unwrap_or_else(PoisonError::into_inner) = now;
                };
                remember(Some(Arc::clone(&sink)));
                let after = attend(socket, &mut reader, &sink).await;
                if after == Some(After::Endless) {
                    fill(socket, &sink).await;
                    return;
                }
                // The engine may have just released the answer, or not at all if a fault of the
                // wire ended it.
                drop(ticket);
                remember(None);
                match after {
                    Some(after) => after,
                    None => return,
                }
            }
            RouteReply::Nothing => return,
        };
        match after {
            After::KeepAlive => {}
            After::Close | After::Endless => return,
            After::Reset => {
                // Closing then sends a reset; a socket that refuses the option closes regularly.
                let _ = socket.set_zero_linger();
                return;
            }
            After::HalfClose => {
                // A socket that refuses is already closed.
                let _ = shutdown(socket.as_ref(), Shutdown::Write);
                return drain(socket).await;
            }
        }
    }
}

/// Attends to an answer until it is over; `None` if the client disconnected.
async fn attend(socket: &TcpStream, reader: &mut RequestReader, sink: &Arc<Sink>) -> Option<After> {
    loop {
        let (flushed, over) = {
            let mut answer = sink.answer();
            (answer.writer.flush(), answer.writer.over())
        };
        if flushed == Flushed::Broken {
            return None;
        }
        if over.is_some() {
            return over;
        }
        let held = match flushed {
            Flushed::Held(until) => {
                let left = until.saturating_sub(sink.answer().writer.recorder().now());
                Some(Duration::from_nanos(left))
            }
            _ => None,
        };
        tokio::select! {
            () = sink.wake.notified() => {}
            _ = socket.writable(), if flushed == Flushed::Blocked => {}
            () = sleep(held.unwrap_or_default()), if held.is_some() => {}
            count = read(socket, reader), if reader.waiting() < READ_AHEAD => {
                // A client that closes its side is no longer interested.
                if !matches!(count, Ok(1..)) {
                    return None;
                }
            }
        }
    }
}

/// Sends fillers until the client disconnects.
async fn fill(socket: &TcpStream, sink: &Arc<Sink>) {
    loop {
        sink.answer().filler();
        if sink.answer().writer.flush() == Flushed::Broken {
            return;
        }
        tokio::select! {
            () = sleep(FILLER_PAUSE) => {}
            () = drain(socket) => return,
        }
    }
}
