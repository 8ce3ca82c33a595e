//! State shared by all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit};
use tokio::sync::{Notify, Semaphore};
use veeksha_clock::{RunClock, wall_nanos};

use super::driver::EngineDriver;
use super::metrics::{ServerStats, render};
use super::observed_requests::ObservedRequests;
use super::options::{SimOptions, Tokenize};
use super::truth::TruthLog;
use crate::profile::Profile;

/// Files that the process needs in addition to connections, those that it refuses included.
const OTHER_FILES: u64 = 32;

/// The server's shared state.
pub(super) struct Service {
    pub(super) clock: RunClock,
    pub(super) requests: Arc<ObservedRequests>,
    pub(super) driver: Arc<EngineDriver>,
    pub(super) profile: Profile,
    pub(super) seed: u64,
    pub(super) tokenize: Tokenize,
    /// Permits to tokenize a long prompt on another thread, given in order of arrival. Without a
    /// limit, concurrent prompts share the cores and each takes so long that none is answered.
    pub(super) tokenizer_slots: Semaphore,
    /// Notifies every open connection to close immediately.
    pub(super) cut: Notify,
    connections_total: AtomicU64,
    connections_closed: AtomicU64,
    /// Maximum number of open connections.
    most_connections: u64,
    /// Seconds since 1970 at the server's start: the model's `created`.
    pub(super) created: u64,
}

/// Counts a connection as closed when it is dropped.
pub(super) struct OpenConnection(Arc<Service>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_closed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Half of the cores: the engine's and the network thread need the others.
fn tokenizer_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).max(1)
}

impl Service {
    pub(super) fn new(options: SimOptions, clock: RunClock, driver: Arc<EngineDriver>) -> Self {
        Service {
            clock,
            driver,
            requests: Arc::new(ObservedRequests::new(
                clock,
                TruthLog::new(options.truth_capacity, options.truth_chunks, options.truth_over),
            )),
            profile: options.profile,
            seed: options.seed,
            tokenize: options.tokenize,
            tokenizer_slots: Semaphore::new(tokenizer_threads()),
            cut: Notify::new(),
            connections_total: AtomicU64::new(0),
            connections_closed: AtomicU64::new(0),
            most_connections: getrlimit(Resource::Nofile)
                .current
                .map_or(u64::MAX, |files| files.saturating_sub(OTHER_FILES)),
            created: wall_nanos() / 1_000_000_000,
        }
    }

    pub(super) fn connected(self: &Arc<Self>) -> OpenConnection {
        self.connections_total.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// Returns true if another connection can be served.
    pub(super) fn has_room(&self) -> bool {
        let closed = self.connections_closed.load(Ordering::Relaxed);
        let total = self.connections_total.load(Ordering::Relaxed);
        total.saturating_sub(closed) < self.most_connections
    }

    pub(super) fn stats(&self) -> ServerStats {
        // In this order, because a connection is counted as accepted before it is counted as
        // closed.
        let closed = self.connections_closed.load(Ordering::Relaxed);
        let total = self.connections_total.load(Ordering::Relaxed);
        ServerStats {
            engine: self.driver.stats(),
            connections_total: total,
            connections_open: total.saturating_sub(closed),
            pacing: self.driver.pacing(),
        }
    }

    pub(super) fn metrics(&self) -> String {
        let stats = self.stats();
        render(&stats, &self.requests.latencies())
    }

    /// Returns true if only the number of a prompt's tokens matters, not their values.
    pub(super) fn counts_only(&self) -> bool {
        self.profile.constant.is_some() || !self.profile.prefix_cache
    }
}
