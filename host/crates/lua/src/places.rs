//! Source lines of the keys of the table that a scenario returns.
//!
//! Luau does not record them, so the table constructors are parsed from the text: the one after the
//! file's last `return`, or that of the local it names, and nested ones. Values that are
//! constructed otherwise (by a function, in a loop) and duplicate keys have no line: a missing line
//! is better than a wrong one.

use std::cell::Cell;
use std::collections::HashMap;

use crate::tokens::{LuaToken, PlacedToken, tokenize};

/// Maximum depth of references between locals.
const MAX_DEPTH: usize = 32;
/// Maximum number of tokens read in total. Without it, locals that reference others repeatedly take
/// exponential time.
const MAX_WORK: usize = 4_000_000;

/// A value in the source, and the values in it.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The line of its key, or of the value if it has no key.
    pub(crate) line: Option<u32>,
    /// Its rank among the keys of its table.
    pub(crate) order: usize,
    /// Values by key; `None` for a duplicate key.
    keys: HashMap<String, Option<Places>>,
    items: Vec<Places>,
}

impl Places {
    /// Reads the places from the source of a scenario.
    pub(crate) fn scan(source: &str) -> Places {
        let tokens = tokenize(source);
        let scan = Scan::new(&tokens);
        scan.returned().unwrap_or_default()
    }

    /// Returns the value of a field.
    pub(crate) fn key(&self, name: &str) -> Option<&Places> {
        self.keys.get(name)?.as_ref()
    }

    /// Returns the element at `index`, counted from 1.
    pub(crate) fn item(&self, index: usize) -> Option<&Places> {
        self.items.get(index.checked_sub(1)?)
    }

    fn add(&mut self, name: String, mut value: Places) {
        value.order = self.keys.len();
        self.keys
            .entry(name)
            .and_modify(|twice| *twice = None)
            .or_insert(Some(value));
    }
}

/// Returns true if the only function that begins on `line` has no `return` of a value; false if
/// that is not certain.
pub(crate) fn lacks_return(tokens: &[PlacedToken], line: u32) -> bool {
    let scan = Scan::new(tokens);
    let mut starts =
        (0..tokens.len()).filter(|at| tokens[*at].line == line && scan.name(*at) == Some("function"));
    match (starts.next(), starts.next()) {
        (Some(start), None) => scan.lacks_return(start).unwrap_or(false),
        _ => false,
    }
}

struct Scan<'a> {
    tokens: &'a [PlacedToken],
    /// Position of each `local` declaration by name; `None` for a name that is declared twice.
    locals: HashMap<&'a str, Option<usize>>,
    /// Positions of `NAME.key =`, by name.
    fields: HashMap<&'a str, Vec<usize>>,
    work: Cell<usize>,
}

impl<'a> Scan<'a> {
    fn new(tokens: &'a [PlacedToken]) -> Self {
        let mut scan = Scan {
            tokens,
            locals: HashMap::new(),
            fields: HashMap::new(),
            work: Cell::new(0),
        };
        for at in 0..tokens.len() {
            let Some(name) = tokens[at].name() else { continue };
            if name == "local"
                && let Some(declared) = tokens.get(at + 1).and_then(PlacedToken::name)
            {
                scan.locals
                    .entry(declared)
                    .and_modify(|twice| *twice = None)
                    .or_insert(Some(at));
            }
            let starts = at
                .checked_sub(1)
                .is_none_or(|before| !scan.is(before, '.') && !scan.is(before, ':'));
            if starts && scan.is(at + 1, '.') && scan.is(at + 3, '=') && !scan.is(at + 4, '=') {
                scan.fields.entry(name).or_default().push(at);
            }
        }
        scan
    }

