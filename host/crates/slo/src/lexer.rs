//! The lexer: text to tokens.

use std::ops::Range;

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SloToken {
    /// The kind of the token.
    pub kind: TokenKind,
    /// Its bytes in the text.
    pub place: Range<usize>,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A letter or `_`, then letters, digits, `_`, `.` and `-`: a name, an aggregate, a unit, a
    /// bare label value.
    Word,
    /// A number without a sign: `12`, `0.5`, `.5`, `1_000`, `1e-3`.
    Number,
    /// Quoted text, its escapes resolved.
    Quoted(String),
    /// A symbol of the language, or one that is often mistaken for one (`==`, `&&`).
    Symbol,
    /// Invalid text, with the reason.
    Bad(String),
    /// The end of the text.
    End,
}

/// Longer symbols first.
const SYMBOLS: [&str; 25] = [
    "<=", ">=", "=<", "=>", "==", "!=", "&&", "||", "<", ">", "≤", "≥", "=", "(", ")", "{", "}", "[", "]",
    ",", "%", "+", "-", ":", "!",
];

/// Returns the tokens of a text; the last one is its end, or the first invalid token.
pub(crate) fn tokens(text: &str) -> Vec<SloToken> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let (kind, length) = token(&text[at..]);
        let last = matches!(kind, TokenKind::End | TokenKind::Bad(_));
        tokens.push(SloToken {
            kind,
            place: at..at + length,
        });
        if last {
            return tokens;
        }
        at += length;
    }
}

/// Returns the token at the beginning of a text, and its length.
fn token(rest: &str) -> (TokenKind, usize) {
    let Some(first) = rest.chars().next() else {
        return (TokenKind::End, 0);
    };
    if first.is_alphabetic() || first == '_' {
        let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        let length = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        return (TokenKind::Word, length);
    }
    let number = number_length(rest.as_bytes());
    if number > 0 {
        return (TokenKind::Number, number);
    }
    if first == '"' || first == '\'' {
        return quoted(rest, first);
    }
    match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
        Some(symbol) => (TokenKind::Symbol, symbol.len()),
        None => {
            let name = if first.is_control() {
                first.escape_unicode().to_string()
            } else {
                first.to_string()
            };
            let problem = format!("`{name}` has no meaning here");
            (TokenKind::Bad(problem), first.len_utf8())
        }
    }
}

/// Returns the length in bytes of the unsigned number at the beginning; 0 if there is none.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        let mut end = from;
        while let Some(byte) = bytes.get(end) {
            let between_digits =
                *byte == b'_' && end > from && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            if !byte.is_ascii_digit() && !between_digits {
                break;
            }
            end += 1;
        }
        end
    };
    let whole = digits(0);
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if fraction > end + 1 {
            end = fraction;
        }
    }
    if end > 0 && matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}

/// Returns the contents of quoted text, and its length including the quotes.
fn quoted(rest: &str, quote: char) -> (TokenKind, usize) {
    let mut quoted = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return (TokenKind::Quoted(quoted), at + 1);
        }
        if c != '\\' {
            quoted.push(c);
            continue;
        }
        match escaped(&mut chars) {
            Some(c) => quoted.push(c),
            None => {
                let problem =
                    "this escape has no meaning; there are \\\", \\', \\\\, \\n, \\r, \\t and \\u{…}";
                // The reader marks a bad token from its beginning; only the escape is invalid, so
                // the token starts there.
                return (
                    TokenKind::Bad(format!("{problem} (in the text that begins here)")),
                    at + 1,
                );
            }
        }
    }
    let problem = format!("this quote is not closed; a {quote} is missing");
    (TokenKind::Bad(problem), 1)
}

/// Returns the character of an escape; `None` if it is not an escape.
fn escaped(chars: &mut impl Iterator<Item = (usize, char)>) -> Option<char> {
    match chars.next()?.1 {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        same @ ('"' | '\'' | '\\') => Some(same),
        'u' => {
            if chars.next()?.1 != '{' {
                return None;
            }
            let mut code = 0u32;
            for digits in 0.. {
                let c = chars.next()?.1;
                if c == '}' {
                    return (digits > 0).then(|| char::from_u32(code)).flatten();
                }
                if digits == 6 {
                    return None;
                }
                code = code * 16 + c.to_digit(16)?;
            }
            None
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<&str> {
        let tokens = tokens(text);
        tokens.iter().map(|token| &text[token.place.clone()]).collect()
    }

    #[test]
    fn splits_text_into_tokens() {
        assert_eq!(
            pieces("p99.9(ttfc{a=\"b c\"})<=1_0.5e-3ms"),
            [
                "p99.9", "(", "ttfc", "{", "a", "=", "\"b c\"", "}", ")", "<=", "1_0.5e-3", "ms", ""
            ]
        );
        assert_eq!(pieces("x≤5e"), ["x", "≤", "5", "e", ""]);
        assert_eq!(pieces("1_"), ["1", "_", ""]);
        assert_eq!(pieces("1.x"), ["1", "."]);
        assert_eq!(pieces(" eu-west-1 "), ["eu-west-1", ""]);
    }

    #[test]
    fn resolves_escapes() {
        let of = |text: &str| tokens(text)[0].kind.clone();
        assert_eq!(
            of(r#""a\"\\\n\u{e9}'""#),
            TokenKind::Quoted("a\"\\\né'".to_owned())
        );
        assert_eq!(of(r"'it\'s'"), TokenKind::Quoted("it's".to_owned()));
        for invalid in [
            r#""\x""#,
            r#""\u{}""#,
            r#""\u{d800}""#,
            r#""\u{1234567}""#,
            "\"open",
            r#""\"#,
        ] {
            assert!(matches!(of(invalid), TokenKind::Bad(_)), "{invalid}");
        }
    }
}
