//! `arrivals = function(rng)`: opens an arrival process, a function that returns the next arrivals.

use mlua::{Function, Value};
use veeksha_model::Nanos;
use veeksha_ports::{ArrivalFactory, ArrivalOrder, ArrivalSource, PluginFailure, WorkloadInfo};

use crate::duration;
use crate::fault::LuaFault;
use crate::opening::{self, ScenarioOpening, lookup};
use crate::rng::Rng;
use crate::shape::{At, ShapeError};
use crate::vm::Vm;

/// The name of the function in messages.
const ARRIVALS: &str = "arrivals";

/// The random stream of `rng`.
const STREAM: &str = "lua.arrivals";

/// A process, ready to be opened on any thread.
pub(crate) struct LuaArrivalFactory {
    pub(crate) info: WorkloadInfo,
    pub(crate) opening: ScenarioOpening,
    /// Path of the function.
    pub(crate) function: String,
}

impl LuaArrivalFactory {
    fn build(&self, is_quiet: bool) -> Result<LuaArrivals, PluginFailure> {
        let failed = |fault| opening::failure(fault, &self.info.name, &self.function);
        let (vm, value) = self.opening.machine().map_err(failed)?;
        let open = lookup(&value, &self.function).map_err(failed)?;
        vm.host.log.quiet.set(is_quiet);
        let seed = vm.host.seed;
        let opened = vm.call(|lua| {
            let rng = lua.create_userdata(Rng::of_stream(seed, 0, "", STREAM))?;
            open.call::<Value>(rng)
        });
        let next = opened.and_then(|value| match value {
            Value::Function(next) => Ok(next),
            other => {
                let expected = "a function that returns the next arrivals";
                let shape = At::Root("`arrivals`").expected(expected, &other);
                Err(LuaFault::at(&open, shape.to_string()))
            }
        });
        match next {
            Ok(next) => Ok(LuaArrivals {
                vm,
                next,
                plugin: self.info.name.clone(),
                order: ArrivalOrder::default(),
            }),
            Err(fault) => Err(vm.quote(fault).into_failure(&self.info.name, ARRIVALS, None)),
        }
    }
}

impl ArrivalFactory for LuaArrivalFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn ArrivalSource>, PluginFailure> {
        Ok(Box::new(self.build(false)?))
    }

    fn open_silent(&self) -> Result<Box<dyn ArrivalSource>, PluginFailure> {
        Ok(Box::new(self.build(true)?))
    }
}

/// An open process in a separate virtual machine. Its state is in the variables of the closure.
struct LuaArrivals {
    vm: Vm,
    next: Function,
    /// The plugin's name in messages.
    plugin: String,
    order: ArrivalOrder,
}

impl ArrivalSource for LuaArrivals {
    fn next(&mut self, count: u32) -> Result<Vec<Nanos>, PluginFailure> {
        let first = self.order.next_session();
        let answer = self.vm.call(|_| self.next.call::<Value>(count));
        let checked = answer.and_then(|value| {
            let arrivals = read(&value, count).map_err(|shape| shape.to_string());
            let checked = arrivals.and_then(|arrivals| {
                self.order.check(count, &arrivals)?;
                Ok(arrivals)
            });
            checked.map_err(|why| LuaFault::at(&self.next, why))
        });
        checked.map_err(|fault| {
            let input = format!("count = {count}, from session {first} on");
            self.vm
                .quote(fault)
                .into_failure(&self.plugin, ARRIVALS, Some(input))
        })
    }
}

/// Reads a list of instants.
fn read(value: &Value, count: u32) -> Result<Vec<Nanos>, ShapeError> {
    let at = At::Root("arrivals");
    let Value::Table(list) = value else {
        return Err(at.expected("a list of seconds (an empty one is the end)", value));
    };
    let length = list.raw_len();
    if length > count as usize {
        return Err(at.shape(format!("asked for {count}, returned {length}")));
    }
    (1..=length)
        .map(|index| {
            let item: Value = list.raw_get(index).unwrap_or(Value::Nil);
            duration::nanos(&At::Index(&at, index), &item)
        })
        .collect()
}
