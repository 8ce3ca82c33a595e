//! Whether sessions started at the rate that was asked for.

use veeksha_model::Nanos;
use veeksha_stats::{number, share};

use crate::{
    Expected, Traffic,
    report::{Check, Unit, count},
    session::Dispatch,
};

pub(crate) const NAME: &str = "Session Dispatch Rate";

/// The mean gap between the first dispatches of sessions, against the one asked for: by the rate, or by the instants that a recording
/// intended.
pub(crate) struct Rate {
    traffic: Traffic,
    tolerance: f64,
    measured_until: Nanos,
    sessions: u64,
    dispatched: Option<(Nanos, Nanos)>,
    intended: Option<(Nanos, Nanos)>,
    missed: u64,
}

impl Rate {
    pub(crate) fn new(expected: &Expected) -> Self {
        Rate {
            traffic: expected.traffic,
            tolerance: expected.rate_tolerance,
            measured_until: expected.measured_until.unwrap_or(Nanos::MAX),
            sessions: 0,
            dispatched: None,
            intended: None,
            missed: 0,
        }
    }

    /// Takes the first dispatch of a session.
    pub(crate) fn add(&mut self, first: Dispatch) {
        if first.intended < self.measured_until {
            self.sessions += 1;
            widen(&mut self.dispatched, first.at);
            widen(&mut self.intended, first.intended);
        }
    }

    /// Takes sessions that arrived and were not made before the run ended.
    pub(crate) fn on_missed(&mut self, sessions: u64) {
        self.missed = self.missed.saturating_add(sessions);
    }

    pub(crate) fn finish(self) -> Check {
        if matches!(self.traffic, Traffic::Concurrent { .. }) {
            return Check::skipped(NAME, "concurrent traffic has no rate of its own");
        }
        let mut check = if self.sessions < 2 {
            Check::skipped(NAME, "fewer than two sessions started")
        } else {
            self.compare()
        };
        if self.missed > 0 {
            let missed = count(self.missed, "session");
            check.fail(format!(
                "{missed} arrived and had not been made by the plugin when the run ended"
            ));
        }
        check
    }

    fn compare(&self) -> Check {
        let mut check = Check::new(NAME);
        let gaps = (self.sessions - 1) as f64;
        let achieved = seconds(self.dispatched) / gaps;
        let (asked, chance, source) = match self.traffic {
            Traffic::Rate {
                sessions_per_second,
                gaps: kind,
            } => (
                1.0 / sessions_per_second,
                3.0 * kind.variation() / gaps.sqrt(),
                "asked for",
            ),
            _ => (seconds(self.intended) / gaps, 0.0, "recorded"),
        };
        let allowed = self.tolerance + chance;
        check.figure("sessions", Unit::Count, self.sessions as f64);
        check.figure("rate asked for", Unit::PerSecond, 1.0 / asked);
        check.figure("rate achieved", Unit::PerSecond, 1.0 / achieved);
        check.figure("mean gap asked for", Unit::Seconds, asked);
        check.figure("mean gap achieved", Unit::Seconds, achieved);
        // All sessions at one instant: no gap was asked for, and a share of it has no meaning.
        if asked <= 0.0 {
            check.note("all sessions were due at one instant".into());
            return check;
        }
        let error = achieved / asked - 1.0;
        check.figure("error of the mean gap", Unit::Share, error);
        check.figure("error allowed", Unit::Share, allowed);
        let compared = format!(
            "{} sessions per second instead of {} {source}: the mean gap is {} {}, {} {}",
            number(1.0 / achieved),
            number(1.0 / asked),
            share(error.abs()),
            if error < 0.0 { "short" } else { "long" },
            share(allowed),
            if chance > 0.0 {
                "is allowed (with what chance explains)"
            } else {
                "is allowed"
            },
        );
        if error.abs() > allowed {
            check.fail(compared);
        } else {
            check.note(compared);
        }
        check
    }
}

fn widen(range: &mut Option<(Nanos, Nanos)>, at: Nanos) {
    let (first, last) = range.unwrap_or((at, at));
    *range = Some((first.min(at), last.max(at)));
}

fn seconds(range: Option<(Nanos, Nanos)>) -> f64 {
    range.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9)
}
