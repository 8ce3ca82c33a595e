//! Connections of the live page: accepted, bounded, served.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::sleep;

use super::answers::answer;
use super::patient::Patient;
use super::server::LiveServer;

/// The largest number of connections; an open page has two.
pub(crate) const MOST_CONNECTIONS: usize = 32;

/// The limit in bytes for a request's head, and for a single write.
const BUFFER: usize = 16 << 10;

/// The time limit for a request's head, and for a connection without a request.
const HEAD: Duration = Duration::from_secs(15);

/// Serves until it is stopped.
pub(crate) async fn serve(server: Arc<LiveServer>, listener: TcpListener, stopped: oneshot::Receiver<()>) {
    let accepting = async {
        let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, or the peer has disconnected: neither justifies a busy
                // loop.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                turn_away(&stream);
                continue;
            };
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                connection(&server, stream).await;
                drop(slot);
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        () = server.until_fetched(stopped) => {}
    }
}

async fn connection(server: &Arc<LiveServer>, stream: TcpStream) {
    // Small notifications should not be delayed by Nagle's algorithm.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let response = answer(server, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .max_headers(64)
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
    // An error on a reader's connection affects only that reader.
    let _ = connection.await;
}

/// Rejects a connection with an error, if that can be sent without blocking.
fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 28\r\n\r\ntoo many connections, later\n",
    );
}
