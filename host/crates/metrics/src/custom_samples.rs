//! Samples measured by plugins.

use std::collections::BTreeMap;

use veeksha_model::{MetricSample, Nanos, RequestId};
use veeksha_stats::WeightedSample;

use crate::label_sets::{LabelSet, Matching};
use crate::refused::{Refused, SampleFault};
use crate::requests::RequestTable;
use crate::sample_set::SampleSet;
use veeksha_definitions::OptionalInstant;

/// Samples in order of arrival: before, after or without the record of their request.
#[derive(Debug, Default)]
pub(crate) struct CustomSamples {
    by_metric: BTreeMap<String, Vec<Sample>>,
    /// Samples with unusable values or weights.
    pub(crate) refused: Refused,
}

#[derive(Debug)]
struct Sample {
    value: f64,
    weight: f64,
    request: Option<RequestId>,
}

impl CustomSamples {
    pub(crate) fn add(&mut self, sample: &MetricSample) {
        if let Some(fault) = SampleFault::of(sample) {
            self.refused.add(sample, fault);
            return;
        }
        let MetricSample { value, weight, .. } = *sample;
        let kept = Sample {
            value,
            weight,
            request: sample.request,
        };
        match self.by_metric.get_mut(&sample.metric) {
            Some(samples) => samples.push(kept),
            None => {
                self.by_metric.insert(sample.metric.clone(), vec![kept]);
            }
        }
    }

    /// Finds the request of each sample among the sorted rows. Samples of requests that were not
    /// measured are dropped. Samples whose request is missing from the record count, but have no
    /// labels and belong to no window.
    pub(crate) fn resolve(self, requests: &RequestTable) -> BTreeMap<String, Resolved> {
        let place = |samples: Vec<Sample>| {
            let placed = samples.into_iter().filter_map(|sample| {
                let row = sample.request.and_then(|request| requests.find(request));
                let of = row.map(|row| &requests.rows[row]);
                if of.is_some_and(|row| !row.measured) {
                    return None;
                }
                Some(Placed {
                    value: sample.value,
                    weight: sample.weight,
                    intended: OptionalInstant::of(of.map(|row| row.observed.intended)),
                    labels: of.map_or(0, |row| row.labels),
                    row: row.map_or(NO_ROW, |row| row as u32),
                })
            });
            Resolved::new(placed.collect())
        };
        self.by_metric
            .into_iter()
            .map(|(name, samples)| (name, place(samples)))
            .collect()
    }
}

const NO_ROW: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Placed {
    value: f64,
    weight: f64,
    intended: OptionalInstant,
    labels: LabelSet,
    row: u32,
}

/// The samples of one metric, by the intended instants of their requests; samples without a request
/// come last.
#[derive(Debug, PartialEq)]
pub(crate) struct Resolved {
    samples: Vec<Placed>,
}

impl Resolved {
    fn new(mut samples: Vec<Placed>) -> Self {
        samples.sort_unstable_by(|a, b| {
            (a.intended.cmp(&b.intended))
                .then(a.row.cmp(&b.row))
                .then(a.value.total_cmp(&b.value))
                .then(a.weight.total_cmp(&b.weight))
        });
        Resolved { samples }
    }

    /// Returns the intended instants of all samples that have one, ascending.
    pub(crate) fn instants(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.samples.iter().map_while(|sample| sample.intended.get())
    }

    pub(crate) fn set(&self, matching: &Matching, span: Option<(Nanos, Nanos)>) -> SampleSet<'static> {
        let samples = match span {
            None => &self.samples[..],
            Some((from, to)) => {
                let place = |at: Nanos| {
                    let at = OptionalInstant::of(Some(at));
                    self.samples.partition_point(|sample| sample.intended < at)
                };
                &self.samples[place(from)..place(to)]
            }
        };
        let passes = |sample: &&Placed| matching.has(sample.labels);
        let weighted = samples
            .iter()
            .filter(passes)
            .map(|sample| (sample.value, sample.weight));
        SampleSet::weighted(weighted.collect())
    }

    /// Returns instant, value, weight and row of all samples that have an instant.
    pub(crate) fn timed(&self) -> impl Iterator<Item = (Nanos, f64, f64, Option<u32>)> + '_ {
        self.samples.iter().filter_map(|sample| {
            let row = (sample.row != NO_ROW).then_some(sample.row);
            Some((sample.intended.get()?, sample.value, sample.weight, row))
        })
    }

    /// Returns the samples of each row that has any.
    pub(crate) fn by_row(&self) -> BTreeMap<u32, Vec<WeightedSample>> {
        let mut rows: BTreeMap<u32, Vec<WeightedSample>> = BTreeMap::new();
        for sample in self.samples.iter().filter(|sample| sample.row != NO_ROW) {
            rows.entry(sample.row)
                .or_default()
                .push((sample.value, sample.weight));
        }
        rows
    }
}
