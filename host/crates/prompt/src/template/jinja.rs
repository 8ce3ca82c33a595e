//! The Jinja environment that chat templates are written for: Hugging Face's, which is Python's
//! Jinja with trimmed blocks, loop controls, Python's methods of strings and dictionaries, and
//! three more functions.
//!
//! * `raise_exception(message)` refuses the conversation.
//! * `strftime_now(format)` formats a date. Equal workloads must give equal prompts on every day,
//!   so the date is always [`TODAY`], which is also the default date of Llama 3 templates. A server
//!   that inserts the real date may count a token more or less if the name of the month is written
//!   out.
//! * `tojson` writes as Python's `json.dumps(ensure_ascii=False)` does.
//! * `{% generation %}`, a mark for training, changes nothing.
//! * `tools` and `documents` are `none`: the host offers no tools.

use std::collections::BTreeMap;
use std::io;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Serialize;
use serde_json::ser::Formatter;
use veeksha_model::Role;

use super::bounds::{self, Capped};
use super::guards;

/// Control tokens that templates name, by their Hugging Face names (`bos_token`, `eos_token`, ...),
/// as text.
pub type SpecialTokens = BTreeMap<String, String>;

/// The date of every prompt.
const TODAY: jiff::civil::DateTime = jiff::civil::datetime(2024, 7, 26, 0, 0, 0, 0);
/// The template's name inside its environment. It has no extension, so nothing is escaped.
const NAME: &str = "chat template";

pub(super) fn environment(text: &str, tokens: &SpecialTokens) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(bounds::FUEL));
    environment.set_unknown_method_callback(bounds::method);
    environment.set_formatter(|out, state, value| match (value.kind(), value.as_str()) {
        // Formatted as in Python.
        (ValueKind::None, _) => out.write_str("None").map_err(Error::from),
        (ValueKind::Bool, _) => out
            .write_str(if value.is_true() { "True" } else { "False" })
            .map_err(Error::from),
        (ValueKind::Undefined, _) => minijinja::escape_formatter(out, state, value),
        (_, Some(text)) => {
            bounds::written(text.len())?;
            out.write_str(text).map_err(Error::from)
        }
        _ => {
            let text = bounds::limited(value)?.text;
            bounds::written(text.len())?;
            out.write_str(&text).map_err(Error::from)
        }
    });
    environment.add_filter(guards::GUARD, bounds::bounded);
    environment.add_function(guards::COUNT, bounds::count);
    environment.add_filter("replace", bounds::replace);
    environment.add_filter("join", bounds::join);
    environment.add_filter("tojson", tojson);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    for (name, token) in tokens {
        environment.add_global(name.clone(), token.clone());
    }
    environment.add_global("tools", ());
    environment.add_global("documents", ());
    environment.add_template_owned(NAME, guards::guarded(&without_generation_marks(text)))?;
    Ok(environment)
}

pub(super) fn render(
    environment: &Environment<'_>,
    messages: &[(Role, &str)],
    add_generation_prompt: bool,
) -> Result<String, Error> {
    let limit = bounds::begin(messages.iter().map(|(_, content)| content.len()).sum());
    let messages: Vec<Value> = messages
        .iter()
        .map(|(role, content)| context! { role => role.name(), content => *content })
        .collect();
    let mut text = Capped::new(limit);
    let rendered = environment.get_template(NAME)?.render_captured_to(
        context! { messages => messages, add_generation_prompt => add_generation_prompt },
        &mut text,
    );
    match rendered {
        Err(_) if text.full => Err(text.error()),
        Err(error) => Err(error),
        Ok(_) => Ok(text.text),
    }
}

/// Returns the problem on one line, with the line of the template.
pub(super) fn reason(error: &Error) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return format!("it does not finish within {} steps", bounds::FUEL);
    }
    let mut reason = error.detail().map_or_else(|| error.to_string(), str::to_string);
    if let (Some(_), Some(line)) = (error.detail(), error.line()) {
        reason.push_str(&format!(" (line {line})"));
    }
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    reason
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn strftime_now(format: String) -> Result<String, Error> {
    jiff::fmt::strtime::format(&format, TODAY).map_err(|error| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("strftime_now({format:?}): {error}"),
        )
    })
}

/// `json.dumps(value, ensure_ascii=False, indent=indent, separators=separators,
/// sort_keys=sort_keys)`.
fn tojson(value: &Value, arguments: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = arguments.get("indent")?;
    // Text is never escaped to ASCII: no known template requests it.
    let _: Option<bool> = arguments.get("ensure_ascii")?;
    let separators: Option<Vec<String>> = arguments.get("separators")?;
    let sort_keys: Option<bool> = arguments.get("sort_keys")?;
    arguments.assert_all_used()?;
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.as_str(), key.as_str()),
        Some(_) => {
            let message = "tojson: `separators` must be two texts";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        None => (if indent.is_some() { "," } else { ", " }, ": "),
    };
    let failed =
        |error: serde_json::Error| Error::new(ErrorKind::InvalidOperation, format!("tojson: {error}"));
    bounds::bounded(value.clone())?;
    let mut out = Vec::new();
    let mut python = serde_json::Serializer::with_formatter(
        &mut out,
        PythonJson {
            item,
            key,
            indent,
            depth: 0,
            filled: false,
        },
    );
    if sort_keys == Some(true) {
        let mut json = serde_json::to_value(value).map_err(failed)?;
        json.sort_all_objects();
        json.serialize(&mut python).map_err(failed)?;
    } else {
        value.serialize(&mut python).map_err(failed)?;
    }
    String::from_utf8(out).map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// JSON with Python's spaces.
struct PythonJson<'a> {
    item: &'a str,
    key: &'a str,
    indent: Option<usize>,
    depth: usize,
    /// True if the innermost collection has an element already.
    filled: bool,
}

impl PythonJson<'_> {
    fn open<W: ?Sized + io::Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        out.write_all(bracket)
    }

    fn close<W: ?Sized + io::Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.filled {
            self.line(out)?;
        }
        self.filled = true;
        out.write_all(bracket)
    }

    fn element<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(self.item.as_bytes())?;
        }
        self.line(out)
    }

    fn line<W: ?Sized + io::Write>(&self, out: &mut W) -> io::Result<()> {
        match self.indent {
            Some(indent) => write!(out, "\n{:1$}", "", indent * self.depth),
            None => Ok(()),
        }
    }
}

impl Formatter for PythonJson<'_> {
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(self.key.as_bytes())
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

/// Replaces `{% generation %}` and `{% endgeneration %}`, which Jinja does not support, by blocks
/// that are always included; whitespace control is preserved.
fn without_generation_marks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{%") {
        let Some(end) = rest[start..].find("%}").map(|end| start + end) else {
            break;
        };
        let inner = &rest[start + 2..end];
        let statement =
            match inner.trim_matches(|char: char| char.is_whitespace() || char == '-' || char == '+') {
                "generation" => Some("if true"),
                "endgeneration" => Some("endif"),
                _ => None,
            };
        match statement {
            None => out.push_str(&rest[..end]),
            Some(statement) => {
                out.push_str(&rest[..start + 2]);
                out.extend(inner.chars().take(1).filter(|sign| "+-".contains(*sign)));
                out.push_str(&format!(" {statement} "));
                out.extend(inner.chars().last().filter(|sign| "+-".contains(*sign)));
            }
        }
        out.push_str("%}");
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    out
}
