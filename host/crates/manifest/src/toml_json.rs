//! TOML as JSON, for files whose form a schema describes.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::ManifestError;
use crate::toml_reader::parse_document;

/// Reads a TOML document as a JSON object. Dates become texts.
///
/// # Errors
/// If the text is not TOML, with the line; or for a number that JSON cannot express.
pub fn toml_to_json(text: &str) -> Result<Value, ManifestError> {
    let document = parse_document(text)?;
    table(text, document.get_ref())
}

fn table(text: &str, table: &DeTable<'_>) -> Result<Value, ManifestError> {
    let entries = table.iter().map(|(key, entry)| {
        let key = key.get_ref().to_string();
        Ok((key.clone(), value(text, &key, entry)?))
    });
    Ok(Value::Object(entries.collect::<Result<Map<_, _>, _>>()?))
}

fn value(text: &str, key: &str, found: &Spanned<DeValue<'_>>) -> Result<Value, ManifestError> {
    let refuse = |shown: &str| ManifestError::InvalidValue {
        line: 1 + text
            .bytes()
            .take(found.span().start)
            .filter(|byte| *byte == b'\n')
            .count(),
        key: key.to_owned(),
        found: shown.to_owned(),
        hint: "expected a number that JSON can express".to_owned(),
    };
    Ok(match found.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::from)
            .map_err(|_| refuse(number.as_str()))?,
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| refuse(number.as_str()))?,
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(items) => items
            .iter()
            .map(|item| value(text, key, item))
            .collect::<Result<_, _>>()?,
        DeValue::Table(entries) => table(text, entries)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_every_type() {
        let text = "a = \"x\"\nb = [1, 0x10, -2]\nc = { d = 1.5, e = true }\n[[f]]\ng = 1979-05-27\n[[f]]\n";
        let expected = serde_json::json!({
            "a": "x", "b": [1, 16, -2], "c": { "d": 1.5, "e": true }, "f": [{ "g": "1979-05-27" }, {}],
        });
        assert_eq!(toml_to_json(text).unwrap(), expected);
    }

    #[test]
    fn names_the_line_of_a_number_without_json() {
        let refused = toml_to_json("a = 1\nb = inf\n").unwrap_err().to_string();
        assert_eq!(
            refused,
            "line 2: b is inf: expected a number that JSON can express"
        );
        assert!(matches!(
            toml_to_json("a = 1\nb ="),
            Err(ManifestError::Syntax { line: 2, .. })
        ));
    }
}
