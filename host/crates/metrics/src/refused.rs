//! Samples of plugins' metrics that cannot be reckoned with: left out, counted, and told.

use std::collections::BTreeMap;
use std::fmt;

use veeksha_model::MetricSample;

/// No value and no weight is larger, and no weight smaller than its inverse: squares of a billion such samples are still numbers.
const LARGEST: f64 = 1e90;

/// Why a sample is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SampleFault {
    /// Its value is no finite number.
    ValueNotFinite,
    /// Its value lies beyond ±1e90.
    ValueTooLarge,
    /// Its weight is no number above 0 that can be reckoned with.
    Weight,
}

impl SampleFault {
    /// What is wrong with a sample, if anything is.
    pub(crate) fn of(sample: &MetricSample) -> Option<SampleFault> {
        if !sample.value.is_finite() {
            return Some(SampleFault::ValueNotFinite);
        }
        if sample.value.abs() > LARGEST {
            return Some(SampleFault::ValueTooLarge);
        }
        // NaN is in no range.
        let weights = LARGEST.recip()..=LARGEST;
        (!weights.contains(&sample.weight)).then_some(SampleFault::Weight)
    }

    /// The reason in files.
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
            SampleFault::ValueNotFinite => "their values are no finite numbers",
            SampleFault::ValueTooLarge => "their values are beyond 1e90",
            SampleFault::Weight => "their weights are not above 0, or beyond 1e90",
        })
    }
}

/// Samples of one metric that are left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSamples {
    /// The plugin that gave them; `None` if the record does not say whose the metric is.
    pub plugin: Option<String>,
    /// The metric.
    pub metric: String,
    /// What is wrong with them.
    pub fault: SampleFault,
    /// How many they are.
    pub count: u64,
    /// The first that came, in words.
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

/// What is left out so far, by metric and reason.
#[derive(Debug, Default)]
pub(crate) struct Refused(BTreeMap<(String, SampleFault), (u64, String)>);

impl Refused {
    pub(crate) fn add(&mut self, sample: &MetricSample, fault: SampleFault) {
        let seen = self.0.entry((sample.metric.clone(), fault));
        seen.or_insert_with(|| (0, in_words(sample))).0 += 1;
    }

    /// How many they are.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    /// All of them; `plugin_of` knows whose a metric is.
    pub(crate) fn list(self, plugin_of: impl Fn(&str) -> Option<String>) -> Vec<RefusedSamples> {
        let told =
            |((metric, fault), (count, first)): ((String, SampleFault), (u64, String))| RefusedSamples {
                plugin: plugin_of(&metric),
                metric,
                fault,
                count,
                first,
            };
        self.0.into_iter().map(told).collect()
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
