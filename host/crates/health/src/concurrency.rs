//! Check that the requested number of sessions ran concurrently.

use std::collections::BTreeMap;

use veeksha_model::Nanos;
use veeksha_stats::{duration, share};

use crate::expected::{Expected, ExpectedTraffic};
use crate::report::{GENERATE_FASTER, HealthCheck, REPORT_DEFECT, ValueUnit};

pub(crate) const NAME: &str = "Session Concurrency";

/// Number of running sessions over time. A session runs from its first dispatch (moved earlier by
/// the dispatch's lateness) until its last request completes, think times included.
pub(crate) struct Concurrency {
    target: Option<(u32, Nanos)>,
    undershoot: f64,
    measured_until: Nanos,
    /// Begin of each session and, if it ended, its end.
    sessions: Vec<(Nanos, Option<Nanos>)>,
}

/// Time spent at each level of concurrency.
#[derive(Default)]
struct LevelTimes {
    below: Nanos,
    at: Nanos,
    above: Nanos,
    /// Nanoseconds by number of running sessions.
    held: BTreeMap<u32, Nanos>,
    /// Requested session-nanoseconds, and the part of them during which a session was missing.
    asked: f64,
    missing: f64,
    most_above: u32,
}

/// Changes of level at one instant; applied in this order if several coincide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LevelChange {
    MoreAllowed,
    Ended,
    Began,
}

impl Concurrency {
    pub(crate) fn new(expected: &Expected) -> Self {
        Concurrency {
            target: match expected.traffic {
                ExpectedTraffic::Concurrent { target, ramp } => Some((target, ramp)),
                ExpectedTraffic::Rate { .. }
                | ExpectedTraffic::FixedSchedule
                | ExpectedTraffic::ArrivalProcess => None,
            },
            undershoot: expected.undershoot,
            measured_until: expected.measured_until.unwrap_or(Nanos::MAX),
            sessions: Vec::new(),
        }
    }

    /// Adds a session.
    pub(crate) fn add(&mut self, begin: Nanos, end: Option<Nanos>) {
        if self.target.is_some() {
            self.sessions.push((begin, end));
        }
    }

    /// Records the instant at which measurement stopped.
    pub(crate) fn measured_until(&mut self, at: Nanos) {
        self.measured_until = self.measured_until.min(at);
    }

    /// Evaluates the check; `end` is the end of the run.
    pub(crate) fn finish(self, end: Nanos) -> HealthCheck {
        let Some((target, ramp)) = self.target else {
            return HealthCheck::skipped(NAME, "open-loop traffic has no target concurrency");
        };
        let Some(last_begin) = self.sessions.iter().map(|(begin, _)| *begin).max() else {
            return HealthCheck::skipped(NAME, "no session began");
        };
        let full_until = self.measured_until.min(last_begin).min(end);
        let (rising, full, after) = self.sweep(target, ramp, full_until, end);
        let mut check = HealthCheck::new(NAME);
        let above = rising.above + full.above + after.above;
        if above > 0 {
            let most = rising.most_above.max(full.most_above).max(after.most_above);
            check.fail(
                format!(
                    "more sessions ran than requested, for {} in total: up to {most} too many",
                    duration(above as f64 / 1e9)
                ),
                REPORT_DEFECT,
            );
        }
        if full.asked > 0.0 {
            let missing = full.missing / full.asked;
            let what = format!(
                "{} of the requested sessions were missing on average at full load ({} allowed)",
                share(missing),
                share(self.undershoot)
            );
            if missing > self.undershoot {
                check.fail(what, GENERATE_FASTER);
            } else {
                check.note(what);
            }
            check.value("missing at full load", ValueUnit::Share, missing);
        } else {
            check.note("full load was not reached: no session began after the ramp".into());
        }
        check.value("target", ValueUnit::Count, f64::from(target));
        check.value("sessions", ValueUnit::Count, self.sessions.len() as f64);
        rising.add_to("ramp", &mut check);
        full.add_to("full load", &mut check);
        after.add_to("afterwards", &mut check);
        check
    }

    /// Returns the phases: ramp, full load, and the rest until the end.
    fn sweep(
        &self,
        target: u32,
        ramp: Nanos,
        full_until: Nanos,
        end: Nanos,
    ) -> (LevelTimes, LevelTimes, LevelTimes) {
        let mut changes = Vec::with_capacity(2 * self.sessions.len() + target as usize);
        for (begin, over) in &self.sessions {
            changes.push((*begin, LevelChange::Began));
            changes.push((over.unwrap_or(Nanos::MAX).max(*begin), LevelChange::Ended));
        }
        for place in 1..=u64::from(target) {
            // At floor(target t / ramp) the place opens when target t reaches place * ramp.
            let opens = (u128::from(place) * u128::from(ramp)).div_ceil(u128::from(target.max(1)));
            changes.push((
                Nanos::try_from(opens).unwrap_or(Nanos::MAX),
                LevelChange::MoreAllowed,
            ));
        }
        // A session that replaces one that ends at the same instant does not exceed the target:
        // ends sort before begins.
        changes.sort_unstable();
        let mut phases = [
            LevelTimes::default(),
            LevelTimes::default(),
            LevelTimes::default(),
        ];
        let bounds = [(0, ramp), (ramp, full_until), (full_until.max(ramp), Nanos::MAX)];
        let (mut now, mut running, mut allowed) = (0, 0_i64, 0_u32);
        for (at, change) in changes.into_iter().chain([(end, LevelChange::Ended)]) {
            let until = at.min(end);
            let count = u32::try_from(running.max(0)).unwrap_or(u32::MAX);
            for (phase, (first, last)) in phases.iter_mut().zip(bounds) {
                let span = until.min(last).saturating_sub(now.max(first));
                phase.add(span, count, allowed);
            }
            now = now.max(until);
            match change {
                LevelChange::MoreAllowed => allowed += 1,
                LevelChange::Ended => running -= 1,
                LevelChange::Began => running += 1,
            }
        }
        let [rising, full, after] = phases;
        (rising, full, after)
    }
}

