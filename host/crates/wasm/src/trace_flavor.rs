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
        let flavor = RenewableResource::new(Arc::clone(&self.bound))?;
        Ok(Box::new(WasmFlavor(flavor)))
    }

    fn open_silent(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        let flavor = RenewableResource::new(Arc::new(self.bound.silent()))?;
        Ok(Box::new(WasmFlavor(flavor)))
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
struct WasmFlavor(RenewableResource<Guest>);

impl WasmFlavor {
    fn refused(&self, function: &str, input: String, error: Error) -> PluginFailure {
        convert::refusal(&self.0.bound.loaded.name, function, Some(input), error)
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
        let answer = self.0.call(
            SESSIONS,
            || Some(input()),
            |store, guest, flavor| {
                store.data_mut().restart_wasi(number, 0);
                guest.flavor().call_sessions(store, flavor, facts, epoch, rows)
            },
        )?;
        let sessions = answer.map_err(|error| self.refused(SESSIONS, input(), error))?;
        let unusable = |why: String| self.0.bound.unusable(SESSIONS, Some(input()), why);
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
        let meter = &self.0.bound.grants.meter;
        meter.passed(output_size::of_sessions(&sessions));
        Ok(sessions)
    }
}

impl FlavorInstance for WasmFlavor {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        let layout = self.0.call(
            LAYOUT,
            || None,
            |store, guest, flavor| guest.flavor().call_layout(store, flavor),
        )?;
        let layout = rows::layout(layout);
        match check_layout(&layout) {
            Ok(()) => Ok(layout),
            Err(error) => Err(self.0.bound.unusable(LAYOUT, None, error.to_string())),
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
        if !self.0.bound.loaded.uses_wasi() {
            return self.ask(&facts, epoch, groups, &rows);
        }
        // The WASI stand-ins restart with each call, so a session sees the same ones only if it is
        // generated in a separate call.
        let mut sessions = Vec::with_capacity(groups.len());
        for (group, row) in groups.chunks(1).zip(rows.chunks(1)) {
            sessions.append(&mut self.ask(&facts, epoch, group, row)?);
        }
        Ok(sessions)
    }

    fn warmup(&mut self, facts: &TraceFacts, groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        let input = || name_groups(groups);
        let (facts, rows) = (rows::facts(facts), rows::groups(groups));
        let answer = self.0.call(
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
                    self.0.bound.unusable(WARMUP, Some(input()), why)
                })?;
                Ok(session)
            })
            .collect()
    }
}
