//! Takes the events of a run and hands them to the checks.

use veeksha_events::Event;

use crate::cache::Cache;
use crate::expected::Expected;
use crate::lengths::Lengths;
use crate::lifecycle::Lifecycle;
use crate::report::HealthReport;
use crate::saturation::Saturation;
use crate::sent::Sent;
use crate::sessions::Sessions;

/// The checks of a run under way.
pub struct Health {
    sessions: Sessions,
    sent: Sent,
    lengths: Lengths,
    lifecycle: Lifecycle,
    saturation: Saturation,
    cache: Cache,
}

impl Health {
    /// Before the first event.
    pub fn new(expected: Expected) -> Health {
        Health {
            sessions: Sessions::new(&expected),
            sent: Sent::default(),
            lengths: Lengths::new(&expected),
            lifecycle: Lifecycle::default(),
            saturation: Saturation::new(&expected),
            cache: Cache::new(&expected),
        }
    }

    /// Takes an event. Requests that are not measured (drained after the timeout) are accounted for, and not judged.
    pub fn on(&mut self, event: &Event) {
        self.sessions.on(event);
        self.sent.on(event);
        self.saturation.on(event);
        if let Event::Finished(record) = event
            && record.measured
        {
            self.lengths.on_record(record);
            self.lifecycle.on_record(record);
            self.saturation.on_record(record);
            self.cache.on_record(record);
        }
    }

    /// What was found. The events may end anywhere.
    pub fn finish(self) -> HealthReport {
        let [rate, arrival, concurrency, accounting] = self.sessions.finish();
        let [prompt, output] = self.lengths.finish();
        let checks = vec![
            rate,
            arrival,
            concurrency,
            prompt,
            output,
            self.lifecycle.finish(),
            accounting,
            self.sent.finish(),
            self.saturation.finish(),
            self.cache.finish(),
        ];
        HealthReport { checks }
    }
}
