//! Failures inside a virtual machine, parsed from mlua's errors and Luau's traceback text.

use std::collections::BTreeSet;
use std::time::Duration;

use mlua::{Error, Function};
use veeksha_ports::{PluginFailure, PluginFailureKind, PluginFrame};

use crate::shape::ShapeError;
use crate::sources::Sources;

/// Maximum number of frames in a report.
const MAX_FRAMES: usize = 12;
/// Maximum number of characters of a message in a report.
const MAX_MESSAGE: usize = 2_000;

/// Maximum number of characters of a line in a report.
const MAX_SOURCE: usize = 120;

/// The name of the host's Lua chunk. Its frames are omitted, because they do not help the author.
pub(crate) const PRELUDE: &str = "veeksha";

/// Reason for the failure of a call into the virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LuaFaultKind {
    /// The source does not parse.
    Syntax,
    /// The script raised an error.
    Raised,
    /// A value that was passed to the host is invalid.
    Shape,
    /// The script refused its input, with a reason.
    Refused,
    /// The deadline passed.
    Deadline(Duration),
    /// The memory limit was reached.
    Memory(usize),
}

/// A failed call.
#[derive(Clone, Debug)]
pub(crate) struct LuaFault {
    pub(crate) kind: LuaFaultKind,
    pub(crate) message: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) frames: Vec<PluginFrame>,
    /// The text of the line.
    pub(crate) source: Option<String>,
}

impl LuaFault {
    /// Creates the fault of an invalid value.
    pub(crate) fn shape(message: impl Into<String>) -> Self {
        LuaFault {
            kind: LuaFaultKind::Shape,
            message: message.into(),
            file: None,
            line: None,
            frames: Vec::new(),
            source: None,
        }
    }

    /// Creates the fault of a group of rows that a flavor refused, with the reason.
    pub(crate) fn refused(reason: &str) -> Self {
        LuaFault {
            kind: LuaFaultKind::Refused,
            message: readable(reason),
            file: None,
            line: None,
            frames: Vec::new(),
            source: None,
        }
    }

    /// Creates the fault of an invalid value that a function returned: the nearest location is the
    /// function.
    pub(crate) fn at(function: &Function, message: impl Into<String>) -> Self {
        let info = function.info();
        let mut fault = LuaFault::shape(message);
        fault.file = info.short_src;
        fault.line = info.line_defined.and_then(|line| u32::try_from(line).ok());
        fault
    }

    /// Creates the fault of a deadline that passed at `traceback`.
    pub(crate) fn deadline(allowed: Duration, traceback: &str) -> Self {
        let frames = parse_traceback(traceback);
        let (file, line) = first_place(&frames);
        let message = format!(
            "it ran longer than the {} ms that one call may take; is this a loop without an end?",
            allowed.as_millis()
        );
        LuaFault {
            kind: LuaFaultKind::Deadline(allowed),
            message,
            file,
            line,
            frames,
            source: None,
        }
    }

    /// Creates the fault of an exceeded memory limit.
    pub(crate) fn memory(allowed: usize) -> Self {
        LuaFault {
            kind: LuaFaultKind::Memory(allowed),
            message: format!("it needs more memory than the {allowed} bytes it may have"),
            file: None,
            line: None,
            frames: Vec::new(),
            source: None,
        }
    }

