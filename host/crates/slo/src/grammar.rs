//! The grammar of objectives, part by part.

use std::ops::Range;
use std::time::Duration;

use crate::bound::ParsedNumber;
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::objective::{Aggregate, BoundUnit, Objective, Quantity};
use crate::reader::SloReader;

/// Words that may precede a parenthesis.
const AGGREGATES: [&str; 11] = [
    "p50", "p90", "p95", "p99", "median", "mean", "avg", "min", "max", "std", "sum",
];

/// Aliases of the aggregates.
const AGGREGATE_ALIASES: [(&str, &str); 16] = [
    ("average", "mean"),
    ("stddev", "std"),
    ("stdev", "std"),
    ("sd", "std"),
    ("maximum", "max"),
    ("minimum", "min"),
    ("total", "sum"),
    ("len", "count"),
    ("n", "count"),
    ("percentile", "p99"),
    ("quantile", "p99"),
    ("pct", "p99"),
    ("perc", "p99"),
    ("p", "p99"),
    ("worst", "max"),
    ("best", "min"),
];

/// 2400 hours: every shorter time in whole nanoseconds is exact as a double.
const LONGEST_WINDOW: Duration = Duration::from_hours(2400);

impl Objective {
    /// Reads an objective, such as `p99(ttfc{tier="gold"}, window = 10s) <= 500ms`. It has no name.
    pub fn parse(text: &str) -> Result<Objective, ParseError> {
        let mut reader = SloReader::new(text)?;
        let quantity = reader.quantity()?;
        reader.objective_of(quantity)
    }
}

