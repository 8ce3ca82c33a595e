//! Whether sessions started at the rate that was asked for.

use veeksha_model::Nanos;
use veeksha_stats::{number, share};

use crate::expected::{Expected, Traffic};
use crate::report::{Check, Unit, count};
use crate::session::Dispatch;

pub(crate) const NAME: &str = "Session Dispatch Rate";

/// The mean gap between the first dispatches of sessions, against the one that the rate asks for and against the one of the instants
/// at which the sessions arrived, drawn or recorded.
pub(crate) struct Rate {
    traffic: Traffic,
    tolerance: f64,
    late: Nanos,
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
            late: expected.late,
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
        let (achieved, arrivals) = (seconds(self.dispatched) / gaps, seconds(self.intended) / gaps);
        check.figure("sessions", Unit::Count, self.sessions as f64);
        check.figure("rate achieved", Unit::PerSecond, 1.0 / achieved);
        check.figure("mean gap achieved", Unit::Seconds, achieved);
        if let Traffic::Rate {
            sessions_per_second,
            gaps: kind,
        } = self.traffic
        {
            let asked = Asked {
                gap: 1.0 / sessions_per_second,
                what: "asked for",
                chance: 3.0 * kind.variation() / gaps.sqrt(),
            };
            self.judge(&mut check, achieved, &asked);
        }
        // Chance has no part in this: it has drawn the arrivals, and sessions have to follow them.
        let arrivals = Asked {
            gap: arrivals,
            what: "of the arrivals",
            chance: 0.0,
        };
        self.judge(&mut check, achieved, &arrivals);
        check
    }

    fn judge(&self, check: &mut Check, achieved: f64, asked: &Asked) {
        let what = asked.what;
        // All sessions at one instant: there is no gap, and a share of it has no meaning.
        if asked.gap <= 0.0 {
            check.note("all sessions were due at one instant".into());
            return;
        }
        // The last session may be late like any request, and in a short run that is a share worth allowing.
        let late = self.late as f64 / 1e9 / (asked.gap * (self.sessions - 1) as f64);
        let (error, allowed) = (achieved / asked.gap - 1.0, self.tolerance + asked.chance + late);
        check.figure(&format!("rate {what}"), Unit::PerSecond, 1.0 / asked.gap);
        check.figure(&format!("mean gap {what}"), Unit::Seconds, asked.gap);
        check.figure(&format!("error against that {what}"), Unit::Share, error);
        check.figure(
            &format!("error allowed against that {what}"),
            Unit::Share,
            allowed,
        );
        let compared = format!(
            "{} sessions per second against {} {what}: the mean gap is {} {}, {} is allowed",
            number(1.0 / achieved),
            number(1.0 / asked.gap),
            share(error.abs()),
            if error < 0.0 { "short" } else { "long" },
            share(allowed),
        );
        if error.abs() > allowed {
            check.fail(compared);
        } else {
            check.note(compared);
        }
    }
}

/// A mean gap to compare with.
struct Asked {
    /// In seconds.
    gap: f64,
    /// What it is.
    what: &'static str,
    /// The share of it that chance explains.
    chance: f64,
}

fn widen(range: &mut Option<(Nanos, Nanos)>, at: Nanos) {
    let (first, last) = range.unwrap_or((at, at));
    *range = Some((first.min(at), last.max(at)));
}

fn seconds(range: Option<(Nanos, Nanos)>) -> f64 {
    range.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9)
}
