//! Arrival processes as plugins: they decide when sessions arrive.

use veeksha_model::Nanos;

use crate::plugin_failure::{PluginFailure, PluginFailureKind};
use crate::workload::WorkloadInfo;

/// The exclusive upper bound of instants, which every guest language can represent.
const TIME_END: Nanos = 1 << 53;

/// Arrivals that are asked for twice before a run.
const SAMPLE: u32 = 64;

/// Opens instances of an arrival process.
pub trait ArrivalFactory: Send + Sync {
    /// Returns the plugin's name, version and permissions.
    fn info(&self) -> &WorkloadInfo;

    /// Opens an instance, on the thread that will use it. Each begins with session 0.
    fn open(&self) -> Result<Box<dyn ArrivalSource>, PluginFailure>;

    /// Opens an instance whose log lines are dropped, for arrivals that are asked for twice.
    fn open_silent(&self) -> Result<Box<dyn ArrivalSource>, PluginFailure> {
        self.open()
    }
}

/// An open arrival process. It depends on (plugin, configuration, seed) and on nothing else.
pub trait ArrivalSource {
    /// Returns the arrivals of the next `count` sessions, in nanoseconds since the start of the
    /// run; fewer are the end, after which nothing more is asked for. [`ArrivalOrder`] has checked
    /// them.
    ///
    /// # Errors
    /// If the plugin fails. The process has no further arrivals then.
    fn next(&mut self, count: u32) -> Result<Vec<Nanos>, PluginFailure>;
}

/// Checks the arrivals of a process: as many as were asked for at most, each below 2^53 ns, none
/// earlier than the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrivalOrder {
    /// The session whose arrival is next.
    next: u64,
    last: Nanos,
}

impl ArrivalOrder {
    /// Returns the session whose arrival is next.
    pub fn next_session(&self) -> u64 {
        self.next
    }

    /// Checks the arrivals of the next `count` sessions.
    ///
    /// # Errors
    /// The first arrival that cannot be, with its session, as a message for the author.
    pub fn check(&mut self, count: u32, arrivals: &[Nanos]) -> Result<(), String> {
        if arrivals.len() > count as usize {
            return Err(format!(
                "asked for {count} arrivals from session {} on, returned {}",
                self.next,
                arrivals.len()
            ));
        }
        for at in arrivals {
            if *at >= TIME_END {
                return Err(format!(
                    "session {}: its arrival at {at} ns must be below 2^53 ns (was it negative?)",
                    self.next
                ));
            }
            if *at < self.last {
                return Err(format!(
                    "session {}: its arrival at {at} ns is before {} ns, the arrival of session {}; arrivals must not \
                     go back in time",
                    self.next,
                    self.last,
                    self.next - 1
                ));
            }
            (self.next, self.last) = (self.next + 1, *at);
        }
        Ok(())
    }
}

/// Asks two instances of a process for the first arrivals, in batches of different size, and
/// compares them. Arrivals that depend on the size of a batch, on a clock or on the random
/// generator of a language would differ from run to run.
///
/// # Errors
/// The first session whose arrival differs; a process without arrivals; a failure.
pub fn check_arrivals(factory: &dyn ArrivalFactory) -> Result<(), PluginFailure> {
    let whole = factory.open_silent()?.next(SAMPLE)?;
    let failed = |message: String| {
        let plugin = &*factory.info().name;
        Err(PluginFailure::new(
            plugin,
            "process.next",
            PluginFailureKind::Result,
            message,
        ))
    };
    if whole.is_empty() {
        return failed("the process has no arrivals, so that no session would start".to_owned());
    }
    let mut again = factory.open_silent()?;
    let mut parts = Vec::new();
    for size in [1, 5, SAMPLE - 6] {
        let part = again.next(size)?;
        let is_end = part.len() < size as usize;
        parts.extend(part);
        if is_end {
            break;
        }
    }
    let differs = |session: &usize| whole.get(*session) != parts.get(*session);
    match (0..whole.len().max(parts.len())).find(differs) {
        None => Ok(()),
        Some(session) => {
            let text = |at: Option<&Nanos>| at.map_or("none".to_owned(), |at| format!("{at} ns"));
            failed(format!(
                "session {session}: its arrival was {}, and {} when another instance was asked in batches of another \
                 size; arrivals must depend on the configuration and the seed alone, not on the size of a batch, on \
                 other instances or on the random generator of the language; use the contract's `random`",
                text(whole.get(session)),
                text(parts.get(session))
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn names_the_session_whose_arrival_cannot_be() {
        let mut order = ArrivalOrder::default();
        assert_eq!(order.check(4, &[0, 5, 5]), Ok(()));
        assert_eq!(order.next_session(), 3);
        let why = order.clone().check(4, &[5, 4]).unwrap_err();
        assert!(
            why.starts_with("session 4: its arrival at 4 ns is before 5 ns, the arrival of session 3"),
            "{why}"
        );
        let why = order.clone().check(4, &[5, 1 << 53]).unwrap_err();
        assert!(
            why.starts_with("session 4: its arrival at 9007199254740992 ns must be below"),
            "{why}"
        );
        assert_eq!(
            order.check(1, &[5, 6]),
            Err("asked for 1 arrivals from session 3 on, returned 2".to_owned())
        );
    }

    struct Counting {
        info: WorkloadInfo,
        /// Arrivals of one instance.
        length: u64,
        /// Shared by all instances.
        opened: AtomicU64,
        is_impure: bool,
    }

    struct Steps {
        next: u64,
        step: u64,
        length: u64,
    }

    impl ArrivalSource for Steps {
        fn next(&mut self, count: u32) -> Result<Vec<Nanos>, PluginFailure> {
            let first = self.next;
            self.next = (first + u64::from(count)).min(self.length);
            Ok((first..self.next).map(|session| session * self.step).collect())
        }
    }

    impl ArrivalFactory for Counting {
        fn info(&self) -> &WorkloadInfo {
            &self.info
        }

        fn open(&self) -> Result<Box<dyn ArrivalSource>, PluginFailure> {
            let opened = self.opened.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Steps {
                next: 0,
                step: if self.is_impure { opened } else { 7 },
                length: self.length,
            }))
        }
    }

    fn check(length: u64, is_impure: bool) -> Result<(), String> {
        let info = WorkloadInfo {
            name: "steps".into(),
            version: "1".into(),
            summary: String::new(),
            engine: "wasm",
            digest: String::new(),
            granted: Vec::new(),
        };
        let factory = Counting {
            info,
            length,
            opened: AtomicU64::new(0),
            is_impure,
        };
        check_arrivals(&factory).map_err(|failure| failure.message)
    }

    #[test]
    fn compares_the_arrivals_of_two_instances() {
        for length in [1, 5, 6, 63, 64, 1000] {
            assert_eq!(check(length, false), Ok(()), "{length}");
        }
        let why = check(1000, true).unwrap_err();
        assert!(
            why.starts_with("session 1: its arrival was 0 ns, and 1 ns when"),
            "{why}"
        );
    }

    #[test]
    fn refuses_a_process_without_arrivals() {
        assert!(check(0, false).unwrap_err().contains("no arrivals"));
    }
}
