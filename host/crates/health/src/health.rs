//! Dispatch of a run's events to the checks.

use veeksha_events::Event;

use crate::cache::CacheCheck;
use crate::expected::Expected;
use crate::lengths::LengthChecks;
use crate::lifecycle::Lifecycle;
use crate::plugins::PluginCheck;
use crate::report::HealthReport;
use crate::saturation::Saturation;
use crate::sent::SentCheck;
use crate::sessions::SessionChecks;

/// Health checks of a run in progress.
pub struct Health {
    sessions: SessionChecks,
    sent: SentCheck,
    lengths: LengthChecks,
    lifecycle: Lifecycle,
    saturation: Saturation,
    cache: CacheCheck,
    plugins: PluginCheck,
    /// The report, without the results of the checks.
    report: HealthReport,
}

impl Health {
    /// Creates the checks before the first event.
    pub fn new(expected: Expected) -> Health {
        Health {
            sessions: SessionChecks::new(&expected),
            sent: SentCheck::default(),
            lengths: LengthChecks::new(&expected),
            lifecycle: Lifecycle::default(),
            saturation: Saturation::new(&expected),
            cache: CacheCheck::new(&expected),
            plugins: PluginCheck::default(),
            report: HealthReport::default(),
        }
    }

    /// Processes an event. Unmeasured requests (drained after the timeout) are accounted for but
    /// not judged.
    pub fn on(&mut self, event: &Event) {
        self.sessions.on(event);
        self.sent.on(event);
        self.saturation.on(event);
        self.plugins.on(event);
        match event {
            Event::Finished(record) if record.measured => {
                self.lengths.on_record(record);
                self.lifecycle.on_record(record);
                self.saturation.on_record(record);
                self.cache.on_record(record);
            }
            Event::Interrupted { .. } => self.report.interrupted = true,
            Event::PluginFailed(failed) => self.report.add_failed_plugin(failed),
            _ => {}
        }
    }

    /// Returns the report. The event stream may end anywhere.
    pub fn finish(self) -> HealthReport {
        let [rate, arrival, cancellation, concurrency, accounting] = self.sessions.finish();
        let [prompt, output] = self.lengths.finish();
        let checks = vec![
            rate,
            arrival,
            cancellation,
            concurrency,
            prompt,
            output,
            self.lifecycle.finish(),
            accounting,
            self.sent.finish(),
            self.saturation.finish(),
            self.cache.finish(),
            self.plugins.finish(),
        ];
        HealthReport {
            checks,
            ..self.report
        }
    }
}
