//! A planned generator: an open workload.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{PluginFailure, SessionSource};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::session_generator::Guest;
use crate::bindings::types::Error;
use crate::instance::Instance;
use crate::opened::{Opened, Opens};
use crate::state::HostState;
use crate::text::grouped;
use crate::workload::Bound;
use crate::{admit, convert};

const LENGTH: &str = "workload.length";
const SESSIONS: &str = "workload.sessions";

impl Opens for Guest {
    const OPEN: &'static str = "workload.open";

    fn instance(bound: &Bound) -> Result<Instance<Self>, PluginFailure> {
        bound.loaded.planned(&bound.grants)
    }

    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>> {
        self.workload().call_open(store, config)
    }
}

pub(crate) struct Planned {
    workload: Opened<Guest>,
    /// The workload's length, once it was asked.
    length: Option<Option<u64>>,
}

impl Planned {
    pub(crate) fn open(bound: Arc<Bound>) -> Result<Self, PluginFailure> {
        Ok(Planned {
            workload: Opened::new(bound)?,
            length: None,
        })
    }
}

impl SessionSource for Planned {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        if let Some(known) = self.length {
            return Ok(known);
        }
        let length = self.workload.call(
            LENGTH,
            || None,
            |store, guest, workload| guest.workload().call_length(store, workload),
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
        let answer = self.workload.call(
            SESSIONS,
            || Some(input()),
            |store, guest, workload| guest.workload().call_sessions(store, workload, first, asked),
        )?;
        let bound = &self.workload.bound;
        let sessions =
            answer.map_err(|error| convert::refusal(&bound.loaded.name, SESSIONS, Some(input()), error))?;
        let unusable = |why: String| bound.unusable(SESSIONS, input(), why);
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
