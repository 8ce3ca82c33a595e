//! Conversion of wasmtime's errors to reports for a plugin's author.

use veeksha_ports::{PluginErrorCode, PluginFailure, PluginFailureKind, PluginFrame};
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::host::EngineState;
use crate::host_refusal::HostRefusal;
use crate::memory::{MemoryRefused, TableRefused};
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
/// The beginning of wasmtime's message about too many instances, tables or memories.
const TOO_MANY_OBJECTS: &str = "resource limit exceeded";
/// The message of wasmtime's resource table when it has its maximum of entries.
const TABLE_FULL: &str = "resource table has no free keys";

/// Returns the report of a call that did not return.
pub(crate) fn failure(
    error: &wasmtime::Error,
    state: &HostState,
    host: &EngineState,
    function: &str,
    input: Option<String>,
) -> PluginFailure {
    let (kind, code, message) = cause(error, state, host);
    let mut failure = PluginFailure::new(&*state.plugin, function, kind, message);
    if let Some(code) = code {
        failure.code = code;
    }
    failure.last_host_call = state.last_host_call.as_ref().map(ToString::to_string);
    failure.notes = state.meter.notes();
    failure.frames = error
        .downcast_ref::<WasmBacktrace>()
        .map(frames)
        .unwrap_or_default();
    failure.input = input;
    failure.stderr = state.output.tail(OUTPUT_LINES).map(|tail| lines_cut(&tail));
    failure
}

/// Returns the kind of a failure, its code if that is more precise than the kind, and the message.
fn cause(
    error: &wasmtime::Error,
    state: &HostState,
    host: &EngineState,
) -> (PluginFailureKind, Option<PluginErrorCode>, String) {
    let trap = |code, message: String| (PluginFailureKind::Trap, code, text::one_line(&message, MESSAGE));
    if let Some(refused) = error.downcast_ref::<MemoryRefused>() {
        let (asked, allowed) = (refused.asked, refused.allowed);
        let kind = PluginFailureKind::Memory { asked, allowed };
        return (kind, None, refused.to_string());
    }
    if let Some(refused) = error.downcast_ref::<TableRefused>() {
        return trap(Some(PluginErrorCode::Objects), refused.to_string());
    }
    if let Some(refusal) = error.downcast_ref::<HostRefusal>() {
        return trap(Some(refusal.code), refusal.to_string());
    }
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        let message = format!("it ended itself with exit({code}), which a plugin must not do");
        return trap(Some(PluginErrorCode::Exit), message);
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => of_trap(*trap, state, host),
        None => {
            let message = error.root_cause().to_string();
            if message.contains(TOO_MUCH_DATA) {
                let mebi = host.limits.lift_bytes >> 20;
                let message = format!("it handed over more data in one call than is taken ({mebi} MiB)");
                return (PluginFailureKind::Result, Some(PluginErrorCode::Output), message);
            }
            let objects = message.contains(TOO_MANY_OBJECTS) || message.contains(TABLE_FULL);
            trap(objects.then_some(PluginErrorCode::Objects), message)
        }
    }
}

fn of_trap(
    trap: Trap,
    state: &HostState,
    host: &EngineState,
) -> (PluginFailureKind, Option<PluginErrorCode>, String) {
    let (kind, code, message) = match trap {
        Trap::Interrupt => {
            let allowed_ms = u64::try_from(host.call_deadline().as_millis()).unwrap_or(u64::MAX);
            let message = format!("it did not return within {allowed_ms} ms; is there an endless loop?");
            (PluginFailureKind::Deadline { allowed_ms }, None, message)
        }
        Trap::OutOfFuel => {
            let allowed = host.limits.call_fuel;
            let message = format!(
                "it executed more than the {} instructions that one call may have; is there an endless loop?",
                text::grouped(allowed)
            );
            (PluginFailureKind::Fuel { allowed }, None, message)
        }
        Trap::UnreachableCodeReached => {
            let reason = state.last_error.clone().or_else(|| panic_on_stderr(state));
            let message =
                reason.unwrap_or_else(|| "it panicked without saying why (wasm `unreachable`)".into());
            (PluginFailureKind::Trap, None, message)
        }
        Trap::StackOverflow => {
            let code = Some(PluginErrorCode::StackOverflow);
            (PluginFailureKind::Trap, code, trap.to_string())
        }
        trap => (PluginFailureKind::Trap, None, trap.to_string()),
    };
    (kind, code, text::one_line(&message, MESSAGE))
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
