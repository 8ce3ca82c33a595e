//! Deterministic WASI for guests that import it, without access to the machine.
//!
//! No files, no environment, no arguments, no sockets. The wall clock is constant, the monotonic
//! clock counts its readings, sleeping takes no time but advances that clock, and random bytes are
//! derived from the run's seed. Clocks and random bytes restart for each session, so that a session
//! does not depend on earlier sessions of the instance. They exist so that guests whose runtime
//! requires them run, with the same result each time.

use std::convert::Infallible;
use std::time::Duration;

use rand_core::TryRng;
use veeksha_stats::{Draws, RandomStream};
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::{HostWallClock, WasiCtx};

use crate::ring::OutputRing;

/// The constant wall clock: 2026-01-01T00:00:00Z.
const WALL_CLOCK: Duration = Duration::from_secs(1_767_225_600);
/// The advance of the monotonic clock with each reading.
const STEP_NANOS: u64 = 1_000;
/// Maximum number of random bytes per call of the guest.
const MAX_RANDOM_BYTES: u64 = 1 << 20;
/// The session whose streams serve calls outside any session. The contract keeps real sessions
/// below 2^53.
pub(crate) const NO_SESSION: u64 = u64::MAX;

/// Returns the WASI context of a store for one call. `call` counts the calls about a session, from
/// 0.
pub(crate) fn stand_ins(seed: u64, session: u64, call: u64, output: &OutputRing) -> WasiCtx {
    let stream = |name: &str| {
        if call == 0 {
            RandomStream::new(seed, session, name)
        } else {
            RandomStream::new(seed, session, &format!("{name}#{call}"))
        }
    };
    let bytes = |name| SeededBytes(stream(name).draws());
    let mut fixed = stream("wasi:random/insecure-seed").draws();
    let insecure_seed = (u128::from(fixed.next_u64()) << 64) | u128::from(fixed.next_u64());
    WasiCtx::builder()
        .stdout(output.clone())
        .stderr(output.clone())
        .wall_clock(ConstantClock)
        .secure_random(bytes("wasi:random/random"))
        .insecure_random(bytes("wasi:random/insecure"))
        .insecure_random_seed(insecure_seed)
        .max_random_size(MAX_RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

struct SeededBytes(Draws);

impl TryRng for SeededBytes {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            chunk.copy_from_slice(&self.0.next_u32().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

struct ConstantClock;

impl HostWallClock for ConstantClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        WALL_CLOCK
    }
}

/// A monotonic clock that advances when it is read and when the guest sleeps.
#[derive(Debug, Default)]
pub(crate) struct StandInClock {
    nanos: u64,
}

/// The marker type that links [`ClockView`].
pub(crate) struct StandInClocks;

impl HasData for StandInClocks {
    type Data<'a> = ClockView<'a>;
}

/// The parts of a store's state that the monotonic clock uses.
pub(crate) struct ClockView<'a> {
    pub(crate) clock: &'a mut StandInClock,
    pub(crate) table: &'a mut ResourceTable,
}

/// A sleep that completes immediately.
struct ElapsedSleep;

#[wasmtime_wasi::async_trait]
impl Pollable for ElapsedSleep {
    async fn ready(&mut self) {}
}

impl monotonic_clock::Host for ClockView<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        self.clock.nanos = self.clock.nanos.saturating_add(STEP_NANOS);
        Ok(self.clock.nanos)
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(STEP_NANOS)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.clock.nanos = self.clock.nanos.max(when);
        let elapsed = self.table.push(ElapsedSleep)?;
        subscribe(self.table, elapsed)
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.clock.nanos = self.clock.nanos.saturating_add(duration);
        let elapsed = self.table.push(ElapsedSleep)?;
        subscribe(self.table, elapsed)
    }
}
