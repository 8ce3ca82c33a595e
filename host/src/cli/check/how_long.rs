//! How long a run takes, as far as its scenario tells.

use std::fmt;
use std::ops::Add;

use veeksha_report::duration;
use veeksha_scenario::{IntervalGenerator, Scenario, Traffic};

/// How long one run takes, or several one after the other. Answers take their time besides: only the server knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HowLong {
    /// Seconds until the last session arrives, of runs whose arrivals are paced.
    about: f64,
    /// Seconds after which the others are ended.
    at_most: f64,
    /// Runs that end when the server has answered everything.
    open: u64,
}

impl HowLong {
    /// Of a scenario with so many sessions, or without end.
    pub(super) fn of(scenario: &Scenario, sessions: Option<u64>) -> Self {
        let timeout = scenario.runtime.timeout().map(|timeout| timeout.as_secs_f64());
        let arrivals = match &scenario.traffic_scheduler {
            Traffic::Rate(rate) => sessions.map(|sessions| {
                let gap = match rate.interval_generator {
                    IntervalGenerator::Fixed { interval } => interval,
                    IntervalGenerator::Poisson { arrival_rate }
                    | IntervalGenerator::Gamma { arrival_rate, .. } => 1.0 / arrival_rate,
                };
                sessions as f64 * gap
            }),
            Traffic::FixedSchedule(schedule) => {
                let from = schedule.start.unwrap_or(0.0);
                schedule
                    .end
                    .map(|end| schedule.offset + (end - from).max(0.0) / schedule.speedup)
            }
            Traffic::Concurrent(_) => None,
        };
        match (arrivals, timeout) {
            (Some(arrivals), timeout) => HowLong {
                about: arrivals.min(timeout.unwrap_or(f64::INFINITY)),
                ..HowLong::default()
            },
            (None, Some(timeout)) => HowLong {
                at_most: timeout,
                ..HowLong::default()
            },
            (None, None) => HowLong {
                open: 1,
                ..HowLong::default()
            },
        }
    }
}

impl Add for HowLong {
    type Output = HowLong;

    fn add(self, other: HowLong) -> HowLong {
        HowLong {
            about: self.about + other.about,
            at_most: self.at_most + other.at_most,
            open: self.open + other.open,
        }
    }
}

impl fmt::Display for HowLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match (self.about > 0.0, self.at_most > 0.0) {
            (true, false) => Some(format!("about {}", shown(self.about))),
            (_, true) => Some(format!("at most about {}", shown(self.about + self.at_most))),
            (false, false) => None,
        };
        match (known, self.open) {
            (Some(known), 0) => f.write_str(&known),
            (None, 0) => f.write_str("no time"),
            (None, 1) => f.write_str("as long as the server needs"),
            (None, open) => write!(f, "as long as the server needs for {open} runs"),
            (Some(known), open) => write!(f, "{known}, and as long as the server needs for {open} more"),
        }
    }
}

/// Hours and minutes where seconds say little.
fn shown(seconds: f64) -> String {
    if seconds < 120.0 {
        return duration(seconds);
    }
    let minutes = (seconds / 60.0).round() as u64;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(about: f64, at_most: f64, open: u64) -> String {
        HowLong { about, at_most, open }.to_string()
    }

    #[test]
    fn times_are_told_as_people_tell_them() {
        assert_eq!(of(90.0, 0.0, 0), "about 90 s");
        assert_eq!(of(600.0, 0.0, 0), "about 10 min");
        assert_eq!(of(1800.0, 3600.0, 0), "at most about 1 h 30 min");
        assert_eq!(
            of(0.0, 60.0, 2),
            "at most about 60 s, and as long as the server needs for 2 more"
        );
        assert_eq!(of(0.0, 0.0, 1), "as long as the server needs");
    }
}
