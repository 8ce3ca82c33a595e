//! Header values with placeholders for properties of the request: `{{run.id}}-{{session.id}}`.

use std::fmt::Write as _;

use veeksha_model::{Label, RequestId, is_header_text};

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const SESSION_LABEL: &str = "session.label.";
const REQUEST_LABEL: &str = "request.label.";

/// The value of a header: text and placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderTemplate {
    parts: Vec<HeaderPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HeaderPart {
    Text(String),
    SessionId,
    RequestId,
    SessionLabel(String),
    RequestLabel(String),
}

/// The properties of a request that its headers may contain.
#[derive(Clone, Copy, Debug)]
pub struct HeaderValues<'a> {
    /// The request's id.
    pub id: RequestId,
    /// The labels of the request without those of its session.
    pub request_labels: &'a [Label],
    /// The labels of its session.
    pub session_labels: &'a [Label],
}

/// An invalid placeholder in a header's value. The rest of the value is omitted because it may be a
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderTemplateError {
    /// No property of a request has this name.
    #[error("the placeholder `{{{{{name}}}}}` is unknown")]
    Unknown {
        /// The name between the braces.
        name: String,
    },
    /// A placeholder does not end.
    #[error("`{{{{` has no `}}}}` after it")]
    Open,
}

/// A label that a header cannot contain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the label `{label}` has a line break or another character that a header cannot carry")]
pub struct InvalidLabel {
    /// The name of the label.
    pub label: String,
}

