//! Request bodies of a template: JSON in which some strings are placeholders for parts of the
//! request.

use std::borrow::Cow;

use serde_json::Value;

use super::error::TemplateError;
use super::placeholder::{PLACEHOLDERS, Placeholder};
use crate::failure::Failure;

/// Placeholder values of one request; `None`: it has no value.
pub(crate) trait Fill {
    /// Returns the value as JSON.
    fn json(&self, placeholder: Placeholder) -> Result<Option<Cow<'_, [u8]>>, Failure>;
    /// Returns the value as text.
    fn text(&self, placeholder: Placeholder) -> Result<Option<Cow<'_, str>>, Failure>;
}

/// The members of a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BodyTemplate(Vec<(String, TemplatePart)>);

#[derive(Clone, Debug, PartialEq)]
enum TemplatePart {
    /// JSON without placeholders.
    Fixed(Vec<u8>),
    /// A single placeholder.
    Whole(Placeholder),
    /// A text that contains placeholders.
    Text(Vec<Piece>),
    Object(Vec<(String, TemplatePart)>),
    Array(Vec<TemplatePart>),
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Fixed(String),
    Filled(Placeholder),
}

impl BodyTemplate {
    pub(crate) fn new(request: &Value) -> Result<Self, TemplateError> {
        match request {
            Value::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), part(value, &format!("/{}", escaped(name)))?)));
                members.collect::<Result<_, _>>().map(BodyTemplate)
            }
            other => Err(TemplateError::NotAnObject {
                kind: match other {
                    Value::Null => "null",
                    Value::Bool(_) => "a boolean",
                    Value::Number(_) => "a number",
                    Value::String(_) => "a text",
                    _ => "an array",
                },
            }),
        }
    }

    /// Returns true if a placeholder occurs in it.
    pub(crate) fn uses(&self, placeholder: Placeholder) -> bool {
        self.0.iter().any(|(_, part)| part.uses(placeholder))
    }

    /// Calls `member` with the name and JSON of each member. Skips members whose placeholder has no
    /// value and members for which `taken` returns true.
    pub(crate) fn fill(
        &self,
        fill: &impl Fill,
        taken: impl Fn(&str) -> bool,
        mut member: impl FnMut(&str, &[u8]),
    ) -> Result<(), Failure> {
        let mut value = Vec::new();
        for (name, part) in self.0.iter().filter(|(name, _)| !taken(name)) {
            value.clear();
            if part.write(&mut value, fill)? {
                member(name, &value);
            }
        }
        Ok(())
    }
}

/// Returns a member's name as a token of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn part(value: &Value, place: &str) -> Result<TemplatePart, TemplateError> {
    let part = match value {
        Value::String(text) => match pieces(text, place)? {
            None => TemplatePart::Fixed(value.to_string().into_bytes()),
            Some(pieces) => match pieces.as_slice() {
                [Piece::Filled(placeholder)] => TemplatePart::Whole(*placeholder),
                _ => {
                    let json = pieces.iter().find_map(|piece| match piece {
                        Piece::Filled(placeholder) if !placeholder.is_text() => Some(placeholder.name()),
                        _ => None,
                    });
                    if let Some(name) = json {
                        return Err(TemplateError::NotText {
                            place: place.to_owned(),
                            name,
                        });
                    }
                    TemplatePart::Text(pieces)
                }
            },
        },
        Value::Object(members) => {
            let parts = members
                .iter()
                .map(|(name, value)| Ok((name.clone(), part(value, &format!("{place}/{}", escaped(name)))?)))
                .collect::<Result<Vec<_>, _>>()?;
            if parts
                .iter()
                .all(|(_, part)| matches!(part, TemplatePart::Fixed(_)))
            {
                TemplatePart::Fixed(value.to_string().into_bytes())
            } else {
                TemplatePart::Object(parts)
            }
        }
        Value::Array(elements) => {
            let parts = elements
                .iter()
                .enumerate()
                .map(|(index, value)| part(value, &format!("{place}/{index}")))
                .collect::<Result<Vec<_>, _>>()?;
            if parts.iter().all(|part| matches!(part, TemplatePart::Fixed(_))) {
                TemplatePart::Fixed(value.to_string().into_bytes())
            } else {
                TemplatePart::Array(parts)
            }
        }
        other => TemplatePart::Fixed(other.to_string().into_bytes()),
    };
    Ok(part)
}

/// Splits a text that contains placeholders.
fn pieces(text: &str, place: &str) -> Result<Option<Vec<Piece>>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, behind)) = behind.split_once("}}") else {
            return Err(TemplateError::OpenPlaceholder {
                place: place.to_owned(),
            });
        };
        let name = name.trim();
        let Some((_, placeholder)) = PLACEHOLDERS.iter().find(|(known, _)| *known == name) else {
            return Err(TemplateError::UnknownPlaceholder {
                place: place.to_owned(),
                name: name.to_owned(),
            });
        };
        if !before.is_empty() {
            pieces.push(Piece::Fixed(before.to_owned()));
        }
        pieces.push(Piece::Filled(*placeholder));
        rest = behind;
    }
    if pieces.is_empty() {
        return Ok(None);
    }
    if !rest.is_empty() {
        pieces.push(Piece::Fixed(rest.to_owned()));
    }
    Ok(Some(pieces))
}

