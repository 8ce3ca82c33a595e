//! The log of a guest: its lines with level and call, within limits.
//!
//! A guest may log in a loop. Lines beyond the limits of a call or of the run are dropped and
//! counted, and the log states that lines are missing.

use std::sync::Arc;

use veeksha_ports::{LogAdmission, PluginMeter};

use crate::grants::{LogLevel, LogLine, LogSink};
use crate::limits::EngineLimits;
use crate::text::{cut, grouped};

/// Maximum length of a log line, in characters.
pub(crate) const MAX_LINE_CHARS: usize = 4096;

/// The call that a line belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogCall {
    pub(crate) function: &'static str,
    pub(crate) session: Option<u64>,
}

/// The log of a store's guest.
pub(crate) struct GuestLog {
    plugin: Arc<str>,
    sink: Arc<dyn LogSink>,
    meter: Arc<PluginMeter>,
    lines_per_call: u64,
    bytes_per_call: u64,
    lines_per_run: u64,
    bytes_per_run: u64,
    /// Lines and bytes of the running call that were admitted.
    lines: u64,
    bytes: u64,
    /// Lines of the running call beyond its limits.
    excess: u64,
}

impl GuestLog {
    pub(crate) fn new(
        plugin: Arc<str>,
        sink: Arc<dyn LogSink>,
        meter: Arc<PluginMeter>,
        limits: &EngineLimits,
    ) -> Self {
        GuestLog {
            plugin,
            sink,
            meter,
            lines_per_call: limits.log_lines_per_call,
            bytes_per_call: limits.log_bytes_per_call,
            lines_per_run: limits.log_lines_per_run,
            bytes_per_run: limits.log_bytes_per_run,
            lines: 0,
            bytes: 0,
            excess: 0,
        }
    }

    /// Starts a call.
    pub(crate) fn begin(&mut self) {
        (self.lines, self.bytes, self.excess) = (0, 0, 0);
    }

    /// Logs a line of the guest.
    pub(crate) fn write(&mut self, call: LogCall, level: LogLevel, message: &str) {
        let message = cut(message, MAX_LINE_CHARS);
        let bytes = message.len() as u64;
        if self.lines >= self.lines_per_call || self.bytes + bytes > self.bytes_per_call {
            self.excess += 1;
            return;
        }
        self.lines += 1;
        self.bytes += bytes;
        match self.meter.logs(bytes, self.lines_per_run, self.bytes_per_run) {
            LogAdmission::Admitted => self.record(call, level, &message),
            LogAdmission::Full => {
                let message = format!(
                    "the log has reached its limit for one run ({} lines, {} MiB); further lines are counted, \
                     not logged",
                    grouped(self.lines_per_run),
                    self.bytes_per_run >> 20
                );
                self.record(call, LogLevel::Warn, &message);
            }
            LogAdmission::Dropped => {}
        }
    }

    /// Counts lines of the running call that were lost before they arrived here.
    pub(crate) fn lost(&mut self, lines: u64) {
        self.excess += lines;
    }

    /// Ends a call.
    pub(crate) fn end(&mut self, call: LogCall) {
        let excess = std::mem::take(&mut self.excess);
        if excess == 0 {
            return;
        }
        self.meter.drops_lines(excess);
        if self.meter.is_log_full() {
            return;
        }
        let message = format!("{} more lines of one call were not logged", grouped(excess));
        self.record(call, LogLevel::Warn, &message);
    }

    /// Logs a remark of the host about the guest.
    pub(crate) fn remark(&self, call: LogCall, message: &str) {
        self.record(call, LogLevel::Warn, message);
    }

    fn record(&self, call: LogCall, level: LogLevel, message: &str) {
        self.sink.record(&LogLine {
            plugin: &self.plugin,
            level,
            function: call.function,
            session: call.session,
            message,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl LogSink for Lines {
        fn line(&self, _: &str, _: LogLevel, message: &str) {
            self.0.lock().unwrap().push(message.to_owned());
        }
    }

    /// Two calls of three lines: the call may log two lines, the run three.
    #[test]
    fn lines_beyond_a_call_and_beyond_a_run_are_counted() {
        let lines = Arc::new(Lines::default());
        let meter = Arc::new(PluginMeter::default());
        let limits = EngineLimits {
            log_lines_per_call: 2,
            log_lines_per_run: 3,
            ..EngineLimits::default()
        };
        let mut log = GuestLog::new("p".into(), lines.clone(), meter.clone(), &limits);
        let call = LogCall {
            function: "f",
            session: None,
        };
        for _ in 0..3 {
            log.begin();
            for line in ["one", "two", "three"] {
                log.write(call, LogLevel::Info, line);
            }
            log.end(call);
        }
        let more = "1 more lines of one call were not logged";
        let full = "the log has reached its limit for one run (3 lines, 8 MiB); further lines are counted, not logged";
        assert_eq!(*lines.0.lock().unwrap(), ["one", "two", more, "one", full]);
        // Three beyond a call, and three beyond the run.
        assert_eq!(meter.usage().dropped_log_lines, 6);
        assert_eq!(meter.usage().log_lines, 3);
    }

    #[test]
    fn a_call_has_a_limit_of_bytes() {
        let lines = Arc::new(Lines::default());
        let limits = EngineLimits {
            log_bytes_per_call: 10,
            ..EngineLimits::default()
        };
        let mut log = GuestLog::new("p".into(), lines.clone(), Arc::default(), &limits);
        let call = LogCall {
            function: "f",
            session: Some(1),
        };
        log.begin();
        for line in ["123456", "12345", "1234"] {
            log.write(call, LogLevel::Info, line);
        }
        assert_eq!(*lines.0.lock().unwrap(), ["123456", "1234"]);
    }
}
