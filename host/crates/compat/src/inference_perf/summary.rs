//! Distributions in inference-perf's format.

use serde_json::{Map, Value};

use crate::report::{MetricList, number};
use crate::sample::ToolSample;

fn key(p: f64) -> String {
    if p == 50.0 {
        "median".to_owned()
    } else {
        format!("p{p}")
    }
}

/// `summarize`: null without values.
pub(super) fn summary(sample: &ToolSample, percentiles: &[f64]) -> Value {
    if sample.len() == 0 {
        return Value::Null;
    }
    let mut object = Map::new();
    let ends = [
        ("mean", sample.mean()),
        ("min", sample.min()),
        ("max", sample.max()),
    ];
    for (name, value) in ends {
        object.insert(name.to_owned(), number(value));
    }
    for &p in percentiles {
        object.insert(key(p), number(sample.percentile(p)));
    }
    Value::Object(object)
}

/// Adds totals to a distribution; without values only the totals are present.
pub(super) fn extend(summary: &mut Value, totals: &[(&str, f64)]) {
    if summary.is_null() {
        *summary = Value::Object(Map::new());
    }
    if let Some(object) = summary.as_object_mut() {
        let totals = totals
            .iter()
            .map(|(name, value)| ((*name).to_owned(), number(Some(*value))));
        object.extend(totals);
    }
}

/// Metrics under the paths of the result file.
pub(super) struct SummaryList<'a> {
    pub(super) list: MetricList,
    /// Percentiles of each distribution.
    pub(super) percentiles: &'a [f64],
}

impl<'a> SummaryList<'a> {
    pub(super) fn new(percentiles: &'a [f64]) -> Self {
        SummaryList {
            list: MetricList::default(),
            percentiles,
        }
    }

    /// Adds a number of requests.
    pub(super) fn count(&mut self, path: &str, count: usize, samples: usize) {
        self.list.only(path, "requests", Some(count as f64), samples);
    }

    /// Adds the statistics of a distribution, and returns it for the result file.
    pub(super) fn distribution(&mut self, path: &str, unit: &'static str, sample: &ToolSample) -> Value {
        let mut put = |stat: &str, value: Option<f64>| {
            self.list
                .only(&format!("{path}.{stat}"), unit, value, sample.len());
        };
        put("mean", sample.mean());
        put("min", sample.min());
        put("max", sample.max());
        for &p in self.percentiles {
            put(&key(p), sample.percentile(p));
        }
        summary(sample, self.percentiles)
    }
}