    /// Converts an error of mlua. `memory` is the limit, for the message.
    pub(crate) fn from_error(error: &Error, memory: usize) -> Self {
        let mut traceback = "";
        let mut cause = error;
        while let Error::CallbackError {
            traceback: text,
            cause: inner,
        } = cause
        {
            if !text.is_empty() {
                traceback = text;
            }
            cause = inner;
        }
        let (kind, text) = match cause {
            Error::MemoryError(_) => return LuaFault::memory(memory),
            Error::SyntaxError { message, .. } => (LuaFaultKind::Syntax, message.clone()),
            Error::RuntimeError(message) => (LuaFaultKind::Raised, message.clone()),
            Error::ExternalError(external) => match external.downcast_ref::<ShapeError>() {
                Some(shape) => (LuaFaultKind::Shape, shape.to_string()),
                None => (LuaFaultKind::Raised, external.to_string()),
            },
            other => (LuaFaultKind::Raised, other.to_string()),
        };
        let (text, own_traceback) = match text.split_once("\nstack traceback:") {
            Some((text, frames)) => (text.to_owned(), Some(frames)),
            None => (text.clone(), None),
        };
        if text.ends_with("not enough memory") {
            return LuaFault::memory(memory);
        }
        let frames = parse_traceback(own_traceback.unwrap_or(traceback));
        let (file, line, message) = split_place(&text);
        let (file, line) = if line.is_some() {
            (file, line)
        } else {
            first_place(&frames)
        };
        LuaFault {
            kind,
            message: readable(&without_repeated_places(&file, line, message)),
            file,
            line,
            frames,
            source: None,
        }
    }

    /// Adds the text of the line, if it is known.
    pub(crate) fn quoting(mut self, sources: &Sources) -> Self {
        self.source = self.quoted_line(sources);
        self
    }

    fn quoted_line(&self, sources: &Sources) -> Option<String> {
        let index = usize::try_from(self.line?.checked_sub(1)?).ok()?;
        let text = sources.text_of(self.file.as_deref()?)?;
        let line: String = text.lines().nth(index)?.trim().chars().take(MAX_SOURCE).collect();
        (!line.is_empty()).then_some(line)
    }

    /// Converts to the failure of a plugin's function.
    pub(crate) fn into_failure(self, plugin: &str, function: &str, input: Option<String>) -> PluginFailure {
        let kind = match self.kind {
            LuaFaultKind::Syntax => PluginFailureKind::Load,
            LuaFaultKind::Raised => PluginFailureKind::Trap,
            LuaFaultKind::Shape => PluginFailureKind::Result,
            LuaFaultKind::Refused => PluginFailureKind::Refused {
                code: "row".to_owned(),
                hint: None,
                path: None,
            },
            LuaFaultKind::Deadline(allowed) => PluginFailureKind::Deadline {
                allowed_ms: u64::try_from(allowed.as_millis()).unwrap_or(u64::MAX),
            },
            // Luau does not report the size of the failed allocation: this is its lower bound.
            LuaFaultKind::Memory(allowed) => PluginFailureKind::Memory {
                asked: (allowed as u64).saturating_add(1),
                allowed: allowed as u64,
            },
        };
        let message = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: {}", self.message),
            _ => self.message,
        };
        let mut failure = PluginFailure::new(plugin, function, kind, message);
        failure.frames = self.frames;
        failure.source = self.source;
        failure.input = input;
        failure
    }
}

/// Returns the frames of Luau's traceback text that belong to the author's files.
fn parse_traceback(text: &str) -> Vec<PluginFrame> {
    let mut frames = Vec::new();
    for line in text.lines() {
        let Some((place, function)) = line.trim().split_once(": in ") else {
            continue;
        };
        let Some((file, number)) = place.rsplit_once(':') else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        if file == PRELUDE {
            continue;
        }
        let function = match function.strip_prefix("function ") {
            Some(name) if name.starts_with('\'') => name.trim_matches('\'').to_owned(),
            Some(_) => "main chunk or unnamed function".to_owned(),
            None => function.to_owned(),
        };
        frames.push(PluginFrame {
            function,
            file: Some(file.to_owned()),
            line: Some(number),
        });
        if frames.len() == MAX_FRAMES {
            break;
        }
    }
    frames
}

fn first_place(frames: &[PluginFrame]) -> (Option<String>, Option<u32>) {
    frames
        .first()
        .map_or((None, None), |frame| (frame.file.clone(), frame.line))
}

