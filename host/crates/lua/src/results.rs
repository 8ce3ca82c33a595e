//! Results of a run, for a check.

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, UserData, UserDataMethods, Value};
use veeksha_model::{Label, Nanos};
use veeksha_ports::{MetricStats, RunResults};

use crate::budget::Budget;
use crate::content::string;
use crate::request::labels;
use crate::shape::{At, ShapeError, number_of};

/// Minimum length of a window, in seconds.
const SHORTEST: f64 = 0.1;
/// Maximum length of a window, in seconds; longer than any run.
const LONGEST: f64 = 1e9;

/// The results object of a check.
pub(crate) struct Results(pub(crate) Arc<dyn RunResults>);

impl UserData for Results {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("metrics", |lua, results, ()| {
            lua.create_sequence_from(results.0.metrics())
        });
        methods.add_method("aggregate", |_, results, name: Value| {
            let name = string(&At::Root("results:aggregate(name)"), &name)?;
            Ok(results.0.run_metric(&name).filter(|value| value.is_finite()))
        });
        methods.add_method("stats", |lua, results, arguments: MultiValue| {
            let at = At::Root("results:stats(metric, filter)");
            let (metric, filter) = asked(&at, arguments.front(), arguments.get(1))?;
            stats(lua, &results.0.stats(&metric, &filter))
        });
        methods.add_method("percentile", |_, results, arguments: MultiValue| {
            let at = At::Root("results:percentile(metric, percent, filter)");
            let (metric, filter) = asked(&at, arguments.front(), arguments.get(2))?;
            let given = arguments.get(1).cloned().unwrap_or(Value::Nil);
            match number_of(&given) {
                Some(percent) if (0.0..=100.0).contains(&percent) => {
                    Ok(results.0.percentile(&metric, percent, &filter))
                }
                _ => Err(At::Key(&at, "percent")
                    .expected("a number from 0 to 100", &given)
                    .into()),
            }
        });
        methods.add_method("windows", |lua, results, arguments: MultiValue| {
            let at = At::Root("results:windows(metric, filter, seconds)");
            let (metric, filter) = asked(&at, arguments.front(), arguments.get(1))?;
            let given = arguments.get(2).cloned().unwrap_or(Value::Nil);
            let length = match number_of(&given) {
                Some(seconds) if (SHORTEST..=LONGEST).contains(&seconds) => (seconds * 1e9).round() as Nanos,
                _ => {
                    let expected = format!("a number of seconds from {SHORTEST} to {LONGEST}");
                    return Err(At::Key(&at, "seconds").expected(&expected, &given).into());
                }
            };
            let windows = lua.create_table()?;
            for window in results.0.windows(&metric, &filter, length) {
                let table = lua.create_table_with_capacity(0, 3)?;
                table.raw_set("from", window.from as f64 / 1e9)?;
                table.raw_set("to", window.to as f64 / 1e9)?;
                table.raw_set("stats", stats(lua, &window.stats)?)?;
                windows.raw_push(table)?;
            }
            Ok(windows)
        });
    }
}

fn asked(
    at: &At<'_>,
    metric: Option<&Value>,
    filter: Option<&Value>,
) -> Result<(String, Vec<Label>), ShapeError> {
    let metric = string(&At::Key(at, "metric"), metric.unwrap_or(&Value::Nil))?;
    let filter = match filter {
        None | Some(Value::Nil) => Vec::new(),
        Some(filter) => labels(&At::Key(at, "filter"), filter, &Budget::new())?,
    };
    Ok((metric, filter))
}

/// Returns a table of statistics. Without samples it has only `count`.
fn stats(lua: &Lua, stats: &MetricStats) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 9)?;
    table.raw_set("count", stats.count as f64)?;
    if stats.count > 0 {
        for (name, value) in [
            ("mean", stats.mean),
            ("std", stats.std),
            ("min", stats.min),
            ("max", stats.max),
            ("p50", stats.p50),
            ("p90", stats.p90),
            ("p95", stats.p95),
            ("p99", stats.p99),
        ] {
            table.raw_set(name, value)?;
        }
    }
    Ok(table)
}
