//! `check = function(results)`: an SLO check on a run's results.

use std::collections::HashSet;
use std::sync::Arc;

use mlua::{Table, Value};
use veeksha_ports::{PluginFailure, RunResults, SloCheck, SloVerdict, WorkloadInfo};

use crate::content::string;
use crate::fault::LuaFault;
use crate::fields::each_field;
use crate::opening::{self, ScenarioOpening, lookup};
use crate::results::Results;
use crate::samples::finite;
use crate::shape::{At, ShapeError};

/// The function's name in reports.
const CHECK: &str = "check";
/// Maximum number of verdicts, equal to that of a component.
const MOST: usize = 1_000;
/// Maximum length of a name or a detail, in bytes.
const LONGEST: usize = 4_096;

const FIELDS: [&str; 5] = ["name", "met", "observed", "threshold", "detail"];

/// The `check` function of a scenario.
pub(crate) struct LuaSloCheck {
    pub(crate) info: WorkloadInfo,
    pub(crate) opening: ScenarioOpening,
    /// Path of the function.
    pub(crate) function: String,
}

impl SloCheck for LuaSloCheck {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn check(&self, results: Arc<dyn RunResults>) -> Result<Vec<SloVerdict>, PluginFailure> {
        let opened = self
            .opening
            .machine()
            .and_then(|(vm, value)| Ok((vm, lookup(&value, &self.function)?)));
        let (vm, check) = opened.map_err(|fault| opening::failure(fault, &self.info.name, &self.function))?;
        vm.call(|lua| {
            let results = lua.create_userdata(Results(results))?;
            check.call::<Value>(results)
        })
        .and_then(|value| verdicts(&value).map_err(|shape| LuaFault::at(&check, shape.to_string())))
        .map_err(|fault| vm.quote(fault).into_failure(&self.info.name, CHECK, None))
    }
}

fn verdicts(value: &Value) -> Result<Vec<SloVerdict>, ShapeError> {
    let at = At::Root("verdicts");
    let Value::Table(list) = value else {
        return Err(at.expected(
            "a list of verdicts: { { name =, met =, threshold = }, ... }",
            value,
        ));
    };
    let length = list.raw_len();
    if length == 0 {
        let message = if list.is_empty() {
            "the list is empty; return at least one verdict"
        } else {
            "expected a list of verdicts; put a single one into braces"
        };
        return Err(at.shape(message));
    }
    if length > MOST {
        return Err(at.shape(format!("{length} verdicts; there may be {MOST}")));
    }
    let mut names = HashSet::new();
    (1..=length)
        .map(|index| {
            let at = At::Index(&at, index);
            match list.raw_get(index).unwrap_or(Value::Nil) {
                Value::Table(verdict) => {
                    let verdict = one(&at, &verdict)?;
                    if !names.insert(verdict.name.clone()) {
                        return Err(at.shape(format!("a second verdict of the name `{}`", verdict.name)));
                    }
                    Ok(verdict)
                }
                other => Err(at.expected("a verdict: { name =, met =, threshold = }", &other)),
            }
        })
        .collect()
}

fn one(at: &At<'_>, table: &Table) -> Result<SloVerdict, ShapeError> {
    let (mut name, mut met, mut observed, mut threshold) = (None, None, None, None);
    let mut detail = String::new();
    each_field(at, table, &FIELDS, |key, at, value| {
        match key {
            "name" => name = Some(text(at, value)?).filter(|name| !name.is_empty()),
            "met" => match value {
                Value::Boolean(flag) => met = Some(*flag),
                other => return Err(at.expected("true or false", other)),
            },
            "observed" => observed = Some(finite(at, value)?),
            "threshold" => threshold = Some(finite(at, value)?),
            _ => detail = text(at, value)?,
        }
        Ok(())
    })?;
    let missing = |what: &str| at.shape(format!("`{what}` is missing"));
    Ok(SloVerdict {
        name: name.ok_or_else(|| missing("name"))?,
        met: met.ok_or_else(|| missing("met"))?,
        observed,
        threshold: threshold.ok_or_else(|| missing("threshold"))?,
        detail,
    })
}

/// Reads one line: each run of white space becomes a space.
fn text(at: &At<'_>, value: &Value) -> Result<String, ShapeError> {
    let text = string(at, value)?;
    if text.len() > LONGEST {
        return Err(at.shape(format!("{} bytes of text; there may be {LONGEST}", text.len())));
    }
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
