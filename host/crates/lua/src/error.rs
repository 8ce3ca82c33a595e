//! Errors of loading a scenario.

use std::path::PathBuf;

use veeksha_ports::PluginFrame;

/// Reason why a Lua scenario could not be loaded, or why it has no valid workload.
#[derive(Debug, thiserror::Error)]
pub enum LuaError {
    /// The file is missing or cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's message.
        reason: String,
    },
    /// The file is larger than the limit.
    #[error("`{}` has {bytes} bytes; a Lua file may have {allowed}", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
        /// The maximum size in bytes.
        allowed: u64,
    },
    /// The file is not UTF-8.
    #[error("`{}` is not UTF-8 text (byte {offset}); compiled Lua is not accepted", path.display())]
    NotText {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// The source does not parse.
    #[error("{file}:{line}: syntax error: {message}")]
    Syntax {
        /// Name of the file.
        file: String,
        /// Line of the syntax error, from 1.
        line: u32,
        /// The compiler's message.
        message: String,
    },
    /// The scenario raised an error during execution.
    #[error("{}{message}{}", place(.file, .line), stack(.frames))]
    Runtime {
        /// The file, if known.
        file: Option<String>,
        /// The line in `file`.
        line: Option<u32>,
        /// The error's message.
        message: String,
        /// The stack, innermost first.
        frames: Vec<PluginFrame>,
    },
    /// The scenario exceeded its deadline: most often an endless loop.
    #[error(
        "{}the file did not finish loading within {allowed_ms} ms; is this a loop without an end?{}",
        place(.file, .line),
        stack(.frames)
    )]
    Deadline {
        /// The file in which it was stopped.
        file: Option<String>,
        /// The line in `file`.
        line: Option<u32>,
        /// The limit in milliseconds.
        allowed_ms: u64,
        /// The stack, innermost first.
        frames: Vec<PluginFrame>,
    },
    /// The scenario exceeded its memory limit.
    #[error("{file}: it needs more memory than the {allowed} bytes it may have")]
    Memory {
        /// Name of the file.
        file: String,
        /// The limit in bytes.
        allowed: u64,
    },
    /// The scenario's result is not a table.
    #[error(
        "{file}: the file returned {found}; end it with `return {{ ... }}`: the table of a scenario or a plugin"
    )]
    NotATable {
        /// Name of the file.
        file: String,
        /// The type of the returned value.
        found: String,
    },
    /// A value of the returned table is invalid in a scenario.
    #[error("{}`{path}`: {message}", place_or(.file, .line))]
    Value {
        /// Name of the file.
        file: String,
        /// The line of the nearest key, if known.
        line: Option<u32>,
        /// Path in the table (`traffic_scheduler.rate`).
        path: String,
        /// The problem and the fix.
        message: String,
    },
    /// The function of a workload is missing.
    #[error("{file}: `{path}` is {found}, not a function")]
    NotAFunction {
        /// Name of the file.
        file: String,
        /// Path in the table.
        path: String,
        /// The value that was found.
        found: String,
    },
    /// A list of scenarios has no such element.
    #[error("{file}: the list of scenarios has no element {}", scenario + 1)]
    NoScenario {
        /// Name of the file.
        file: String,
        /// Index in the list, from 0.
        scenario: usize,
    },
    /// The trace layout of a flavor is invalid.
    #[error("{file}: `{path}`: {reason}")]
    Layout {
        /// Name of the file.
        file: String,
        /// The flavor's path in the table.
        path: String,
        /// The problem.
        reason: String,
    },
}

fn place(file: &Option<String>, line: &Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}: "),
        (Some(file), None) => format!("{file}: "),
        _ => String::new(),
    }
}

fn place_or(file: &str, line: &Option<u32>) -> String {
    match line {
        Some(line) => format!("{file}:{line}: "),
        None => format!("{file}: "),
    }
}

fn stack(frames: &[PluginFrame]) -> String {
    let mut text = String::new();
    for frame in frames {
        text.push_str("\n  at ");
        text.push_str(&frame.function);
        if let Some(file) = &frame.file {
            let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
            text.push_str(&format!(" ({file}{line})"));
        }
    }
    text
}
