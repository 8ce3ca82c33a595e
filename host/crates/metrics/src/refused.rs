//! Samples of plugin metrics with unusable values or weights: dropped, counted and reported.

use std::collections::BTreeMap;
use std::fmt;

use veeksha_model::MetricSample;

/// The largest accepted value and weight; its inverse is the smallest accepted weight. The sum of
/// squares of a billion such samples is still finite.
const LARGEST: f64 = 1e90;

/// The reason why a sample is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SampleFault {
    /// The value is not finite.
    ValueNotFinite,
    /// The value is beyond ±1e90.
    ValueTooLarge,
    /// The weight is not between 1e-90 and 1e90.
    Weight,
}

impl SampleFault {
    /// Returns the fault of a sample, if any.
    pub(crate) fn of(sample: &MetricSample) -> Option<SampleFault> {
        if !sample.value.is_finite() {
            return Some(SampleFault::ValueNotFinite);
        }
        if sample.value.abs() > LARGEST {
            return Some(SampleFault::ValueTooLarge);
        }
        // NaN is not in the range.
        let weights = LARGEST.recip()..=LARGEST;
        (!weights.contains(&sample.weight)).then_some(SampleFault::Weight)
    }

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            SampleFault::ValueNotFinite => "value_not_finite",
            SampleFault::ValueTooLarge => "value_too_large",
            SampleFault::Weight => "weight",
        }
    }
}

impl fmt::Display for SampleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SampleFault::ValueNotFinite => "their values are not finite numbers",
            SampleFault::ValueTooLarge => "their values are beyond 1e90",
            SampleFault::Weight => "their weights are not above 0, or beyond 1e90",
        })
    }
}

/// Samples of one metric that are dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSamples {
    /// The plugin that produced them; `None` if the record does not name the metric's plugin.
    pub plugin: Option<String>,
    /// The metric.
    pub metric: String,
    /// The fault.
    pub fault: SampleFault,
    /// The number of samples.
    pub count: u64,
    /// The first such sample, as text.
    pub first: String,
}

impl fmt::Display for RefusedSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusedSamples {
            plugin,
            metric,
            fault,
            count,
            first,
        } = self;
        match count {
            1 => f.write_str("1 sample")?,
            count => write!(f, "{count} samples")?,
        }
        write!(f, " of `{metric}`")?;
        if let Some(plugin) = plugin {
            write!(f, " (plugin {plugin})")?;
        }
        write!(f, " left out, because {fault}; the first: {first}")
    }
}

/// The dropped samples so far, by metric and reason.
#[derive(Debug, Default)]
pub(crate) struct Refused(BTreeMap<(String, SampleFault), (u64, String)>);

impl Refused {
    pub(crate) fn add(&mut self, sample: &MetricSample, fault: SampleFault) {
        let seen = self.0.entry((sample.metric.clone(), fault));
        seen.or_insert_with(|| (0, in_words(sample))).0 += 1;
    }

    /// Returns the number of dropped samples.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    /// Returns all entries; `plugin_of` maps a metric to its plugin.
    pub(crate) fn list(self, plugin_of: impl Fn(&str) -> Option<String>) -> Vec<RefusedSamples> {
        let entry =
            |((metric, fault), (count, first)): ((String, SampleFault), (u64, String))| RefusedSamples {
                plugin: plugin_of(&metric),
                metric,
                fault,
                count,
                first,
            };
        self.0.into_iter().map(entry).collect()
    }
}

fn in_words(sample: &MetricSample) -> String {
    let MetricSample { value, weight, .. } = sample;
    let mut words = format!("value {value:e}");
    if *weight != 1.0 {
        words.push_str(&format!(", weight {weight:e}"));
    }
    match sample.request {
        Some(request) => words + &format!(", of request {request}"),
        None => words + ", of the whole run",
    }
}
