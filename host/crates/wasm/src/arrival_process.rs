//! An arrival process: decides when sessions arrive, in batches and in order.

use std::sync::Arc;

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
}

impl ArrivalSource for WasmArrivals {
    fn next(&mut self, count: u32) -> Result<Vec<Nanos>, PluginFailure> {
        let first = self.order.next_session();
        let input = || Some(format!("count = {count}, from session {first} on"));
        let answer = self.process.call(NEXT, input, |store, guest, process| {
            store.data_mut().restart_wasi(first, 0);
            guest.process().call_next(store, process, count)
        })?;
        let name = &self.bound.loaded.name;
        let arrivals = answer.map_err(|error| convert::refusal(name, NEXT, input(), error))?;
        self.order
            .check(count, &arrivals)
            .map_err(|why| self.bound.unusable(NEXT, input(), why))?;
        Ok(arrivals)
    }
}
