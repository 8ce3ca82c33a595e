//! Failures of plugins, in enough detail for the plugin's author.

use std::fmt;

use crate::plugin_error::PluginErrorCode;

/// One frame of a guest's stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFrame {
    /// The demangled function name.
    pub function: String,
    /// Source file, where the component carries line tables.
    pub file: Option<String>,
    /// Line in that file.
    pub line: Option<u32>,
}

/// The kind of a plugin's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginFailureKind {
    /// It could not be loaded: unreadable, not a component, wrong contract version, missing export,
    /// syntax error.
    Load,
    /// It returned an error (the contract's `error` record).
    Refused {
        /// The plugin's error code.
        code: String,
        /// The plugin's hint.
        hint: Option<String>,
        /// The place in the plugin's configuration, as a JSON pointer or a dotted path.
        path: Option<String>,
    },
    /// It stopped on a bug: a trap, a panic, an uncaught exception.
    Trap,
    /// It used more time than one call is allowed.
    Deadline {
        /// The allowance in milliseconds.
        allowed_ms: u64,
    },
    /// It asked for more memory than it is allowed.
    Memory {
        /// Bytes it asked for.
        asked: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// It used more instructions than one call is allowed.
    Fuel {
        /// The allowance in units of fuel.
        allowed: u64,
    },
    /// Its result cannot be used: too large, or an invalid graph.
    Result,
}

impl PluginFailureKind {
    /// Returns the error code of most failures of this kind.
    fn code(&self, function: &str) -> PluginErrorCode {
        match self {
            PluginFailureKind::Load => PluginErrorCode::NotLoaded,
            PluginFailureKind::Refused { .. } => PluginErrorCode::Refused,
            PluginFailureKind::Trap => PluginErrorCode::Trap,
            PluginFailureKind::Deadline { .. } if function == "load" => PluginErrorCode::CompileDeadline,
            PluginFailureKind::Deadline { .. } => PluginErrorCode::CallDeadline,
            PluginFailureKind::Memory { .. } => PluginErrorCode::Memory,
            PluginFailureKind::Fuel { .. } => PluginErrorCode::CallFuel,
            PluginFailureKind::Result => PluginErrorCode::Result,
        }
    }
}

/// A failure of a plugin: which plugin, which function, why, where, and on what input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFailure {
    /// The plugin's name.
    pub plugin: String,
    /// The function of the contract that was called (`workload.sessions`), or `load`.
    pub function: String,
    /// The kind of failure.
    pub kind: PluginFailureKind,
    /// The code under which `docs/plugin-errors.md` explains it.
    pub code: PluginErrorCode,
    /// One line with the cause.
    pub message: String,
    /// The guest's stack, innermost first; only frames that help.
    pub frames: Vec<PluginFrame>,
    /// The source line of the failure, without indentation.
    pub source: Option<String>,
    /// The call's input, shortened (`first = 0, count = 64`).
    pub input: Option<String>,
    /// The last call of a host function before the failure, shortened: `blobs.open("a.jsonl")`.
    pub last_host_call: Option<String>,
    /// Remarks about the environment of the plugin: accesses that the sandbox refused.
    pub notes: Vec<String>,
    /// The last lines that the plugin wrote to its standard error.
    pub stderr: Option<String>,
    /// True if the scenario goes on without the plugin: the failure is reported, and does not
    /// decide the exit code.
    pub is_tolerated: bool,
    /// True if the workload makes no further sessions: its plugin was disabled.
    pub ends_workload: bool,
    /// Failures like this one on other sessions or answers, which are counted instead of listed.
    pub repeated: u64,
}

impl PluginFailure {
    /// A failure with only the essentials; the rest can be set on the fields.
    pub fn new(
        plugin: impl Into<String>,
        function: impl Into<String>,
        kind: PluginFailureKind,
        message: impl Into<String>,
    ) -> Self {
        let function = function.into();
        PluginFailure {
            plugin: plugin.into(),
            code: kind.code(&function),
            function,
            kind,
            message: message.into(),
            frames: Vec::new(),
            source: None,
            input: None,
            last_host_call: None,
            notes: Vec::new(),
            stderr: None,
            is_tolerated: false,
            ends_workload: false,
            repeated: 0,
        }
    }

