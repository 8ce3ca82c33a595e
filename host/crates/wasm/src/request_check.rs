//! A request check: decides for each finished request if it was good.

use std::ops::Range;
use std::sync::Arc;

use veeksha_model::RequestRecord;
use veeksha_ports::{PluginFailure, RequestCheck, RequestCheckFactory, WorkloadInfo};

use crate::bindings::request_check::Guest;
use crate::bound::BoundPlugin;
use crate::resource::RenewableResource;
use crate::text::grouped;
use crate::{completions, convert};

const JUDGE: &str = "checker.judge";

/// A check with a configuration and grants.
pub(crate) struct WasmRequestCheckFactory {
    bound: Arc<BoundPlugin>,
    info: WorkloadInfo,
}

impl WasmRequestCheckFactory {
    /// Opens it once, so that a refused configuration is reported now.
    pub(crate) fn new(bound: Arc<BoundPlugin>, info: WorkloadInfo) -> Result<Self, PluginFailure> {
        RenewableResource::<Guest>::new(Arc::clone(&bound))?;
        Ok(WasmRequestCheckFactory { bound, info })
    }
}

impl RequestCheckFactory for WasmRequestCheckFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn RequestCheck>, PluginFailure> {
        Ok(Box::new(WasmRequestCheck {
            guest: RenewableResource::new(Arc::clone(&self.bound))?,
            failed: None,
        }))
    }
}

/// An open request check of a component. It keeps no state, so its store may be replaced. After a
/// failure the run has no goodput, so every later call fails too.
struct WasmRequestCheck {
    guest: RenewableResource<Guest>,
    failed: Option<PluginFailure>,
}

impl RequestCheck for WasmRequestCheck {
    fn judge(&mut self, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        let judged = self.all(batch);
        let judged = judged.map_err(|failure| self.guest.bound.tolerate(failure));
        self.failed = judged.as_ref().err().cloned();
        judged
    }
}

impl WasmRequestCheck {
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

    /// Checks some requests in one call.
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
            return Err(bound.unusable(JUDGE, None, why));
        }
        Ok(answers)
    }

    /// Describes the request that a call failed on. A request is judged independently of the
    /// others, so each may be passed again.
    fn locate(&mut self, batch: &[&RequestRecord], call: Range<usize>) -> String {
        let failing = match call.len() {
            1 => Some(call.start),
            _ if self.guest.bound.is_disabled() => None,
            _ => call.clone().find(|&index| {
                let one = batch.get(index..=index).unwrap_or_default();
                self.ask(one).is_err()
            }),
        };
        match failing {
            Some(index) => completions::named(batch, index),
            None => completions::beginning_with(batch, call.start, call.len()),
        }
    }
}
