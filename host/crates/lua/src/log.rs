//! The log of a virtual machine: its lines, within limits.

use std::cell::Cell;
use std::sync::Arc;

use veeksha_ports::{LogAdmission, PluginMeter};

use crate::limits::{LogFunction, LuaLimits};

/// Maximum length of a line, in characters; the rest is cut.
const MAX_LINE: usize = 4_096;

/// The log of a machine. Machines of one scenario share the limits of a run.
pub(crate) struct LuaLog {
    sink: LogFunction,
    pub(crate) meter: Arc<PluginMeter>,
    lines_per_call: u64,
    lines_per_run: u64,
    bytes_per_run: u64,
    /// Lines of the running call.
    lines: Cell<u64>,
    /// Set during repeated execution, whose lines were written the first time.
    pub(crate) quiet: Cell<bool>,
}

impl LuaLog {
    pub(crate) fn new(limits: &LuaLimits, sink: LogFunction, meter: Arc<PluginMeter>) -> Self {
        LuaLog {
            sink,
            meter,
            lines_per_call: limits.log_lines_per_call,
            lines_per_run: limits.log_lines_per_run,
            bytes_per_run: limits.log_bytes_per_run,
            lines: Cell::new(0),
            quiet: Cell::new(false),
        }
    }

    /// Writes a line.
    pub(crate) fn write(&self, level: &str, line: &str) {
        if self.quiet.get() {
            return;
        }
        self.lines.set(self.lines.get() + 1);
        if self.lines.get() > self.lines_per_call {
            return;
        }
        let end = line.char_indices().nth(MAX_LINE).map_or(line.len(), |(at, _)| at);
        let line = &line[..end];
        match self
            .meter
            .logs(line.len() as u64, self.lines_per_run, self.bytes_per_run)
        {
            LogAdmission::Admitted => (self.sink)(level, line),
            LogAdmission::Full => {
                let message = format!(
                    "the log has reached its limit for one run ({} lines, {} MiB); further lines are counted, \
                     not logged",
                    self.lines_per_run,
                    self.bytes_per_run >> 20
                );
                (self.sink)("warn", &message);
            }
            LogAdmission::Dropped => {}
        }
    }

    /// Ends a call.
    pub(crate) fn end_call(&self) {
        let excess = self.lines.replace(0).saturating_sub(self.lines_per_call);
        if excess == 0 {
            return;
        }
        self.meter.drops_lines(excess);
        if !self.meter.is_log_full() {
            let message = format!("{excess} more lines of one call were not logged");
            (self.sink)("warn", &message);
        }
    }
}
