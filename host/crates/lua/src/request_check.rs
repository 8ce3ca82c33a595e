//! `good = function(request)`: the request check, part of goodput.

use mlua::{Function, Value};
use veeksha_model::RequestRecord;
use veeksha_ports::{PluginFailure, RequestCheck, RequestCheckFactory, WorkloadInfo};

use crate::completion::Completions;
use crate::fault::LuaFault;
use crate::metrics::of_request;
use crate::opening::{self, ScenarioOpening, lookup};
use crate::shape::At;
use crate::vm::Vm;

/// The function's name in reports.
const GOOD: &str = "good";

/// The `good` function of a scenario, ready to be opened on any thread.
pub(crate) struct LuaRequestCheckFactory {
    pub(crate) info: WorkloadInfo,
    pub(crate) opening: ScenarioOpening,
    /// Path of the function.
    pub(crate) function: String,
}

impl LuaRequestCheckFactory {
    fn build(&self) -> Result<LuaRequestCheck, LuaFault> {
        let (vm, value) = self.opening.machine()?;
        let good = lookup(&value, &self.function)?;
        let requests = vm.call(Completions::new)?;
        Ok(LuaRequestCheck {
            vm,
            requests,
            good,
            plugin: self.info.name.clone(),
            proven: false,
        })
    }
}

impl RequestCheckFactory for LuaRequestCheckFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn RequestCheck>, PluginFailure> {
        let check = self
            .build()
            .map_err(|fault| opening::failure(fault, &self.info.name, &self.function))?;
        Ok(Box::new(check))
    }
}

/// The function in a separate virtual machine.
struct LuaRequestCheck {
    vm: Vm,
    requests: Completions,
    good: Function,
    /// The plugin's name in messages.
    plugin: String,
    /// True after the first request of this machine's first batch was checked again after the
    /// batch, with the same result.
    proven: bool,
}

impl LuaRequestCheck {
    fn one(&self, record: &RequestRecord) -> Result<bool, PluginFailure> {
        let judged = self.vm.call(|lua| {
            let request = self.requests.open(lua, record)?;
            self.good.call::<Value>(request)
        });
        judged
            .and_then(|value| match value {
                Value::Boolean(good) => Ok(good),
                // Supports `request.ttfc and request.ttfc < 0.5`.
                Value::Nil => Ok(false),
                other => {
                    let shape = At::Root("`good`").expected("true, false or nil", &other);
                    Err(LuaFault::at(&self.good, shape.to_string()))
                }
            })
            .map_err(|fault| self.failure(fault, record))
    }

    /// Checks a request a second time. Detects functions that keep state.
    fn prove(&self, record: &RequestRecord, first: bool) -> Result<(), PluginFailure> {
        self.vm.host.log.quiet.set(true);
        let second = self.one(record);
        self.vm.host.log.quiet.set(false);
        if second? == first {
            return Ok(());
        }
        let fault = LuaFault::at(
            &self.good,
            "the answer was another one when it was asked again: the function must depend on the request alone, so it must not \
             change locals or tables outside itself",
        );
        Err(self.failure(fault, record))
    }

    fn failure(&self, fault: LuaFault, record: &RequestRecord) -> PluginFailure {
        let fault = self.vm.quote(fault);
        fault.into_failure(&self.plugin, GOOD, Some(of_request(record.id)))
    }
}

impl RequestCheck for LuaRequestCheck {
    fn judge(&mut self, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure> {
        let mut judged = batch
            .iter()
            .map(|record| self.one(record))
            .collect::<Result<Vec<bool>, PluginFailure>>();
        if let Ok(answers) = &judged
            && !self.proven
            && let Some((record, first)) = batch.iter().zip(answers).next()
        {
            match self.prove(record, *first) {
                Ok(()) => self.proven = true,
                Err(failure) => judged = Err(failure),
            }
        }
        self.requests.close();
        judged
    }
}
