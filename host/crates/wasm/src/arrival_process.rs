//! An arrival process: decides when sessions arrive, in batches and in order.

use std::sync::Arc;

use veeksha_manifest::OnTrap;
use veeksha_model::Nanos;
use veeksha_ports::{ArrivalFactory, ArrivalOrder, ArrivalSource, PluginFailure, WorkloadInfo};

use crate::bindings::arrival_process::Guest;
use crate::bound::BoundPlugin;
use crate::convert;
use crate::resource::PinnedResource;

const NEXT: &str = "process.next";

/// A process with a configuration and grants.
pub(crate) struct WasmArrivalFactory {
    bound: Arc<BoundPlugin>,
    info: WorkloadInfo,
}

impl WasmArrivalFactory {
    pub(crate) fn new(bound: Arc<BoundPlugin>, info: WorkloadInfo) -> Self {
        WasmArrivalFactory { bound, info }
    }
}

fn open(bound: Arc<BoundPlugin>) -> Result<Box<dyn ArrivalSource>, PluginFailure> {
    Ok(Box::new(WasmArrivals {
        process: PinnedResource::new(&bound)?,
        bound,
        order: ArrivalOrder::default(),
        answered: Vec::new(),
    }))
}

impl ArrivalFactory for WasmArrivalFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn ArrivalSource>, PluginFailure> {
        open(Arc::clone(&self.bound))
    }

    fn open_silent(&self) -> Result<Box<dyn ArrivalSource>, PluginFailure> {
        open(Arc::new(self.bound.silent()))
    }
}

/// An open process of a component. It keeps its position between calls, so it stays in one store.
struct WasmArrivals {
    bound: Arc<BoundPlugin>,
    process: PinnedResource<Guest>,
    order: ArrivalOrder,
    /// The first session and the number of each answered call, from which a process that trapped is
    /// brought to its position again. Empty if traps are not followed by a restart.
    answered: Vec<(u64, u32)>,
}

impl WasmArrivals {
    fn ask(&mut self, first: u64, count: u32) -> Result<Vec<Nanos>, PluginFailure> {
        let input = || Some(format!("count = {count}, from session {first} on"));
        let answer = self.process.call(NEXT, input, |store, guest, process| {
            store.data_mut().restart_wasi(first, 0);
            guest.process().call_next(store, process, count)
        })?;
        answer.map_err(|error| convert::refusal(&self.bound.loaded.name, NEXT, input(), error))
    }

    /// Opens the process again and repeats the calls that it has answered.
    fn reopen(&mut self) -> Result<(), PluginFailure> {
        self.process = PinnedResource::new(&self.bound)?;
        self.bound.grants.meter.restarted();
        for (first, count) in self.answered.clone() {
            self.ask(first, count)?;
        }
        Ok(())
    }
}

impl ArrivalSource for WasmArrivals {
    fn next(&mut self, count: u32) -> Result<Vec<Nanos>, PluginFailure> {
        let first = self.order.next_session();
        let mut answer = self.ask(first, count);
        if answer
            .as_ref()
            .is_err_and(|failure| self.bound.restarts_after(failure))
        {
            answer = self.reopen().and_then(|()| self.ask(first, count));
        }
        let arrivals = answer?;
        self.order.check(count, &arrivals).map_err(|why| {
            let input = format!("count = {count}, from session {first} on");
            self.bound.unusable(NEXT, Some(input), why)
        })?;
        if self.bound.grants.on_trap == OnTrap::Restart {
            self.answered.push((first, count));
        }
        Ok(arrivals)
    }
}
