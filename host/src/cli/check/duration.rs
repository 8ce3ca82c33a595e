//! Estimation of the duration of a run from its scenario.

use std::fmt;
use std::ops::Add;

use veeksha_report::duration as format_duration;
use veeksha_scenario::Scenario;

/// Duration of one run, or of several consecutive ones, without the time of the last answers, which
/// depends on the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RunDuration {
    /// Seconds until the last session arrives, for runs with paced arrivals.
    about: f64,
    /// Seconds until the timeout of the other runs.
    at_most: f64,
    /// Number of runs that end when the server has answered all requests.
    open: u64,
}

impl RunDuration {
    /// Estimates a run with this number of sessions; `None` for an endless workload.
    pub(super) fn of(scenario: &Scenario, sessions: Option<u64>) -> Self {
        let timeout = scenario.runtime.timeout().map(|timeout| timeout.as_secs_f64());
        let arrivals = scenario.traffic_scheduler.arrival_seconds(sessions);
        match (arrivals, timeout) {
            (Some(arrivals), timeout) => RunDuration {
                about: arrivals.min(timeout.unwrap_or(f64::INFINITY)),
                ..RunDuration::default()
            },
            (None, Some(timeout)) => RunDuration {
                at_most: timeout,
                ..RunDuration::default()
            },
            (None, None) => RunDuration {
                open: 1,
                ..RunDuration::default()
            },
        }
    }
}

impl Add for RunDuration {
    type Output = RunDuration;

    fn add(self, other: RunDuration) -> RunDuration {
        RunDuration {
            about: self.about + other.about,
            at_most: self.at_most + other.at_most,
            open: self.open + other.open,
        }
    }
}

impl fmt::Display for RunDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match (self.about > 0.0, self.at_most > 0.0) {
            (true, false) => Some(format!("about {}", shown(self.about))),
            (_, true) => Some(format!("at most about {}", shown(self.about + self.at_most))),
            (false, false) => None,
        };
        match (known, self.open) {
            (Some(known), 0) => f.write_str(&known),
            (None, 0) => f.write_str("none"),
            (None, 1) => f.write_str("depends on the server"),
            (None, open) => write!(f, "depends on the server for {open} runs"),
            (Some(known), open) => write!(f, "{known}, and {open} more depend on the server"),
        }
    }
}

/// Formats seconds, or hours and minutes for long durations.
fn shown(seconds: f64) -> String {
    if seconds < 120.0 {
        return format_duration(seconds);
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
        RunDuration { about, at_most, open }.to_string()
    }

    #[test]
    fn formats_known_and_open_durations() {
        assert_eq!(of(90.0, 0.0, 0), "about 90 s");
        assert_eq!(of(600.0, 0.0, 0), "about 10 min");
        assert_eq!(of(1800.0, 3600.0, 0), "at most about 1 h 30 min");
        assert_eq!(
            of(0.0, 60.0, 2),
            "at most about 60 s, and 2 more depend on the server"
        );
        assert_eq!(of(0.0, 0.0, 1), "depends on the server");
    }
}
