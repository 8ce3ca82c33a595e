//! The makespans that sessions would have had if parts of their requests and tool runs had taken
//! longer or shorter.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};
use veeksha_definitions::{NodePhases, PathPart, PathParts, SessionGraph};
use veeksha_model::{Nanos, seconds};
use veeksha_slo::nearest;
use veeksha_stats::Summary;

use crate::json_shapes::summary_json;

/// The other name of [`PathPart::Prefill`]: the time to first chunk consists of it and of the
/// microseconds that the client needs to send a request.
const TTFC: &str = "ttfc";
/// The greatest factor.
const LARGEST_FACTOR: f64 = 1000.0;

/// A change of the parts of every request and tool run, as factors of their measured times.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    text: String,
    factors: PathParts<f64>,
}

/// The problem with a [`WhatIf`] as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhatIfError {
    /// A factor has another form.
    #[error("{0:?} is not PART=FACTOR")]
    Form(String),
    /// The part does not exist.
    #[error("unknown part {name:?}; {}", .nearest.map_or_else(part_list, |near| format!("did you mean {near:?}?")))]
    UnknownPart {
        /// The given name.
        name: String,
        /// The closest existing name.
        nearest: Option<&'static str>,
    },
    /// A part has two factors.
    #[error("{0:?} has two factors")]
    Twice(&'static str),
    /// The factor is not a number, or not in range.
    #[error("the factor of {part:?} must be a number between 0 and 1000, got {factor:?}")]
    Factor {
        /// The part.
        part: String,
        /// The given factor.
        factor: String,
    },
}

/// Reads factors such as `prefill=0.5,decode=2`.
impl FromStr for WhatIf {
    type Err = WhatIfError;

    fn from_str(text: &str) -> Result<Self, WhatIfError> {
        let mut given = PathParts::all(None);
        for change in text.split(',').map(str::trim) {
            let form = || WhatIfError::Form(change.to_owned());
            let (name, factor) = change.split_once('=').ok_or_else(form)?;
            let (name, factor) = (name.trim(), factor.trim());
            let part = part_named(name)?;
            let number = factor.parse().ok();
            let number = number.filter(|number| (0.0..=LARGEST_FACTOR).contains(number));
            let number = number.ok_or_else(|| WhatIfError::Factor {
                part: name.to_owned(),
                factor: factor.to_owned(),
            })?;
            if given.of_mut(part).replace(number).is_some() {
                return Err(WhatIfError::Twice(part.name()));
            }
        }
        let mut factors = PathParts::all(1.0);
        for part in PathPart::ALL {
            *factors.of_mut(part) = given.of(part).unwrap_or(1.0);
        }
        Ok(WhatIf {
            text: text.to_owned(),
            factors,
        })
    }
}

fn part_list() -> String {
    let names = PathPart::ALL.into_iter().map(PathPart::name).chain([TTFC]);
    format!("the parts are {}", names.collect::<Vec<_>>().join(", "))
}

fn part_named(name: &str) -> Result<PathPart, WhatIfError> {
    let named = PathPart::ALL.into_iter().map(|part| (part.name(), part));
    let mut names = named.chain([(TTFC, PathPart::Prefill)]);
    names
        .clone()
        .find_map(|(known, part)| (known == name).then_some(part))
        .ok_or_else(|| WhatIfError::UnknownPart {
            name: name.to_owned(),
            nearest: nearest(name, names.by_ref().map(|(known, _)| known)),
        })
}

