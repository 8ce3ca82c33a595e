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

/// Connections at one time; an open page has two.
pub(crate) const MOST_CONNECTIONS: usize = 32;

/// Bytes of a request's head, and of what is written at once.
const BUFFER: usize = 16 << 10;

/// How long a request's head may take to come, and a connection without a request may stay.
const HEAD: Duration = Duration::from_secs(15);

/// How often an open stream of events shows that it is alive.
const ALIVE: Duration = Duration::from_secs(10);

/// How long open pages have, at the end, to fetch the last data.
const LAST: Duration = Duration::from_secs(1);

/// The least time between two notices to one page.
const NOTICE: Duration = Duration::from_millis(100);

/// What all connections share.
pub(crate) struct Server {
    pub(crate) access: Access,
    pub(crate) page: Bytes,
    latest: watch::Receiver<Published>,
    /// Open streams of events.
    watching: AtomicUsize,
    /// How often the version `fetched_version` was fetched.
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

    /// Serves until it is told to stop.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stopped: oneshot::Receiver<()>) {
        let accepting = async {
            let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    // Out of descriptors, or the other side has gone again: neither is a reason to
                    // spin.
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
        // Small notices should not wait for each other.
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
        // What goes wrong on a reader's connection concerns the reader.
        let _ = connection.await;
    }

    /// The latest data; `counts` if a page fetches it.
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

    /// A stream that tells each new version. It holds two notices; a reader that does not take them
    /// misses what comes meanwhile.
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

    /// Until the run is over, and every open page has fetched the last data or had time to.
    async fn until_told(&self, stopped: oneshot::Receiver<()>) {
        let _ = stopped.await;
        let last = self.latest.borrow().version;
        let mut fetched = self.fetched.subscribe();
        let all_have = fetched.wait_for(|(version, times)| {
            let watching = self.watching.load(Ordering::Relaxed);
            watching == 0 || (*version == last && *times >= watching)
        });
        if timeout(LAST, all_have).await.is_ok() && self.watching.load(Ordering::Relaxed) > 0 {
            // The last answer is on its way.
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
                    // Nothing more will come; the connection ends with the server.
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

/// Says that there is no room, if that can be said without waiting.
fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 28\r\n\r\ntoo many connections, later\n",
    );
}