    /// Returns a token and counts it; `None` above the limit.
    fn token(&self, at: usize) -> Option<&'a PlacedToken> {
        self.work.set(self.work.get() + 1);
        if self.work.get() > MAX_WORK {
            None
        } else {
            self.tokens.get(at)
        }
    }

    fn is(&self, at: usize, symbol: char) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(symbol))
    }

    fn name(&self, at: usize) -> Option<&str> {
        self.tokens.get(at).and_then(PlacedToken::name)
    }

    /// Returns the table after the `return` that ends the file.
    fn returned(&self) -> Option<Places> {
        let end = self.tokens.len() - usize::from(self.tokens.last()?.is(';'));
        for at in (0..end).rev().filter(|at| self.name(*at) == Some("return")) {
            if let Some((places, after)) = self.value(at + 1, MAX_DEPTH)
                && after == end
            {
                return Some(places);
            }
        }
        None
    }

    /// Returns the places of a constructor, or of a name of one, at `at`, and its end.
    fn value(&self, at: usize, depth: usize) -> Option<(Places, usize)> {
        let depth = depth.checked_sub(1)?;
        if self.is(at, '{') {
            return self.constructor(at, depth);
        }
        let name = self.name(at)?;
        Some((self.local(name, depth)?, at + 1))
    }

    /// Returns the constructor of the only `local NAME = { ... }` of the file, with the fields
    /// assigned to it later.
    fn local(&self, name: &str, depth: usize) -> Option<Places> {
        let at = (*self.locals.get(name)?)?;
        if !self.is(at + 2, '=') || !self.is(at + 3, '{') {
            return None;
        }
        let (mut places, after) = self.constructor(at + 3, depth)?;
        let assigned = self.fields.get(name).into_iter().flatten();
        for &at in assigned.filter(|at| **at >= after) {
            if let Some(key) = self.name(at + 2) {
                let mut value = self
                    .value(at + 4, depth)
                    .map(|(value, _)| value)
                    .unwrap_or_default();
                value.line = Some(self.tokens[at + 2].line);
                places.add(key.to_owned(), value);
            }
        }
        Some(places)
    }

    /// Returns the constructor that begins at `at`, and its end.
    fn constructor(&self, at: usize, depth: usize) -> Option<(Places, usize)> {
        let mut places = Places::default();
        let mut at = at + 1;
        let mut certain_items = true;
        loop {
            let token = self.token(at)?;
            if token.is('}') {
                return Some((places, at + 1));
            }
            let line = token.line;
            let (key, value_at) = self.key(at);
            let mut value = Places::default();
            let after = self.skip(value_at)?;
            if let Some((inner, end)) = self.value(value_at, depth)
                && end == after
            {
                value = inner;
            }
            value.line = Some(line);
            match key {
                FieldKey::Named(name) => places.add(name, value),
                FieldKey::Item if certain_items => places.items.push(value),
                FieldKey::Item => {}
                // `[expression] =` may be any position of the list.
                FieldKey::Computed => certain_items = false,
            }
            if !certain_items {
                places.items.clear();
            }
            at = after;
            if self.is(at, ',') || self.is(at, ';') {
                at += 1;
            }
        }
    }

    fn key(&self, at: usize) -> (FieldKey, usize) {
        let assigned = |at: usize| self.is(at, '=') && !self.is(at + 1, '=');
        if let Some(name) = self.name(at)
            && assigned(at + 1)
        {
            return (FieldKey::Named(name.to_owned()), at + 2);
        }
        if self.is(at, '[') {
            if let Some(LuaToken::Text(Some(name))) = self.tokens.get(at + 1).map(|placed| &placed.token)
                && self.is(at + 2, ']')
                && assigned(at + 3)
            {
                return (FieldKey::Named(name.clone()), at + 4);
            }
            let mut depth = 0usize;
            for (index, token) in self.tokens.iter().enumerate().skip(at) {
                depth += usize::from(token.is('['));
                depth = depth.saturating_sub(usize::from(token.is(']')));
                if depth == 0 {
                    return (FieldKey::Computed, index + 2);
                }
            }
        }
        (FieldKey::Item, at)
    }

    /// Returns the end of the expression at `at`: the comma or brace after it.
    fn skip(&self, mut at: usize) -> Option<usize> {
        let mut open = Vec::new();
        loop {
            let token = self.token(at)?;
            match &token.token {
                LuaToken::Symbol(',' | ';') if open.is_empty() => return Some(at),
                LuaToken::Symbol('}') if open.is_empty() => return Some(at),
                LuaToken::Symbol(bracket @ ('(' | '[' | '{')) => open.push(*bracket),
                LuaToken::Symbol(bracket @ (')' | ']' | '}')) => {
                    let expected = match bracket {
                        ')' => '(',
                        ']' => '[',
                        _ => '{',
                    };
                    if open.pop() != Some(expected) {
                        return None;
                    }
                }
                LuaToken::Name(name) if name == "function" => at = self.skip_function(at)?,
                _ => {}
            }
            at += 1;
        }
    }

    /// Returns true if the function whose keyword is at `start` has no `return`, not counting those
    /// of functions inside it.
    fn lacks_return(&self, start: usize) -> Option<bool> {
        let end = self.skip_function(start)?;
        let mut at = start + 1;
        while at < end {
            match self.name(at) {
                Some("return") => return Some(false),
                Some("function") => at = self.skip_function(at)?,
                _ => {}
            }
            at += 1;
        }
        Some(!self.ends_with_error(end))
    }

    /// Returns true if the last statement before the `end` at `end` is a call of `error`.
    fn ends_with_error(&self, end: usize) -> bool {
        let mut depth = 0usize;
        for at in (0..end).rev() {
            depth += usize::from(self.is(at, ')'));
            depth = depth.saturating_sub(usize::from(self.is(at, '(')));
            if depth == 0 {
                return self.is(at, '(')
                    && at.checked_sub(1).and_then(|name| self.name(name)) == Some("error");
            }
        }
        false
    }

    /// Returns the `end` of the function whose keyword is at `at`.
    fn skip_function(&self, at: usize) -> Option<usize> {
        let mut blocks = vec![LuaBlock::Statement];
        let mut expression = false;
        for index in at + 1..self.tokens.len() {
            let name = self.token(index)?.name();
            match name {
                Some("function" | "do") => blocks.push(LuaBlock::Statement),
                Some("if") if expression => blocks.push(LuaBlock::IfExpression),
                Some("if") => blocks.push(LuaBlock::Statement),
                Some("end") => {
                    while blocks.pop()? == LuaBlock::IfExpression {}
                    if blocks.is_empty() {
                        return Some(index);
                    }
                }
                _ => {}
            }
            // True if an `if` in this position is an expression: `x = if a then b else c` has no
            // `end`.
            expression = match (&self.tokens[index].token, name) {
                (_, Some("then" | "elseif")) => blocks.last() == Some(&LuaBlock::IfExpression),
                (_, Some("else")) => blocks.last() == Some(&LuaBlock::IfExpression) && blocks.pop().is_some(),
                (_, Some(name)) => matches!(
                    name,
                    "return" | "and" | "or" | "not" | "in" | "until" | "while" | "if"
                ),
                (LuaToken::Symbol(symbol), _) => !matches!(symbol, ')' | ']' | '}' | ';'),
                _ => false,
            };
        }
        None
    }
}

