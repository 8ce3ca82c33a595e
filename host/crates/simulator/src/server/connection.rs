//! The network thread: accepts connections, and hands the engine's events to those who wait for them.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::driver::Feed;
use super::routes::Service;

/// How long to wait when no connection can be accepted (usually: too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Serves until told to stop, or until the server is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    mut feed: Feed,
    stopped: oneshot::Receiver<()>,
) {
    let driver = Arc::clone(&service.driver);
    tokio::spawn(async move {
        while let Some(events) = feed.recv().await {
            driver.deliver(events);
        }
    });
    tokio::spawn(accept(listener, service));
    // An error means that the sender is gone: the server is too.
    let _ = stopped.await;
}

async fn accept(listener: TcpListener, service: Arc<Service>) {
    let mut connection = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(stream, Arc::clone(&service), connection));
                connection += 1;
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn converse(stream: TcpStream, service: Arc<Service>, connection: u64) {
    // Without it small writes would wait for acknowledgements. A socket that refuses is about to fail anyway.
    let _ = stream.set_nodelay(true);
    let _open = service.connected();
    let service = service_fn(|request| super::routes::handle(Arc::clone(&service), connection, request));
    // Clients that go away and faults that close the connection end here; both are in the truth log.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
