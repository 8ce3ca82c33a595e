//! The thread that advances the clock of plugin deadlines.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use wasmtime::Engine;

use crate::limits::EngineLimits;

/// The number of ticks so far. The difference of two counts measures the host's time in a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct EpochTicks(Arc<AtomicU64>);

impl EpochTicks {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Starts a thread that advances the engine's epoch every [`EngineLimits::TICK`]. It ends at most
/// one tick after the engine.
pub(crate) fn start(engine: &Engine) -> io::Result<EpochTicks> {
    let weak = engine.weak();
    let ticks = EpochTicks::default();
    let count = ticks.clone();
    thread::Builder::new()
        .name("plugin-epoch".into())
        .stack_size(64 << 10)
        .spawn(move || {
            while let Some(engine) = weak.upgrade() {
                engine.increment_epoch();
                count.0.fetch_add(1, Ordering::Relaxed);
                drop(engine);
                thread::sleep(EngineLimits::TICK);
            }
        })?;
    Ok(ticks)
}

/// Returns the number of epochs that may begin during a call: at least the deadline, at most one
/// tick more. The tick that is already running counts, hence the extra one.
pub(crate) fn epochs(deadline: Duration) -> u64 {
    let ticks = deadline.as_nanos().div_ceil(EngineLimits::TICK.as_nanos());
    u64::try_from(ticks)
        .unwrap_or(u64::MAX / 2)
        .saturating_add(1)
        .min(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_cut_short() {
        let of = |ms| epochs(Duration::from_millis(ms));
        assert_eq!([of(0), of(10), of(11), of(10_000)], [1, 2, 3, 1001]);
    }

    /// The thread is identified by its name among the threads of this process; no other unit test
    /// has an engine.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_thread_ends_with_its_engine() {
        let tickers = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap();
            let names =
                tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
            names.filter(|name| name.trim() == "plugin-epoch").count()
        };
        let until = |wanted: usize| {
            (0..500).any(|_| {
                thread::sleep(EngineLimits::TICK);
                tickers() == wanted
            })
        };
        let engine = Engine::default();
        start(&engine).unwrap();
        assert!(until(1), "it never began");
        drop(engine);
        assert!(until(0), "it outlived its engine");
    }
}