    /// Sets a code that is more precise than that of the kind.
    pub fn with_code(mut self, code: PluginErrorCode) -> Self {
        self.code = code;
        self
    }

    /// Returns true if the plugin was stopped or stopped itself, so that its instance is lost.
    pub fn is_trap(&self) -> bool {
        match self.kind {
            PluginFailureKind::Trap
            | PluginFailureKind::Deadline { .. }
            | PluginFailureKind::Fuel { .. }
            | PluginFailureKind::Memory { .. } => true,
            // More data than is taken is refused while it is passed.
            PluginFailureKind::Result => self.code == PluginErrorCode::Output,
            PluginFailureKind::Load | PluginFailureKind::Refused { .. } => false,
        }
    }

    /// Returns true if another failure differs in its session at most.
    pub fn is_like(&self, other: &PluginFailure) -> bool {
        (&self.plugin, &self.function, &self.kind, self.code)
            == (&other.plugin, &other.function, &other.kind, other.code)
            && (&self.frames, &self.source) == (&other.frames, &other.source)
            && without_session(&self.message).eq(without_session(&other.message))
    }
}

/// Returns the parts of a message between the numbers of sessions.
fn without_session(message: &str) -> impl Iterator<Item = &str> {
    let mut parts = message.split("session ");
    let first = parts.next();
    let rest = parts.map(|part| part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    first.into_iter().chain(rest)
}

impl std::error::Error for PluginFailure {}

/// One line for the cause, then one indented line for each thing known about it.
impl fmt::Display for PluginFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "plugin `{}` failed in `{}`: {}",
            self.plugin, self.function, self.message
        )?;
        if let PluginFailureKind::Refused { code, path, .. } = &self.kind {
            write!(f, " [{code}]")?;
            if let Some(path) = path {
                write!(f, "\n  config: {path}")?;
            }
        }
        if let Some(source) = &self.source {
            write!(f, "\n  source: {source}")?;
        }
        if let Some(input) = &self.input {
            write!(f, "\n  input: {input}")?;
        }
        if let Some(call) = &self.last_host_call {
            write!(f, "\n  last host call: {call}")?;
        }
        for frame in &self.frames {
            write!(f, "\n  at {}", frame.function)?;
            match (&frame.file, frame.line) {
                (Some(file), Some(line)) => write!(f, " ({file}:{line})")?,
                (Some(file), None) => write!(f, " ({file})")?,
                _ => {}
            }
        }
        if let Some(stderr) = &self.stderr {
            for line in stderr.lines() {
                write!(f, "\n  stderr: {line}")?;
            }
        }
        for note in &self.notes {
            write!(f, "\n  note: {note}")?;
        }
        write!(f, "\n  code: {} (docs/plugin-errors.md)", self.code)?;
        if self.repeated > 0 {
            let times = if self.repeated == 1 { "time" } else { "times" };
            write!(f, "\n  repeated: {} more {times}", self.repeated)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_differ_in_their_session_are_alike() {
        let failure = |message: &str| PluginFailure {
            input: Some(message.to_owned()),
            ..PluginFailure::new("p", "agent", PluginFailureKind::Trap, message)
        };
        let first = failure("session 3: node 1: no");
        assert!(first.is_like(&failure("session 41: node 1: no")));
        for other in ["session 3: node 2: no", "session 3", "node 1: no", ""] {
            assert!(!first.is_like(&failure(other)), "{other}");
        }
        let trap = PluginFailure::new("p", "other", PluginFailureKind::Trap, &*first.message);
        assert!(!first.is_like(&trap));
    }

    #[test]
    fn equal_failures_are_counted_below_the_first() {
        let mut failure = PluginFailure::new("p", "agent", PluginFailureKind::Trap, "no");
        assert_eq!(
            failure.to_string(),
            "plugin `p` failed in `agent`: no\n  code: VP0004 (docs/plugin-errors.md)"
        );
        failure.repeated = 1;
        assert!(failure.to_string().ends_with("\n  repeated: 1 more time"));
        failure.repeated = 2;
        assert!(failure.to_string().ends_with("\n  repeated: 2 more times"));
    }
}
