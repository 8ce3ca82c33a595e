//! The page while the run goes on: a small server with a thread of its own.
//!
//! | route | answer |
//! |---|---|
//! | `GET /` | the page, without data |
//! | `GET /data` | the latest [`crate::PageData`] as JSON (`null` before the first) |
//! | `GET /events` | server-sent events: the number of the latest data, whenever there is new |
//!
//! Nothing can be changed through it. Connections, what is read of each and what is kept for each are bounded. The run hands over
//! its data by exchanging a pointer; a reader that is slow misses what lies between two of its reads, and one that stalls is
//! disconnected.

mod access;
mod answers;
mod connections;
mod patient;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{oneshot, watch};

use crate::error::PageError;
use access::Access;
use connections::Server;

/// The data of the page, and how many there have been.
#[derive(Clone)]
struct Published {
    version: u64,
    data: Arc<str>,
}

/// The server of the live page. Dropping it stops it too.
pub struct Live {
    address: SocketAddr,
    latest: watch::Sender<Published>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Listens on `address` (port 0: any free one) and serves until [`stop`](Live::stop).
    ///
    /// Without a token only addresses of this machine are allowed (`127.0.0.1`, `[::1]`). With one,
    /// each request must bring it: once as `?token=`, for which the browser gets a cookie, or as
    /// `Authorization: Bearer`.
    pub fn start(address: SocketAddr, token: Option<String>) -> Result<Live, PageError> {
        let refused = |source| PageError::Listen { address, source };
        let access = Access::new(address, token)?;
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(PageError::Thread)?;
        let listener = {
            // Sockets register themselves with the runtime they are made in.
            let _runtime = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(refused)?
        };
        let (latest, reader) = watch::channel(Published {
            version: 0,
            data: Arc::from("null"),
        });
        let (stop, stopped) = oneshot::channel();
        let server = Arc::new(Server::new(access.at(address.port()), reader));
        let thread = std::thread::Builder::new()
            .name("live-page".into())
            .spawn(move || {
                runtime.block_on(server.serve(listener, stopped));
                // Drops the connections that are still open.
                runtime.shutdown_background();
            })
            .map_err(PageError::Thread)?;
        Ok(Live {
            address,
            latest,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens: with the real port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes this the page's data ([`crate::PageData::json`]). Returns at once, however many read
    /// and however slowly.
    pub fn publish(&self, data: Arc<str>) {
        self.latest.send_modify(|published| {
            published.version += 1;
            published.data = data;
        });
    }

    /// Gives open pages up to a second to fetch the last data, then closes all connections and
    /// waits for the thread to end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Fails only if the thread has already gone.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic there is no reason to lose the run.
            let _ = thread.join();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}
