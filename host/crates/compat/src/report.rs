//! Result of a view.

use serde_json::Value;

use crate::tool::Tool;

/// A metric of a tool, under the tool's name.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolMetric {
    /// Name as in the tool's result file: `p99_ttft_ms`.
    pub name: String,
    /// The tool's unit: `ms`, `tok/s`, ...
    pub unit: &'static str,
    /// Value; `None` where the tool has none (and would write NaN, null, or fail).
    pub value: Option<f64>,
    /// Number of underlying values.
    pub samples: u64,
}

/// A run in the definitions of one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewReport {
    /// The tool.
    pub tool: Tool,
    /// Metrics in the tool's order and units.
    pub metrics: Vec<ToolMetric>,
    /// Differences between the view and the tool for this run; complete sentences.
    pub notes: Vec<String>,
    pub(crate) table: String,
    pub(crate) json: Value,
}

impl ViewReport {
    /// Returns the tool's closing table, followed by the notes.
    pub fn text(&self) -> String {
        let mut text = self.table.clone();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("Arithmetic of {}.\n", self.tool.reference_version()));
        for note in &self.notes {
            text.push_str("* ");
            text.push_str(note);
            text.push('\n');
        }
        text
    }

    /// Returns the tool's result file, with the keys that this host can compute. Strict JSON: NaN
    /// becomes null.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Returns the metric with this name.
    pub fn metric(&self, name: &str) -> Option<&ToolMetric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

/// Collects metrics and the JSON object of the result file.
#[derive(Debug, Default)]
pub(crate) struct MetricList {
    pub(crate) metrics: Vec<ToolMetric>,
    pub(crate) object: serde_json::Map<String, Value>,
}

impl MetricList {
    /// Adds a metric, also to the result file under the same name.
    pub(crate) fn put(&mut self, name: &str, unit: &'static str, value: Option<f64>, samples: usize) {
        self.object.insert(name.to_owned(), number(value));
        self.only(name, unit, value, samples);
    }

    /// Adds a count, an integer in the result file.
    pub(crate) fn count(&mut self, name: &str, unit: &'static str, value: u64, samples: usize) {
        self.object.insert(name.to_owned(), value.into());
        self.only(name, unit, Some(value as f64), samples);
    }

    /// Adds a metric whose value the result file has in another place.
    pub(crate) fn only(&mut self, name: &str, unit: &'static str, value: Option<f64>, samples: usize) {
        self.metrics.push(ToolMetric {
            name: name.to_owned(),
            unit,
            value: value.filter(|value| value.is_finite()),
            samples: samples as u64,
        });
    }
}

/// Result of a tool's calculation.
#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) metrics: MetricList,
    pub(crate) table: String,
    pub(crate) notes: Notes,
}

/// Collects the notes of a view.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<String>);

impl Notes {
    pub(crate) fn add(&mut self, sentence: &str) {
        self.0.push(sentence.to_owned());
    }

    /// Adds a note with a count, unless it is 0.
    pub(crate) fn count(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.0.push(format!("{what}: {count}."));
        }
    }
}

/// Converts to a JSON number; null if missing or not finite.
pub(crate) fn number(value: Option<f64>) -> Value {
    value
        .and_then(serde_json::Number::from_f64)
        .map_or(Value::Null, Value::Number)
}
