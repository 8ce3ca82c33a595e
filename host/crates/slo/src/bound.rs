//! Comparisons, and numbers with their units.

use crate::decimal::decimal;
use crate::lexer::TokenKind;
use crate::{Bound, BoundUnit, Comparison, ParseError, Reader};

/// A bound, and the sign that was written before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrittenBound {
    /// The bound, sign included.
    pub bound: Bound,
    /// `+` or `-`, if one was written.
    pub sign: Option<char>,
}

/// A number as it was read.
pub(crate) struct Written {
    pub(crate) value: f64,
    pub(crate) unit: BoundUnit,
    pub(crate) sign: Option<char>,
}

/// Powers of ten of the units of time, and how often they hold a second's multiple.
const TIMES: [(&str, i64, f64); 8] = [
    ("ns", -9, 1.0),
    ("us", -6, 1.0),
    ("µs", -6, 1.0),
    // The Greek letter, which looks the same as the sign before it.
    ("μs", -6, 1.0),
    ("ms", -3, 1.0),
    ("s", 0, 1.0),
    ("m", 0, 60.0),
    ("h", 0, 3600.0),
];

/// What people also call the units.
const UNITS_ALSO_CALLED: [(&str, &str); 17] = [
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

impl Reader<'_> {
    /// A comparison. `since` is where what is compared began.
    pub fn comparison(&mut self, since: usize) -> Result<Comparison, ParseError> {
        let wrong = |reader: &Self, hint: &str| {
            let problem = format!("`{}` is no comparison; {hint}", reader.peek_text());
            Err(reader.error(reader.peek().place.clone(), problem))
        };
        if self.peek().kind != TokenKind::Symbol {
            return Err(self.unexpected(COMPARISONS, since));
        }
        let comparison = match self.peek_text() {
            "<" => Comparison::Below,
            "<=" | "≤" => Comparison::AtMost,
            ">" => Comparison::Above,
            ">=" | "≥" => Comparison::AtLeast,
            "=<" => return wrong(self, "did you mean `<=`?"),
            "=>" => return wrong(self, "did you mean `>=`?"),
            "=" | "==" | "!=" => {
                return wrong(self, "what is measured is never exactly a number: use <= or >=");
            }
            _ => return Err(self.unexpected(COMPARISONS, since)),
        };
        self.advance();
        Ok(comparison)
    }

    /// A number with or without a sign and a unit. `since` is where the part began that it belongs to.
    pub fn bound(&mut self, since: usize) -> Result<WrittenBound, ParseError> {
        let Written { value, unit, sign } = self.written(since, 0)?;
        Ok(WrittenBound {
            bound: Bound { value, unit },
            sign,
        })
    }

    /// A number with its sign and unit, times ten to the power of `scale` beyond what its unit says.
    pub(crate) fn written(&mut self, since: usize, scale: i64) -> Result<Written, ParseError> {
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
                let place = begin..begin + self.passed(begin).len();
                self.error(place, "this number is beyond what can be measured")
            })?;
        let value = if sign == Some('-') { -size } else { size };
        Ok(Written { value, unit, sign })
    }

    /// The unit that stands next, with the power of ten and the factor that bring it to seconds or to a share.
    fn unit(&mut self) -> Result<(BoundUnit, i64, f64), ParseError> {
        if self.take_symbol("%") {
            return Ok((BoundUnit::Percent, -2, 1.0));
        }
        // In languages made of several bounds these words join them.
        if !self.at_word() || self.at_keyword("and") || self.at_keyword("or") {
            return Ok((BoundUnit::None, 0, 1.0));
        }
        let word = self.peek_text();
        if let Some((_, shift, factor)) = TIMES.iter().find(|(name, ..)| *name == word) {
            self.advance();
            return Ok((BoundUnit::Time, *shift, *factor));
        }
        let lower = word.to_lowercase();
        let meant = UNITS_ALSO_CALLED
            .iter()
            .find(|(also, _)| *also == lower)
            .map(|(_, name)| *name)
            .or_else(|| TIMES.iter().map(|(name, ..)| *name).find(|name| *name == lower));
        let hint = meant.map_or_else(
            || "there are ns, us, ms, s, m, h and %; another unit is left out".to_owned(),
            |name| format!("did you mean `{name}`?"),
        );
        let problem = format!("there is no unit `{word}`; {hint}");
        Err(self.error(self.peek().place.clone(), problem))
    }
}
