//! Reading tokens one after the other, and saying what was expected instead.

use std::ops::Range;

use crate::lexer::{Token, TokenKind, tokens};
use crate::{ParseError, nearest};

/// A text of more bytes is refused.
pub const LONGEST: usize = 4096;

/// Reads a text from left to right.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of a text, which may have [`LONGEST`] bytes.
    pub fn new(text: &'a str) -> Result<Self, ParseError> {
        if text.len() > LONGEST {
            let problem = format!("{} bytes are too many; at most {LONGEST} are read", text.len());
            return Err(ParseError::new(text, 0..1, problem));
        }
        Ok(Reader {
            text,
            tokens: tokens(text),
            next: 0,
        })
    }

    /// The next token.
    pub fn peek(&self) -> &Token {
        // The last token is an end or a bad one, and the reader never goes past it.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    /// The token after the next one.
    pub fn peek_second(&self) -> &Token {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)]
    }

    /// The next token as it stands in the text.
    pub fn peek_text(&self) -> &'a str {
        &self.text[self.peek().place.clone()]
    }

    /// The token after the next one as it stands in the text.
    pub fn peek_second_text(&self) -> &'a str {
        &self.text[self.peek_second().place.clone()]
    }

    /// Whether the next token is a word.
    pub fn at_word(&self) -> bool {
        self.peek().kind == TokenKind::Word
    }

    /// Whether the next token is this symbol.
    pub fn at_symbol(&self, symbol: &str) -> bool {
        self.peek().kind == TokenKind::Symbol && self.peek_text() == symbol
    }

    /// Whether the next token is this word, in whatever case.
    pub fn at_keyword(&self, keyword: &str) -> bool {
        self.at_word() && self.peek_text().eq_ignore_ascii_case(keyword)
    }

    /// Goes on to the next token and gives the place of the one passed.
    pub fn advance(&mut self) -> Range<usize> {
        let place = self.peek().place.clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        place
    }

    /// Passes the next token if it is this symbol.
    pub fn take_symbol(&mut self, symbol: &str) -> bool {
        let there = self.at_symbol(symbol);
        if there {
            self.advance();
        }
        there
    }

    /// Passes the next token if it is this word, in whatever case.
    pub fn take_keyword(&mut self, keyword: &str) -> bool {
        let there = self.at_keyword(keyword);
        if there {
            self.advance();
        }
        there
    }

    /// Passes this symbol, which must be next. `since` is where the part began that it belongs to.
    pub fn expect_symbol(&mut self, symbol: &str, since: usize) -> Result<(), ParseError> {
        if self.take_symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{symbol}`"), since))
        }
    }

    /// Where the next token begins.
    pub fn at(&self) -> usize {
        self.peek().place.start
    }

    /// What stands from `since` up to the last token passed.
    pub fn passed(&self, since: usize) -> &'a str {
        let end = self
            .next
            .checked_sub(1)
            .map_or(since, |last| self.tokens[last].place.end);
        self.text.get(since..end.max(since)).unwrap_or_default()
    }

    /// The text at a place.
    pub fn text_of(&self, place: Range<usize>) -> &'a str {
        self.text.get(place).unwrap_or_default()
    }

    /// The error that the next token is not what it should be: "expected `expected` after `...`, found `...`", where what it should come
    /// after is the text passed `since` then.
    pub fn unexpected(&self, expected: &str, since: usize) -> ParseError {
        if let TokenKind::Bad(problem) = &self.peek().kind {
            return self.error(self.peek().place.clone(), problem.clone());
        }
        let passed = self.passed(since);
        let after = if passed.is_empty() {
            String::new()
        } else {
            format!(" after `{}`", brief(passed))
        };
        let found = match self.peek().kind {
            TokenKind::End if self.text.trim().is_empty() => ", found nothing".to_owned(),
            TokenKind::End => ", found the end".to_owned(),
            _ => format!(", found `{}`", brief(self.peek_text())),
        };
        self.error(
            self.peek().place.clone(),
            format!("expected {expected}{after}{found}"),
        )
    }

    /// A problem with a place of the text.
    pub fn error(&self, place: Range<usize>, problem: impl Into<String>) -> ParseError {
        ParseError::new(self.text, place, problem)
    }

    /// The error that a name is none of those there are: "`kind` `name` does not exist", and the nearest one.
    pub fn unknown<'n>(
        &self,
        place: Range<usize>,
        what: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> ParseError {
        let name = self.text_of(place.clone());
        let hint = nearest(name, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        self.error(place, format!("there is no {what} `{}`{hint}", brief(name)))
    }

    /// An error unless the whole text was read.
    pub fn expect_end(&self, since: usize) -> Result<(), ParseError> {
        match self.peek().kind {
            TokenKind::End => Ok(()),
            _ => Err(self.unexpected("the end", since)),
        }
    }
}

/// A piece of text, short enough to stand within a sentence.
fn brief(text: &str) -> String {
    const MOST: usize = 60;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    match text.char_indices().nth(MOST) {
        None => text.chars().map(plain).collect(),
        Some(_) => text.chars().take(MOST).map(plain).chain(['…']).collect(),
    }
}
