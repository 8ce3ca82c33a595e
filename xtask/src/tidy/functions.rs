//! Functions that are too long to be read as one step.

use super::lexer::{self, Token};
use super::source::{self, Sources};
use super::violation::{Rule, Violation};

/// Lines from `fn` to the closing brace.
const LONGEST: usize = 100;

/// Returns the functions of more than [`LONGEST`] lines, tests left out.
pub(super) fn long(sources: &Sources) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in sources.rust().filter(|file| !file.is_test()) {
        let code = source::production(&file.tokens());
        for (at, token) in code.iter().enumerate() {
            let Some(name) = code.get(at + 1).filter(|next| next.kind == lexer::Kind::Ident) else {
                continue;
            };
            let Some(last) = token.is("fn").then(|| last_line(&code, at)).flatten() else {
                continue;
            };
            let lines = last - token.line + 1;
            if lines > LONGEST {
                found.push(Violation {
                    rule: Rule::Function,
                    path: file.path.clone(),
                    line: token.line,
                    subject: name.text.to_owned(),
                    message: format!(
                        "`{}` has {lines} lines; split it into steps of at most {LONGEST}",
                        name.text
                    ),
                });
            }
        }
    }
    found
}

/// The line of the brace that closes the body of the function at `start`; `None` without a body.
fn last_line(code: &[Token], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut parentheses = 0_usize;
    for token in code.get(start..)? {
        if token.is("(") || token.is("[") {
            parentheses += 1;
        } else if token.is(")") || token.is("]") {
            parentheses = parentheses.saturating_sub(1);
        } else if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(token.line);
            }
        } else if token.is(";") && depth == 0 && parentheses == 0 {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!(
            "trait T {{ fn f(&self, a: [u8; 2]); }}\nfn g() {{\n{}}}\n",
            "a();\n".repeat(lines - 2)
        )
    }

    #[test]
    fn accepts_the_limit_and_reports_one_line_more() {
        let short = Sources::of(&[("c/src/lib.rs", &function(LONGEST))]);
        assert!(long(&short).is_empty());
        let found = long(&Sources::of(&[("c/src/lib.rs", &function(LONGEST + 1))]));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].subject.as_str(), found[0].line), ("g", 2));
    }

    #[test]
    fn leaves_tests_out() {
        let text = format!("#[cfg(test)]\nmod tests {{\n{}}}", function(150));
        assert!(long(&Sources::of(&[("c/src/lib.rs", &text)])).is_empty());
    }
}
