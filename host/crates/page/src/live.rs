//! The page during the run: a small server on a dedicated thread.
//!
//! | route | response |
//! |---|---|
//! | `GET /` | the page, without data |
//! | `GET /data` | the latest [`crate::PageData`] as JSON (`null` before the first) |
//! | `GET /events` | server-sent events: the version of the latest data, after each change |
//!
//! The server is read-only. The number of connections, the bytes read from each and the bytes
//! buffered for each are bounded. The run publishes its data by exchanging a pointer. A slow reader
//! misses the versions between two of its reads; a stalled one is disconnected.

mod access;
mod answers;
mod connections;
mod events;
mod patient;
mod server;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{oneshot, watch};

use crate::error::PageError;
use access::Access;
use connections::serve;
use server::{LiveServer, Published};

/// The server of the live page. Dropping it stops it too.
pub struct LivePage {
    address: SocketAddr,
    latest: watch::Sender<Published>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LivePage {
    /// Listens on `address` (port 0: any free one) and serves until [`stop`](LivePage::stop).
    ///
    /// Without a token only loopback addresses are allowed (`127.0.0.1`, `[::1]`). With one, each
    /// request must present it: once as `?token=`, for which the browser gets a cookie, or as
    /// `Authorization: Bearer`.
    pub fn start(address: SocketAddr, token: Option<String>) -> Result<LivePage, PageError> {
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
            // Sockets register with the runtime in which they are created.
            let _runtime = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(refused)?
        };
        let (latest, reader) = watch::channel(Published {
            version: 0,
            data: Arc::from("null"),
        });
        let (stop, stopped) = oneshot::channel();
        let server = Arc::new(LiveServer::new(access.at(address.port()), reader));
        let thread = std::thread::Builder::new()
            .name("live-page".into())
            .spawn(move || {
                runtime.block_on(serve(server, listener, stopped));
                // Drops the connections that are still open.
                runtime.shutdown_background();
            })
            .map_err(PageError::Thread)?;
        Ok(LivePage {
            address,
            latest,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the address on which it listens, with the actual port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Publishes new data ([`crate::PageData::json`]). Returns immediately, regardless of the
    /// number and speed of readers.
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
            // Fails only if the thread has already ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic of that thread must not abort the run.
            let _ = thread.join();
        }
    }
}

impl Drop for LivePage {
    fn drop(&mut self) {
        self.end();
    }
}
