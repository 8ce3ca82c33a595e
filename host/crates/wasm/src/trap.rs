//! Conversion of wasmtime's errors to reports for a plugin's author.

use veeksha_ports::{PluginFailure, PluginFailureKind, PluginFrame};
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::limits::EngineLimits;
use crate::memory::MemoryRefused;
use crate::state::HostState;
use crate::text;

/// Maximum number of frames in a report.
const FRAMES: usize = 12;
/// Maximum length of a function's name, in characters.
const FUNCTION: usize = 200;
/// Maximum number of lines of the guest's output.
const OUTPUT_LINES: usize = 20;
/// Maximum length of an output line, in characters.
const OUTPUT_LINE: usize = 300;
/// Maximum length of a message, in characters.
const MESSAGE: usize = 1000;
/// The message of wasmtime's private `HostcallFuelExhausted`.
const TOO_MUCH_DATA: &str = "too much data is being copied between the host and the guest";

/// Returns the report of a call that did not return.
pub(crate) fn failure(
    error: &wasmtime::Error,
    state: &HostState,
    limits: &EngineLimits,
    function: &str,
    input: Option<String>,
) -> PluginFailure {
    let (kind, message) = cause(error, state, limits);
    let mut failure = PluginFailure::new(&*state.plugin, function, kind, message);
    failure.frames = error
        .downcast_ref::<WasmBacktrace>()
        .map(frames)
        .unwrap_or_default();
    failure.input = input;
    failure.stderr = state.output.tail(OUTPUT_LINES).map(|tail| lines_cut(&tail));
    failure
}

fn cause(error: &wasmtime::Error, state: &HostState, limits: &EngineLimits) -> (PluginFailureKind, String) {
    if let Some(refused) = error.downcast_ref::<MemoryRefused>() {
        return (
            PluginFailureKind::Memory {
                asked: refused.asked,
                allowed: refused.allowed,
            },
            refused.to_string(),
        );
    }
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        return (
            PluginFailureKind::Trap,
            format!("it ended itself with exit({code}), which a plugin must not do"),
        );
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => {
            let allowed_ms = u64::try_from(limits.call_deadline.as_millis()).unwrap_or(u64::MAX);
            let message = format!("it did not return within {allowed_ms} ms; is there an endless loop?");
            (PluginFailureKind::Deadline { allowed_ms }, message)
        }
        Some(Trap::UnreachableCodeReached) => {
            let reason = state.last_error.clone().or_else(|| panic_on_stderr(state));
            let message =
                reason.unwrap_or_else(|| "it panicked without saying why (wasm `unreachable`)".into());
            (PluginFailureKind::Trap, text::one_line(&message, MESSAGE))
        }
        Some(trap) => (PluginFailureKind::Trap, trap.to_string()),
        None => {
            let message = error.root_cause().to_string();
            if message.contains(TOO_MUCH_DATA) {
                let mebi = limits.lift_bytes >> 20;
                (
                    PluginFailureKind::Result,
                    format!("it handed over more data in one call than is taken ({mebi} MiB)"),
                )
            } else {
                (PluginFailureKind::Trap, text::one_line(&message, MESSAGE))
            }
        }
    }
}

/// Cuts each line to the maximum length in a report.
fn lines_cut(tail: &str) -> String {
    tail.lines()
        .map(|line| text::cut(line, OUTPUT_LINE))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the message of a panic that a runtime printed: from the line with `panicked at` to the
/// end.
fn panic_on_stderr(state: &HostState) -> Option<String> {
    let tail = state.output.tail(OUTPUT_LINES)?;
    let at = tail.rfind("panicked at")?;
    let message: Vec<&str> = tail[at..]
        .lines()
        .take_while(|line| !line.starts_with("note:"))
        .collect();
    Some(message.join(" "))
}

/// Returns the frames of the plugin's source. Without line tables, returns all named frames.
fn frames(backtrace: &WasmBacktrace) -> Vec<PluginFrame> {
    let mut all = Vec::new();
    for frame in backtrace.frames() {
        let whole = frame.func_name().unwrap_or("?");
        if frame.symbols().is_empty() {
            all.push(PluginFrame {
                function: readable(whole),
                file: None,
                line: None,
            });
        }
        for symbol in frame.symbols() {
            all.push(PluginFrame {
                function: readable(symbol.name().unwrap_or(whole)),
                file: symbol.file().map(str::to_owned),
                line: symbol.line(),
            });
        }
    }
    let helps = |frame: &PluginFrame| frame.file.as_deref().is_some_and(is_authors);
    let mut own: Vec<PluginFrame> = all.iter().filter(|frame| helps(frame)).cloned().collect();
    if own.is_empty() {
        own = all
            .into_iter()
            .filter(|frame| frame.file.is_none() && !is_runtime(&frame.function))
            .collect();
    }
    own.truncate(FRAMES);
    own
}

/// Returns true if a source file belongs to the author, not to a language's runtime.
fn is_authors(file: &str) -> bool {
    const RUNTIMES: [&str; 8] = [
        "/rustc/",
        "/rustc-",
        "library/std/src",
        "library/core/src",
        "library/alloc/src",
        "wasi-libc",
        "/wit-bindgen-",
        "/dlmalloc-",
    ];
    !RUNTIMES.iter().any(|runtime| file.contains(runtime))
}

fn is_runtime(function: &str) -> bool {
    const RUNTIMES: [&str; 7] = [
        "core::panicking",
        "std::panicking",
        "std::rt",
        "__rust",
        "rust_panic",
        "rust_begin_unwind",
        "abort",
    ];
    RUNTIMES.iter().any(|runtime| function.contains(runtime))
}

/// Returns a function's name as in the source: without Rust's mangling and hash.
fn readable(name: &str) -> String {
    text::cut(&format!("{:#}", rustc_demangle::demangle(name)), FUNCTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_they_were_written() {
        assert_eq!(
            readable("_ZN13hostile_agent4fall17he094f7b24eb61487E"),
            "hostile_agent::fall"
        );
        assert_eq!(readable("plan_next"), "plan_next");
        assert_eq!(readable(&"x".repeat(1000)).chars().count(), FUNCTION + 1);
    }

    #[test]
    fn distinguishes_runtimes_from_plugins() {
        assert!(is_authors("src/lib.rs"));
        assert!(is_authors("plan.c"));
        assert!(!is_authors("/rustc/5e2a/library/core/src/panicking.rs"));
        assert!(!is_authors("library/std/src/panicking.rs"));
        assert!(is_runtime("core::panicking::panic_fmt"));
        assert!(!is_runtime("plan::next"));
    }
}
