//! Comparisons, and numbers with their units.

use crate::decimal::decimal;
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::objective::{BoundUnit, ComparisonOperator, SloBound};
use crate::reader::SloReader;

/// A bound, and its explicit sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrittenBound {
    /// The bound, sign included.
    pub bound: SloBound,
    /// `+` or `-`, if present.
    pub sign: Option<char>,
}

/// A number as it was read.
pub(crate) struct ParsedNumber {
    pub(crate) value: f64,
    pub(crate) unit: BoundUnit,
    pub(crate) sign: Option<char>,
}

/// Units of time with their power of ten and factor relative to a second.
const TIMES: [(&str, i64, f64); 8] = [
    ("ns", -9, 1.0),
    ("us", -6, 1.0),
    ("µs", -6, 1.0),
    // The Greek letter, which looks the same as the micro sign of the entry before.
    ("μs", -6, 1.0),
    ("ms", -3, 1.0),
    ("s", 0, 1.0),
    ("m", 0, 60.0),
    ("h", 0, 3600.0),
];

/// Aliases of the units.
const UNIT_ALIASES: [(&str, &str); 17] = [
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("millis", "ms"),
    ("milliseconds", "ms"),
    ("usec", "us"),
    ("microseconds", "us"),
    ("nanoseconds", "ns"),
    ("min", "m"),
    ("mins", "m"),
    ("minutes", "m"),
    ("hr", "h"),
    ("hours", "h"),
    ("percent", "%"),
    ("pct", "%"),
];

const COMPARISONS: &str = "a comparison (<, <=, >, >=)";

impl SloReader<'_> {
    /// Reads a comparison. `since` is the start of the compared quantity.
    pub fn comparison(&mut self, since: usize) -> Result<ComparisonOperator, ParseError> {
        let invalid = |reader: &Self, hint: &str| {
            let problem = format!("`{}` is not a comparison; {hint}", reader.peek_text());
            Err(reader.error(reader.peek().place.clone(), problem))
        };
        if self.peek().kind != TokenKind::Symbol {
            return Err(self.unexpected(COMPARISONS, since));
        }
        let comparison = match self.peek_text() {
            "<" => ComparisonOperator::Below,
            "<=" | "≤" => ComparisonOperator::AtMost,
            ">" => ComparisonOperator::Above,
            ">=" | "≥" => ComparisonOperator::AtLeast,
            "=<" => return invalid(self, "did you mean `<=`?"),
            "=>" => return invalid(self, "did you mean `>=`?"),
            "=" | "==" | "!=" => {
                return invalid(self, "measured values are never exactly equal: use <= or >=");
            }
            _ => return Err(self.unexpected(COMPARISONS, since)),
        };
        self.advance();
        Ok(comparison)
    }

    /// Reads a number with an optional sign and unit. `since` is the start of the part that it
    /// belongs to.
    pub fn bound(&mut self, since: usize) -> Result<WrittenBound, ParseError> {
        let ParsedNumber { value, unit, sign } = self.number(since, 0)?;
        Ok(WrittenBound {
            bound: SloBound { value, unit },
            sign,
        })
    }

    /// Reads a number with its sign and unit, times ten to the power of `scale` in addition to its
    /// unit.
    pub(crate) fn number(&mut self, since: usize, scale: i64) -> Result<ParsedNumber, ParseError> {
        let begin = self.at();
        let sign = ['+', '-']
            .into_iter()
            .find(|sign| self.take_symbol(sign.encode_utf8(&mut [0; 4])));
        if self.peek().kind != TokenKind::Number {
            return Err(self.unexpected("a number", since));
        }
        let digits = self.text_of(self.peek().place.clone());
        self.advance();
        let (unit, shift, factor) = self.unit()?;
        let size = decimal(digits, shift + scale)
            .map(|size| size * factor)
            .filter(|size| size.is_finite())
            .ok_or_else(|| {
                let place = begin..begin + self.consumed(begin).len();
                self.error(place, "this number is out of range")
            })?;
        let value = if sign == Some('-') { -size } else { size };
        Ok(ParsedNumber { value, unit, sign })
    }

    /// Reads an optional unit; returns it with the power of ten and the factor that convert it to
    /// seconds or to a share.
    fn unit(&mut self) -> Result<(BoundUnit, i64, f64), ParseError> {
        if self.take_symbol("%") {
            return Ok((BoundUnit::Percent, -2, 1.0));
        }
        // These words join bounds in languages that combine several.
        if !self.at_word() || self.at_keyword("and") || self.at_keyword("or") {
            return Ok((BoundUnit::None, 0, 1.0));
        }
        let word = self.peek_text();
        if let Some((_, shift, factor)) = TIMES.iter().find(|(name, ..)| *name == word) {
            self.advance();
            return Ok((BoundUnit::Time, *shift, *factor));
        }
        let lower = word.to_lowercase();
        let meant = UNIT_ALIASES
            .iter()
            .find(|(also, _)| *also == lower)
            .map(|(_, name)| *name)
            .or_else(|| TIMES.iter().map(|(name, ..)| *name).find(|name| *name == lower));
        let hint = meant.map_or_else(
            || "valid units are ns, us, ms, s, m, h and %; omit other units".to_owned(),
            |name| format!("did you mean `{name}`?"),
        );
        let problem = format!("unknown unit `{word}`; {hint}");
        Err(self.error(self.peek().place.clone(), problem))
    }
}
