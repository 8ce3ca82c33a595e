//! WASI for guests that import it: nothing of the machine, and the same in every run.
//!
//! No files, no environment, no arguments, no sockets. The wall clock stands still, the monotonic clock counts its
//! readings, sleeping takes no time but moves that clock, and random bytes follow from the run's seed. A session must not
//! depend on any of these (they are per instance); they exist so that guests whose runtime asks for them still run, and
//! run the same way twice.

use std::convert::Infallible;
use std::time::Duration;

use rand_core::TryRng;
use veeksha_stats::{Draws, RandomStream};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::{HostWallClock, WasiCtx};

use crate::ring::Ring;
use crate::state::HostState;

/// 2026-01-01T00:00:00Z: what every guest believes the time to be.
const WALL_CLOCK: Duration = Duration::from_secs(1_767_225_600);
/// What one reading of the monotonic clock adds to it.
const STEP_NANOS: u64 = 1_000;
/// Random bytes that one call of the guest may ask for.
const RANDOM_BYTES: u64 = 1 << 20;
/// The session under which the stand-ins draw; the contract keeps real sessions below 2^53.
const NO_SESSION: u64 = u64::MAX;

/// The context of one store.
pub(crate) fn stand_ins(seed: u64, output: &Ring) -> WasiCtx {
    let stream = |name| SeededBytes(RandomStream::new(seed, NO_SESSION, name).draws());
    let mut fixed = RandomStream::new(seed, NO_SESSION, "wasi:random/insecure-seed").draws();
    let insecure_seed = (u128::from(fixed.next_u64()) << 64) | u128::from(fixed.next_u64());
    WasiCtx::builder()
        .stdout(output.clone())
        .stderr(output.clone())
        .wall_clock(StoppedClock)
        .secure_random(stream("wasi:random/random"))
        .insecure_random(stream("wasi:random/insecure"))
        .insecure_random_seed(insecure_seed)
        .max_random_size(RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// Links all of WASI 0.2, with our monotonic clock in place of the real one.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_sync(linker)?;
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<HostState, Clocks>(linker, |state| ClockView {
        clock: &mut state.clock,
        table: &mut state.table,
    })?;
    linker.allow_shadowing(false);
    Ok(())
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

struct StoppedClock;

impl HostWallClock for StoppedClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        WALL_CLOCK
    }
}

/// A monotonic clock that moves when it is read and when the guest sleeps.
#[derive(Debug, Default)]
pub(crate) struct StandInClock {
    nanos: u64,
}

struct Clocks;

impl HasData for Clocks {
    type Data<'a> = ClockView<'a>;
}

struct ClockView<'a> {
    clock: &'a mut StandInClock,
    table: &'a mut ResourceTable,
}

/// A sleep that is over at once.
struct Over;

#[wasmtime_wasi::async_trait]
impl Pollable for Over {
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
        let over = self.table.push(Over)?;
        subscribe(self.table, over)
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.clock.nanos = self.clock.nanos.saturating_add(duration);
        let over = self.table.push(Over)?;
        subscribe(self.table, over)
    }
}
