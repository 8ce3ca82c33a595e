//! State of the live page's server: the latest data, and the pages that watch it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::access::Access;
use super::events::EventStream;

/// The interval of keep-alive messages on a stream of events.
const ALIVE: Duration = Duration::from_secs(10);

/// The time that open pages have to fetch the last data at the end.
const LAST: Duration = Duration::from_secs(1);

/// The minimum interval between two notifications to one page.
const NOTICE: Duration = Duration::from_millis(100);

/// The latest data of the page, and its version.
#[derive(Clone)]
pub(super) struct Published {
    pub(super) version: u64,
    pub(super) data: Arc<str>,
}

/// The state that all connections share.
pub(crate) struct LiveServer {
    pub(crate) access: Access,
    latest: watch::Receiver<Published>,
    /// The number of open streams of events.
    watching: AtomicUsize,
    /// The version of the data that was last fetched, and the number of its fetches.
    fetched: watch::Sender<(u64, usize)>,
}

impl LiveServer {
    pub(crate) fn new(access: Access, latest: watch::Receiver<Published>) -> LiveServer {
        LiveServer {
            access,
            latest,
            watching: AtomicUsize::new(0),
            fetched: watch::Sender::new((0, 0)),
        }
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
    pub(crate) fn events(self: &Arc<Self>) -> EventStream {
        let (sender, receiver) = mpsc::channel(2);
        let server = Arc::clone(self);
        let mut latest = self.latest.clone();
        tokio::spawn(async move {
            server.watching.fetch_add(1, Ordering::Relaxed);
            notify(&mut latest, &sender).await;
            server.watching.fetch_sub(1, Ordering::Relaxed);
        });
        EventStream::new(receiver)
    }

    /// Waits until the run is over, and every open page has fetched the last data or timed out.
    pub(crate) async fn until_fetched(&self, stopped: oneshot::Receiver<()>) {
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

async fn notify(latest: &mut watch::Receiver<Published>, sender: &mpsc::Sender<Bytes>) {
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
