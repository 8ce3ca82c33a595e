//! A planned generator: an open workload in a store that is replaced when it trapped, has served enough or is swollen.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{PluginFailure, SessionSource};
use wasmtime::component::ResourceAny;

use crate::bindings::session_generator::Guest;
use crate::instance::Instance;
use crate::text::{cut, grouped};
use crate::workload::Bound;
use crate::{admit, convert};

const OPEN: &str = "workload.open";
const LENGTH: &str = "workload.length";
const SESSIONS: &str = "workload.sessions";
/// Characters of a configuration shown in a report.
const CONFIG: usize = 200;

pub(crate) struct Planned {
    bound: Arc<Bound>,
    open: Option<Open>,
    /// The workload's length, once it was asked.
    length: Option<Option<u64>>,
}

struct Open {
    instance: Instance<Guest>,
    workload: ResourceAny,
    calls: u64,
}

impl Planned {
    /// Opens the workload now, so that a configuration is refused before anything else happens.
    pub(crate) fn open(bound: Arc<Bound>) -> Result<Self, PluginFailure> {
        let open = Some(Open::new(&bound)?);
        Ok(Planned {
            bound,
            open,
            length: None,
        })
    }

    /// The store to call into: the one at hand, or a fresh one.
    fn ready(&mut self) -> Result<&mut Open, PluginFailure> {
        let limits = &self.bound.loaded.host.limits;
        let worn = |open: &Open| {
            open.instance.is_trapped() || open.instance.is_swollen() || open.calls >= limits.calls_per_store
        };
        let open = match self.open.take().filter(|open| !worn(open)) {
            Some(open) => open,
            None => Open::new(&self.bound)?,
        };
        let open = self.open.insert(open);
        open.calls += 1;
        Ok(open)
    }
}

impl Open {
    fn new(bound: &Bound) -> Result<Self, PluginFailure> {
        let mut instance = bound.loaded.planned(&bound.grants)?;
        let input = || Some(format!("config = {}", cut(&bound.config, CONFIG)));
        let opened = instance.call(OPEN, input, |store, guest| {
            guest.workload().call_open(store, &bound.config)
        })?;
        let workload = opened.map_err(|error| convert::refusal(&bound.loaded.name, OPEN, input(), error))?;
        Ok(Open {
            instance,
            workload,
            calls: 0,
        })
    }
}

impl SessionSource for Planned {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        if let Some(known) = self.length {
            return Ok(known);
        }
        let Open {
            instance, workload, ..
        } = self.ready()?;
        let length = instance.call(
            LENGTH,
            || None,
            |store, guest| guest.workload().call_length(store, *workload),
        )?;
        Ok(*self.length.insert(length))
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let length = self.length()?;
        let left = length.map_or(u64::MAX, |length| length.saturating_sub(first));
        let asked = u32::try_from(left).map_or(count, |left| left.min(count));
        if asked == 0 {
            return Ok(Vec::new());
        }
        let input = || format!("first = {first}, count = {asked}");
        let Open {
            instance, workload, ..
        } = self.ready()?;
        let workload = *workload;
        let answer = instance.call(
            SESSIONS,
            || Some(input()),
            |store, guest| guest.workload().call_sessions(store, workload, first, asked),
        )?;
        let sessions = answer
            .map_err(|error| convert::refusal(&self.bound.loaded.name, SESSIONS, Some(input()), error))?;
        let unusable = |why: String| self.bound.unusable(SESSIONS, input(), why);
        if sessions.len() != asked as usize {
            return Err(unusable(miscounted(asked, sessions.len(), length)));
        }
        (first..)
            .zip(sessions)
            .map(|(index, session)| {
                let session = convert::session(session);
                admit::session(&session)
                    .map_err(|why| unusable(format!("session {}: {why}", grouped(index))))?;
                Ok(session)
            })
            .collect()
    }
}

fn miscounted(asked: u32, returned: usize, length: Option<u64>) -> String {
    let of = match length {
        Some(length) => format!("its workload has {}", grouped(length)),
        None => "its workload is endless".into(),
    };
    format!(
        "asked for {} sessions, returned {} ({of})",
        grouped(asked.into()),
        grouped(returned as u64)
    )
}
