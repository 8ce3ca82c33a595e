//! `sessions = function(index, rng)`: whole sessions, generated in advance.

use mlua::{Function, Value};
use veeksha_model::Session;
use veeksha_ports::{PluginFailure, SessionSource};

use crate::fault::LuaFault;
use crate::rng::Rng;
use crate::session;
use crate::vm::Vm;

/// A session function in a separate virtual machine.
pub(crate) struct Planned {
    pub(crate) vm: Vm,
    pub(crate) function: Function,
    /// The plugin's name in messages.
    pub(crate) plugin: String,
    /// The requested number of sessions; reduced to the index at which the function ended the
    /// workload.
    pub(crate) length: Option<u64>,
    /// True after the first session of this machine was created twice with equal results.
    pub(crate) proven: bool,
}

impl Planned {
    /// Returns session `index`; `None` after the end of the workload.
    fn session(&self, index: u64) -> Result<Option<Session>, LuaFault> {
        self.vm.host.enter(index);
        let seed = self.vm.host.seed;
        let value = self.vm.call(|lua| {
            let rng = lua.create_userdata(Rng::new(seed, index, ""))?;
            self.function.call::<Value>((index as f64, rng))
        })?;
        if value.is_nil() {
            if index == 0 {
                let message = "it returned nothing for the first session (index 0), so there is nothing to send; \
                               end the function with `return { requests = { ... } }`";
                return Err(LuaFault::at(&self.function, message));
            }
            return Ok(None);
        }
        session::read(&value, ", or nil where the workload ends")
            .map(Some)
            .map_err(|why| LuaFault::at(&self.function, why))
    }

    /// Creates `index` a second time. Detects functions that keep state.
    fn prove(&self, index: u64, first: &Option<Session>) -> Result<(), LuaFault> {
        let was_quiet = self.vm.host.log.quiet.replace(true);
        let second = self.session(index);
        self.vm.host.log.quiet.set(was_quiet);
        if second? == *first {
            return Ok(());
        }
        Err(LuaFault::at(
            &self.function,
            format!(
                "session {index} came out differently when it was made again: the function must depend on `index` and `rng` \
             alone, so it must not change locals or tables outside itself"
            ),
        ))
    }

    fn failure(&self, fault: LuaFault, index: u64) -> PluginFailure {
        let fault = self.vm.quote(fault);
        fault.into_failure(&self.plugin, "sessions", Some(format!("index = {index}")))
    }
}

impl SessionSource for Planned {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(self.length)
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let mut sessions = Vec::new();
        for index in first..first.saturating_add(u64::from(count)) {
            if self.length.is_some_and(|length| index >= length) {
                break;
            }
            let session = self.session(index).map_err(|fault| self.failure(fault, index))?;
            if !self.proven {
                self.prove(index, &session)
                    .map_err(|fault| self.failure(fault, index))?;
                self.proven = true;
            }
            match session {
                Some(session) => sessions.push(session),
                None => {
                    self.length = Some(index);
                    break;
                }
            }
        }
        Ok(sessions)
    }
}
