//! Whether as many sessions ran at a time as were asked for.

use std::collections::BTreeMap;

use veeksha_model::Nanos;
use veeksha_stats::{duration, share};

use crate::expected::{Expected, Traffic};
use crate::report::{Check, Unit};

pub(crate) const NAME: &str = "Session Concurrency";

/// Counts the sessions that run at each instant: from the first dispatch of a session (or when it should have come, had it been on
/// time) until its last request is complete, think times included.
pub(crate) struct Concurrency {
    target: Option<(u32, Nanos)>,
    undershoot: f64,
    measured_until: Nanos,
    /// When each session began and, if it did, ended.
    sessions: Vec<(Nanos, Option<Nanos>)>,
}

/// How long so many sessions ran.
#[derive(Default)]
struct Phase {
    below: Nanos,
    at: Nanos,
    above: Nanos,
    /// Nanoseconds by number of sessions.
    held: BTreeMap<u32, Nanos>,
    /// Session-nanoseconds that were asked for, and those of them that were missing.
    asked: f64,
    missing: f64,
    most_above: u32,
}

/// What changes at an instant; in this order, where several do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    MoreAllowed,
    Ended,
    Began,
}

impl Concurrency {
    pub(crate) fn new(expected: &Expected) -> Self {
        Concurrency {
            target: match expected.traffic {
                Traffic::Concurrent { target, ramp } => Some((target, ramp)),
                Traffic::Rate { .. } | Traffic::FixedSchedule => None,
            },
            undershoot: expected.undershoot,
            measured_until: expected.measured_until.unwrap_or(Nanos::MAX),
            sessions: Vec::new(),
        }
    }

    /// Takes a session.
    pub(crate) fn add(&mut self, begin: Nanos, end: Option<Nanos>) {
        if self.target.is_some() {
            self.sessions.push((begin, end));
        }
    }

    /// The run stopped measuring.
    pub(crate) fn measured_until(&mut self, at: Nanos) {
        self.measured_until = self.measured_until.min(at);
    }

    /// `end` is that of the run.
    pub(crate) fn finish(self, end: Nanos) -> Check {
        let Some((target, ramp)) = self.target else {
            return Check::skipped(
                NAME,
                "sessions arrive on their own, whether others are over or not",
            );
        };
        let Some(last_begin) = self.sessions.iter().map(|(begin, _)| *begin).max() else {
            return Check::skipped(NAME, "no session began");
        };
        let full_until = self.measured_until.min(last_begin).min(end);
        let (rising, full, after) = self.sweep(target, ramp, full_until, end);
        let mut check = Check::new(NAME);
        let above = rising.above + full.above + after.above;
        if above > 0 {
            let most = rising.most_above.max(full.most_above).max(after.most_above);
            check.fail(format!(
                "more sessions ran than asked for, for {} in all: up to {most} too many",
                duration(above as f64 / 1e9)
            ));
        }
        if full.asked > 0.0 {
            let missing = full.missing / full.asked;
            let what = format!(
                "{} of the sessions asked for were missing on average while the load should have been full, {} is allowed",
                share(missing),
                share(self.undershoot)
            );
            if missing > self.undershoot {
                check.fail(what);
            } else {
                check.note(what);
            }
            check.figure("missing at full load", Unit::Share, missing);
        } else {
            check.note("the load was never full: no session began after the ramp".into());
        }
        check.figure("target", Unit::Count, f64::from(target));
        check.figure("sessions", Unit::Count, self.sessions.len() as f64);
        rising.tell("ramp", &mut check);
        full.tell("full load", &mut check);
        after.tell("afterwards", &mut check);
        check
    }

    /// The phases: while the number rises, while it should be full, and until the end.
    fn sweep(&self, target: u32, ramp: Nanos, full_until: Nanos, end: Nanos) -> (Phase, Phase, Phase) {
        let mut changes = Vec::with_capacity(2 * self.sessions.len() + target as usize);
        for (begin, over) in &self.sessions {
            changes.push((*begin, Change::Began));
            changes.push((over.unwrap_or(Nanos::MAX).max(*begin), Change::Ended));
        }
        for place in 1..=u64::from(target) {
            // At floor(target t / ramp) the place opens when target t reaches place * ramp.
            let opens = (u128::from(place) * u128::from(ramp)).div_ceil(u128::from(target.max(1)));
            changes.push((Nanos::try_from(opens).unwrap_or(Nanos::MAX), Change::MoreAllowed));
        }
        // A session that takes the place of one that ends at the same instant is not one too many.
        changes.sort_unstable();
        let mut phases = [Phase::default(), Phase::default(), Phase::default()];
        let bounds = [(0, ramp), (ramp, full_until), (full_until.max(ramp), Nanos::MAX)];
        let (mut now, mut running, mut allowed) = (0, 0_i64, 0_u32);
        for (at, change) in changes.into_iter().chain([(end, Change::Ended)]) {
            let until = at.min(end);
            let count = u32::try_from(running.max(0)).unwrap_or(u32::MAX);
            for (phase, (first, last)) in phases.iter_mut().zip(bounds) {
                let span = until.min(last).saturating_sub(now.max(first));
                phase.add(span, count, allowed);
            }
            now = now.max(until);
            match change {
                Change::MoreAllowed => allowed += 1,
                Change::Ended => running -= 1,
                Change::Began => running += 1,
            }
        }
        let [rising, full, after] = phases;
        (rising, full, after)
    }
}

impl Phase {
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

    fn tell(&self, name: &str, check: &mut Check) {
        let whole = self.below + self.at + self.above;
        if whole == 0 {
            return;
        }
        for (what, span) in [("below", self.below), ("at", self.at), ("above", self.above)] {
            check.figure(
                &format!("{name}: time {what} the target"),
                Unit::Seconds,
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
        let figures = [
            ("min", self.quantile(0.0)),
            ("mean", mean),
            ("median", self.quantile(0.5)),
            ("P95", self.quantile(0.95)),
            ("P99", self.quantile(0.99)),
            ("max", self.quantile(1.0)),
            ("std", variance.sqrt()),
        ];
        for (figure, value) in figures {
            check.figure(&format!("{name}: sessions ({figure})"), Unit::Count, value);
        }
    }

    /// The number of sessions that was not exceeded in this share of the time.
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
        /// The same, counted nanosecond by nanosecond.
        #[test]
        fn the_sweep_counts_what_a_look_at_every_instant_counts(
            sessions in vec((0..40_u64, option::of(0..30_u64)), 1..12),
            target in 1..5_u32,
            ramp in 0..20_u64,
            measured_until in option::of(0..60_u64),
            end in 1..80_u64,
        ) {
            let mut expected = Expected::of(Traffic::Concurrent { target, ramp });
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
