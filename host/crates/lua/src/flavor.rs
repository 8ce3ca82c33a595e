//! `session = function(group, trace, epoch)`: converts the rows of a trace to sessions.

use mlua::{Function, Table, Value};
use veeksha_model::Session;
use veeksha_ports::{
    FlavorFactory, FlavorInstance, Layout, PluginFailure, TraceFacts, TraceGroup, WorkloadInfo, name_groups,
};

use crate::fault::LuaFault;
use crate::opening::{self, ScenarioOpening, join, lookup};
use crate::rng::Rng;
use crate::rows::LuaRows;
use crate::session;
use crate::vm::Vm;

const SESSION: &str = "flavor.session";
const WARMUP: &str = "flavor.warmup";
/// First number of warm-up sessions. Sessions of a run have smaller numbers, so their text is
/// different.
const WARMUP_SESSIONS: u64 = 1 << 53;

/// The functions of a scenario's flavor, ready to be opened on any thread.
pub(crate) struct LuaFlavorFactory {
    pub(crate) info: WorkloadInfo,
    pub(crate) opening: ScenarioOpening,
    /// Path of the table with the functions.
    pub(crate) place: String,
    pub(crate) layout: Layout,
}

impl LuaFlavorFactory {
    fn build(&self) -> Result<LuaFlavor, LuaFault> {
        let (vm, value) = self.opening.machine()?;
        let session = lookup(&value, &join(&self.place, "session"))?;
        let warmup = if self.layout.warms_up {
            Some(lookup(&value, &join(&self.place, "warmup"))?)
        } else {
            None
        };
        let rows = vm.call(|lua| LuaRows::new(lua, &self.layout))?;
        Ok(LuaFlavor {
            vm,
            session,
            warmup,
            rows,
            trace: None,
            layout: self.layout.clone(),
            plugin: self.info.name.clone(),
            proven: false,
        })
    }
}

impl FlavorFactory for LuaFlavorFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        let opened = self.build();
        let flavor = opened.map_err(|fault| opening::failure(fault, &self.info.name, &self.place))?;
        Ok(Box::new(flavor))
    }
}

/// A flavor's functions in a separate virtual machine.
struct LuaFlavor {
    vm: Vm,
    session: Function,
    warmup: Option<Function>,
    rows: LuaRows,
    /// The facts that were passed last.
    trace: Option<(TraceFacts, Table)>,
    layout: Layout,
    /// The plugin's name in messages.
    plugin: String,
    /// True after the first session of this machine was created twice with equal results.
    proven: bool,
}

impl LuaFlavor {
    /// Returns the table of the facts, created again only if they changed.
    fn trace(&mut self, facts: &TraceFacts) -> Result<Table, LuaFault> {
        if let Some((known, table)) = &self.trace
            && known == facts
        {
            return Ok(table.clone());
        }
        let table = self.vm.call(|lua| self.rows.trace(lua, facts))?;
        let (_, table) = self.trace.insert((facts.clone(), table));
        Ok(table.clone())
    }

    /// Calls a function with a group, for the session with this number. `nil` with a reason refuses
    /// the group.
    fn call(
        &self,
        function: &Function,
        number: u64,
        group: &TraceGroup,
        trace: &Table,
        epoch: Option<u64>,
    ) -> Result<Value, LuaFault> {
        self.vm.host.enter(number);
        let seed = self.vm.host.seed;
        let (value, reason) = self.vm.call(|lua| {
            let group = self.rows.group(lua, group)?;
            match epoch {
                Some(epoch) => {
                    let rng = lua.create_userdata(Rng::new(seed, number, ""))?;
                    function.call::<(Value, Value)>((group, trace, epoch as f64, rng))
                }
                None => function.call((group, trace)),
            }
        })?;
        match reason {
            Value::String(reason) if value.is_nil() => Err(LuaFault::refused(&reason.to_string_lossy())),
            _ => Ok(value),
        }
    }

    fn one(
        &self,
        facts: &TraceFacts,
        trace: &Table,
        epoch: u64,
        group: &TraceGroup,
    ) -> Result<Session, LuaFault> {
        // Equals the host's number of the session in trace order: one number per epoch and group.
        let number = epoch.wrapping_mul(facts.groups).wrapping_add(group.index);
        let value = self.call(&self.session, number, group, trace, Some(epoch))?;
        session::read(&value, "").map_err(|why| LuaFault::at(&self.session, why))
    }

    /// Creates a session a second time. Detects functions that keep state.
    fn prove(
        &self,
        facts: &TraceFacts,
        trace: &Table,
        epoch: u64,
        group: &TraceGroup,
        first: &Session,
    ) -> Result<(), LuaFault> {
        let was_quiet = self.vm.host.log.quiet.replace(true);
        let second = self.one(facts, trace, epoch, group);
        self.vm.host.log.quiet.set(was_quiet);
        if second? == *first {
            return Ok(());
        }
        Err(LuaFault::at(
            &self.session,
            "the session came out differently when it was made again: the function must depend on its arguments alone, so \
             it must not change locals or tables outside itself",
        ))
    }

    fn failure(
        &self,
        fault: LuaFault,
        function: &str,
        epoch: Option<u64>,
        group: &TraceGroup,
    ) -> PluginFailure {
        let group = name_groups(std::slice::from_ref(group));
        let input = match epoch {
            Some(epoch) => format!("epoch = {epoch}, {group}"),
            None => group,
        };
        self.vm
            .quote(fault)
            .into_failure(&self.plugin, function, Some(input))
    }
}

impl FlavorInstance for LuaFlavor {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        Ok(self.layout.clone())
    }

    fn sessions(
        &mut self,
        facts: &TraceFacts,
        epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure> {
        let mut sessions = Vec::with_capacity(groups.len());
        for group in groups {
            let made = self.trace(facts).and_then(|trace| {
                let session = self.one(facts, &trace, epoch, group)?;
                if !self.proven {
                    self.prove(facts, &trace, epoch, group, &session)?;
                    self.proven = true;
                }
                Ok(session)
            });
            sessions.push(made.map_err(|fault| self.failure(fault, SESSION, Some(epoch), group))?);
        }
        Ok(sessions)
    }

    fn warmup(&mut self, facts: &TraceFacts, groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        let Some(warmup) = self.warmup.clone() else {
            return Ok(Vec::new());
        };
        let mut sessions = Vec::with_capacity(groups.len());
        for group in groups {
            let made = self.trace(facts).and_then(|trace| {
                let number = WARMUP_SESSIONS.wrapping_add(group.index);
                let value = self.call(&warmup, number, group, &trace, None)?;
                if value.is_nil() {
                    return Ok(None);
                }
                session::read(&value, ", or nil for none")
                    .map(Some)
                    .map_err(|why| LuaFault::at(&warmup, why))
            });
            sessions.extend(made.map_err(|fault| self.failure(fault, WARMUP, None, group))?);
        }
        Ok(sessions)
    }
}
