//! Compilation of components, with progress and a deadline.
//!
//! The compiler cannot be interrupted, so it runs on a separate thread. After the deadline the
//! thread is abandoned; it ends with the process, which has nothing left to do without the plugin.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::text::grouped;

/// The interval between two reports of progress. Components of ordinary size compile faster.
const REPORT_EVERY: Duration = Duration::from_secs(2);
/// Stack of the compiling thread: that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// A callback that reports that a component is still being compiled: the plugin's name, the size of
/// the component in bytes and the time taken so far.
pub type CompileProgress = Arc<dyn Fn(&str, usize, Duration) + Send + Sync>;

/// A component that was not compiled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error("{0}")]
    Invalid(String),
    #[error("cannot start a thread for the compiler: {0}")]
    Thread(std::io::Error),
    #[error(
        "compiling its {} bytes took longer than {} s; make the component smaller or allow more time",
        grouped(*.bytes as u64),
        .allowed_ms / 1000
    )]
    Deadline { bytes: usize, allowed_ms: u64 },
}

/// Compiles a component within a deadline.
pub(crate) fn component(
    engine: &Engine,
    name: &str,
    bytes: &[u8],
    deadline: Duration,
    progress: Option<&CompileProgress>,
) -> Result<Component, CompileError> {
    let (sender, receiver) = channel();
    let (compiler, copy) = (engine.clone(), bytes.to_vec());
    thread::Builder::new()
        .name("plugin-compile".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // After the deadline the receiver is gone and the result is dropped.
            let _ = sender.send(Component::from_binary(&compiler, &copy));
        })
        .map_err(CompileError::Thread)?;
    wait(&receiver, bytes.len(), deadline, REPORT_EVERY, |taken| {
        if let Some(progress) = progress {
            progress(name, bytes.len(), taken);
        }
    })
}

/// Waits for the compiler, and calls `progress` with the time taken so far after every interval.
fn wait<T>(
    receiver: &Receiver<wasmtime::Result<T>>,
    bytes: usize,
    deadline: Duration,
    interval: Duration,
    progress: impl Fn(Duration),
) -> Result<T, CompileError> {
    let mut taken = Duration::ZERO;
    while taken < deadline {
        let wait = interval.min(deadline - taken);
        match receiver.recv_timeout(wait) {
            Ok(compiled) => {
                return compiled.map_err(|error| CompileError::Invalid(format!("{error:#}")));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(CompileError::Invalid("the compiler panicked".into()));
            }
            Err(RecvTimeoutError::Timeout) => {
                taken += wait;
                progress(taken);
            }
        }
    }
    Err(CompileError::Deadline {
        bytes,
        allowed_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const TICK: Duration = Duration::from_millis(5);

    #[test]
    fn reports_progress_at_every_interval_until_the_deadline() {
        let (_sender, receiver) = channel::<wasmtime::Result<()>>();
        let reports = RefCell::new(Vec::new());
        let result = wait(&receiver, 7, TICK * 3, TICK, |taken| {
            reports.borrow_mut().push(taken)
        });
        assert!(matches!(result, Err(CompileError::Deadline { bytes: 7, .. })));
        assert_eq!(reports.into_inner(), [TICK, TICK * 2, TICK * 3]);
    }

    #[test]
    fn reports_no_progress_if_the_result_is_there() {
        let (sender, receiver) = channel();
        sender.send(Ok(5)).unwrap();
        let result = wait(&receiver, 7, TICK, TICK, |taken| {
            panic!("reported after {taken:?}")
        });
        assert!(matches!(result, Ok(5)));
    }
}
