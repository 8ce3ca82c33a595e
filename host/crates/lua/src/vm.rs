//! A virtual machine: sandboxed, limited in time and memory, executing the scenario's text.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use mlua::{Lua, LuaOptions, MultiValue, StdLib, Table, Value};

use crate::agent_functions;
use crate::agent_turn::RunningTurn;
use crate::chunk::{compile, freeze};
use crate::fault::{LuaFault, PRELUDE};
use crate::globals;
use crate::host::LuaHost;
use crate::limits::LuaLimits;
use crate::modules::{Loader, ModuleOrigin};
use crate::sources::Sources;
use crate::watch::CallWatch;

/// A virtual machine and its limits.
pub(crate) struct Vm {
    pub(crate) lua: Lua,
    pub(crate) host: Rc<LuaHost>,
    pub(crate) turn: RunningTurn,
    watch: Rc<CallWatch>,
    limits: LuaLimits,
    /// The files of the scenario, once it is executed.
    sources: RefCell<Option<Sources>>,
}

impl Vm {
    /// Creates a machine with the host's functions, before the scenario is executed.
    pub(crate) fn new(limits: LuaLimits, host: LuaHost) -> Result<Self, LuaFault> {
        let memory = limits.memory_bytes;
        Self::build(limits, host).map_err(|error| LuaFault::from_error(&error, memory))
    }

    fn build(limits: LuaLimits, host: LuaHost) -> mlua::Result<Self> {
        // Libraries that are not loaded cannot leak: no operating system, no introspection.
        let libraries = StdLib::COROUTINE
            | StdLib::TABLE
            | StdLib::STRING
            | StdLib::UTF8
            | StdLib::BIT
            | StdLib::MATH
            | StdLib::BUFFER
            | StdLib::VECTOR;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        lua.set_memory_limit(limits.memory_bytes)?;
        let host = Rc::new(host);
        let watch = Rc::new(CallWatch::new());
        let interrupt = watch.clone();
        lua.set_interrupt(move |lua| interrupt.interrupt(lua));
        globals::install(&lua, &host, &watch)?;
        let prelude = lua
            .load(include_str!("prelude.luau"))
            .set_name(format!("={PRELUDE}"));
        let turn = RunningTurn::default();
        let session_methods: Table = prelude.call(agent_functions::functions(&lua, &turn)?)?;
        let _ = host.session_methods.set(session_methods);
        Ok(Vm {
            lua,
            host,
            turn,
            watch,
            limits,
            sources: RefCell::default(),
        })
    }

    /// Executes the scenario and returns its table. Afterwards the globals and tables of the
    /// scenario are read-only.
    pub(crate) fn execute(
        &self,
        sources: Sources,
        origin: ModuleOrigin,
    ) -> Result<(Value, Sources), LuaFault> {
        let main = sources.main.clone();
        let loader = Rc::new(RefCell::new(Loader::new(sources, origin)));
        let value = self.guard(self.limits.load_deadline, |lua| {
            Loader::install(&loader, lua)?;
            lua.sandbox(true)?;
            let value = compile(lua, &main)?
                .call::<MultiValue>(())?
                .into_iter()
                .next()
                .unwrap_or(Value::Nil);
            freeze(&lua.globals());
            if let Value::Table(table) = &value {
                freeze(table);
            }
            Ok(value)
        })?;
        loader.borrow_mut().close();
        let sources = loader.borrow().sources().clone();
        *self.sources.borrow_mut() = Some(sources.clone());
        Ok((value, sources))
    }

    /// Runs `call` under the limits of one call.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&Lua) -> mlua::Result<R>) -> Result<R, LuaFault> {
        self.guard(self.limits.call_deadline, call)
    }

    /// Returns true for the error of an exceeded memory limit.
    pub(crate) fn is_out_of_memory(&self, error: &mlua::Error) -> bool {
        matches!(
            LuaFault::from_error(error, self.limits.memory_bytes).kind,
            crate::fault::LuaFaultKind::Memory(_)
        )
    }

    /// Adds the text of the line to a fault, if it is known.
    pub(crate) fn quote(&self, fault: LuaFault) -> LuaFault {
        match &*self.sources.borrow() {
            Some(sources) => fault.quoting(sources),
            None => fault,
        }
    }

    fn guard<R>(&self, allowed: Duration, call: impl FnOnce(&Lua) -> mlua::Result<R>) -> Result<R, LuaFault> {
        let begun = self.watch.begin(allowed);
        let result = call(&self.lua);
        self.host.log.end_call();
        let meter = &self.host.log.meter;
        if !self.host.log.quiet.get() {
            meter.called(self.watch.since(begun), self.lua.used_memory() as u64);
            if result.is_err() {
                meter.trapped();
            }
        }
        // A script may have caught the deadline's error; the call fails nevertheless.
        if let Some((allowed, stack)) = self.watch.end() {
            return Err(LuaFault::deadline(allowed, &stack));
        }
        result.map_err(|error| {
            let fault = LuaFault::from_error(&error, self.limits.memory_bytes);
            drop(error);
            if matches!(fault.kind, crate::fault::LuaFaultKind::Memory(_)) {
                // Memory held by the failed call must not fail the next one.
                let _ = self.lua.gc_collect();
            }
            fault
        })
    }
}
