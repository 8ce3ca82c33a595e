//! A trace flavor: turns groups of rows into sessions.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{
    FlavorFactory, FlavorInstance, Guarantees, Layout, PluginFailure, TraceFacts, TraceGroup, WorkloadInfo,
    check_layout, name_groups,
};

use crate::bindings::trace_flavor::{Facts, Group, Guest};
use crate::bindings::types::Error;
use crate::bound::BoundPlugin;
use crate::call_size::CallSize;
use crate::resource::RenewableResource;
use crate::text::grouped;
use crate::{convert, output_size, rows, validate};

const GUARANTEES: &str = "flavor.guarantees";
const LAYOUT: &str = "flavor.layout";
const SESSIONS: &str = "flavor.sessions";
const WARMUP: &str = "flavor.warmup";

/// A flavor with a configuration and grants.
pub(crate) struct WasmFlavorFactory {
    bound: Arc<BoundPlugin>,
    info: WorkloadInfo,
}

impl WasmFlavorFactory {
    pub(crate) fn new(bound: Arc<BoundPlugin>, info: WorkloadInfo) -> Self {
        WasmFlavorFactory { bound, info }
    }
}

impl FlavorFactory for WasmFlavorFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        Ok(Box::new(WasmFlavor::open(Arc::clone(&self.bound))?))
    }

    fn open_silent(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        Ok(Box::new(WasmFlavor::open(Arc::new(self.bound.silent()))?))
    }

    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        let answer = RenewableResource::<Guest>::new(Arc::clone(&self.bound))?.call(
            GUARANTEES,
            || None,
            |store, guest, flavor| guest.flavor().call_guarantees(store, flavor),
        )?;
        Ok(convert::guarantees(answer))
    }
}

/// An open flavor of a component.
struct WasmFlavor {
    resource: RenewableResource<Guest>,
    call_size: CallSize,
}

impl WasmFlavor {
    fn open(bound: Arc<BoundPlugin>) -> Result<Self, PluginFailure> {
        Ok(WasmFlavor {
            resource: RenewableResource::new(bound)?,
            call_size: CallSize::default(),
        })
    }

    fn refused(&self, function: &str, input: String, error: Error) -> PluginFailure {
        convert::refusal(&self.resource.bound.loaded.name, function, Some(input), error)
    }

    /// Requests the sessions of some groups in one call of the guest.
    fn ask(
        &mut self,
        facts: &Facts,
        epoch: u64,
        groups: &[TraceGroup],
        rows: &[Group],
    ) -> Result<Vec<Session>, PluginFailure> {
        let input = || format!("epoch = {epoch}, {}", name_groups(groups));
        let first = groups.first().map_or(0, |group| group.index);
        // The number that the host gives to the session if the trace keeps its order.
        let number = epoch.wrapping_mul(facts.groups).wrapping_add(first);
        let answer = self.resource.call(
            SESSIONS,
            || Some(input()),
            |store, guest, flavor| {
                store.data_mut().restart_wasi(number, 0);
                guest.flavor().call_sessions(store, flavor, facts, epoch, rows)
            },
        )?;
        let sessions = answer.map_err(|error| self.refused(SESSIONS, input(), error))?;
        let unusable = |why: String| self.resource.bound.unusable(SESSIONS, Some(input()), why);
        if sessions.len() != groups.len() {
            return Err(unusable(format!(
                "asked for the sessions of {} groups, returned {}; one group gives one session",
                grouped(groups.len() as u64),
                grouped(sessions.len() as u64)
            )));
        }
        let sessions: Result<Vec<Session>, PluginFailure> = groups
            .iter()
            .zip(sessions)
            .map(|(group, session)| {
                let session = convert::session(session);
                validate::session(&session)
                    .map_err(|why| unusable(format!("group {}: {why}", grouped(group.index))))?;
                Ok(session)
            })
            .collect();
        let sessions = sessions?;
        let meter = &self.resource.bound.grants.meter;
        meter.passed(output_size::of_sessions(&sessions));
        Ok(sessions)
    }
}

impl FlavorInstance for WasmFlavor {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        let layout = self.resource.call(
            LAYOUT,
            || None,
            |store, guest, flavor| guest.flavor().call_layout(store, flavor),
        )?;
        let layout = rows::layout(layout);
        match check_layout(&layout) {
            Ok(()) => Ok(layout),
            Err(error) => Err(self.resource.bound.unusable(LAYOUT, None, error.to_string())),
        }
    }

    fn sessions(
        &mut self,
        facts: &TraceFacts,
        epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure> {
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let (facts, rows) = (rows::facts(facts), rows::groups(groups));
        // The WASI stand-ins restart with each call, so a session sees the same ones only if it is
        // generated in a separate call.
        let is_alone = self.resource.bound.loaded.uses_wasi();
        let mut sessions = Vec::with_capacity(groups.len());
        while sessions.len() < groups.len() {
            let done = sessions.len();
            let left = groups.len() - done;
            let asked = if is_alone { 1 } else { self.call_size.next(left) };
            let of_call = done..done + asked;
            let mut made = self.ask(&facts, epoch, &groups[of_call.clone()], &rows[of_call])?;
            self.call_size.learn(&made);
            sessions.append(&mut made);
        }
        Ok(sessions)
    }

    fn warmup(&mut self, facts: &TraceFacts, groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        let input = || name_groups(groups);
        let (facts, rows) = (rows::facts(facts), rows::groups(groups));
        let answer = self.resource.call(
            WARMUP,
            || Some(input()),
            |store, guest, flavor| guest.flavor().call_warmup(store, flavor, &facts, &rows),
        )?;
        let sessions = answer.map_err(|error| self.refused(WARMUP, input(), error))?;
        (0..)
            .zip(sessions)
            .map(|(index, session)| {
                let session = convert::session(session);
                validate::session(&session).map_err(|why| {
                    let why = format!("warm-up session {}: {why}", grouped(index));
                    self.resource.bound.unusable(WARMUP, Some(input()), why)
                })?;
                Ok(session)
            })
            .collect()
    }
}