impl LevelTimes {
    fn add(&mut self, span: Nanos, running: u32, allowed: u32) {
        if span == 0 {
            return;
        }
        match running.cmp(&allowed) {
            std::cmp::Ordering::Less => self.below += span,
            std::cmp::Ordering::Equal => self.at += span,
            std::cmp::Ordering::Greater => self.above += span,
        }
        *self.held.entry(running).or_default() += span;
        self.asked += f64::from(allowed) * span as f64;
        self.missing += f64::from(allowed.saturating_sub(running)) * span as f64;
        self.most_above = self.most_above.max(running.saturating_sub(allowed));
    }

    fn add_to(&self, name: &str, check: &mut HealthCheck) {
        let whole = self.below + self.at + self.above;
        if whole == 0 {
            return;
        }
        for (what, span) in [("below", self.below), ("at", self.at), ("above", self.above)] {
            check.value(
                &format!("{name}: time {what} the target"),
                ValueUnit::Seconds,
                span as f64 / 1e9,
            );
        }
        let weight = |span: Nanos| span as f64 / whole as f64;
        let mean: f64 = self
            .held
            .iter()
            .map(|(count, span)| f64::from(*count) * weight(*span))
            .sum();
        let variance: f64 = self
            .held
            .iter()
            .map(|(count, span)| (f64::from(*count) - mean).powi(2) * weight(*span))
            .sum();
        let values = [
            ("min", self.quantile(0.0)),
            ("mean", mean),
            ("median", self.quantile(0.5)),
            ("P95", self.quantile(0.95)),
            ("P99", self.quantile(0.99)),
            ("max", self.quantile(1.0)),
            ("std", variance.sqrt()),
        ];
        for (statistic, value) in values {
            check.value(
                &format!("{name}: sessions ({statistic})"),
                ValueUnit::Count,
                value,
            );
        }
    }

    /// Returns the number of sessions that was not exceeded during this share of the time.
    fn quantile(&self, share: f64) -> f64 {
        let whole = (self.below + self.at + self.above) as f64;
        let mut seen = 0.0;
        let mut last = 0;
        for (count, span) in &self.held {
            seen += *span as f64;
            last = *count;
            if seen >= share * whole {
                break;
            }
        }
        f64::from(last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::*;

    proptest! {
        /// The same result, counted nanosecond by nanosecond.
        #[test]
        fn sweep_agrees_with_a_count_at_every_nanosecond(
            sessions in vec((0..40_u64, option::of(0..30_u64)), 1..12),
            target in 1..5_u32,
            ramp in 0..20_u64,
            measured_until in option::of(0..60_u64),
            end in 1..80_u64,
        ) {
            let mut expected = Expected::of(ExpectedTraffic::Concurrent { target, ramp });
            expected.measured_until = measured_until;
            let mut concurrency = Concurrency::new(&expected);
            let spans: Vec<(u64, Option<u64>)> =
                sessions.iter().map(|(begin, length)| (*begin, length.map(|length| begin + length))).collect();
            spans.iter().for_each(|(begin, over)| concurrency.add(*begin, *over));
            let last_begin = spans.iter().map(|(begin, _)| *begin).max().unwrap();
            let full_until = measured_until.unwrap_or(u64::MAX).min(last_begin).min(end);
            let (rising, full, after) = concurrency.sweep(target, ramp, full_until, end);

            let mut counted = [[0_u64; 4]; 3];
            for now in 0..end {
                let running = spans.iter().filter(|(begin, over)| *begin <= now && over.is_none_or(|over| now < over)).count() as u64;
                let allowed = if now < ramp { u64::from(target) * now / ramp } else { u64::from(target) };
                let phase = if now < ramp { 0 } else if now < full_until { 1 } else { 2 };
                let place = match running.cmp(&allowed) {
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Equal => 1,
                    std::cmp::Ordering::Greater => 2,
                };
                counted[phase][place] += 1;
                counted[phase][3] += allowed.saturating_sub(running);
            }
            let swept = [rising, full, after].map(|phase| [phase.below, phase.at, phase.above, phase.missing as u64]);
            prop_assert_eq!(swept, counted);
        }
    }
}
