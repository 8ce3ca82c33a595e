//! A trace flavor: rows go in, sessions come out, one for each group.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{
    Flavor, FlavorFactory, Layout, PluginFailure, TraceFacts, TraceGroup, WorkloadInfo, check_layout,
    name_groups,
};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::trace_flavor::Guest;
use crate::bindings::types::Error;
use crate::instance::Instance;
use crate::opened::{Opened, Opens};
use crate::state::HostState;
use crate::text::grouped;
use crate::workload::Bound;
use crate::{admit, convert, rows, turns};

const LAYOUT: &str = "flavor.layout";
const SESSIONS: &str = "flavor.sessions";
const WARMUP: &str = "flavor.warmup";

impl Opens for Guest {
    const OPEN: &'static str = "flavor.open";

    fn instance(bound: &Bound) -> Result<Instance<Self>, PluginFailure> {
        bound.loaded.flavor(&bound.grants)
    }

    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>> {
        self.flavor().call_open(store, config)
    }
}

/// A flavor with a configuration and grants.
pub(crate) struct Factory {
    pub(crate) bound: Arc<Bound>,
    pub(crate) info: WorkloadInfo,
}

impl FlavorFactory for Factory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn Flavor>, PluginFailure> {
        Ok(Box::new(Traced(Opened::new(Arc::clone(&self.bound))?)))
    }
}

struct Traced(Opened<Guest>);

impl Traced {
    fn refused(&self, function: &str, input: String, error: Error) -> PluginFailure {
        convert::refusal(&self.0.bound.loaded.name, function, Some(input), error)
    }
}

impl Flavor for Traced {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        let layout = self.0.call(
            LAYOUT,
            || None,
            |store, guest, flavor| guest.flavor().call_layout(store, flavor),
        )?;
        let layout = rows::layout(layout);
        match check_layout(&layout) {
            Ok(()) => Ok(layout),
            Err(error) => {
                let mut failure = self.0.bound.unusable(LAYOUT, String::new(), error.to_string());
                failure.input = None;
                Err(failure)
            }
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
        let input = || format!("epoch = {epoch}, {}", name_groups(groups));
        let (facts, rows) = (rows::facts(facts), rows::groups(groups));
        let answer = self.0.call(
            SESSIONS,
            || Some(input()),
            |store, guest, flavor| guest.flavor().call_sessions(store, flavor, &facts, epoch, &rows),
        )?;
        let replays = answer.map_err(|error| self.refused(SESSIONS, input(), error))?;
        let unusable = |why: String| self.0.bound.unusable(SESSIONS, input(), why);
        if replays.len() != groups.len() {
            return Err(unusable(format!(
                "asked for the sessions of {} groups, returned {}; one group gives one session",
                grouped(groups.len() as u64),
                grouped(replays.len() as u64)
            )));
        }
        groups
            .iter()
            .zip(replays)
            .map(|(group, replay)| turns::session(replay).map_err(|why| unusable(about(group, &why))))
            .collect()
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
                admit::session(&session).map_err(|why| {
                    let why = format!("warm-up session {}: {why}", grouped(index));
                    self.0.bound.unusable(WARMUP, input(), why)
                })?;
                Ok(session)
            })
            .collect()
    }
}

/// What is wrong with a group's session.
fn about(group: &TraceGroup, why: &str) -> String {
    format!("group {}: {why}", grouped(group.index))
}
