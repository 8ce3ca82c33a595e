//! A plugin that judges a run by its results.

use std::collections::HashSet;
use std::sync::Arc;

use veeksha_ports::{PluginFailure, RunResults, SloCheck, SloVerdict, WorkloadInfo};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::slo_check::{Guest, Verdict};
use crate::bindings::types::Error;
use crate::convert;
use crate::instance::Instance;
use crate::opened::{Current, Opens};
use crate::results::OpenResults;
use crate::state::HostState;
use crate::text::{cut, grouped, one_line};
use crate::workload::Bound;

const CHECK: &str = "checker.check";

/// Verdicts of one check.
const VERDICTS: usize = 1000;
/// Characters of a verdict's name.
const NAME: usize = 200;
/// Characters of a verdict's detail that are kept.
const DETAIL: usize = 500;

impl Opens for Guest {
    const OPEN: &'static str = "checker.open";

    fn instance(bound: &Bound) -> Result<Instance<Self>, PluginFailure> {
        bound.loaded.slo_check(&bound.grants)
    }

    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>> {
        self.checker().call_open(store, config)
    }
}

/// A check with a configuration and grants. Each run of it is an instance of its own.
pub(crate) struct Checker {
    bound: Arc<Bound>,
    info: WorkloadInfo,
}

impl Checker {
    /// Opens it once, so that what it refuses is known now.
    pub(crate) fn new(bound: Arc<Bound>, info: WorkloadInfo) -> Result<Self, PluginFailure> {
        Current::<Guest>::new(&bound)?;
        Ok(Checker { bound, info })
    }
}

impl SloCheck for Checker {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn check(&self, results: Arc<dyn RunResults>) -> Result<Vec<SloVerdict>, PluginFailure> {
        let mut guest = Current::<Guest>::new(&self.bound)?;
        let answer = guest.call(
            CHECK,
            || None,
            |store, guest, checker| {
                let results = store.data_mut().table.push(OpenResults::new(results))?;
                guest.checker().call_check(store, checker, results)
            },
        )?;
        let name = &self.bound.loaded.name;
        let verdicts = answer.map_err(|error| convert::refusal(name, CHECK, None, error))?;
        admit(verdicts).map_err(|why| {
            let mut failure = self.bound.unusable(CHECK, String::new(), why);
            failure.input = None;
            failure
        })
    }
}

/// The verdicts in the host's terms, or why they cannot be used.
fn admit(verdicts: Vec<Verdict>) -> Result<Vec<SloVerdict>, String> {
    if verdicts.is_empty() {
        return Err("it gave no verdict".into());
    }
    if verdicts.len() > VERDICTS {
        return Err(format!(
            "it gave {} verdicts, at most {} are taken",
            grouped(verdicts.len() as u64),
            grouped(VERDICTS as u64)
        ));
    }
    let mut names = HashSet::new();
    let verdict = |verdict: Verdict| {
        let name = one_line(&verdict.name, NAME);
        if name.is_empty() {
            return Err("a verdict has no name".to_owned());
        }
        let finite = |what: &str, number: f64| match number.is_finite() {
            true => Ok(number),
            false => Err(format!(
                "the {what} of the verdict `{}` is {number}; it must be finite",
                cut(&name, 80)
            )),
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
            detail: one_line(&verdict.detail, DETAIL),
        })
    };
    verdicts.into_iter().map(verdict).collect()
}
