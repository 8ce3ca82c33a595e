//! Contents of a table of `metrics`, `good` and `check`, read without executing it.

use std::sync::Arc;

use veeksha_model::{Better, MetricDefinition};
use veeksha_ports::{MAX_METRICS, MetricFactory, RequestCheckFactory, SloCheck};
use veeksha_scenario::{Node, Value};

use crate::metrics::Described;

/// Valid keys of an evaluator.
const KEYS: [&str; 5] = ["type", "name", "metrics", "good", "check"];
/// Valid keys of a metric.
const METRIC_KEYS: [&str; 5] = ["unit", "better", "summary", "observe", "finish"];
/// Maximum number of characters of a metric's name.
const LONGEST_NAME: usize = 64;

/// Metrics and checks of one table of functions: at least one of the three.
#[derive(Clone)]
pub struct LuaEvaluator {
    /// Name in results and messages.
    pub name: String,
    /// The metrics of the table `metrics`.
    pub metric: Option<Arc<dyn MetricFactory>>,
    /// The request check of the function `good`.
    pub request_check: Option<Arc<dyn RequestCheckFactory>>,
    /// The SLO check of the function `check`.
    pub slo_check: Option<Arc<dyn SloCheck>>,
}

/// An invalid value: its path below the evaluator, its node for the line, and the problem.
pub(crate) struct Wrong<'n> {
    pub(crate) path: String,
    pub(crate) node: &'n Node,
    pub(crate) message: String,
}

fn wrong<'n>(path: &str, node: &'n Node, message: impl Into<String>) -> Wrong<'n> {
    Wrong {
        path: path.to_owned(),
        node,
        message: message.into(),
    }
}

/// The functions that an evaluator has, and its name.
#[derive(Debug, Default)]
pub(crate) struct EvaluatorParts {
    pub(crate) name: Option<String>,
    pub(crate) measures: bool,
    pub(crate) judges_requests: bool,
    pub(crate) judges_run: bool,
}

/// Reads an evaluator's table.
pub(crate) fn parts(node: &Node) -> Result<EvaluatorParts, Wrong<'_>> {
    let mut parts = EvaluatorParts::default();
    for (key, value) in entries(node, "", &KEYS)? {
        match (key, &value.value) {
            ("type", Value::Text(text)) if text == "lua" => {}
            ("type", _) => return Err(wrong(key, value, "expected `lua`, or nothing at all")),
            ("name", Value::Text(name)) if !name.trim().is_empty() => parts.name = Some(name.clone()),
            ("name", other) => return Err(wrong(key, value, format!("expected a name, got {other}"))),
            ("metrics", _) => parts.measures = true,
            ("good", Value::Function) => parts.judges_requests = true,
            (_, Value::Function) => parts.judges_run = true,
            (_, other) => return Err(wrong(key, value, format!("expected a function, got {other}"))),
        }
    }
    if !(parts.measures || parts.judges_requests || parts.judges_run) {
        return Err(wrong(
            "",
            node,
            "functions are missing: `metrics`, `good` or `check`",
        ));
    }
    Ok(parts)
}

/// Reads the table of metrics. `plugin` is the name of the evaluator.
pub(crate) fn metrics<'n>(node: &'n Node, plugin: &str) -> Result<Vec<Described>, Wrong<'n>> {
    let Value::Map(metrics) = &node.value else {
        let message = format!("expected metrics by their names, got {}", node.value);
        return Err(wrong("", node, message));
    };
    if metrics.is_empty() {
        return Err(wrong("", node, "the table names no metric"));
    }
    if metrics.len() > MAX_METRICS {
        let message = format!(
            "it defines {} metrics, at most {MAX_METRICS} are taken",
            metrics.len()
        );
        return Err(wrong("", node, message));
    }
    metrics
        .iter()
        .map(|(name, node)| metric(name, node, plugin))
        .collect()
}

fn metric<'n>(name: &str, node: &'n Node, plugin: &str) -> Result<Described, Wrong<'n>> {
    if !is_name(name) {
        let message = format!(
            "`{}` cannot be a metric's name, which is made of small letters, digits and `_`, begins with a letter and has at \
             most {LONGEST_NAME} characters",
            name.escape_debug()
        );
        return Err(wrong(name, node, message));
    }
    let mut definition = MetricDefinition {
        name: name.to_owned(),
        unit: "1".to_owned(),
        better: Better::Neither,
        summary: String::new(),
        plugin: plugin.to_owned(),
    };
    let (mut has_observe, mut has_finish) = (false, false);
    for (key, value) in entries(node, name, &METRIC_KEYS)? {
        let path = format!("{name}.{key}");
        match (key, &value.value) {
            ("unit" | "summary", Value::Text(text)) if text.contains(char::is_control) => {
                return Err(wrong(&path, value, "expected one line of text"));
            }
            ("unit", Value::Text(text)) => definition.unit.clone_from(text),
            ("summary", Value::Text(text)) => definition.summary.clone_from(text),
            ("better", Value::Text(text)) => {
                definition.better = match text.as_str() {
                    "higher" => Better::Higher,
                    "less" => Better::Less,
                    "neither" => Better::Neither,
                    _ => {
                        let near = if text == "lower" {
                            "; did you mean `less`?"
                        } else {
                            ""
                        };
                        let message = format!(
                            "expected `higher`, `less` or `neither`, got {}{near}",
                            value.value
                        );
                        return Err(wrong(&path, value, message));
                    }
                }
            }
            ("observe", Value::Function) => has_observe = true,
            ("finish", Value::Function) => has_finish = true,
            ("observe" | "finish", other) => {
                return Err(wrong(&path, value, format!("expected a function, got {other}")));
            }
            (_, other) => return Err(wrong(&path, value, format!("expected text, got {other}"))),
        }
    }
    if !has_observe {
        return Err(wrong(name, node, "the function `observe` is missing"));
    }
    Ok(Described {
        definition,
        has_finish,
    })
}

fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns the entries of a table.
///
/// # Errors
/// If a key is not in the list.
fn entries<'n, 'k>(
    node: &'n Node,
    path: &str,
    known: &'k [&'k str],
) -> Result<Vec<(&'k str, &'n Node)>, Wrong<'n>> {
    let Value::Map(entries) = &node.value else {
        let message = format!("expected a table with {}, got {}", known.join(", "), node.value);
        return Err(wrong(path, node, message));
    };
    entries
        .iter()
        .map(|(key, value)| match known.iter().find(|name| *name == key) {
            Some(name) => Ok((*name, value)),
            None => {
                let shape = crate::shape::unknown_field(&crate::shape::At::Root(""), key, known);
                Err(wrong(path, value, shape.message))
            }
        })
        .collect()
}
