//! Type names that several types of the host share.

use std::collections::BTreeMap;

use super::lexer::{self, Token};
use super::source::{self, Sources};
use super::violation::{Rule, Violation};

/// Returns every definition of a type whose name another type of the host has, tests left out.
pub(super) fn repeated(sources: &Sources) -> Vec<Violation> {
    let mut types: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    let host = sources
        .rust()
        .filter(|file| file.path.starts_with("host/") && !file.is_test());
    for file in host {
        for (name, line) in defined(&source::production(&file.tokens())) {
            types.entry(name).or_default().push((file.path.clone(), line));
        }
    }
    let mut found = Vec::new();
    for (name, places) in types.iter().filter(|(_, places)| places.len() > 1) {
        for (path, line) in places {
            found.push(Violation {
                rule: Rule::Name,
                path: path.clone(),
                line: *line,
                subject: name.clone(),
                message: format!("`{name}` is the name of {} types", places.len()),
            });
        }
    }
    found
}

/// The types that a file defines outside of functions and implementations, with their lines.
fn defined(code: &[Token]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    // One entry a brace: true if it is the brace of an inline module.
    let mut braces: Vec<bool> = Vec::new();
    let mut is_module = false;
    for (at, token) in code.iter().enumerate() {
        if token.is("mod") {
            is_module = true;
        } else if token.is("{") {
            braces.push(std::mem::take(&mut is_module));
        } else if token.is("}") {
            braces.pop();
        } else if token.is(";") {
            is_module = false;
        }
        let is_item = ["struct", "enum", "trait", "union", "type"]
            .iter()
            .any(|keyword| token.is(keyword));
        if is_item && braces.iter().all(|is_module| *is_module) {
            let name = code.get(at + 1).filter(|next| next.kind == lexer::Kind::Ident);
            found.extend(name.map(|name| (name.text.to_owned(), name.line)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_each_place_of_a_repeated_name() {
        let sources = Sources::of(&[
            ("host/a/src/lib.rs", "pub struct Part; struct Once;"),
            ("host/b/src/lib.rs", "mod inner { enum Part {} }"),
            ("host/b/src/x.rs", "impl T for U { type Part = u8; }"),
            ("host/b/tests/x.rs", "struct Once;"),
        ]);
        let found: Vec<_> = repeated(&sources)
            .into_iter()
            .map(|violation| (violation.path, violation.subject))
            .collect();
        assert_eq!(
            found,
            [
                ("host/a/src/lib.rs".into(), "Part".into()),
                ("host/b/src/lib.rs".into(), "Part".into())
            ]
        );
    }
}
