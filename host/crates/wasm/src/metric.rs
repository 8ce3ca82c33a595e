//! A metric: turns finished requests into samples.
//!
//! A collector may keep state between batches, so it stays in one store for the whole run. After a
//! failure it has missed requests: every later call returns the same failure, because an incomplete
//! metric is not reported. A plugin that is restarted after a trap goes on without its state, which
//! only metrics of single requests survive.

use std::ops::Range;
use std::sync::Arc;

use veeksha_model::{MetricDefinition, RequestRecord};
use veeksha_ports::{MetricCollector, MetricFactory, OpenMetric, PluginFailure, PluginSample, WorkloadInfo};

use crate::bindings::metric::Guest;
use crate::bound::BoundPlugin;
use crate::resource::PinnedResource;
use crate::{completions, convert, definitions, samples};

const DEFINITIONS: &str = "collector.definitions";
const OBSERVE: &str = "collector.observe";
const FINISH: &str = "collector.finish";

/// A metric with a configuration and grants.
pub(crate) struct WasmMetricFactory {
    bound: Arc<BoundPlugin>,
    info: WorkloadInfo,
}

impl WasmMetricFactory {
    /// Opens it once, so that a refused configuration or an invalid definition is reported now.
    pub(crate) fn new(bound: Arc<BoundPlugin>, info: WorkloadInfo) -> Result<Self, PluginFailure> {
        WasmMetric::open(&bound)?;
        Ok(WasmMetricFactory { bound, info })
    }
}

impl MetricFactory for WasmMetricFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<OpenMetric, PluginFailure> {
        let collector = WasmMetric::open(&self.bound)?;
        Ok(OpenMetric {
            definitions: collector.definitions.clone(),
            collector: Box::new(collector),
        })
    }
}

/// An open collector of a component.
struct WasmMetric {
    bound: Arc<BoundPlugin>,
    guest: PinnedResource<Guest>,
    definitions: Vec<MetricDefinition>,
    failed: Option<PluginFailure>,
}

impl WasmMetric {
    fn open(bound: &Arc<BoundPlugin>) -> Result<Self, PluginFailure> {
        let mut guest = PinnedResource::<Guest>::new(bound)?;
        let answer = guest.call(
            DEFINITIONS,
            || None,
            |store, guest, collector| guest.collector().call_definitions(store, collector),
        )?;
        let definitions = definitions::admit(answer, &bound.loaded.name)
            .map_err(|why| bound.unusable(DEFINITIONS, None, why))?;
        Ok(WasmMetric {
            bound: Arc::clone(bound),
            guest,
            definitions,
            failed: None,
        })
    }

    /// Replaces the instance. What it remembered of earlier requests is lost.
    fn reopen(&mut self) -> Result<(), PluginFailure> {
        self.guest = PinnedResource::new(&self.bound)?;
        self.bound.grants.meter.restarted();
        Ok(())
    }

    /// Calls `act` unless the collector has failed before, and remembers a failure.
    fn unless_failed(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<Vec<PluginSample>, PluginFailure>,
    ) -> Result<Vec<PluginSample>, PluginFailure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        let done = act(self).map_err(|failure| self.bound.tolerate(failure));
        self.failed = done.as_ref().err().cloned();
        done
    }

    /// Observes some requests of a batch in one call.
    fn ask(
        &mut self,
        requests: &[&RequestRecord],
        call: Range<usize>,
        into: &mut Vec<PluginSample>,
    ) -> Result<(), PluginFailure> {
        let passed = requests.get(call.clone()).unwrap_or_default();
        let mut returned = observe(&self.bound, &mut self.guest, passed);
        if returned
            .as_ref()
            .is_err_and(|failure| self.bound.restarts_after(failure))
        {
            returned = self
                .reopen()
                .and_then(|()| observe(&self.bound, &mut self.guest, passed));
        }
        let returned = returned.map_err(|mut failure| {
            failure.input = Some(self.locate(requests, call.clone()));
            failure
        })?;
        samples::append(
            returned,
            &self.definitions,
            requests,
            call.start,
            call.len(),
            into,
        )
        .map_err(|samples::Unusable { why, of }| {
            let mut failure = self.bound.unusable(OBSERVE, None, why);
            failure.input = Some(match of {
                Some(of) => completions::named(requests, of),
                None => completions::beginning_with(requests, call.start, call.len()),
            });
            failure
        })
    }

    /// Describes the request that a call failed on: a new collector receives one request after the
    /// other. A failure that depends on earlier batches does not occur again here; then the whole
    /// call is named.
    fn locate(&self, requests: &[&RequestRecord], call: Range<usize>) -> String {
        if call.len() == 1 {
            return completions::named(requests, call.start);
        }
        let failing = PinnedResource::<Guest>::new(&self.bound)
            .ok()
            .and_then(|mut new| {
                call.clone().find(|&index| {
                    let one = requests.get(index..=index).unwrap_or_default();
                    observe(&self.bound, &mut new, one).is_err()
                })
            });
        match failing {
            Some(index) => completions::named(requests, index),
            None => completions::beginning_with(requests, call.start, call.len()),
        }
    }
}

impl MetricCollector for WasmMetric {
    fn observe(&mut self, batch: &[&RequestRecord]) -> Result<Vec<PluginSample>, PluginFailure> {
        self.unless_failed(|collector| {
            let mut taken = Vec::new();
            let mut next = 0;
            while let Some(rest) = batch.get(next..).filter(|rest| !rest.is_empty()) {
                let call = next..next + completions::call_length(rest);
                next = call.end;
                collector.ask(batch, call, &mut taken)?;
            }
            Ok(taken)
        })
    }

    fn finish(&mut self) -> Result<Vec<PluginSample>, PluginFailure> {
        self.unless_failed(|collector| {
            let answer = collector.guest.call(
                FINISH,
                || None,
                |store, guest, collector| guest.collector().call_finish(store, collector),
            )?;
            let bound = &collector.bound;
            let returned =
                answer.map_err(|error| convert::refusal(&bound.loaded.name, FINISH, None, error))?;
            let mut taken = Vec::new();
            samples::append(returned, &collector.definitions, &[], 0, 0, &mut taken)
                .map_err(|samples::Unusable { why, .. }| bound.unusable(FINISH, None, why))?;
            Ok(taken)
        })
    }
}

/// Observes requests in one call of the guest.
fn observe(
    bound: &BoundPlugin,
    guest: &mut PinnedResource<Guest>,
    requests: &[&RequestRecord],
) -> Result<Vec<crate::bindings::metric::Sample>, PluginFailure> {
    let batch = completions::batch(requests);
    let answer = guest.call(
        OBSERVE,
        || None,
        |store, guest, collector| guest.collector().call_observe(store, collector, &batch),
    )?;
    answer.map_err(|error| convert::refusal(&bound.loaded.name, OBSERVE, None, error))
}
