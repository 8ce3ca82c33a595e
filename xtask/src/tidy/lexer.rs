//! A lexer for Rust that is exact about comments and literals and coarse about the rest.
//!
//! A full parser would be a dependency, and would hide comments and the bodies of macros.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier or keyword; raw identifiers lose their `r#`.
    Ident,
    /// One character of punctuation, or `::` as one token.
    Punct,
    /// A string literal, with its contents as text.
    Text,
    /// A line comment or one line of a block comment, with its marker.
    Comment,
    /// A number, character or lifetime.
    Other,
}

/// A token with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// One-based line on which the token begins.
    pub(super) line: usize,
}

impl Token<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Ident | Kind::Punct) && self.text == text
    }
}

/// Splits `text` into tokens.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        found: Vec::new(),
    };
    while lexer.at < text.len() {
        lexer.step();
    }
    lexer.found
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    found: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Adds the next `length` bytes as a token, of which `inner` is the text.
    fn push(&mut self, kind: Kind, length: usize, inner: &'a str) {
        let whole = self.rest().get(..length).unwrap_or(self.rest());
        self.found.push(Token {
            kind,
            text: inner,
            line: self.line,
        });
        self.line += whole.matches('\n').count();
        self.at += whole.len();
    }

    fn step(&mut self) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return;
        };
        if first.is_whitespace() {
            self.line += usize::from(first == '\n');
            self.at += first.len_utf8();
        } else if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let comment = rest.get(..length).unwrap_or_default();
            self.push(Kind::Comment, length, comment);
        } else if rest.starts_with("/*") {
            self.block_comment();
        } else if let Some((start, length, end)) = string(rest) {
            let inner = rest.get(start..length - end).unwrap_or_default();
            self.push(Kind::Text, length, inner);
        } else if first == '\'' {
            let length = quoted(rest);
            self.push(Kind::Other, length, rest.get(..length).unwrap_or_default());
        } else if first.is_alphabetic() || first == '_' {
            let raw = if rest.starts_with("r#") { 2 } else { 0 };
            let name = rest.get(raw..).unwrap_or_default();
            let length = word(name);
            self.push(Kind::Ident, raw + length, name.get(..length).unwrap_or_default());
        } else if first.is_ascii_digit() {
            let length = word(rest);
            self.push(Kind::Other, length, rest.get(..length).unwrap_or_default());
        } else {
            let length = if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            self.push(Kind::Punct, length, rest.get(..length).unwrap_or_default());
        }
    }

    /// A block comment, which nests, as one token a line.
    fn block_comment(&mut self) {
        let rest = self.rest();
        let mut depth = 0_usize;
        let mut length = 0;
        while length < rest.len() {
            let here = rest.get(length..).unwrap_or_default();
            if here.starts_with("/*") {
                depth += 1;
                length += 2;
            } else if here.starts_with("*/") {
                depth -= 1;
                length += 2;
                if depth == 0 {
                    break;
                }
            } else {
                length += here.chars().next().map_or(1, char::len_utf8);
            }
        }
        let whole = rest.get(..length).unwrap_or_default();
        for line in whole.split_inclusive('\n') {
            self.push(Kind::Comment, line.len(), line.trim_end());
        }
    }
}

/// Length of the identifier or number at the start.
fn word(text: &str) -> usize {
    text.find(|character: char| !(character.is_alphanumeric() || character == '_'))
        .unwrap_or(text.len())
}

/// Start of the contents, length of the literal, and length of its end if a literal begins here.
fn string(rest: &str) -> Option<(usize, usize, usize)> {
    let unprefixed = rest.trim_start_matches(['b', 'c', 'r']);
    let quoted = unprefixed.trim_start_matches('#');
    let letters = rest.get(..rest.len() - unprefixed.len())?;
    let hashes = unprefixed.len() - quoted.len();
    if !["", "b", "c", "r", "br", "cr"].contains(&letters)
        || (hashes > 0 && !letters.ends_with('r'))
        || !quoted.starts_with('"')
    {
        return None;
    }
    let start = letters.len() + hashes + 1;
    let body = rest.get(start..)?;
    if letters.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        let length = body.find(&end)?;
        return Some((start, start + length + end.len(), end.len()));
    }
    let mut escaped = false;
    for (at, character) in body.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((start, start + at + 1, 1)),
            _ => {}
        }
    }
    None
}

/// Length of the character literal or lifetime at the start.
fn quoted(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some(_)) => rest
            .get(3..)
            .and_then(|tail| tail.find('\''))
            .map_or(rest.len(), |end| end + 4),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1 + rest.get(1..).map_or(0, word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str, usize)> {
        tokens(text)
            .into_iter()
            .map(|token| (token.kind, token.text, token.line))
            .collect()
    }

    #[test]
    fn separates_comments_strings_and_code() {
        assert_eq!(
            kinds("let a = \"x // \\\" y\"; // z\n/* b\n c */ d::e"),
            [
                (Kind::Ident, "let", 1),
                (Kind::Ident, "a", 1),
                (Kind::Punct, "=", 1),
                (Kind::Text, "x // \\\" y", 1),
                (Kind::Punct, ";", 1),
                (Kind::Comment, "// z", 1),
                (Kind::Comment, "/* b", 2),
                (Kind::Comment, " c */", 3),
                (Kind::Ident, "d", 3),
                (Kind::Punct, "::", 3),
                (Kind::Ident, "e", 3),
            ]
        );
    }

    #[test]
    fn reads_raw_strings_characters_and_lifetimes() {
        assert_eq!(
            kinds("r#\"a\"b\"# '\"' '\\'' '\\u{1F}' 'a b\"c\" r#type"),
            [
                (Kind::Text, "a\"b", 1),
                (Kind::Other, "'\"'", 1),
                (Kind::Other, "'\\''", 1),
                (Kind::Other, "'\\u{1F}'", 1),
                (Kind::Other, "'a", 1),
                (Kind::Text, "c", 1),
                (Kind::Ident, "type", 1),
            ]
        );
    }
}
