//! A metric plugin: finished requests go in, samples come out.
//!
//! A collector keeps what it likes from one batch to the next, so it lives in one store from the beginning of the run to its end.
//! Once it has failed, in whatever way, it has missed something: every later call gives the same failure, because a metric with a
//! hole is none.

use std::ops::Range;
use std::sync::Arc;

use veeksha_model::{MetricDefinition, RequestRecord};
use veeksha_ports::{MetricCollector, MetricFactory, OpenMetric, PluginFailure, PluginSample, WorkloadInfo};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::metric::Guest;
use crate::bindings::types::Error;
use crate::instance::Instance;
use crate::opened::{Current, Opens};
use crate::state::HostState;
use crate::workload::Bound;
use crate::{completions, convert, definitions, samples};

const DEFINITIONS: &str = "collector.definitions";
const OBSERVE: &str = "collector.observe";
const FINISH: &str = "collector.finish";

impl Opens for Guest {
    const OPEN: &'static str = "collector.open";

    fn instance(bound: &Bound) -> Result<Instance<Self>, PluginFailure> {
        bound.loaded.metric(&bound.grants)
    }

    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>> {
        self.collector().call_open(store, config)
    }
}

/// A metric with a configuration and grants.
pub(crate) struct Factory {
    bound: Arc<Bound>,
    info: WorkloadInfo,
}

impl Factory {
    /// Opens it once, so that what it refuses and what it defines wrongly is known now.
    pub(crate) fn new(bound: Arc<Bound>, info: WorkloadInfo) -> Result<Self, PluginFailure> {
        Collector::open(&bound)?;
        Ok(Factory { bound, info })
    }
}

impl MetricFactory for Factory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<OpenMetric, PluginFailure> {
        let collector = Collector::open(&self.bound)?;
        Ok(OpenMetric {
            definitions: collector.definitions.clone(),
            collector: Box::new(collector),
        })
    }
}

/// An open collector in its store.
struct Collector {
    bound: Arc<Bound>,
    guest: Current<Guest>,
    definitions: Vec<MetricDefinition>,
    failed: Option<PluginFailure>,
}

impl Collector {
    fn open(bound: &Arc<Bound>) -> Result<Self, PluginFailure> {
        let mut guest = Current::<Guest>::new(bound)?;
        let answer = guest.call(
            DEFINITIONS,
            || None,
            |store, guest, collector| guest.collector().call_definitions(store, collector),
        )?;
        let definitions = definitions::admit(answer, &bound.loaded.name)
            .map_err(|why| unusable(bound, DEFINITIONS, why))?;
        Ok(Collector {
            bound: Arc::clone(bound),
            guest,
            definitions,
            failed: None,
        })
    }

    /// Does something unless the collector has failed before, and remembers if it fails now.
    fn unless_failed(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<Vec<PluginSample>, PluginFailure>,
    ) -> Result<Vec<PluginSample>, PluginFailure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        let done = act(self);
        self.failed = done.as_ref().err().cloned();
        done
    }

    /// One call with some of a batch's requests.
    fn ask(
        &mut self,
        requests: &[&RequestRecord],
        call: Range<usize>,
        into: &mut Vec<PluginSample>,
    ) -> Result<(), PluginFailure> {
        let shown = requests.get(call.clone()).unwrap_or_default();
        let returned = observe(&self.bound, &mut self.guest, shown).map_err(|mut failure| {
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
            let mut failure = unusable(&self.bound, OBSERVE, why);
            failure.input = Some(match of {
                Some(of) => completions::named(requests, of),
                None => completions::beginning_with(requests, call.start, call.len()),
            });
            failure
        })
    }

    /// Which request a call failed on, in words: a fresh collector is shown one after the other. One that fails only after all
    /// that it had seen before does not fail again here, and then nobody is blamed.
    fn locate(&self, requests: &[&RequestRecord], call: Range<usize>) -> String {
        if call.len() == 1 {
            return completions::named(requests, call.start);
        }
        let culprit = Current::<Guest>::new(&self.bound).ok().and_then(|mut fresh| {
            call.clone().find(|&index| {
                let one = requests.get(index..=index).unwrap_or_default();
                observe(&self.bound, &mut fresh, one).is_err()
            })
        });
        match culprit {
            Some(index) => completions::named(requests, index),
            None => completions::beginning_with(requests, call.start, call.len()),
        }
    }
}

impl MetricCollector for Collector {
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
                .map_err(|samples::Unusable { why, .. }| unusable(bound, FINISH, why))?;
            Ok(taken)
        })
    }
}

/// A call of the guest.
fn observe(
    bound: &Bound,
    guest: &mut Current<Guest>,
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

fn unusable(bound: &Bound, function: &'static str, why: String) -> PluginFailure {
    let mut failure = bound.unusable(function, String::new(), why);
    failure.input = None;
    failure
}