impl HeaderTemplate {
    /// Reads a value of a header of the run `run_id`.
    ///
    /// # Errors
    /// If a placeholder is unknown or does not end.
    pub fn parse(value: &str, run_id: &str) -> Result<Self, HeaderTemplateError> {
        let mut parts = Vec::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (name, after) = after.split_once(CLOSE).ok_or(HeaderTemplateError::Open)?;
            push_text(&mut parts, before);
            match name.trim() {
                "run.id" => push_text(&mut parts, run_id),
                name => parts.push(HeaderPart::named(name)?),
            }
            rest = after;
        }
        push_text(&mut parts, rest);
        Ok(HeaderTemplate { parts })
    }

    /// Returns a value without placeholders.
    pub fn literal(value: &str) -> Self {
        let mut parts = Vec::new();
        push_text(&mut parts, value);
        HeaderTemplate { parts }
    }

    /// Returns the names of placeholders that resemble `typed`: those with a fixed name, and those
    /// of a label with the last part of `typed` as its name.
    pub fn candidates(typed: &str) -> Vec<String> {
        let label = typed.rsplit('.').next().unwrap_or(typed);
        let label = if label.is_empty() { "NAME" } else { label };
        let fixed = ["session.id", "request.id", "run.id"].map(str::to_owned);
        let labels = [SESSION_LABEL, REQUEST_LABEL].map(|kind| format!("{kind}{label}"));
        fixed.into_iter().chain(labels).collect()
    }

    /// Returns the value if it is the same for every request.
    pub fn constant(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [HeaderPart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the value for one request; `None` if the request or its session does not have a
    /// label that the value contains.
    ///
    /// # Errors
    /// If a label cannot be part of a header.
    pub fn render(&self, of: HeaderValues<'_>) -> Result<Option<String>, InvalidLabel> {
        let mut value = String::with_capacity(64);
        for part in &self.parts {
            let (label, labels) = match part {
                HeaderPart::Text(text) => {
                    value.push_str(text);
                    continue;
                }
                HeaderPart::SessionId => {
                    // Writing to memory does not fail.
                    let _ = write!(value, "{}", of.id.session);
                    continue;
                }
                HeaderPart::RequestId => {
                    let _ = write!(value, "{}", of.id);
                    continue;
                }
                HeaderPart::SessionLabel(label) => (label, of.session_labels),
                HeaderPart::RequestLabel(label) => (label, of.request_labels),
            };
            let Some((_, text)) = labels.iter().find(|(name, _)| name == label) else {
                return Ok(None);
            };
            if !is_header_text(text) {
                return Err(InvalidLabel { label: label.clone() });
            }
            value.push_str(text);
        }
        Ok(Some(value))
    }

    /// Returns the texts between the placeholders of a value. Only they can be secrets: ids and
    /// labels are in every record.
    pub fn literals(value: &str) -> impl Iterator<Item = &str> {
        value.split(OPEN).enumerate().map(|(index, piece)| match index {
            0 => piece,
            _ => piece.split_once(CLOSE).map_or(piece, |(_, text)| text),
        })
    }
}

impl HeaderPart {
    fn named(name: &str) -> Result<HeaderPart, HeaderTemplateError> {
        let label = |kind: &str| name.strip_prefix(kind).filter(|label| !label.is_empty());
        Ok(match name {
            "session.id" => HeaderPart::SessionId,
            "request.id" => HeaderPart::RequestId,
            _ => match (label(SESSION_LABEL), label(REQUEST_LABEL)) {
                (Some(label), _) => HeaderPart::SessionLabel(label.to_owned()),
                (_, Some(label)) => HeaderPart::RequestLabel(label.to_owned()),
                _ => {
                    return Err(HeaderTemplateError::Unknown {
                        name: name.to_owned(),
                    });
                }
            },
        })
    }
}

fn push_text(parts: &mut Vec<HeaderPart>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(HeaderPart::Text(before)) => before.push_str(text),
        _ => parts.push(HeaderPart::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{NodeId, SessionId};

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Vec<Label> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    fn rendered(value: &str, request: &[Label], session: &[Label]) -> Result<Option<String>, InvalidLabel> {
        let template = HeaderTemplate::parse(value, "r1").unwrap();
        template.render(HeaderValues {
            id: RequestId {
                session: SessionId(17),
                node: NodeId(2),
            },
            request_labels: request,
            session_labels: session,
        })
    }

    #[test]
    fn label_without_name_is_unknown() {
        let typed = "session.label.";
        let unknown = HeaderTemplateError::Unknown { name: typed.into() };
        assert_eq!(HeaderTemplate::parse("{{session.label.}}", "r1"), Err(unknown));
        let candidates = HeaderTemplate::candidates(typed);
        assert!(candidates.contains(&"session.label.NAME".to_owned()));
        assert!(!candidates.contains(&typed.to_owned()));
    }

    #[test]
    fn placeholders_are_replaced() {
        let request = labels(&[("tier", "gold"), ("tenant", "of the request")]);
        let session = labels(&[("tenant", "acme"), ("a.b", "dotted")]);
        for (value, expected) in [
            ("plain", "plain"),
            ("{{run.id}}/{{request.id}}", "r1/17/2"),
            ("s-{{ session.id }}!", "s-17!"),
            ("{{session.label.tenant}}:{{request.label.tier}}", "acme:gold"),
            ("{{session.label.a.b}}", "dotted"),
            ("a}}b{c", "a}}b{c"),
            ("", ""),
        ] {
            let value = rendered(value, &request, &session);
            assert_eq!(value, Ok(Some(expected.to_owned())));
        }
    }

    #[test]
    fn header_with_an_absent_label_has_no_value() {
        let session = labels(&[("tenant", "acme")]);
        assert_eq!(rendered("x{{request.label.tenant}}", &[], &session), Ok(None));
        assert_eq!(rendered("x{{session.label.team}}", &[], &session), Ok(None));
    }

    #[test]
    fn label_that_would_end_the_line_is_refused() {
        for text in ["a\r\nx-admin: 1", "a\nb", "a\0", "ä"] {
            let session = labels(&[("tenant", text)]);
            let error = rendered("{{session.label.tenant}}", &[], &session).unwrap_err();
            assert_eq!(error.label, "tenant");
        }
    }

    #[test]
    fn unknown_and_open_placeholders_are_refused() {
        for name in ["session", "sesion.id", "session.label.", "", "request"] {
            let error = HeaderTemplate::parse(&format!("secret {{{{{name}}}}}"), "").unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the placeholder `{{{{{name}}}}}` is unknown")
            );
        }
        let error = HeaderTemplate::parse("a{{run.id", "").unwrap_err();
        assert_eq!(error.to_string(), "`{{` has no `}}` after it");
    }

    #[test]
    fn value_of_the_run_alone_is_constant() {
        let constant = |value: &str| {
            let template = HeaderTemplate::parse(value, "r1").unwrap();
            template.constant().map(str::to_owned)
        };
        assert_eq!(constant("run {{run.id}} of x"), Some("run r1 of x".to_owned()));
        assert_eq!(constant(""), Some(String::new()));
        assert_eq!(constant("{{session.id}}"), None);
    }

    #[test]
    fn literals_are_the_texts_between_placeholders() {
        let literals = |value| HeaderTemplate::literals(value).collect::<Vec<_>>();
        assert_eq!(literals("Key a{{session.id}}b{{run.id}}"), ["Key a", "b", ""]);
        assert_eq!(literals("secret"), ["secret"]);
    }
}
