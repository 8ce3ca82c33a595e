//! Why a scenario could not be loaded.

use std::path::PathBuf;

use veeksha_ports::Frame;

/// Why a Lua scenario could not be loaded, or a workload not be made of it.
#[derive(Debug, thiserror::Error)]
pub enum LuaError {
    /// The file is missing or cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        reason: String,
    },
    /// The file is larger than a scenario may be.
    #[error("`{}` has {bytes} bytes; a Lua file may have {allowed}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The largest size.
        allowed: u64,
    },
    /// The file is not text.
    #[error("`{}` is not UTF-8 text (byte {offset}); compiled Lua is not accepted", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that is not UTF-8.
        offset: usize,
    },
    /// The source does not parse.
    #[error("{file}:{line}: syntax error: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// What the compiler says.
        message: String,
    },
    /// The scenario raised an error while it ran.
    #[error("{}{message}{}", place(.file, .line), stack(.frames))]
    Runtime {
        /// Where, if it is known.
        file: Option<String>,
        /// The line in `file`.
        line: Option<u32>,
        /// The error's message.
        message: String,
        /// The stack, innermost first.
        frames: Vec<Frame>,
    },
    /// The scenario ran too long: most often a loop without an end.
    #[error(
        "{}the file did not finish loading within {allowed_ms} ms; is this a loop without an end?{}",
        place(.file, .line),
        stack(.frames)
    )]
    Deadline {
        /// Where it was stopped.
        file: Option<String>,
        /// The line in `file`.
        line: Option<u32>,
        /// What it may take, in milliseconds.
        allowed_ms: u64,
        /// The stack, innermost first.
        frames: Vec<Frame>,
    },
    /// The scenario needs more memory than it may have.
    #[error("{file}: it needs more memory than the {allowed} bytes it may have")]
    Memory {
        /// The file.
        file: String,
        /// The limit in bytes.
        allowed: u64,
    },
    /// The scenario's result is not a table.
    #[error(
        "{file}: a scenario or a plugin returns one table (`return {{ ... }}`); this one returned {found}"
    )]
    NotATable {
        /// The file.
        file: String,
        /// What it returned.
        found: String,
    },
    /// A value of the returned table cannot stand in a scenario.
    #[error("{}`{path}`: {message}", place_or(.file, .line))]
    Value {
        /// The file.
        file: String,
        /// The line of the nearest key, if it is known.
        line: Option<u32>,
        /// Where in the table (`traffic_scheduler.rate`).
        path: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// There is no function where a workload was looked for.
    #[error("{file}: `{path}` is {found}, not a function")]
    NotAFunction {
        /// The file.
        file: String,
        /// Where in the table.
        path: String,
        /// What is there.
        found: String,
    },
    /// A list of scenarios has no such element.
    #[error("{file}: the list of scenarios has no element {}", scenario + 1)]
    NoScenario {
        /// The file.
        file: String,
        /// Its place in the list, counted from 0.
        scenario: usize,
    },
    /// What a flavor of the scenario wants of a trace cannot be.
    #[error("{file}: `{path}`: {reason}")]
    Layout {
        /// The file.
        file: String,
        /// The flavor's place in the table.
        path: String,
        /// What is wrong.
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

fn stack(frames: &[Frame]) -> String {
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