/// The text from which it was read.
impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl WhatIf {
    /// Returns the makespan of a session with the changed times. Each node moves with the events
    /// that it waited for. Its phases take their measured times multiplied by their factors; the
    /// time for which limits held it back is part of them.
    fn makespan(&self, session: &SessionGraph) -> Nanos {
        let measured = session.nodes();
        let mut moved: Vec<NodePhases> = measured.to_vec();
        for &place in session.parents_first() {
            let edges = session.edges(place).iter();
            let met = edges.map(|(parent, edge)| {
                let of = |phases: &NodePhases| phases.events().of(edge.trigger);
                (
                    of(&measured[*parent]).saturating_add(edge.delay),
                    of(&moved[*parent]).saturating_add(self.scaled(PathPart::Think, edge.delay)),
                )
            });
            let latest = met.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)));
            let (before, now) = latest.unwrap_or((session.start(), session.start()));
            moved[place] = self.moved(&measured[place], before, now);
        }
        let last = moved.iter().map(|phases| phases.completed).max();
        last.map_or(0, |last| last.saturating_sub(session.start()))
    }

    /// Returns the phases of a node whose edges were met at `before`, and would have been at
    /// `now`.
    fn moved(&self, measured: &NodePhases, before: Nanos, now: Nanos) -> NodePhases {
        // A stamp can precede the event that it follows by microseconds.
        let intended = match measured.intended.checked_sub(before) {
            Some(later) => now.saturating_add(self.scaled(PathPart::Think, later)),
            None => now.saturating_sub(before - measured.intended),
        };
        let [until_sent, until_first_chunk, until_end] = measured.parts();
        let queueing = |until: Nanos| self.scaled(until_sent, until - measured.intended);
        let sent = intended.saturating_add(queueing(measured.sent));
        let prefill = self.scaled(until_first_chunk, measured.first_chunk - measured.sent);
        let first_chunk = sent.saturating_add(prefill);
        let decode = self.scaled(until_end, measured.completed - measured.first_chunk);
        NodePhases {
            intended,
            dispatched: intended.saturating_add(queueing(measured.dispatched)),
            sent,
            first_chunk,
            completed: first_chunk.saturating_add(decode),
            is_tool_run: measured.is_tool_run,
        }
    }

    fn scaled(&self, part: PathPart, time: Nanos) -> Nanos {
        (time as f64 * self.factors.of(part)).round() as Nanos
    }
}

/// The measured makespans of sessions, and those with changed times. In seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterfactual {
    /// The change.
    pub what_if: WhatIf,
    measured: Vec<f64>,
    changed: Vec<f64>,
}

impl Counterfactual {
    pub(crate) fn new(what_if: WhatIf) -> Self {
        Counterfactual {
            what_if,
            measured: Vec::new(),
            changed: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, session: &SessionGraph) {
        let last = session.nodes().iter().map(|phases| phases.completed).max();
        let makespan = last.map_or(0, |last| last - session.start());
        self.measured.push(seconds(makespan));
        self.changed.push(seconds(self.what_if.makespan(session)));
    }

    /// Returns the summary of the measured makespans; `None` without sessions.
    pub fn measured(&self) -> Option<Summary> {
        Summary::of(&mut self.measured.clone())
    }

    /// Returns the summary of the makespans with changed times; `None` without sessions.
    pub fn changed(&self) -> Option<Summary> {
        Summary::of(&mut self.changed.clone())
    }

    /// Returns the relative change of the median: −0.2 if the median session would have been a
    /// fifth shorter. `None` without sessions, or if the measured median is 0.
    pub fn median_change(&self) -> Option<f64> {
        let measured = self.measured()?.p50;
        (measured > 0.0).then_some(self.changed()?.p50 / measured - 1.0)
    }

    pub(crate) fn json(&self) -> Value {
        let factors = PathPart::ALL.map(|part| {
            let factor = self.what_if.factors.of(part);
            (part.name().to_owned(), json!(factor))
        });
        json!({
            "what_if": self.what_if.text,
            "factors": Map::from_iter(factors),
            "session_makespan": summary_json(&self.measured()),
            "changed_session_makespan": summary_json(&self.changed()),
            "median_change": self.median_change(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_factors() {
        let read = |text: &str| text.parse::<WhatIf>().unwrap().factors;
        let factors = read(" ttfc = 0.5, think=0");
        let all = PathPart::ALL.map(|part| factors.of(part));
        assert_eq!(all, [1.0, 0.5, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(read("tool_waiting=0").of(PathPart::ToolWaiting), 0.0);
        assert_eq!(read("prefill=0.5,think=0"), factors);
    }

    #[test]
    fn refuses_other_texts() {
        let problem = |text: &str| text.parse::<WhatIf>().unwrap_err().to_string();
        assert_eq!(problem("prefill"), "\"prefill\" is not PART=FACTOR");
        assert_eq!(problem(""), "\"\" is not PART=FACTOR");
        assert_eq!(
            problem("prefil=1"),
            "unknown part \"prefil\"; did you mean \"prefill\"?"
        );
        let unknown = problem("gpu=1");
        assert!(unknown.starts_with("unknown part \"gpu\"; the parts are "));
        assert!(
            unknown.contains("tool_waiting") && unknown.ends_with(", ttfc"),
            "{unknown}"
        );
        assert_eq!(problem("ttfc=1,prefill=2"), "\"prefill\" has two factors");
        for factor in ["x", "-1", "NaN", "inf", "1001", ""] {
            assert_eq!(
                problem(&format!("decode={factor}")),
                format!("the factor of \"decode\" must be a number between 0 and 1000, got {factor:?}")
            );
        }
    }
}
