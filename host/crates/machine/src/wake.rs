//! Wake-up delay of a sleeping thread on this machine: the lower bound for the delay of every
//! dispatch.

use serde::Serialize;
use veeksha_clock::{RunClock, minimal_timer_slack, sleep_until};
use veeksha_model::Nanos;

use crate::finding::{MachineFinding, State};

/// Number of sleeps that are measured.
const SLEEPS: u64 = 200;

/// Duration of each sleep.
const SLEEP: Nanos = 1_000_000;

/// Delays of sleeps with absolute deadlines, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WakeUps {
    /// Number of sleeps measured.
    pub count: u64,
    /// Set if the kernel granted a timer slack of 1 ns (otherwise it may be 50 µs).
    pub minimal_slack: bool,
    /// Median delay.
    pub p50: Nanos,
    /// 99th percentile of the delay.
    pub p99: Nanos,
    /// Maximum delay.
    pub max: Nanos,
}

impl WakeUps {
    /// Measures on a dedicated thread, for about a quarter of a second. Returns `None` if the
    /// thread could not be started.
    pub fn measure() -> Option<Self> {
        let thread = std::thread::Builder::new().spawn(|| {
            let minimal_slack = minimal_timer_slack();
            let clock = RunClock::starting_now();
            let late = (0..SLEEPS).map(|_| {
                let deadline = clock.now() + SLEEP;
                sleep_until(clock, deadline);
                clock.now() - deadline
            });
            WakeUps::of(late.collect(), minimal_slack)
        });
        thread.ok()?.join().ok()?
    }

    /// Computes the percentiles of measured delays by nearest rank. Returns `None` for an empty
    /// list.
    fn of(mut late: Vec<Nanos>, minimal_slack: bool) -> Option<Self> {
        late.sort_unstable();
        let rank = |share: f64| {
            late.get(((share * late.len() as f64).ceil() as usize).max(1) - 1)
                .copied()
        };
        Some(WakeUps {
            count: late.len() as u64,
            minimal_slack,
            p50: rank(0.5)?,
            p99: rank(0.99)?,
            max: *late.last()?,
        })
    }
}

pub(crate) fn finding(measured: &WakeUps) -> MachineFinding {
    // The thresholds are the delay of a dispatch on a quiet core, and the delay that makes
    // latencies of milliseconds unreliable.
    let state = if measured.p99 > 1_000_000 {
        State::Bad
    } else if measured.p50 > 60_000 || measured.p99 > 150_000 || !measured.minimal_slack {
        State::Advice
    } else {
        State::Good
    };
    let micros = |nanos: Nanos| nanos as f64 / 1e3;
    let slack = if measured.minimal_slack {
        ""
    } else {
        "; the kernel did not grant a timer slack of 1 ns"
    };
    MachineFinding {
        name: "wake-ups",
        state,
        found: format!(
            "{:.0} µs late at P50, {:.0} µs at P99, {:.0} µs at most, of {} sleeps of 1 ms{slack}",
            micros(measured.p50),
            micros(measured.p99),
            micros(measured.max),
            measured.count
        ),
        why: "a dispatch cannot be more punctual than this, unless the dispatcher spins".to_owned(),
        remedy: (state != State::Good).then(|| {
            "let the dispatcher spin before its deadlines, give it a dedicated core or a real-time priority, and stop other work on this machine"
                .to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_nearest_ranks() {
        let measured = WakeUps::of((1..=200).rev().collect(), true).unwrap();
        assert_eq!(
            (measured.p50, measured.p99, measured.max, measured.count),
            (100, 198, 200, 200)
        );
        assert_eq!(WakeUps::of(vec![7], true).unwrap().p50, 7);
        assert!(WakeUps::of(vec![], true).is_none());
    }

    #[test]
    fn a_measurement_has_all_its_sleeps_and_is_ordered() {
        let measured = WakeUps::measure().expect("a thread");
        assert_eq!(measured.count, SLEEPS);
        assert!(measured.p50 <= measured.p99 && measured.p99 <= measured.max);
        // It is practically impossible that 100 of 200 wake-ups occur in the exact nanosecond of
        // their deadlines.
        assert!(measured.p50 > 0);
    }

    #[test]
    fn lateness_is_judged() {
        let of = |p50, p99, minimal_slack| {
            finding(&WakeUps {
                count: 200,
                minimal_slack,
                p50,
                p99,
                max: p99,
            })
            .state
        };
        assert_eq!(of(20_000, 80_000, true), State::Good);
        assert_eq!(of(20_000, 80_000, false), State::Advice);
        assert_eq!(of(70_000, 80_000, true), State::Advice);
        assert_eq!(of(20_000, 200_000, true), State::Advice);
        assert_eq!(of(20_000, 1_500_000, true), State::Bad);
    }
}
