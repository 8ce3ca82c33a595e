//! Conditions on the result of a test: `PATH OPERATOR VALUE`.

use serde_json::Value;

use super::lookup::{ValuePath, shown};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueComparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
}

/// The comparisons by their signs. Signs that begin with another one come first.
const COMPARISONS: [(&str, ValueComparison); 7] = [
    ("==", ValueComparison::Equal),
    ("!=", ValueComparison::NotEqual),
    ("<=", ValueComparison::AtMost),
    (">=", ValueComparison::AtLeast),
    ("<", ValueComparison::Less),
    (">", ValueComparison::Greater),
    ("contains", ValueComparison::Contains),
];

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResultCondition {
    path: ValuePath,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Is(ValueComparison, Value),
    Exists,
    Absent,
}

impl ResultCondition {
    /// Reads a condition.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (path, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let path = ValuePath::parse(path)?;
        let rest = rest.trim();
        let test = match rest {
            "exists" => Test::Exists,
            "is absent" => Test::Absent,
            _ => {
                let found = COMPARISONS
                    .into_iter()
                    .find_map(|(sign, comparison)| Some((comparison, rest.strip_prefix(sign)?.trim())));
                let (comparison, value) = found.ok_or_else(|| {
                    format!(
                        "`{text}`: expected ==, !=, <, <=, >, >=, `contains`, `exists` or `is absent` after the path"
                    )
                })?;
                Test::Is(
                    comparison,
                    literal(value).map_err(|why| format!("`{text}`: {why}"))?,
                )
            }
        };
        Ok(ResultCondition { path, test })
    }

    /// Returns the reason why a result does not meet the condition, if it does not.
    pub(crate) fn unmet(&self, result: &Value) -> Option<String> {
        let found = self.path.find(result);
        let path = self.path.text();
        match (&self.test, found) {
            (Test::Absent, None) | (Test::Exists, Some(_)) => None,
            (Test::Absent, Some(value)) => {
                Some(format!("`{path}` is {}, expected to be absent", shown(&value)))
            }
            (Test::Exists | Test::Is(..), None) => {
                Some(format!("`{path}` does not exist: {}", self.path.dead_end(result)))
            }
            (Test::Is(comparison, expected), Some(value)) => {
                (!holds(*comparison, &value, expected)).then(|| {
                    let sign = COMPARISONS.iter().find(|(_, known)| known == comparison);
                    let sign = sign.map_or("", |(sign, _)| sign);
                    format!(
                        "`{path}` is {}, expected {sign} {}",
                        shown(&value),
                        shown(expected)
                    )
                })
            }
        }
    }
}

/// Reads a JSON value; a text may also be in single quotes.
fn literal(text: &str) -> Result<Value, String> {
    if let Some(text) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return Ok(Value::String(text.to_owned()));
    }
    serde_json::from_str(text).map_err(|_| {
        format!("`{text}` is not a value: numbers, true, false, null, lists and texts in quotes are")
    })
}

fn holds(comparison: ValueComparison, value: &Value, expected: &Value) -> bool {
    let ordered = |holds: fn(std::cmp::Ordering) -> bool| {
        let numbers = value.as_f64().zip(expected.as_f64());
        numbers
            .and_then(|(value, expected)| value.partial_cmp(&expected))
            .is_some_and(holds)
    };
    match comparison {
        ValueComparison::Equal => equal(value, expected),
        ValueComparison::NotEqual => !equal(value, expected),
        ValueComparison::Less => ordered(std::cmp::Ordering::is_lt),
        ValueComparison::AtMost => ordered(std::cmp::Ordering::is_le),
        ValueComparison::Greater => ordered(std::cmp::Ordering::is_gt),
        ValueComparison::AtLeast => ordered(std::cmp::Ordering::is_ge),
        ValueComparison::Contains => match (value, expected) {
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            (Value::Array(items), expected) => items.iter().any(|item| equal(item, expected)),
            _ => false,
        },
    }
}

/// Compares values; 1 and 1.0 are equal.
fn equal(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        _ => value == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unmet(condition: &str) -> Option<String> {
        let result = json!({"count": 3, "name": "gold tier", "list": [1, 2.0], "nothing": null});
        ResultCondition::parse(condition).unwrap().unmet(&result)
    }

    #[test]
    fn conditions_hold() {
        for holds in [
            "count == 3",
            "count == 3.0",
            "count != 4",
            "count<= 3",
            "count > 2.5",
            "name contains 'tier'",
            "name == \"gold tier\"",
            "list contains 2",
            "list == [1.0, 2]",
            "nothing == null",
            "nothing exists",
            "other is absent",
        ]
        .map(|condition| condition.replace("count<=", "count <="))
        {
            assert_eq!(unmet(&holds), None, "{holds}");
        }
    }

    #[test]
    fn a_condition_that_does_not_hold_names_both_values() {
        assert_eq!(unmet("count == 4").unwrap(), "`count` is 3, expected == 4");
        assert_eq!(
            unmet("name < 4").unwrap(),
            "`name` is \"gold tier\", expected < 4"
        );
        assert_eq!(
            unmet("count is absent").unwrap(),
            "`count` is 3, expected to be absent"
        );
        assert_eq!(
            unmet("nam == 4").unwrap(),
            "`nam` does not exist: the result has no `nam`: did you mean `name`?"
        );
    }

    #[test]
    fn refuses_what_is_not_a_condition() {
        for wrong in ["count", "count = 3", "count == gold", "== 3", "count equals 3"] {
            assert!(ResultCondition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
