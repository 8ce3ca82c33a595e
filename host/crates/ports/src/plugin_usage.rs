//! Resources that a plugin used during a run, compared with its limits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of different remarks about a plugin.
const MAX_NOTES: usize = 16;
/// Share of a limit from which its use is reported as close to it.
const NEAR: f64 = 0.8;

/// Limits of a plugin that its use is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginAllowance {
    /// Maximum duration of one call.
    pub call: Duration,
    /// Maximum memory of one instance, in bytes.
    pub memory_bytes: u64,
    /// Maximum bytes that one call may pass to the host.
    pub output_bytes: u64,
}

/// Resources that a plugin used: maxima over its instances, and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginUsage {
    /// Calls into the plugin.
    pub calls: u64,
    /// The longest call.
    pub longest_call: Duration,
    /// The largest memory of one instance, in bytes.
    pub memory_bytes: u64,
    /// The most bytes that one call passed to the host; 0 if the kind of plugin is not measured.
    pub output_bytes: u64,
    /// The most instructions of one call; 0 if they are not counted.
    pub call_fuel: u64,
    /// Lines that were logged.
    pub log_lines: u64,
    /// Lines beyond the limits on logs, which were dropped.
    pub dropped_log_lines: u64,
    /// Calls that trapped.
    pub traps: u64,
    /// Instances that replaced one that had trapped.
    pub restarts: u64,
    /// Instances that were opened.
    pub instances: u64,
}

/// The use of resources by one plugin, and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginUsageReport {
    /// The plugin's name.
    pub plugin: String,
    /// The resources that it used.
    pub usage: PluginUsage,
    /// Its limits.
    pub allowed: PluginAllowance,
    /// Remarks: accesses that the sandbox refused.
    pub notes: Vec<String>,
}

/// Counters of a plugin that its instances share. Updated from several threads without locks.
#[derive(Debug, Default)]
pub struct PluginMeter {
    calls: AtomicU64,
    longest_call: AtomicU64,
    memory_bytes: AtomicU64,
    output_bytes: AtomicU64,
    call_fuel: AtomicU64,
    log_lines: AtomicU64,
    log_bytes: AtomicU64,
    dropped_log_lines: AtomicU64,
    traps: AtomicU64,
    restarts: AtomicU64,
    instances: AtomicU64,
    log_is_full: AtomicBool,
    notes: Mutex<Vec<String>>,
}

/// Decision about a line of a plugin's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogAdmission {
    /// The line is logged.
    Admitted,
    /// The log has reached its limit with this line.
    Full,
    /// The log reached its limit before.
    Dropped,
}

