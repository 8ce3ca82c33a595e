//! Minimal Luau tokenizer: sufficient to find table constructors and the lines of their keys.

/// A token of Luau.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LuaToken {
    /// A name or a keyword.
    Name(String),
    /// A string literal; `None` for one with escapes or interpolation.
    Text(Option<String>),
    /// A number.
    Number,
    /// Any other character. Operators of several characters are several tokens.
    Symbol(char),
}

/// A token and the line it begins on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedToken {
    pub(crate) token: LuaToken,
    pub(crate) line: u32,
}

impl PlacedToken {
    pub(crate) fn is(&self, symbol: char) -> bool {
        self.token == LuaToken::Symbol(symbol)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match &self.token {
            LuaToken::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// Returns all tokens of a source without comments and white space. Unclosed literals end with the
/// text.
pub(crate) fn tokenize(source: &str) -> Vec<PlacedToken> {
    let mut scanner = Scanner {
        bytes: source.as_bytes(),
        source,
        at: 0,
        line: 1,
        nesting: 0,
    };
    let mut tokens = Vec::new();
    while let Some(token) = scanner.next() {
        tokens.push(token);
    }
    tokens
}

/// Maximum nesting depth of interpolated strings.
const MAX_NESTING: usize = 16;

struct Scanner<'a> {
    bytes: &'a [u8],
    source: &'a str,
    at: usize,
    line: u32,
    nesting: usize,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips `count` bytes, counting lines.
    fn pass(&mut self, count: usize) {
        let end = (self.at + count).min(self.bytes.len());
        self.line += self.bytes[self.at..end]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count() as u32;
        self.at = end;
    }

    fn pass_while(&mut self, accept: impl Fn(u8) -> bool) -> usize {
        let from = self.at;
        while self.at < self.bytes.len() && accept(self.bytes[self.at]) {
            self.pass(1);
        }
        from
    }

    fn next(&mut self) -> Option<PlacedToken> {
        loop {
            self.pass_while(|byte| byte.is_ascii_whitespace());
            if self.peek(0) != b'-' || self.peek(1) != b'-' {
                break;
            }
            self.pass(2);
            if self.long_bracket().is_none() {
                self.pass_while(|byte| byte != b'\n');
            }
        }
        if self.at >= self.bytes.len() {
            return None;
        }
        let line = self.line;
        let token = self.token();
        Some(PlacedToken { token, line })
    }

    fn token(&mut self) -> LuaToken {
        match self.peek(0) {
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let from = self.pass_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                LuaToken::Name(self.source[from..self.at].to_owned())
            }
            byte if byte.is_ascii_digit() => {
                self.pass_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.');
                LuaToken::Number
            }
            quote @ (b'"' | b'\'') => self.quoted(quote),
            b'`' if self.nesting < MAX_NESTING => {
                self.nesting += 1;
                self.interpolated();
                self.nesting -= 1;
                LuaToken::Text(None)
            }
            b'[' => match self.long_bracket() {
                Some(text) => LuaToken::Text(Some(text)),
                None => self.symbol(),
            },
            _ => self.symbol(),
        }
    }

    fn symbol(&mut self) -> LuaToken {
        // An escape may end inside a character; the rest of the character is not a relevant token.
        let rest = self.source.get(self.at..);
        let symbol = rest.and_then(|rest| rest.chars().next()).unwrap_or(' ');
        self.pass(symbol.len_utf8());
        LuaToken::Symbol(symbol)
    }

    fn quoted(&mut self, quote: u8) -> LuaToken {
        self.pass(1);
        let from = self.at;
        let mut plain = true;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => {
                    plain = false;
                    self.pass(2);
                }
                b'\n' => break,
                byte if byte == quote => {
                    let text = self.source.get(from..self.at).map(str::to_owned);
                    self.pass(1);
                    return LuaToken::Text(text.filter(|_| plain));
                }
                _ => self.pass(1),
            }
        }
        LuaToken::Text(None)
    }

    /// Reads `[[ ... ]]` or `[=[ ... ]=]` and returns its text, if one begins here.
    fn long_bracket(&mut self) -> Option<String> {
        if self.peek(0) != b'[' {
            return None;
        }
        let level = self.bytes[self.at + 1..]
            .iter()
            .take_while(|byte| **byte == b'=')
            .count();
        if self.peek(level + 1) != b'[' {
            return None;
        }
        self.pass(level + 2);
        let close = format!("]{}]", "=".repeat(level));
        let rest = &self.source[self.at..];
        let length = rest.find(&close).unwrap_or(rest.len());
        let text = rest[..length].trim_start_matches('\r');
        let text = text.strip_prefix('\n').unwrap_or(text).to_owned();
        self.pass(length + close.len());
        Some(text)
    }

    /// Skips a string in backquotes, with the expressions in it.
    fn interpolated(&mut self) {
        self.pass(1);
        let mut braces = 0usize;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.pass(2),
                b'{' => {
                    braces += 1;
                    self.pass(1);
                }
                b'}' => {
                    braces = braces.saturating_sub(1);
                    self.pass(1);
                }
                b'`' if braces == 0 => {
                    self.pass(1);
                    return;
                }
                // An expression contains tokens, including strings. An unclosed one is bounded by
                // the text: each call skips at least one byte.
                _ if braces > 0 => {
                    self.token();
                }
                _ => self.pass(1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<(String, u32)> {
        let tokens = tokenize(source).into_iter();
        tokens
            .filter_map(|placed| placed.name().map(|name| (name.to_owned(), placed.line)))
            .collect()
    }

    #[test]
    fn strings_and_comments_hide_what_is_in_them() {
        let source = "a -- b { \n--[[ c\n d ]] e = \"f -- g\" .. 'h\\'i' --[==[ j ]] k ]==] l\n[[m\nn]] o `p {q(\"r`\")} s` t";
        let found: Vec<_> = names(source);
        let expected = [("a", 1), ("e", 3), ("l", 3), ("o", 5), ("t", 5)];
        assert_eq!(found, expected.map(|(name, line)| (name.to_owned(), line)));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_tokens(text in "[a{}\\[\\]=`\"'\\\\\\-é\n, 1]{0,60}") {
            tokenize(&text);
        }
    }

    #[test]
    fn strings_within_strings_end() {
        tokenize(&"`{".repeat(100_000));
    }

    #[test]
    fn text_is_kept_only_where_it_is_certain() {
        let texts: Vec<_> = tokenize("\"a\" 'b' \"c\\n\" [=[d]=] `e`")
            .into_iter()
            .map(|placed| placed.token)
            .collect();
        let text = |s: &str| LuaToken::Text(Some(s.to_owned()));
        assert_eq!(
            texts,
            [
                text("a"),
                text("b"),
                LuaToken::Text(None),
                text("d"),
                LuaToken::Text(None)
            ]
        );
    }
}