impl SloReader<'_> {
    /// Reads the rest of an objective on this quantity, to the end of the text.
    pub(crate) fn objective_of(&mut self, quantity: Quantity) -> Result<Objective, ParseError> {
        let comparison = self.comparison(0)?;
        let number = self.bound(0)?;
        if self.at_keyword("and") || self.at_keyword("or") || self.at_symbol("&&") || self.at_symbol(",") {
            let place = self.peek().place.clone();
            return Err(self.error(
                place,
                "the objective ends here; give the rest as a separate objective",
            ));
        }
        self.expect_end(0)?;
        Ok(Objective {
            name: None,
            quantity,
            comparison,
            bound: number.bound,
        })
    }

    /// Reads the name of a run metric, or an aggregate of a metric's samples.
    pub fn quantity(&mut self) -> Result<Quantity, ParseError> {
        let since = self.at();
        if !self.at_word() {
            let hint = match self.peek().kind {
                TokenKind::Number => {
                    "a metric or an aggregate such as p99(ttfc), with the bound on the right"
                }
                _ => "a run metric or an aggregate such as p99(ttfc)",
            };
            return Err(self.unexpected(hint, since));
        }
        let word = self.advance();
        if self.at_symbol("(") {
            let aggregate = self.aggregate_named(word)?;
            return self.samples(aggregate, since);
        }
        if self.at_symbol("{") {
            let problem =
                "a metric of the whole run cannot have labels; the samples of a metric can: p99(METRIC{…})";
            return Err(self.error(self.peek().place.clone(), problem));
        }
        let name = self.text_of(word.clone());
        if self.aggregate_named(word.clone()).is_ok() {
            return Err(self.unexpected(&format!("`(` and a metric, as in {name}(ttfc),"), since));
        }
        Ok(Quantity::RunMetric(self.name_at(word)?))
    }

    /// Reads the rest of an aggregate: `(METRIC [labels] [, window = time])`.
    fn samples(&mut self, aggregate: Aggregate, since: usize) -> Result<Quantity, ParseError> {
        self.expect_symbol("(", since)?;
        let metric = self.metric(since)?;
        let filter = self.labels()?;
        let window = self.window(since)?;
        if !self.at_symbol(")") {
            let expected = match (filter.is_empty(), window) {
                (true, None) => "`)`, `{` or `, window =`",
                (false, None) => "`)` or `, window =`",
                _ => "`)`",
            };
            return Err(self.unexpected(expected, since));
        }
        self.advance();
        if self.at_symbol("{") {
            let problem = format!("labels follow the metric's name: ({metric}{{…}})");
            return Err(self.error(self.peek().place.clone(), problem));
        }
        Ok(Quantity::Samples {
            aggregate,
            metric,
            filter,
            window,
        })
    }

    /// Reads a metric's name.
    pub fn metric(&mut self, since: usize) -> Result<String, ParseError> {
        if !self.at_word() {
            return Err(self.unexpected("a metric's name", since));
        }
        let place = self.advance();
        self.name_at(place)
    }

    /// Returns the name of a metric at a place.
    fn name_at(&self, place: Range<usize>) -> Result<String, ParseError> {
        let name = self.text_of(place.clone());
        if name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Ok(name.to_owned());
        }
        let plain = name.replace(['-', '.'], "_");
        let hint = if plain.is_ascii() {
            format!("; did you mean `{plain}`?")
        } else {
            String::new()
        };
        Err(self.error(
            place,
            format!("a name consists of letters a to z, digits and `_`{hint}"),
        ))
    }

    /// Returns the aggregate whose name is at a place.
    pub(crate) fn aggregate_named(&self, place: Range<usize>) -> Result<Aggregate, ParseError> {
        let word = self.text_of(place.clone()).to_lowercase();
        match word.as_str() {
            "median" => return Ok(Aggregate::Percentile(50.0)),
            "mean" | "avg" => return Ok(Aggregate::Mean),
            "min" => return Ok(Aggregate::Min),
            "max" => return Ok(Aggregate::Max),
            "std" => return Ok(Aggregate::Std),
            "sum" => return Ok(Aggregate::Sum),
            "count" => return Ok(Aggregate::Count),
            _ => {}
        }
        let digits = word.strip_prefix('p').unwrap_or_default();
        let numeric = digits.starts_with(|c: char| c.is_ascii_digit());
        if numeric && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return match digits.parse::<f64>() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Aggregate::Percentile(percent)),
                _ => Err(self.error(place, "a percentile must be between p0 and p100")),
            };
        }
        let leading = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let meant = AGGREGATE_ALIASES
            .iter()
            .find(|(also, _)| *also == word)
            .map(|(_, name)| (*name).to_owned())
            .or_else(|| numeric.then(|| format!("p{}", &digits[..leading.min(2)])))
            .or_else(|| crate::nearest(&word, AGGREGATES.into_iter().chain(["count"])).map(str::to_owned));
        let hint = meant.map_or_else(
            || "; valid aggregates are p50, p99.9, median, mean, min, max, std, sum and count".to_owned(),
            |name| format!("; did you mean `{name}`?"),
        );
        let name = self.text_of(place.clone());
        Err(self.error(place, format!("unknown aggregate `{name}`{hint}")))
    }

    /// Reads labels in braces, sorted by name; empty if there are no braces.
    pub fn labels(&mut self) -> Result<Vec<(String, String)>, ParseError> {
        let since = self.at();
        let mut labels: Vec<(String, String)> = Vec::new();
        if !self.take_symbol("{") {
            return Ok(labels);
        }
        while !self.take_symbol("}") {
            let place = self.peek().place.clone();
            let name = self.label_text("a label's name", since)?;
            if !self.at_symbol("=") {
                return Err(self.unexpected("`=`", since));
            }
            self.advance();
            let value = self.label_text("a label's value", since)?;
            if labels.iter().any(|(other, _)| *other == name) {
                return Err(self.error(place, format!("duplicate label `{name}`")));
            }
            labels.push((name, value));
            if !self.at_symbol("}") && !self.take_symbol(",") {
                let bare = matches!(self.peek().kind, TokenKind::Word | TokenKind::Number);
                let hint = if bare {
                    " (quote a value of several words)"
                } else {
                    ""
                };
                return Err(self.unexpected(&format!("`,` or `}}`{hint}"), since));
            }
        }
        labels.sort();
        Ok(labels)
    }

    fn label_text(&mut self, what: &str, since: usize) -> Result<String, ParseError> {
        let quoted = match &self.peek().kind {
            TokenKind::Quoted(quoted) => quoted.clone(),
            TokenKind::Word | TokenKind::Number => self.peek_text().to_owned(),
            _ => return Err(self.unexpected(what, since)),
        };
        self.advance();
        Ok(quoted)
    }

    /// Reads an optional `, window = time`.
    fn window(&mut self, since: usize) -> Result<Option<Duration>, ParseError> {
        if !self.take_symbol(",") {
            return Ok(None);
        }
        if !self.at_keyword("window") {
            return Err(self.unexpected("`window = 10s`", since));
        }
        self.advance();
        self.expect_symbol("=", since)?;
        let begin = self.at();
        let ParsedNumber { value, unit, .. } = self.number(since, 9)?;
        let place = begin..begin + self.consumed(begin).len();
        if unit != BoundUnit::Time {
            return Err(self.error(place, "a window must be a time with a unit, such as 10s"));
        }
        let nanos = value.round();
        if nanos < 1.0 {
            return Err(self.error(place, "a window must be longer than 0"));
        }
        if nanos > LONGEST_WINDOW.as_nanos() as f64 {
            return Err(self.error(place, "a window must be at most 2400h"));
        }
        Ok(Some(Duration::from_nanos(nanos as u64)))
    }
}