impl PluginMeter {
    /// Counts a call that took `nanos` and left the instance with `memory_bytes` of memory.
    pub fn called(&self, nanos: u64, memory_bytes: u64) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.longest_call.fetch_max(nanos, Ordering::Relaxed);
        self.memory_bytes.fetch_max(memory_bytes, Ordering::Relaxed);
    }

    /// Notes the bytes that a call passed to the host.
    pub fn passed(&self, bytes: u64) {
        self.output_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Notes the instructions of a call.
    pub fn executed(&self, fuel: u64) {
        self.call_fuel.fetch_max(fuel, Ordering::Relaxed);
    }

    /// Counts an instance that was opened.
    pub fn opened(&self) {
        self.instances.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that trapped.
    pub fn trapped(&self) {
        self.traps.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an instance that replaces one that had trapped.
    pub fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a line of the log of `bytes` bytes, unless the log of the run has `max_lines` lines
    /// or `max_bytes` bytes already. A line that is not admitted is counted as dropped.
    pub fn logs(&self, bytes: u64, max_lines: u64, max_bytes: u64) -> LogAdmission {
        let lines = self.log_lines.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.log_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if lines <= max_lines && total <= max_bytes {
            return LogAdmission::Admitted;
        }
        self.log_lines.fetch_sub(1, Ordering::Relaxed);
        self.log_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.drops_lines(1);
        if self.log_is_full.swap(true, Ordering::Relaxed) {
            LogAdmission::Dropped
        } else {
            LogAdmission::Full
        }
    }

    /// Returns true if the log of the run has reached its limit.
    pub fn is_log_full(&self) -> bool {
        self.log_is_full.load(Ordering::Relaxed)
    }

    /// Counts lines that were dropped.
    pub fn drops_lines(&self, lines: u64) {
        self.dropped_log_lines.fetch_add(lines, Ordering::Relaxed);
    }

    /// Keeps a remark about the plugin. Returns true if it is new.
    pub fn note(&self, note: &str) -> bool {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() >= MAX_NOTES || notes.iter().any(|known| known == note) {
            return false;
        }
        notes.push(note.to_owned());
        true
    }

    /// Returns the remarks about the plugin, in the order in which they were made.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the counters so far.
    pub fn usage(&self) -> PluginUsage {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PluginUsage {
            calls: get(&self.calls),
            longest_call: Duration::from_nanos(get(&self.longest_call)),
            memory_bytes: get(&self.memory_bytes),
            output_bytes: get(&self.output_bytes),
            call_fuel: get(&self.call_fuel),
            log_lines: get(&self.log_lines),
            dropped_log_lines: get(&self.dropped_log_lines),
            traps: get(&self.traps),
            restarts: get(&self.restarts),
            instances: get(&self.instances),
        }
    }
}

impl PluginUsage {
    /// Returns one phrase for each limit that the plugin came close to, or that cut its log.
    pub fn near_limits(&self, allowed: &PluginAllowance) -> Vec<String> {
        let is_near = |used: f64, allowed: f64| allowed > 0.0 && used >= NEAR * allowed;
        let mebi = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let mut near = Vec::new();
        if is_near(self.longest_call.as_secs_f64(), allowed.call.as_secs_f64()) {
            near.push(format!(
                "its longest call took {:.1} s of {:.1} s",
                self.longest_call.as_secs_f64(),
                allowed.call.as_secs_f64()
            ));
        }
        for (used, limit, what) in [
            (self.memory_bytes, allowed.memory_bytes, "an instance used"),
            (self.output_bytes, allowed.output_bytes, "a call returned"),
        ] {
            if is_near(used as f64, limit as f64) {
                near.push(format!("{what} {} of {}", mebi(used), mebi(limit)));
            }
        }
        if self.restarts > 0 {
            near.push(format!("it was restarted {} times after a trap", self.restarts));
        }
        if self.dropped_log_lines > 0 {
            near.push(format!("{} log lines were dropped", self.dropped_log_lines));
        }
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maxima_and_counts_are_kept_apart() {
        let meter = PluginMeter::default();
        meter.called(5_000, 10);
        meter.called(2_000, 30);
        meter.passed(7);
        meter.passed(3);
        meter.trapped();
        assert_eq!(meter.logs(10, 2, 100), LogAdmission::Admitted);
        assert_eq!(meter.logs(100, 2, 100), LogAdmission::Full, "too many bytes");
        assert_eq!(meter.logs(5, 2, 100), LogAdmission::Admitted);
        assert_eq!(meter.logs(5, 2, 100), LogAdmission::Dropped, "too many lines");
        meter.drops_lines(6);
        assert!(meter.note("a"));
        assert!(!meter.note("a"));
        assert_eq!(meter.notes(), ["a"]);
        assert_eq!(
            meter.usage(),
            PluginUsage {
                calls: 2,
                longest_call: Duration::from_micros(5),
                memory_bytes: 30,
                output_bytes: 7,
                log_lines: 2,
                dropped_log_lines: 8,
                traps: 1,
                ..PluginUsage::default()
            }
        );
    }

    #[test]
    fn only_limits_that_are_close_are_named() {
        let allowed = PluginAllowance {
            call: Duration::from_secs(10),
            memory_bytes: 100 << 20,
            output_bytes: 32 << 20,
        };
        let usage = PluginUsage {
            longest_call: Duration::from_millis(7_999),
            memory_bytes: 80 << 20,
            output_bytes: 25 << 20,
            ..PluginUsage::default()
        };
        assert_eq!(
            usage.near_limits(&allowed),
            ["an instance used 80.0 MiB of 100.0 MiB"]
        );
        let usage = PluginUsage {
            longest_call: Duration::from_secs(8),
            dropped_log_lines: 3,
            ..PluginUsage::default()
        };
        assert_eq!(
            usage.near_limits(&allowed),
            [
                "its longest call took 8.0 s of 10.0 s",
                "3 log lines were dropped"
            ]
        );
    }
}
