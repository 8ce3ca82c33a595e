//! Requested loads of both sides. If they differ, the throughput is determined by the request
//! rather than the server.

use std::fmt;

use veeksha_model::Better;
use veeksha_stats::number;

use crate::input::{RunData, Side};
use crate::row::Row;

/// Requested load of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Open loop: sessions arrive at an average rate.
    Arrivals {
        /// Sessions per second.
        per_second: f64,
    },
    /// Open loop: sessions arrive as recorded, scaled in time.
    Recorded {
        /// Speedup; 1 is as recorded.
        speedup: f64,
    },
    /// Closed loop: a fixed number of concurrent sessions.
    Sessions {
        /// Number of sessions.
        at_a_time: u32,
    },
}

/// Relative difference below which rates are equal: an interval of 0.3 s is 3.333 per second.
const ALIKE: f64 = 1e-3;

impl Load {
    /// Returns true if two runs had the same load.
    fn is_like(self, other: Load) -> bool {
        let near = |one: f64, other: f64| (one - other).abs() <= ALIKE * one.max(other);
        match (self, other) {
            (Load::Arrivals { per_second: one }, Load::Arrivals { per_second: other })
            | (Load::Recorded { speedup: one }, Load::Recorded { speedup: other }) => near(one, other),
            _ => self == other,
        }
    }

    /// Returns true if sessions arrive independently of the server.
    fn is_open(self) -> bool {
        !matches!(self, Load::Sessions { .. })
    }
}

/// Formats the load as the text after "was asked for" in a remark.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Arrivals { per_second } => write!(f, "{} sessions/s", number(*per_second)),
            Load::Recorded { speedup: 1.0 } => f.write_str("sessions as recorded"),
            Load::Recorded { speedup } => {
                write!(f, "sessions {} times as fast as recorded", number(*speedup))
            }
            Load::Sessions { at_a_time: 1 } => f.write_str("1 session at a time"),
            Load::Sessions { at_a_time } => write!(f, "{at_a_time} sessions at a time"),
        }
    }
}

/// Requested loads of both sides, which differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loads {
    baseline: Vec<Load>,
    candidate: Vec<Load>,
}

impl Loads {
    /// Returns the loads; `None` if they are equal, or unknown for a side.
    pub(crate) fn that_differ(baseline: &[&RunData], candidate: &[&RunData]) -> Option<Loads> {
        let loads = Loads {
            baseline: loads_of(baseline),
            candidate: loads_of(candidate),
        };
        let all_in = |one: &[Load], other: &[Load]| {
            let is_in = |load: &Load| other.iter().any(|other| other.is_like(*load));
            one.iter().all(is_in)
        };
        let is_same = all_in(&loads.baseline, &loads.candidate) && all_in(&loads.candidate, &loads.baseline);
        let is_known = !loads.baseline.is_empty() && !loads.candidate.is_empty();
        (is_known && !is_same).then_some(loads)
    }

    /// Returns true if one of them is an arrival rate, which then determines the throughput. In a
    /// closed loop the server does.
    fn is_open(&self) -> bool {
        let mut all = self.baseline.iter().chain(&self.candidate);
        all.any(|load| load.is_open())
    }

    /// Explains why a value that grows with the load is not judged, if it is not.
    pub(crate) fn why_not(&self, row: &Row) -> Option<String> {
        let is_judged = row.better == Better::Neither || !self.is_open();
        (!is_judged).then(|| {
            format!(
                "the sides were asked for different loads: {} and {}",
                text(&self.baseline),
                text(&self.candidate)
            )
        })
    }

    /// Returns the remark for the reader.
    pub(crate) fn remark(&self, baseline: &Side, candidate: &Side) -> String {
        let asked = format!(
            "{} was asked for {} and {} for {}",
            baseline.label,
            text(&self.baseline),
            candidate.label,
            text(&self.candidate)
        );
        if self.is_open() {
            format!(
                "{asked}: how much there is of something in a second is what was asked for, so rates and counts are shown and not judged; latencies are those under these loads"
            )
        } else {
            format!("{asked}: rates and latencies are those under these loads")
        }
    }
}

/// Returns the distinct loads.
fn loads_of(runs: &[&RunData]) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for load in runs.iter().filter_map(|run| run.load) {
        if !loads.iter().any(|known| known.is_like(load)) {
            loads.push(load);
        }
    }
    loads
}

fn text(loads: &[Load]) -> String {
    let texts: Vec<String> = loads.iter().map(Load::to_string).collect();
    texts.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_told_as_people_say_them() {
        for (load, expected) in [
            (Load::Arrivals { per_second: 25.0 }, "25 sessions/s"),
            (Load::Recorded { speedup: 1.0 }, "sessions as recorded"),
            (
                Load::Recorded { speedup: 2.5 },
                "sessions 2.5 times as fast as recorded",
            ),
            (Load::Sessions { at_a_time: 1 }, "1 session at a time"),
            (Load::Sessions { at_a_time: 8 }, "8 sessions at a time"),
        ] {
            assert_eq!(load.to_string(), expected);
        }
    }

    #[test]
    fn loads_differ_as_sets_and_where_they_are_known() {
        let run = |load| RunData {
            load,
            ..RunData::default()
        };
        let [slow, fast] = [25.0, 40.0].map(|per_second| run(Some(Load::Arrivals { per_second })));
        let unknown = run(None);
        assert!(Loads::that_differ(&[&slow], &[&fast]).is_some());
        assert!(Loads::that_differ(&[&slow, &fast], &[&fast]).is_some());
        assert!(Loads::that_differ(&[&slow, &fast], &[&fast, &slow, &slow]).is_none());
        assert!(Loads::that_differ(&[&slow], &[&unknown]).is_none());
        // An interval of 0.3 s, and its rounded rate.
        let [interval, rate] = [1.0 / 0.3, 3.333].map(|per_second| run(Some(Load::Arrivals { per_second })));
        assert!(Loads::that_differ(&[&interval], &[&rate]).is_none());
    }
}
