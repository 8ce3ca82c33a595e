//! Whether the client kept up with what it was asked to send.

use std::collections::BTreeMap;

use veeksha_events::{Event, RequestRecord, ThreadSample};
use veeksha_model::Nanos;
use veeksha_stats::{duration, share};

use crate::expected::Expected;
use crate::report::{Check, Culprits, Times, Unit, count, difference};

pub(crate) const NAME: &str = "Client Saturation";

/// Samples of a thread are put together until they make about a second: shares of shorter stretches mean little.
const STRETCH: Nanos = 900_000_000;

/// How busy threads were, how often a plugin was late, and how late requests were without a limit having kept them.
pub(crate) struct Saturation {
    busy: f64,
    late: Nanos,
    late_share: f64,
    threads: BTreeMap<String, Thread>,
    starved: Times,
    starvations: Culprits,
    requests: u64,
    too_late: Culprits,
}

#[derive(Default)]
struct Thread {
    span: Nanos,
    busy: Nanos,
    waiting: Nanos,
    busiest: Option<f64>,
    most_waiting: Option<f64>,
}

impl Saturation {
    pub(crate) fn new(expected: &Expected) -> Self {
        Saturation {
            busy: expected.busy,
            late: expected.late,
            late_share: expected.late_share,
            threads: BTreeMap::new(),
            starved: Times::default(),
            starvations: Culprits::default(),
            requests: 0,
            too_late: Culprits::default(),
        }
    }

    pub(crate) fn on(&mut self, event: &Event) {
        match event {
            Event::ThreadSampled(sample) => self.on_sample(sample),
            Event::Starved { due, at } => {
                self.starved.add(*at, *due);
                let late = difference(*at, *due);
                if u64::try_from(late).is_ok_and(|late| late > self.late) {
                    self.starvations.add(|| duration(late as f64 / 1e9));
                }
            }
            _ => {}
        }
    }

    fn on_sample(&mut self, sample: &ThreadSample) {
        // Cloning the name only for the first sample of a thread.
        if !self.threads.contains_key(&sample.thread) {
            self.threads.insert(sample.thread.clone(), Thread::default());
        }
        if let Some(thread) = self.threads.get_mut(&sample.thread) {
            thread.add(sample);
        }
    }

    /// Takes a measured request.
    pub(crate) fn on_record(&mut self, record: &RequestRecord) {
        self.requests += 1;
        let free = record.intended.saturating_add(record.held.total());
        let late = difference(record.dispatched_at, free);
        if u64::try_from(late).is_ok_and(|late| late > self.late) {
            self.too_late
                .add(|| format!("{} by {}", record.id, duration(late as f64 / 1e9)));
        }
    }

    pub(crate) fn finish(self) -> Check {
        if self.requests == 0 && self.threads.is_empty() {
            return Check::skipped(NAME, "no measured request was sent and no thread was watched");
        }
        let mut check = Check::new(NAME);
        for (name, thread) in &self.threads {
            thread.tell(name, self.busy, &mut check);
        }
        let late = duration(self.late as f64 / 1e9);
        let late_share = self.too_late.count as f64 / self.requests.max(1) as f64;
        if self.too_late.count > 0 {
            let what = format!(
                "{} of {} ({}) dispatched more than {late} after they were due and free to go: {}",
                self.too_late.count,
                count(self.requests, "request"),
                share(late_share),
                self.too_late.names()
            );
            if late_share > self.late_share {
                check.fail(what);
            } else {
                check.note(what);
            }
        }
        if self.starvations.count > 0 {
            let sessions = count(self.starvations.count, "session");
            let names = self.starvations.names();
            check.fail(format!(
                "{sessions} made by the plugin more than {late} after they were due: late by {names}"
            ));
        }
        check.figure("requests", Unit::Count, self.requests as f64);
        check.figure("late", Unit::Count, self.too_late.count as f64);
        check.distribution("sessions made late by", Unit::Seconds, self.starved.summary());
        check
    }
}

impl Thread {
    fn add(&mut self, sample: &ThreadSample) {
        self.span = self.span.saturating_add(sample.span);
        self.busy = self.busy.saturating_add(sample.busy);
        self.waiting = self.waiting.saturating_add(sample.waiting);
        if self.span < STRETCH {
            return;
        }
        // The kernel counts in steps, so a part may come out a little larger than the whole.
        let of_span = |part: Nanos| (part as f64 / self.span as f64).min(1.0);
        let most = |most: Option<f64>, now: f64| Some(most.map_or(now, |most| most.max(now)));
        self.busiest = most(self.busiest, of_span(self.busy));
        self.most_waiting = most(self.most_waiting, of_span(self.waiting));
        (self.span, self.busy, self.waiting) = (0, 0, 0);
    }

    fn tell(&self, name: &str, limit: f64, check: &mut Check) {
        let Some(busiest) = self.busiest else {
            return;
        };
        check.figure(&format!("{name} busiest"), Unit::Share, busiest);
        if let Some(waiting) = self.most_waiting {
            check.figure(&format!("{name} without a processor"), Unit::Share, waiting);
        }
        // Plugins and completions may be as busy as they like: they are late only if something starves.
        let serves = ["client", "dispatcher"].iter().any(|kind| name.starts_with(kind));
        if serves && busiest > limit {
            check.fail(format!(
                "{name} was on a processor for {} of a second, above {}",
                share(busiest),
                share(limit)
            ));
        }
    }
}