impl TemplatePart {
    fn uses(&self, placeholder: Placeholder) -> bool {
        match self {
            TemplatePart::Fixed(_) => false,
            TemplatePart::Whole(whole) => *whole == placeholder,
            TemplatePart::Text(pieces) => pieces.contains(&Piece::Filled(placeholder)),
            TemplatePart::Object(members) => members.iter().any(|(_, part)| part.uses(placeholder)),
            TemplatePart::Array(elements) => elements.iter().any(|part| part.uses(placeholder)),
        }
    }

    /// Writes the value. Returns false if there is none.
    fn write(&self, out: &mut Vec<u8>, fill: &impl Fill) -> Result<bool, Failure> {
        match self {
            TemplatePart::Fixed(json) => out.extend_from_slice(json),
            TemplatePart::Whole(placeholder) => match fill.json(*placeholder)? {
                Some(json) => out.extend_from_slice(&json),
                None => return Ok(false),
            },
            TemplatePart::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Fixed(fixed) => text.push_str(fixed),
                        Piece::Filled(placeholder) => match fill.text(*placeholder)? {
                            Some(filled) => text.push_str(&filled),
                            None => return Ok(false),
                        },
                    }
                }
                crate::json_writer::string(out, &text);
            }
            TemplatePart::Object(members) => {
                out.push(b'{');
                for (name, part) in members {
                    let start = out.len();
                    crate::json_writer::string(out, name);
                    out.push(b':');
                    if part.write(out, fill)? {
                        out.push(b',');
                    } else {
                        out.truncate(start);
                    }
                }
                crate::json_writer::end_list(out, b'}');
            }
            TemplatePart::Array(elements) => {
                out.push(b'[');
                for part in elements {
                    let start = out.len();
                    if part.write(out, fill)? {
                        out.push(b',');
                    } else {
                        out.truncate(start);
                    }
                }
                crate::json_writer::end_list(out, b']');
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A request whose messages are `[1]`, whose model is `a "b"` and whose limit is `max`.
    struct Known {
        max: Option<u32>,
    }

    impl Fill for Known {
        fn json(&self, placeholder: Placeholder) -> Result<Option<Cow<'_, [u8]>>, Failure> {
            Ok(match placeholder {
                Placeholder::Messages => Some(b"[1]".into()),
                _ => self.text(placeholder)?.map(|text| match placeholder {
                    Placeholder::MaxTokens => text.into_owned().into_bytes().into(),
                    _ => json!(text).to_string().into_bytes().into(),
                }),
            })
        }

        fn text(&self, placeholder: Placeholder) -> Result<Option<Cow<'_, str>>, Failure> {
            Ok(match placeholder {
                Placeholder::Model => Some("a \"b\"".into()),
                Placeholder::MaxTokens => self.max.map(|max| max.to_string().into()),
                _ => None,
            })
        }
    }

    fn filled(template: Value, max: Option<u32>) -> Value {
        let mut members = serde_json::Map::new();
        BodyTemplate::new(&template)
            .unwrap()
            .fill(
                &Known { max },
                |name| name == "taken",
                |name, json| {
                    members.insert(name.to_owned(), serde_json::from_slice(json).unwrap());
                },
            )
            .unwrap();
        Value::Object(members)
    }

    #[test]
    fn placeholders_have_types_and_what_has_no_value_is_left_out() {
        let template = json!({
            "m": "{{messages}}", "taken": 1, "n": "{{ max_tokens }}", "name": "<{{model}}> {{max_tokens}}",
            "deep": [{"n": "{{max_tokens}}", "k": true}, "{{max_tokens}}", "{{prompt}}", {"a": ["{b}", null]}],
        });
        assert_eq!(
            filled(template.clone(), Some(7)),
            json!({
                "m": [1], "n": 7, "name": "<a \"b\"> 7",
                "deep": [{"n": 7, "k": true}, 7, {"a": ["{b}", null]}],
            })
        );
        assert_eq!(
            filled(template, None),
            json!({"m": [1], "deep": [{"k": true}, {"a": ["{b}", null]}]})
        );
    }

    #[test]
    fn refuses_invalid_placeholder_with_its_position() {
        let refused = |template: Value| BodyTemplate::new(&template).unwrap_err().to_string();
        assert_eq!(
            refused(json!({"a": [{"b/c": "x {{promt}}"}]})),
            "the request's /a/0/b~1c has the unknown placeholder `{{promt}}`; known are `{{messages}}`, `{{prompt}}`, \
             `{{system}}`, `{{model}}`, `{{max_tokens}}`, `{{min_tokens}}`, `{{ignore_eos}}`, \
             `{{tools}}`, `{{tool_choice}}`, `{{schema}}`, `{{token_ids}}`"
        );
        assert_eq!(
            refused(json!({"a": "{{prompt"})),
            "the request's /a has `{{` without `}}` after it"
        );
        assert_eq!(
            refused(json!({"a": "x{{messages}}"})),
            "the request's /a has `{{messages}}` inside a longer text, but it is replaced by JSON and must be the whole string"
        );
        assert_eq!(
            refused(json!([1])),
            "the request must be a JSON object, not an array"
        );
    }
}
