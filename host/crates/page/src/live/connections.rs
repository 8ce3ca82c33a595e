//! Connections of the live page: accepted, bounded, served.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::Published;
use super::access::Access;
use super::answers::{Events, answer};
use super::patient::Patient;
use crate::html;

/// The largest number of connections; an open page has two.
pub(crate) const MOST_CONNECTIONS: usize = 32;

/// The limit in bytes for a request's head, and for a single write.
const BUFFER: usize = 16 << 10;

/// The time limit for a request's head, and for a connection without a request.
const HEAD: Duration = Duration::from_secs(15);

/// The interval of keep-alive messages on a stream of events.
const ALIVE: Duration = Duration::from_secs(10);

/// The time that open pages have to fetch the last data at the end.
const LAST: Duration = Duration::from_secs(1);

/// The minimum interval between two notifications to one page.
const NOTICE: Duration = Duration::from_millis(100);

/// The state that all connections share.
pub(crate) struct Server {
    pub(crate) access: Access,
    pub(crate) page: Bytes,
    latest: watch::Receiver<Published>,
    /// The number of open streams of events.
    watching: AtomicUsize,
    /// The number of fetches of version `fetched_version`.
    fetched: watch::Sender<(u64, usize)>,
}

impl Server {
    pub(crate) fn new(access: Access, latest: watch::Receiver<Published>) -> Server {
        Server {
            access,
            page: Bytes::from(html::live_page()),
            latest,
            watching: AtomicUsize::new(0),
            fetched: watch::Sender::new((0, 0)),
        }
    }

    /// Serves until it is stopped.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stopped: oneshot::Receiver<()>) {
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
                let server = Arc::clone(&self);
                tokio::spawn(async move {
                    server.connection(stream).await;
                    drop(slot);
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            () = self.until_told(stopped) => {}
        }
    }

    async fn connection(self: &Arc<Self>, stream: TcpStream) {
        // Small notifications should not be delayed by Nagle's algorithm.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| {
            let response = answer(self, &request);
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

    /// Returns the latest data; `counts` records a fetch by a page.
    pub(crate) fn data(&self, counts: bool) -> Arc<str> {
        let published = self.latest.borrow().clone();
        if counts {
            self.fetched.send_modify(|(version, times)| {
                *times = if *version == published.version {
                    *times + 1
                } else {
                    1
                };
                *version = published.version;
            });
        }
        published.data
    }

    /// Returns a stream of version notifications. It buffers two; a reader that does not take them
    /// misses the versions in between.
    pub(crate) fn events(self: &Arc<Self>) -> Events {
        let (sender, receiver) = mpsc::channel(2);
        let server = Arc::clone(self);
        let mut latest = self.latest.clone();
        tokio::spawn(async move {
            server.watching.fetch_add(1, Ordering::Relaxed);
            tell(&mut latest, &sender).await;
            server.watching.fetch_sub(1, Ordering::Relaxed);
        });
        Events::new(receiver)
    }

    /// Waits until the run is over, and every open page has fetched the last data or timed out.
    async fn until_told(&self, stopped: oneshot::Receiver<()>) {
        let _ = stopped.await;
        let last = self.latest.borrow().version;
        let mut fetched = self.fetched.subscribe();
        let all_have = fetched.wait_for(|(version, times)| {
            let watching = self.watching.load(Ordering::Relaxed);
            watching == 0 || (*version == last && *times >= watching)
        });
        if timeout(LAST, all_have).await.is_ok() && self.watching.load(Ordering::Relaxed) > 0 {
            // The last response is being sent.
            sleep(NOTICE).await;
        }
    }
}

async fn tell(latest: &mut watch::Receiver<Published>, sender: &mpsc::Sender<Bytes>) {
    loop {
        let version = latest.borrow_and_update().version;
        let notice = format!("event: data\ndata: {{\"version\":{version}}}\n\n");
        if sender.send(Bytes::from(notice)).await.is_err() {
            return;
        }
        sleep(NOTICE).await;
        loop {
            tokio::select! {
                () = sender.closed() => return,
                changed = latest.changed() => match changed {
                    Ok(()) => break,
                    // There will be no more data; the connection ends with the server.
                    Err(_) => return sender.closed().await,
                },
                () = sleep(ALIVE) => {
                    if sender.send(Bytes::from_static(b": alive\n\n")).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// Rejects a connection with an error, if that can be sent without blocking.
fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 28\r\n\r\ntoo many connections, later\n",
    );
}
