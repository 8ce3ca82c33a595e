//! A token reader with error messages about the expected token.

use std::ops::Range;

use crate::error::ParseError;
use crate::lexer::{SloToken, TokenKind, tokens};
use crate::nearest;

/// Maximum length of a text in bytes.
pub const LONGEST: usize = 4096;

/// Reads a text from left to right.
#[derive(Clone, Debug)]
pub struct SloReader<'a> {
    text: &'a str,
    tokens: Vec<SloToken>,
    next: usize,
}

impl<'a> SloReader<'a> {
    /// Starts at the beginning of a text of at most [`LONGEST`] bytes.
    pub fn new(text: &'a str) -> Result<Self, ParseError> {
        if text.len() > LONGEST {
            let problem = format!("{} bytes are too many; at most {LONGEST} are read", text.len());
            return Err(ParseError::new(text, 0..1, problem));
        }
        Ok(SloReader {
            text,
            tokens: tokens(text),
            next: 0,
        })
    }

    /// Returns the next token.
    pub fn peek(&self) -> &SloToken {
        // The last token is an end or a bad one, and the reader never moves past it.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    /// Returns the token after the next one.
    pub fn peek_second(&self) -> &SloToken {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)]
    }

    /// Returns the text of the next token.
    pub fn peek_text(&self) -> &'a str {
        &self.text[self.peek().place.clone()]
    }

    /// Returns the text of the token after the next one.
    pub fn peek_second_text(&self) -> &'a str {
        &self.text[self.peek_second().place.clone()]
    }

    /// Returns true if the next token is a word.
    pub fn at_word(&self) -> bool {
        self.peek().kind == TokenKind::Word
    }

    /// Returns true if the next token is this symbol.
    pub fn at_symbol(&self, symbol: &str) -> bool {
        self.peek().kind == TokenKind::Symbol && self.peek_text() == symbol
    }

    /// Returns true if the next token is this word, in any case.
    pub fn at_keyword(&self, keyword: &str) -> bool {
        self.at_word() && self.peek_text().eq_ignore_ascii_case(keyword)
    }

    /// Moves past the next token and returns its place.
    pub fn advance(&mut self) -> Range<usize> {
        let place = self.peek().place.clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        place
    }

    /// Consumes the next token if it is this symbol.
    pub fn take_symbol(&mut self, symbol: &str) -> bool {
        let there = self.at_symbol(symbol);
        if there {
            self.advance();
        }
        there
    }

    /// Consumes the next token if it is this word, in any case.
    pub fn take_keyword(&mut self, keyword: &str) -> bool {
        let there = self.at_keyword(keyword);
        if there {
            self.advance();
        }
        there
    }

    /// Consumes this symbol, which must be next. `since` is the start of the part that it belongs
    /// to.
    pub fn expect_symbol(&mut self, symbol: &str, since: usize) -> Result<(), ParseError> {
        if self.take_symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{symbol}`"), since))
        }
    }

    /// Returns the byte offset of the next token.
    pub fn at(&self) -> usize {
        self.peek().place.start
    }

    /// Returns the text from `since` to the last consumed token.
    pub fn consumed(&self, since: usize) -> &'a str {
        let end = self
            .next
            .checked_sub(1)
            .map_or(since, |last| self.tokens[last].place.end);
        self.text.get(since..end.max(since)).unwrap_or_default()
    }

    /// Returns the text at a place.
    pub fn text_of(&self, place: Range<usize>) -> &'a str {
        self.text.get(place).unwrap_or_default()
    }

    /// Returns the error about an unexpected token: "expected `expected` after `...`, found `...`",
    /// where the first `...` is the text consumed since `since`.
    pub fn unexpected(&self, expected: &str, since: usize) -> ParseError {
        if let TokenKind::Bad(problem) = &self.peek().kind {
            return self.error(self.peek().place.clone(), problem.clone());
        }
        let consumed = self.consumed(since);
        let after = if consumed.is_empty() {
            String::new()
        } else {
            format!(" after `{}`", brief(consumed))
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

    /// Creates an error at a place of the text.
    pub fn error(&self, place: Range<usize>, problem: impl Into<String>) -> ParseError {
        ParseError::new(self.text, place, problem)
    }

    /// Creates the error about an unknown name: "`kind` `name` does not exist", and the nearest
    /// one.
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

    /// Returns an error unless the whole text was consumed.
    pub fn expect_end(&self, since: usize) -> Result<(), ParseError> {
        match self.peek().kind {
            TokenKind::End => Ok(()),
            _ => Err(self.unexpected("the end", since)),
        }
    }
}

/// Shortens a piece of text for use within a sentence.
fn brief(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    match text.char_indices().nth(MAX_CHARS) {
        None => text.chars().map(plain).collect(),
        Some(_) => text.chars().take(MAX_CHARS).map(plain).chain(['…']).collect(),
    }
}
