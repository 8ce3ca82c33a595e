//! Validation of the samples that a metric plugin returns.

use veeksha_model::{MetricDefinition, RequestRecord};
use veeksha_ports::PluginSample;

use crate::bindings::metric as wit;
use crate::completions::named;
use crate::text::grouped;

/// An invalid sample.
#[derive(Debug, PartialEq)]
pub(crate) struct Unusable {
    pub(crate) why: String,
    /// The request of the sample, by its index in the batch.
    pub(crate) of: Option<usize>,
}

/// Appends the samples of a call to `into`. The call received `count` of `requests` from `first`
/// on; the indices are converted to those of the whole batch.
pub(crate) fn append(
    samples: Vec<wit::Sample>,
    definitions: &[MetricDefinition],
    requests: &[&RequestRecord],
    first: usize,
    count: usize,
    into: &mut Vec<PluginSample>,
) -> Result<(), Unusable> {
    into.reserve(samples.len());
    for (place, sample) in samples.iter().enumerate() {
        let Some(definition) = definitions.get(sample.metric as usize) else {
            let why = format!(
                "sample {} is of metric {}; it defines {}, counted from 0",
                grouped(place as u64),
                grouped(sample.metric.into()),
                definitions.len()
            );
            return Err(Unusable { why, of: None });
        };
        let name = &definition.name;
        let of = match sample.of.map(|of| of as usize) {
            Some(of) if of >= count => {
                let why = format!(
                    "a sample of `{name}` is of request {}; the batch has {count}, counted from 0",
                    grouped(of as u64)
                );
                return Err(Unusable { why, of: None });
            }
            of => of.map(|of| first + of),
        };
        let whose = || match of {
            Some(of) => format!("the sample of `{name}` of {}", named(requests, of)),
            None => format!("a sample of `{name}`"),
        };
        if !sample.value.is_finite() {
            let why = format!(
                "{} is {}; values are finite, and what does not exist is left out",
                whose(),
                sample.value
            );
            return Err(Unusable { why, of });
        }
        if !(sample.weight.is_finite() && sample.weight > 0.0) {
            let why = format!(
                "{} has the weight {}; weights are finite and above 0",
                whose(),
                sample.weight
            );
            return Err(Unusable { why, of });
        }
        into.push(PluginSample {
            metric: sample.metric,
            value: sample.value,
            weight: sample.weight,
            of: of.and_then(|of| u32::try_from(of).ok()),
        });
    }
    Ok(())
}