/// Splits `agent.lua:12: message`. Only a first line of this form has a location.
pub(crate) fn split_place(text: &str) -> (Option<String>, Option<u32>, &str) {
    let mut from = 0;
    while let Some(colon) = text[from..].find(": ").map(|at| from + at) {
        if text[..colon].contains('\n') {
            break;
        }
        if let Some((file, number)) = text[..colon].rsplit_once(':')
            && let Ok(line) = number.parse()
            && file != PRELUDE
        {
            return (Some(file.to_owned()), Some(line), &text[colon + 2..]);
        }
        if let Some((PRELUDE, number)) = text[..colon].rsplit_once(':')
            && number.parse::<u32>().is_ok()
        {
            return (None, None, &text[colon + 2..]);
        }
        from = colon + 2;
    }
    (None, None, text)
}

/// Removes places at the start of a message that repeat an earlier one. Every coroutine that an
/// error leaves adds the place of its caller.
fn without_repeated_places(file: &Option<String>, line: Option<u32>, message: &str) -> String {
    let is_place = |text: &str| {
        let place = text.rsplit_once(':');
        place.is_some_and(|(_, line)| line.parse::<u32>().is_ok())
    };
    let mut seen = BTreeSet::new();
    if let (Some(file), Some(line)) = (file, line) {
        seen.insert(format!("{file}:{line}"));
    }
    let (mut kept, mut rest) = (String::new(), message);
    while let Some((place, after)) = rest.split_once(": ").filter(|(place, _)| is_place(place)) {
        if seen.insert(place.to_owned()) {
            kept += place;
            kept += ": ";
        }
        rest = after;
    }
    kept + rest
}

/// Shortens long messages and explains terse ones from Luau.
fn readable(message: &str) -> String {
    let mut text: String = message.chars().take(MAX_MESSAGE).collect();
    if text.len() < message.len() {
        text.push('…');
    }
    // The address that Luau prints for a table is not useful and differs between runs.
    if let Some(rest) = text.strip_prefix("table: 0x")
        && rest.chars().all(|c| c.is_ascii_hexdigit())
    {
        return "an error was raised with a table as its value; raise a string, so that it can be shown"
            .to_owned();
    }
    if text.contains("attempt to modify a readonly table") {
        text.push_str(
            " (what the host hands over cannot change, nor globals and the tables of a scenario once it is loaded: no session may \
             depend on another)",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_split_from_its_message() {
        let cases = [
            ("agent.lua:12: boom", (Some("agent.lua"), Some(12), "boom")),
            (
                "lib/a: b.lua:3: x: 4: y",
                (Some("lib/a: b.lua"), Some(3), "x: 4: y"),
            ),
            ("boom", (None, None, "boom")),
            ("ratio: 4", (None, None, "ratio: 4")),
            ("veeksha:7: boom", (None, None, "boom")),
            (
                "first\nagent.lua:1: later",
                (None, None, "first\nagent.lua:1: later"),
            ),
        ];
        for (text, (file, line, message)) in cases {
            assert_eq!(
                split_place(text),
                (file.map(str::to_owned), line, message),
                "{text}"
            );
        }
    }

    #[test]
    fn repeated_places_of_coroutines_are_removed() {
        let cases = [
            ("a.lua:4: a.lua:4: a.lua:4: stack overflow", "stack overflow"),
            ("a.lua:4: a.lua:5: a.lua:4: a.lua:5: boom", "a.lua:5: boom"),
            ("a.lua:4: boom: a.lua:4: b", "boom: a.lua:4: b"),
            ("boom", "boom"),
        ];
        for (text, expected) in cases {
            let (file, line, message) = split_place(text);
            assert_eq!(without_repeated_places(&file, line, message), expected, "{text}");
        }
    }

    #[test]
    fn only_the_authors_frames_remain() {
        let text = "stack traceback:\n\t[C]: in function 'error'\n\tveeksha:3: in function 'request'\n\
                    \tagent.lua:12: in function 'plan'\n\tagent.lua:1: in function <agent.lua:0>";
        let frames = parse_traceback(text);
        assert_eq!(frames.len(), 2);
        assert_eq!(
            frames[0],
            PluginFrame {
                function: "plan".into(),
                file: Some("agent.lua".into()),
                line: Some(12)
            }
        );
        assert_eq!(frames[1].line, Some(1));
    }
}
