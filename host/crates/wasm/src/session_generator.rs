//! A session generator: whole sessions, generated in advance.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{Guarantees, PluginFailure, SessionSource};

use crate::bindings::session_generator::Guest;
use crate::bound::BoundPlugin;
use crate::call_size::CallSize;
use crate::resource::RenewableResource;
use crate::text::grouped;
use crate::{convert, output_size, validate};

const GUARANTEES: &str = "workload.guarantees";
const LENGTH: &str = "workload.length";
const SESSIONS: &str = "workload.sessions";

/// An open workload of a component.
pub(crate) struct WasmSessions {
    workload: RenewableResource<Guest>,
    /// The workload's length, after the first query; the inner `None` is an endless workload.
    length: Option<Option<u64>>,
    call_size: CallSize,
}

impl WasmSessions {
    pub(crate) fn open(bound: Arc<BoundPlugin>) -> Result<Self, PluginFailure> {
        Ok(WasmSessions {
            workload: RenewableResource::new(bound)?,
            length: None,
            call_size: CallSize::default(),
        })
    }

    /// Asks for the properties that all sessions share.
    pub(crate) fn guarantees(&mut self) -> Result<Guarantees, PluginFailure> {
        let answer = self.workload.call(
            GUARANTEES,
            || None,
            |store, guest, workload| guest.workload().call_guarantees(store, workload),
        )?;
        Ok(convert::guarantees(answer))
    }

    /// Requests some sessions in one call of the guest.
    fn ask(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let input = || Some(format!("first = {first}, count = {count}"));
        let answer = self.workload.call(SESSIONS, input, |store, guest, workload| {
            store.data_mut().restart_wasi(first, 0);
            guest.workload().call_sessions(store, workload, first, count)
        })?;
        let bound = &self.workload.bound;
        let sessions =
            answer.map_err(|error| convert::refusal(&bound.loaded.name, SESSIONS, input(), error))?;
        let unusable = |why: String| bound.unusable(SESSIONS, input(), why);
        if sessions.len() != count as usize {
            let length = self.length.flatten();
            return Err(unusable(miscounted(count, sessions.len(), length)));
        }
        let sessions: Result<Vec<Session>, PluginFailure> = (first..)
            .zip(sessions)
            .map(|(index, session)| {
                let session = convert::session(session);
                validate::session(&session)
                    .map_err(|why| unusable(format!("session {}: {why}", grouped(index))))?;
                Ok(session)
            })
            .collect();
        let sessions = sessions?;
        bound.grants.meter.passed(output_size::of_sessions(&sessions));
        Ok(sessions)
    }
}

impl SessionSource for WasmSessions {
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
        let count = u32::try_from(left).map_or(count, |left| left.min(count));
        if count == 0 {
            return Ok(Vec::new());
        }
        // The WASI stand-ins restart with each call, so a session sees the same ones only if it is
        // generated in a separate call.
        let is_alone = self.workload.bound.loaded.uses_wasi();
        let mut sessions = Vec::with_capacity(count as usize);
        while sessions.len() < count as usize {
            let left = count as usize - sessions.len();
            let asked = if is_alone { 1 } else { self.call_size.next(left) };
            let mut made = self.ask(first.saturating_add(sessions.len() as u64), asked as u32)?;
            self.call_size.learn(&made);
            sessions.append(&mut made);
        }
        Ok(sessions)
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
