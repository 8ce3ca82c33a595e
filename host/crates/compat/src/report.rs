//! What a view says.

use serde_json::Value;

use crate::tool::Tool;

/// One number of a tool, under its name there.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The tool's name, as in its result file: `p99_ttft_ms`.
    pub name: String,
    /// The tool's unit: `ms`, `tok/s`, ...
    pub unit: &'static str,
    /// The value; `None` where the tool has none (and would write NaN, null, or fail).
    pub value: Option<f64>,
    /// On how many values it rests.
    pub samples: u64,
}

/// A run in the definitions of one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewReport {
    /// The tool.
    pub tool: Tool,
    /// Its metrics, in its own order and units.
    pub figures: Vec<Figure>,
    /// What the view cannot reproduce, and what of this run the tool would have taken otherwise; whole sentences.
    pub notes: Vec<String>,
    pub(crate) table: String,
    pub(crate) json: Value,
}

impl ViewReport {
    /// The tool's closing table, with the notes below it.
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

    /// The tool's result file, as far as a run of this host knows its keys. Strict JSON: what the tool writes as NaN is null.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The figure of that name.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// Collects figures and the JSON object beside them.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) list: Vec<Figure>,
    pub(crate) object: serde_json::Map<String, Value>,
}

impl Figures {
    /// A figure that stands in the result file under its own name.
    pub(crate) fn put(&mut self, name: &str, unit: &'static str, value: Option<f64>, samples: usize) {
        self.object.insert(name.to_owned(), number(value));
        self.only(name, unit, value, samples);
    }

    /// A count: an integer in the result file.
    pub(crate) fn count(&mut self, name: &str, unit: &'static str, value: u64, samples: usize) {
        self.object.insert(name.to_owned(), value.into());
        self.only(name, unit, Some(value as f64), samples);
    }

    /// A figure that stands elsewhere in the result file.
    pub(crate) fn only(&mut self, name: &str, unit: &'static str, value: Option<f64>, samples: usize) {
        self.list.push(Figure {
            name: name.to_owned(),
            unit,
            value: value.filter(|value| value.is_finite()),
            samples: samples as u64,
        });
    }
}

/// Collects what a view has to say in words.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<String>);

impl Notes {
    pub(crate) fn say(&mut self, sentence: &str) {
        self.0.push(sentence.to_owned());
    }

    /// Says of how many this is true, if of any.
    pub(crate) fn count(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.0.push(format!("{what}: {count}."));
        }
    }
}

/// A number of JSON; null for what is none.
pub(crate) fn number(value: Option<f64>) -> Value {
    value
        .and_then(serde_json::Number::from_f64)
        .map_or(Value::Null, Value::Number)
}
