//! Paths into the result of a test: `sessions[0].requests.length`.

use serde_json::Value;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LookupStep {
    Name(String),
    Index(usize),
}

/// A path into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValuePath {
    text: String,
    steps: Vec<LookupStep>,
}

/// The name of the number of items of a list, or of the bytes of a text.
const LENGTH: &str = "length";

impl ValuePath {
    /// Reads a path: names, separated by points, and indices in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is not a path: {why}, as in `sessions[0].requests.length`");
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
            if name.is_empty()
                || !name
                    .chars()
                    .all(|letter| letter.is_alphanumeric() || "_-".contains(letter))
            {
                return Err(wrong("names consist of letters, digits, `_` and `-`"));
            }
            steps.push(LookupStep::Name(name.to_owned()));
            for index in indices.split_terminator(']') {
                let number = index.strip_prefix('[').and_then(|index| index.parse().ok());
                steps.push(LookupStep::Index(
                    number.ok_or_else(|| wrong("an index is a number in brackets"))?,
                ));
            }
            if !indices.is_empty() && !indices.ends_with(']') {
                return Err(wrong("an index ends with `]`"));
            }
        }
        Ok(ValuePath {
            text: text.to_owned(),
            steps,
        })
    }

    /// Returns the path as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the value at the path, if there is one.
    pub(crate) fn find(&self, root: &Value) -> Option<Value> {
        let mut value = root.clone();
        for step in &self.steps {
            value = follow(&value, step)?;
        }
        Some(value)
    }

    /// Returns the reason why there is no value: the first step that leads nowhere, and what there
    /// is instead.
    pub(crate) fn dead_end(&self, root: &Value) -> String {
        let mut value = root.clone();
        let mut walked = String::new();
        for step in &self.steps {
            let Some(next) = follow(&value, step) else {
                let here = if walked.is_empty() { "the result" } else { &walked };
                return match (&value, step) {
                    (Value::Array(items), LookupStep::Index(_)) => {
                        format!(
                            "`{here}` has {}",
                            veeksha_stats::counted(items.len() as u64, "item")
                        )
                    }
                    (Value::Object(members), LookupStep::Name(name)) => {
                        let names = || members.keys().map(String::as_str);
                        match veeksha_slo::nearest(name, names()) {
                            Some(nearest) => format!("{here} has no `{name}`: did you mean `{nearest}`?"),
                            None => format!("{here} has {}", names().collect::<Vec<_>>().join(", ")),
                        }
                    }
                    _ => format!("{here} is {}", shown(&value)),
                };
            };
            match step {
                LookupStep::Name(name) if walked.is_empty() => walked.push_str(name),
                LookupStep::Name(name) => walked.push_str(&format!(".{name}")),
                LookupStep::Index(index) => walked.push_str(&format!("[{index}]")),
            }
            value = next;
        }
        format!("`{walked}` is {}", shown(&value))
    }
}

fn follow(value: &Value, step: &LookupStep) -> Option<Value> {
    match (value, step) {
        (Value::Object(members), LookupStep::Name(name)) => members.get(name).cloned(),
        (Value::Array(items), LookupStep::Index(index)) => items.get(*index).cloned(),
        (Value::Array(items), LookupStep::Name(name)) if name == LENGTH => Some(items.len().into()),
        (Value::String(text), LookupStep::Name(name)) if name == LENGTH => Some(text.len().into()),
        // Headers and labels are lists of names and values.
        (Value::Array(items), LookupStep::Name(name)) => {
            items.iter().find_map(|item| match item.as_array()?.as_slice() {
                [key, value] if key == name => Some(value.clone()),
                _ => None,
            })
        }
        _ => None,
    }
}

/// Maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 200;

/// Returns a value for a message.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN {
        return text;
    }
    let begin: String = text.chars().take(MAX_SHOWN).collect();
    format!("{begin}…")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn follows_names_indices_pairs_and_lengths() {
        let value = json!({"a": [{"b": "xyz"}, 7], "labels": [["tier", "gold"]]});
        let find = |path: &str| ValuePath::parse(path).unwrap().find(&value);
        assert_eq!(find("a[0].b"), Some(json!("xyz")));
        assert_eq!(find("a[1]"), Some(json!(7)));
        assert_eq!(find("a.length"), Some(json!(2)));
        assert_eq!(find("a[0].b.length"), Some(json!(3)));
        assert_eq!(find("labels.tier"), Some(json!("gold")));
        assert_eq!(find("a[2]"), None);
        assert_eq!(find("labels.none"), None);
    }

    #[test]
    fn a_dead_end_names_what_is_there() {
        let value = json!({"sessions": [{"requests": []}]});
        let dead = |path: &str| ValuePath::parse(path).unwrap().dead_end(&value);
        assert_eq!(
            dead("sessions[0].request"),
            "sessions[0] has no `request`: did you mean `requests`?"
        );
        assert_eq!(dead("sessions[4]"), "`sessions` has 1 item");
        assert_eq!(dead("zzz"), "the result has sessions");
    }

    #[test]
    fn refuses_what_is_not_a_path() {
        for wrong in ["", "a..b", "a[x]", "a[0", "a b", "[0]", "a[0]]"] {
            assert!(ValuePath::parse(wrong).is_err(), "{wrong}");
        }
    }
}
