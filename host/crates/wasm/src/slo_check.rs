//! An SLO check on the results of a run.

use std::collections::HashSet;
use std::sync::Arc;

use veeksha_ports::{PluginFailure, RunResults, SloCheck, SloVerdict, WorkloadInfo};

use crate::bindings::slo_check::{Guest, Verdict};
use crate::bound::BoundPlugin;
use crate::convert;
use crate::guest_resources::OpenResults;
use crate::resource::PinnedResource;
use crate::text::{cut, grouped, one_line};

const CHECK: &str = "checker.check";

/// Maximum number of verdicts per check.
const MAX_VERDICTS: usize = 1000;
/// Maximum length of a verdict's name, in characters; the rest is cut.
const MAX_NAME_CHARS: usize = 200;
/// Maximum length of a verdict's detail, in characters; the rest is cut.
const MAX_DETAIL_CHARS: usize = 500;

/// A check with a configuration and grants. Each check of a run uses a new instance.
pub(crate) struct WasmSloCheck {
    bound: Arc<BoundPlugin>,
    info: WorkloadInfo,
}

impl WasmSloCheck {
    /// Opens it once, so that a refused configuration is reported now.
    pub(crate) fn new(bound: Arc<BoundPlugin>, info: WorkloadInfo) -> Result<Self, PluginFailure> {
        PinnedResource::<Guest>::new(&bound)?;
        Ok(WasmSloCheck { bound, info })
    }
}

impl SloCheck for WasmSloCheck {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn check(&self, results: Arc<dyn RunResults>) -> Result<Vec<SloVerdict>, PluginFailure> {
        let mut verdicts = self.check_once(Arc::clone(&results));
        if verdicts
            .as_ref()
            .is_err_and(|failure| self.bound.restarts_after(failure))
        {
            self.bound.grants.meter.restarted();
            verdicts = self.check_once(results);
        }
        verdicts.map_err(|failure| self.bound.tolerate(failure))
    }
}

impl WasmSloCheck {
    fn check_once(&self, results: Arc<dyn RunResults>) -> Result<Vec<SloVerdict>, PluginFailure> {
        let mut guest = PinnedResource::<Guest>::new(&self.bound)?;
        let answer = guest.call(
            CHECK,
            || None,
            |store, guest, checker| {
                let results = store.data_mut().table.push(OpenResults(results))?;
                guest.checker().call_check(store, checker, results)
            },
        )?;
        let name = &self.bound.loaded.name;
        let verdicts = answer.map_err(|error| convert::refusal(name, CHECK, None, error))?;
        convert_verdicts(verdicts).map_err(|why| self.bound.unusable(CHECK, None, why))
    }
}

/// Converts the verdicts.
///
/// # Errors
/// If they are invalid; the error is the reason.
fn convert_verdicts(verdicts: Vec<Verdict>) -> Result<Vec<SloVerdict>, String> {
    if verdicts.is_empty() {
        return Err("it gave no verdict".into());
    }
    if verdicts.len() > MAX_VERDICTS {
        return Err(format!(
            "it gave {} verdicts, at most {} are allowed",
            grouped(verdicts.len() as u64),
            grouped(MAX_VERDICTS as u64)
        ));
    }
    let mut names = HashSet::new();
    let verdict = |verdict: Verdict| {
        let name = one_line(&verdict.name, MAX_NAME_CHARS);
        if name.is_empty() {
            return Err("a verdict has no name".to_owned());
        }
        let finite = |what: &str, number: f64| {
            if number.is_finite() {
                Ok(number)
            } else {
                Err(format!(
                    "the {what} of the verdict `{}` is {number}; it must be finite",
                    cut(&name, 80)
                ))
            }
        };
        let observed = verdict
            .observed
            .map(|observed| finite("observed value", observed))
            .transpose()?;
        let threshold = finite("threshold", verdict.threshold)?;
        if !names.insert(name.clone()) {
            return Err(format!("two verdicts are named `{}`", cut(&name, 80)));
        }
        Ok(SloVerdict {
            name,
            met: verdict.met,
            observed,
            threshold,
            detail: one_line(&verdict.detail, MAX_DETAIL_CHARS),
        })
    };
    verdicts.into_iter().map(verdict).collect()
}
