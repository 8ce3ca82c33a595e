//! The thread that makes time pass for plugins.

use std::io;
use std::thread;

use wasmtime::Engine;

use crate::Limits;

/// Starts a thread that advances the engine's epoch every [`Limits::TICK`]. It ends within a tick of the engine.
pub(crate) fn start(engine: &Engine) -> io::Result<()> {
    let weak = engine.weak();
    thread::Builder::new()
        .name("plugin-epoch".into())
        .stack_size(64 << 10)
        .spawn(move || {
            while let Some(engine) = weak.upgrade() {
                engine.increment_epoch();
                drop(engine);
                thread::sleep(Limits::TICK);
            }
        })?;
    Ok(())
}

/// Epochs that a call may see begin: at least the deadline, at most one tick more. The tick that is already running
/// counts, hence the one extra.
pub(crate) fn epochs(limits: &Limits) -> u64 {
    let ticks = limits.call_deadline.as_nanos().div_ceil(Limits::TICK.as_nanos());
    u64::try_from(ticks)
        .unwrap_or(u64::MAX / 2)
        .saturating_add(1)
        .min(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_deadline_is_never_cut_short() {
        let limits = |ms| Limits {
            call_deadline: Duration::from_millis(ms),
            ..Limits::default()
        };
        assert_eq!(epochs(&limits(0)), 1);
        assert_eq!(epochs(&limits(10)), 2);
        assert_eq!(epochs(&limits(11)), 3);
        assert_eq!(epochs(&limits(10_000)), 1001);
    }

    /// The thread is found by its name among the threads of this process; no other unit test has an engine.
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
                thread::sleep(Limits::TICK);
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
