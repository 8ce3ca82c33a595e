//! Runs that are copies of one another: none of them tells more than one of them does.

use crate::{RunData, Side};

/// The runs of a side, of copies only the first one.
pub(crate) fn distinct(side: &Side) -> Vec<&RunData> {
    let mut kept: Vec<&RunData> = Vec::new();
    for run in &side.runs {
        if !kept.iter().any(|other| is_copy(run, other)) {
            kept.push(run);
        }
    }
    kept
}

/// What is said of a side of which some runs are copies.
pub(crate) fn remark(side: &Side) -> Option<String> {
    let (runs, kept) = (side.runs.len(), distinct(side).len());
    let label = &side.label;
    const WHY: &str = "as simulated runs of one seed are";
    match (runs - kept, kept) {
        (0, _) => None,
        (_, 1) => Some(format!(
            "the {runs} runs of {label} are copies of one another, {WHY}: they count as one"
        )),
        (copies, _) => Some(format!(
            "{copies} of the {runs} runs of {label} are copies of others, {WHY}, and do not count"
        )),
    }
}

/// Whether all samples of two runs are the same, to the nanosecond: no two measurements agree so far.
fn is_copy(one: &RunData, other: &RunData) -> bool {
    let metrics_agree = || {
        let pairs = one.metrics.iter().zip(&other.metrics);
        let mut same = pairs.map(|(one, other)| one.name == other.name && one.samples == other.samples);
        one.metrics.len() == other.metrics.len() && same.all(|same| same)
    };
    let samples_of_metrics = one.metrics.iter().map(|metric| &metric.samples);
    let parts = one.figures.iter().filter_map(|figure| figure.parts.as_ref());
    let mut samples = samples_of_metrics.chain(parts.map(|parts| parts.samples()));
    let is_measured = samples.any(|samples| samples.count() > 0);
    is_measured && one.figures == other.figures && metrics_agree()
}
