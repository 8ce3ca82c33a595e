//! A server for a test, and its truth log.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::net::SocketAddr;
use std::sync::Arc;

use veeksha_clock::{RunClock, sleep_until};
use veeksha_simulator::{Faults, Profile, SimOptions, SimServer, TruthRecord};

use crate::client::Connection;

pub(crate) const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// 10 ms for a prompt, 4 ms for a token; a prompt of one token per byte.
pub(crate) fn profile() -> Profile {
    Profile {
        model: "m".into(),
        prefill_base_ms: 10.0,
        prefill_ms_per_token: 0.0,
        decode_base_ms: 4.0,
        decode_ms_per_sequence: 0.0,
        noise_cv: 0.0,
        block_size: 4,
        ..Profile::default()
    }
}

pub(crate) struct Sim {
    pub(crate) server: SimServer,
    pub(crate) clock: RunClock,
}

impl Sim {
    pub(crate) fn start(profile: Profile) -> Self {
        let clock = RunClock::starting_now();
        let bytes = |text: &str| text.bytes().map(u32::from).collect();
        let options = SimOptions {
            tokenize: Arc::new(bytes),
            ..SimOptions::new(profile, 1)
        };
        Sim {
            server: SimServer::start(ANY, options, clock).unwrap(),
            clock,
        }
    }

    pub(crate) fn with(faults: Faults) -> Self {
        Sim::start(Profile { faults, ..profile() })
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.server.addr(), self.clock)
    }

    /// Returns the record of a request, once it is complete.
    pub(crate) fn truth(&self, ordinal: usize) -> TruthRecord {
        self.until(|sim| {
            sim.server
                .truth()
                .get(ordinal)
                .cloned()
                .filter(|record| record.finished_at.is_some())
        })
    }

    pub(crate) fn until<T>(&self, mut ready: impl FnMut(&Sim) -> Option<T>) -> T {
        let deadline = self.clock.now() + 20_000_000_000;
        loop {
            if let Some(value) = ready(self) {
                return value;
            }
            assert!(self.clock.now() < deadline, "waited for 20 s");
            sleep_until(self.clock, self.clock.now() + 1_000_000);
        }
    }
}