enum FieldKey {
    Named(String),
    Item,
    Computed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LuaBlock {
    /// Closed by `end`.
    Statement,
    /// Not closed by a token: it ends with its `else` branch.
    IfExpression,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(places: &Places, path: &str) -> Option<u32> {
        let found = path
            .split('.')
            .try_fold(places, |places, step| match step.parse() {
                Ok(index) => places.item(index),
                Err(_) => places.key(step),
            });
        found.and_then(|places| places.line)
    }

    #[test]
    fn keys_of_nested_constructors_have_their_lines() {
        let source = r#"
local traffic = {
  type = "rate", -- a comment with } in it
  interval_generator = { type = "poisson",
    arrival_rate = 3 },
}
return {
  seed = 42, ["output_dir"] = [[x
  y]],
  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      local a, b = 1, if index > 2 then 3 else 4
      if a then for i = 1, 2 do b = { seed = i } end elseif b then a = 1 else b = 2 end
      return { requests = {} }
    end,
  },
  traffic_scheduler = traffic,
  evaluators = { { type = "performance" },
    { type = "slo" } },
}
"#;
        let places = Places::scan(source);
        for (path, expected) in [
            ("seed", Some(8)),
            ("output_dir", Some(8)),
            ("session_generator", Some(10)),
            ("session_generator.sessions", Some(12)),
            ("traffic_scheduler", Some(18)),
            ("traffic_scheduler.type", Some(3)),
            ("traffic_scheduler.interval_generator.arrival_rate", Some(5)),
            ("evaluators.1.type", Some(19)),
            ("evaluators.2.type", Some(20)),
            ("requests", None),
        ] {
            assert_eq!(line(&places, path), expected, "{path}");
        }
    }

    #[test]
    fn a_named_table_and_what_is_assigned_to_it() {
        let source = "local s = {\n seed = 1,\n}\ns.runtime = {\n benchmark_timeout = 3 }\nreturn s\n";
        let places = Places::scan(source);
        assert_eq!(line(&places, "seed"), Some(2));
        assert_eq!(line(&places, "runtime.benchmark_timeout"), Some(5));
    }

    #[test]
    fn uncertain_places_have_no_line() {
        let twice = Places::scan("return { seed = 1,\n seed = 2, x = 3 }");
        assert_eq!((line(&twice, "seed"), line(&twice, "x")), (None, Some(2)));
        let shadowed = Places::scan("local t = { a = 1 }\ndo local t = { a = 2 } end\nreturn t");
        assert_eq!(line(&shadowed, "a"), None);
        let built = Places::scan("local function f() return { a = 1 } end\nreturn f()");
        assert_eq!(line(&built, "a"), None);
    }

    /// Each local references the previous one many times: without a limit, 30 to the power of 20
    /// tables.
    #[test]
    fn hostile_sources_end() {
        let mut source = "local t0 = {}\n".to_owned();
        for i in 1..20 {
            source += &format!("local t{i} = {{ {} }}\n", format!("t{}, ", i - 1).repeat(30));
        }
        Places::scan(&(source + "return t19"));
        Places::scan(&"return { a = ".repeat(50_000));
        Places::scan(&format!("return {}1{}", "{".repeat(100_000), "}".repeat(100_000)));
    }

    proptest::proptest! {
        #[test]
        fn any_source_can_be_scanned(
            words in proptest::collection::vec(proptest::sample::select(vec![
                "return", "local", "t", "{", "}", "[", "]", "=", ",", "function", "end", "if", "then", "else", "(", ")",
                "\"k\"", ".", ";", "do", "`{", "\n",
            ]), 0..60)
        ) {
            Places::scan(&words.join(" "));
        }
    }
}
