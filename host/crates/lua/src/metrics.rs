//! `metrics = { name = { observe = function(request) ... end, finish = function() ... end } }`.

use mlua::Function;
use veeksha_model::{MetricDefinition, RequestId, RequestRecord};
use veeksha_ports::{MetricCollector, MetricFactory, OpenMetric, PluginFailure, PluginSample, WorkloadInfo};

use crate::completion::Completions;
use crate::fault::LuaFault;
use crate::opening::{self, ScenarioOpening, lookup};
use crate::samples::{self, MOST, MOST_AT_THE_END};
use crate::shape::At;
use crate::vm::Vm;

/// Maximum number of samples per batch, which are held in memory together.
const MOST_OF_A_BATCH: usize = 8_000_000;

/// The metrics of a scenario or a separate file, ready to be opened on any thread.
pub(crate) struct LuaMetricFactory {
    pub(crate) info: WorkloadInfo,
    pub(crate) opening: ScenarioOpening,
    /// Path of their table.
    pub(crate) place: String,
    /// Metrics in source order.
    pub(crate) metrics: Vec<Described>,
}

/// The definition of a metric in the table.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) definition: MetricDefinition,
    pub(crate) has_finish: bool,
}

impl LuaMetricFactory {
    fn build(&self) -> Result<LuaMetrics, LuaFault> {
        let (vm, value) = self.opening.machine()?;
        let requests = vm.call(Completions::new)?;
        let metrics = self
            .metrics
            .iter()
            .map(|metric| {
                let name = metric.definition.name.clone();
                let place = format!("{}.{name}", self.place);
                Ok(LuaMetric {
                    observe: lookup(&value, &format!("{place}.observe"))?,
                    finish: if metric.has_finish {
                        Some(lookup(&value, &format!("{place}.finish"))?)
                    } else {
                        None
                    },
                    name,
                })
            })
            .collect::<Result<_, LuaFault>>()?;
        Ok(LuaMetrics {
            vm,
            requests,
            metrics,
            plugin: self.info.name.clone(),
        })
    }
}

impl MetricFactory for LuaMetricFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<OpenMetric, PluginFailure> {
        let collector = self
            .build()
            .map_err(|fault| opening::failure(fault, &self.info.name, &self.place))?;
        Ok(OpenMetric {
            definitions: self
                .metrics
                .iter()
                .map(|metric| metric.definition.clone())
                .collect(),
            collector: Box::new(collector),
        })
    }
}

struct LuaMetric {
    name: String,
    observe: Function,
    finish: Option<Function>,
}

/// Metrics in a separate virtual machine.
struct LuaMetrics {
    vm: Vm,
    requests: Completions,
    metrics: Vec<LuaMetric>,
    /// The plugin's name in messages.
    plugin: String,
}

impl LuaMetrics {
    fn observe_one(
        &self,
        place: u32,
        record: &RequestRecord,
        made: &mut Vec<PluginSample>,
    ) -> Result<(), PluginFailure> {
        let input = || Some(of_request(record.id));
        let table = self
            .vm
            .call(|lua| self.requests.open(lua, record))
            .map_err(|fault| {
                self.vm
                    .quote(fault)
                    .into_failure(&self.plugin, "metrics", input())
            })?;
        for (number, metric) in (0..).zip(&self.metrics) {
            let observed = self.vm.call(|_| metric.observe.call(&table)).and_then(|value| {
                let subject = format!("metric `{}`", metric.name);
                samples::read(&At::Root(&subject), &value, MOST, &mut |(value, weight)| {
                    made.push(PluginSample {
                        metric: number,
                        value,
                        weight,
                        of: Some(place),
                    });
                })
                .map_err(|shape| LuaFault::at(&metric.observe, shape.to_string()))?;
                if made.len() > MOST_OF_A_BATCH {
                    let message =
                        format!("{subject}: more than {MOST_OF_A_BATCH} samples of one batch of requests");
                    return Err(LuaFault::at(&metric.observe, message));
                }
                Ok(())
            });
            observed.map_err(|fault| {
                let function = format!("metrics.{}.observe", metric.name);
                self.vm
                    .quote(fault)
                    .into_failure(&self.plugin, &function, input())
            })?;
        }
        Ok(())
    }
}

impl MetricCollector for LuaMetrics {
    fn observe(&mut self, batch: &[&RequestRecord]) -> Result<Vec<PluginSample>, PluginFailure> {
        let mut made = Vec::new();
        let mut outcome = Ok(());
        for (place, record) in (0..).zip(batch) {
            outcome = self.observe_one(place, record, &mut made);
            if outcome.is_err() {
                break;
            }
        }
        self.requests.close();
        outcome.map(|()| made)
    }

    fn finish(&mut self) -> Result<Vec<PluginSample>, PluginFailure> {
        let mut made = Vec::new();
        for (number, metric) in (0..).zip(&self.metrics) {
            let Some(finish) = &metric.finish else { continue };
            let finished = self.vm.call(|_| finish.call(())).and_then(|value| {
                let subject = format!("metric `{}`", metric.name);
                samples::read(
                    &At::Root(&subject),
                    &value,
                    MOST_AT_THE_END,
                    &mut |(value, weight)| {
                        made.push(PluginSample {
                            metric: number,
                            value,
                            weight,
                            of: None,
                        });
                    },
                )
                .map_err(|shape| LuaFault::at(finish, shape.to_string()))
            });
            finished.map_err(|fault| {
                let function = format!("metrics.{}.finish", metric.name);
                self.vm.quote(fault).into_failure(&self.plugin, &function, None)
            })?;
        }
        Ok(made)
    }
}

/// Returns a description of a call's input for reports.
pub(crate) fn of_request(id: RequestId) -> String {
    format!("request = {id}")
}
