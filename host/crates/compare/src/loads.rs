//! Requested loads of both sides. If they differ, the throughput is determined by the request
//! rather than the server.

use veeksha_model::Better;

use crate::input::RunData;
use crate::load::RequestedLoad;
use crate::row::ComparisonRow;

/// Requested loads of both sides, which differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loads {
    baseline: Vec<RequestedLoad>,
    candidate: Vec<RequestedLoad>,
}

impl Loads {
    /// Returns the loads; `None` if they are equal, or unknown for a side.
    pub(crate) fn that_differ(baseline: &[&RunData], candidate: &[&RunData]) -> Option<Loads> {
        let loads = Loads {
            baseline: loads_of(baseline),
            candidate: loads_of(candidate),
        };
        let all_in = |one: &[RequestedLoad], other: &[RequestedLoad]| {
            let is_in = |load: &RequestedLoad| other.iter().any(|other| other.is_like(*load));
            one.iter().all(is_in)
        };
        let is_same = all_in(&loads.baseline, &loads.candidate) && all_in(&loads.candidate, &loads.baseline);
        let is_known = !loads.baseline.is_empty() && !loads.candidate.is_empty();
        (is_known && !is_same).then_some(loads)
    }

    /// Returns true if one of them is an arrival rate, which then determines the throughput. In a
    /// closed loop the server does.
    pub(crate) fn is_open(&self) -> bool {
        let mut all = self.baseline.iter().chain(&self.candidate);
        all.any(|load| load.is_open())
    }

    /// Explains why a value that grows with the load is not judged, if it is not.
    pub(crate) fn why_not(&self, row: &ComparisonRow) -> Option<String> {
        let is_judged = row.better == Better::Neither || !self.is_open();
        (!is_judged).then(|| {
            let [baseline, candidate] = self.texts();
            format!("the requested loads differ: {baseline} and {candidate}")
        })
    }

    /// Returns the loads of both sides as text.
    pub(crate) fn texts(&self) -> [String; 2] {
        [text(&self.baseline), text(&self.candidate)]
    }
}

/// Returns the distinct loads.
fn loads_of(runs: &[&RunData]) -> Vec<RequestedLoad> {
    let mut loads: Vec<RequestedLoad> = Vec::new();
    for load in runs.iter().filter_map(|run| run.load) {
        if !loads.iter().any(|known| known.is_like(load)) {
            loads.push(load);
        }
    }
    loads
}

fn text(loads: &[RequestedLoad]) -> String {
    let texts: Vec<String> = loads.iter().map(RequestedLoad::to_string).collect();
    texts.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_differ_as_sets_and_where_they_are_known() {
        let run = |load| RunData {
            load,
            ..RunData::default()
        };
        let [slow, fast] = [25.0, 40.0].map(|per_second| run(Some(RequestedLoad::Arrivals { per_second })));
        let unknown = run(None);
        assert!(Loads::that_differ(&[&slow], &[&fast]).is_some());
        assert!(Loads::that_differ(&[&slow, &fast], &[&fast]).is_some());
        assert!(Loads::that_differ(&[&slow, &fast], &[&fast, &slow, &slow]).is_none());
        assert!(Loads::that_differ(&[&slow], &[&unknown]).is_none());
        // An interval of 0.3 s, and its rounded rate.
        let [interval, rate] =
            [1.0 / 0.3, 3.333].map(|per_second| run(Some(RequestedLoad::Arrivals { per_second })));
        assert!(Loads::that_differ(&[&interval], &[&rate]).is_none());
    }
}
