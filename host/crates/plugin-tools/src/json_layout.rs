//! JSON text on several lines: what fits on a line stays on one, so that differences are short.

/// Maximum width of a line.
const WIDTH: usize = 96;
/// Spaces of a level.
const INDENT: usize = 2;

/// Breaks compact JSON text into lines. The order of members is kept. Text that is not JSON is
/// returned as it is.
pub(crate) fn broken_into_lines(compact: &str) -> String {
    let mut text = String::with_capacity(compact.len() * 2);
    write(compact.trim(), 0, &mut text);
    text
}

fn write(value: &str, indent: usize, text: &mut String) {
    let is_container = value.starts_with(['{', '[']);
    let spaced = spaced(value);
    if !is_container || indent + spaced.chars().count() <= WIDTH {
        text.push_str(&spaced);
        return;
    }
    let (open, close) = (&value[..1], &value[value.len() - 1..]);
    text.push_str(open);
    let inside = indent + INDENT;
    let items = items(&value[1..value.len() - 1]);
    for (index, item) in items.iter().enumerate() {
        text.push('\n');
        text.push_str(&" ".repeat(inside));
        match (open, member(item)) {
            ("{", Some((name, value))) => {
                text.push_str(name);
                text.push_str(": ");
                write(value, inside, text);
            }
            _ => write(item, inside, text),
        }
        if index + 1 < items.len() {
            text.push(',');
        }
    }
    text.push('\n');
    text.push_str(&" ".repeat(indent));
    text.push_str(close);
}

/// Returns compact JSON on one line, with a space after each comma and colon.
fn spaced(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut scan = JsonScan::default();
    for letter in value.chars() {
        scan.next(letter);
        text.push(letter);
        if !scan.is_text && matches!(letter, ',' | ':') {
            text.push(' ');
        }
    }
    text
}

/// Splits the inside of an array or object at the commas that are not in a nested one.
fn items(inside: &str) -> Vec<&str> {
    let mut scan = JsonScan::default();
    let mut items = Vec::new();
    let mut start = 0;
    for (at, letter) in inside.char_indices() {
        scan.next(letter);
        if letter == ',' && !scan.is_text && scan.depth == 0 {
            items.push(&inside[start..at]);
            start = at + 1;
        }
    }
    if start < inside.len() {
        items.push(&inside[start..]);
    }
    items
}

/// Splits a member of an object into its name and its value.
fn member(item: &str) -> Option<(&str, &str)> {
    let mut scan = JsonScan::default();
    for (at, letter) in item.char_indices() {
        scan.next(letter);
        if letter == ':' && !scan.is_text {
            return Some((&item[..at], &item[at + 1..]));
        }
    }
    None
}

/// The state of a walk over JSON text.
#[derive(Default)]
struct JsonScan {
    is_text: bool,
    is_escaped: bool,
    depth: usize,
}

impl JsonScan {
    fn next(&mut self, letter: char) {
        match (self.is_text, letter) {
            (true, _) if self.is_escaped => self.is_escaped = false,
            (true, '\\') => self.is_escaped = true,
            (_, '"') => self.is_text = !self.is_text,
            (false, '{' | '[') => self.depth += 1,
            (false, '}' | ']') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn short_values_stay_on_one_line() {
        let long = "x".repeat(80);
        let compact = format!(r#"[{{"b":1,"a":["{long}","{long}"]}},{{}}]"#);
        let expected = format!(
            "[\n  {{\n    \"b\": 1,\n    \"a\": [\n      \"{long}\",\n      \"{long}\"\n    ]\n  }},\n  {{}}\n]"
        );
        assert_eq!(broken_into_lines(&compact), expected);
        assert_eq!(
            broken_into_lines(r#"{"b":[1,2],"a":"c, d: \" e"}"#),
            r#"{"b": [1, 2], "a": "c, d: \" e"}"#
        );
    }

    proptest::proptest! {
        /// The lines are the same JSON.
        #[test]
        fn the_value_stays_the_same(
            texts in proptest::collection::vec("[a-z\"\\\\,:{}\\[\\]é ]{0,40}", 0..8),
            numbers in proptest::collection::vec(proptest::num::i64::ANY, 0..30),
        ) {
            let value = json!({ "texts": texts, "inside": [{ "numbers": numbers, "empty": [], "none": null }] });
            let lines = broken_into_lines(&value.to_string());
            proptest::prop_assert_eq!(serde_json::from_str::<Value>(&lines).unwrap(), value);
        }
    }
}
