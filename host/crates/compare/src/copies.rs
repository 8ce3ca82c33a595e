//! Detection of runs that are copies of one another, which count as one.

use crate::input::{CompareSide, RunData};
use crate::remark::Remark;

/// Returns the distinct runs of a side.
pub(crate) fn distinct(side: &CompareSide) -> Vec<&RunData> {
    let mut kept: Vec<&RunData> = Vec::new();
    for run in &side.runs {
        if !kept.iter().any(|other| is_copy(run, other)) {
            kept.push(run);
        }
    }
    kept
}

/// Returns the remark on copies within a side.
pub(crate) fn remark(side: &CompareSide) -> Option<Remark> {
    let distinct = distinct(side).len();
    (distinct < side.runs.len()).then(|| Remark::Copies {
        side: side.label.clone(),
        runs: side.runs.len(),
        distinct,
    })
}

/// Returns the remarks on runs that are on both sides, or equal to one of the other side.
pub(crate) fn on_both_sides(baseline: &CompareSide, candidate: &CompareSide) -> Vec<Remark> {
    let remark = |run: &RunData| {
        let find = |is_meant: fn(&RunData, &RunData) -> bool| {
            let other = baseline.runs.iter().find(|other| is_meant(run, other))?;
            Some([place(other).to_owned(), place(run).to_owned()])
        };
        let same = find(is_same).map(Remark::SameRun);
        same.or_else(|| find(agree).map(Remark::SameSamples))
    };
    candidate.runs.iter().filter_map(remark).collect()
}

fn place(run: &RunData) -> &str {
    run.place.as_deref().unwrap_or(&run.label)
}

fn is_copy(one: &RunData, other: &RunData) -> bool {
    is_same(one, other) || agree(one, other)
}

/// Returns true if both were read from one place, or have records with one name.
fn is_same(one: &RunData, other: &RunData) -> bool {
    let same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
    same(&one.place, &other.place) || same(&one.recorded_as, &other.recorded_as)
}

/// Returns true if all samples are equal to the nanosecond, as in no two real measurements.
fn agree(one: &RunData, other: &RunData) -> bool {
    let metrics_agree = || {
        let pairs = one.metrics.iter().zip(&other.metrics);
        let mut same = pairs.map(|(one, other)| one.name == other.name && one.samples == other.samples);
        one.metrics.len() == other.metrics.len() && same.all(|same| same)
    };
    let samples_of_metrics = one.metrics.iter().map(|metric| &metric.samples);
    let parts = one
        .run_metrics
        .iter()
        .filter_map(|run_metric| run_metric.parts.as_ref());
    let mut samples = samples_of_metrics.chain(parts.map(|parts| parts.samples()));
    let is_measured = samples.any(|samples| samples.count() > 0);
    is_measured && one.run_metrics == other.run_metrics && metrics_agree()
}
