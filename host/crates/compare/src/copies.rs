//! Detection of runs that are copies of one another, which count as one.

use crate::input::{RunData, Side};

/// Returns the distinct runs of a side.
pub(crate) fn distinct(side: &Side) -> Vec<&RunData> {
    let mut kept: Vec<&RunData> = Vec::new();
    for run in &side.runs {
        if !kept.iter().any(|other| is_copy(run, other)) {
            kept.push(run);
        }
    }
    kept
}

/// Returns the remark on copies within a side.
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

/// Returns the remarks on runs that are on both sides, or equal to one of the other side.
pub(crate) fn on_both_sides(baseline: &Side, candidate: &Side) -> Vec<String> {
    let mut said = Vec::new();
    for run in &candidate.runs {
        let same = baseline.runs.iter().find(|other| is_same(run, other));
        let twin = || baseline.runs.iter().find(|other| agree(run, other));
        if let Some(same) = same {
            let (one, other) = (place(same), place(run));
            let what = if one == other {
                format!("{one} is")
            } else {
                format!("{one} and {other} are copies of one run, which is")
            };
            said.push(format!(
                "{what} on both sides: a run does not differ from itself, and that says nothing of another one"
            ));
        } else if let Some(twin) = twin() {
            said.push(format!(
                "{} and {} agree in every sample, as copies and simulated runs of one seed do: that says nothing of another run",
                place(twin),
                place(run)
            ));
        }
    }
    said
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
    let parts = one.figures.iter().filter_map(|figure| figure.parts.as_ref());
    let mut samples = samples_of_metrics.chain(parts.map(|parts| parts.samples()));
    let is_measured = samples.any(|samples| samples.count() > 0);
    is_measured && one.figures == other.figures && metrics_agree()
}
