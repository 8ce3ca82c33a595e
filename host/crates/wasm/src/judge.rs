//! A request check: finished requests go in, and whether each was good comes out.

use std::ops::Range;
use std::sync::Arc;

use veeksha_model::RequestRecord;
use veeksha_ports::{PluginFailure, RequestCheck, RequestCheckFactory, WorkloadInfo};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::request_check::Guest;
use crate::bindings::types::Error;
use crate::instance::Instance;
use crate::opened::{Opened, Opens};
use crate::state::HostState;
use crate::text::grouped;
use crate::workload::Bound;
use crate::{completions, convert};

const JUDGE: &str = "checker.judge";

impl Opens for Guest {
    const OPEN: &'static str = "checker.open";

    fn instance(bound: &Bound) -> Result<Instance<Self>, PluginFailure> {
        bound.loaded.request_check(&bound.grants)
    }

    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>> {
        self.checker().call_open(store, config)
    }
}

/// A check with a configuration and grants.
pub(crate) struct Factory {
    bound: Arc<Bound>,
    info: WorkloadInfo,
}

impl Factory {
    /// Opens it once, so that what it refuses is known now.
    pub(crate) fn new(bound: Arc<Bound>, info: WorkloadInfo) -> Result<Self, PluginFailure> {
        Opened::<Guest>::new(Arc::clone(&bound))?;
        Ok(Factory { bound, info })
    }
}

impl RequestCheckFactory for Factory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn RequestCheck>, PluginFailure> {
        Ok(Box::new(Judge {
            guest: Opened::new(Arc::clone(&self.bound))?,
            failed: None,
        }))
    }
}

/// An open check. It keeps nothing, so its store may be replaced; but a run in which it failed once has no goodput any more, so
/// it then fails for good.
struct Judge {
    guest: Opened<Guest>,
    failed: Option<PluginFailure>,
}

impl RequestCheck for Judge {
    fn judge(&mut self, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        let judged = self.all(batch);
        self.failed = judged.as_ref().err().cloned();
        judged
    }
}

impl Judge {
    fn all(&mut self, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure> {
        let mut judged = Vec::with_capacity(batch.len());
        let mut next = 0;
        while let Some(rest) = batch.get(next..).filter(|rest| !rest.is_empty()) {
            let call = next..next + completions::call_length(rest);
            next = call.end;
            let answers = self
                .ask(batch.get(call.clone()).unwrap_or_default())
                .map_err(|mut failure| {
                    failure.input = Some(self.locate(batch, call));
                    failure
                })?;
            judged.extend(answers);
        }
        Ok(judged)
    }

    /// One call.
    fn ask(&mut self, requests: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure> {
        let batch = completions::batch(requests);
        let answer = self.guest.call(
            JUDGE,
            || None,
            |store, guest, checker| guest.checker().call_judge(store, checker, &batch),
        )?;
        let bound = &self.guest.bound;
        let answers = answer.map_err(|error| convert::refusal(&bound.loaded.name, JUDGE, None, error))?;
        if answers.len() != requests.len() {
            let why = format!(
                "given {} requests, it judged {}",
                grouped(requests.len() as u64),
                grouped(answers.len() as u64)
            );
            return Err(bound.unusable(JUDGE, String::new(), why));
        }
        Ok(answers)
    }

    /// Which request a call failed on, in words. What is said of a request depends on nothing else, so each may be shown again.
    fn locate(&mut self, batch: &[&RequestRecord], call: Range<usize>) -> String {
        let culprit = match call.len() {
            1 => Some(call.start),
            _ => call.clone().find(|&index| {
                let one = batch.get(index..=index).unwrap_or_default();
                self.ask(one).is_err()
            }),
        };
        match culprit {
            Some(index) => completions::named(batch, index),
            None => completions::beginning_with(batch, call.start, call.len()),
        }
    }
}
