//! Requested load of a run.

use std::fmt;

use veeksha_stats::number;

/// Requested load of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestedLoad {
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
    /// Open loop: sessions arrive at the instants of a plugin, at a rate that is not configured.
    ArrivalProcess {
        /// Digest of the plugin and its configuration.
        digest: u32,
    },
    /// Closed loop: a fixed number of concurrent sessions.
    Sessions {
        /// Number of sessions.
        at_a_time: u32,
    },
}

/// Relative difference below which rates are equal: an interval of 0.3 s is 3.333 per second.
const ALIKE: f64 = 1e-3;

impl RequestedLoad {
    /// Returns true if two runs had the same load.
    pub(crate) fn is_like(self, other: RequestedLoad) -> bool {
        let near = |one: f64, other: f64| (one - other).abs() <= ALIKE * one.max(other);
        match (self, other) {
            (RequestedLoad::Arrivals { per_second: one }, RequestedLoad::Arrivals { per_second: other })
            | (RequestedLoad::Recorded { speedup: one }, RequestedLoad::Recorded { speedup: other }) => {
                near(one, other)
            }
            _ => self == other,
        }
    }

    /// Returns true if sessions arrive independently of the server.
    pub(crate) fn is_open(self) -> bool {
        !matches!(self, RequestedLoad::Sessions { .. })
    }
}

/// Formats the load as the text after "was asked for" in a remark.
impl fmt::Display for RequestedLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestedLoad::Arrivals { per_second } => write!(f, "{} sessions/s", number(*per_second)),
            RequestedLoad::Recorded { speedup: 1.0 } => f.write_str("sessions as recorded"),
            RequestedLoad::Recorded { speedup } => {
                write!(f, "sessions {} times as fast as recorded", number(*speedup))
            }
            RequestedLoad::ArrivalProcess { digest } => {
                write!(f, "sessions of the arrival process {digest:08x}")
            }
            RequestedLoad::Sessions { at_a_time: 1 } => f.write_str("1 session at a time"),
            RequestedLoad::Sessions { at_a_time } => write!(f, "{at_a_time} sessions at a time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_loads() {
        for (load, expected) in [
            (RequestedLoad::Arrivals { per_second: 25.0 }, "25 sessions/s"),
            (RequestedLoad::Recorded { speedup: 1.0 }, "sessions as recorded"),
            (
                RequestedLoad::Recorded { speedup: 2.5 },
                "sessions 2.5 times as fast as recorded",
            ),
            (
                RequestedLoad::ArrivalProcess { digest: 0x2a },
                "sessions of the arrival process 0000002a",
            ),
            (RequestedLoad::Sessions { at_a_time: 1 }, "1 session at a time"),
            (RequestedLoad::Sessions { at_a_time: 8 }, "8 sessions at a time"),
        ] {
            assert_eq!(load.to_string(), expected);
        }
    }
}
