//! Placeholders of a request template.

/// A part of a request that a template can reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    Messages,
    Prompt,
    System,
    Model,
    MaxTokens,
    MinTokens,
    IgnoreEos,
}

/// Name, placeholder, and description of its value.
pub(super) const PLACEHOLDERS: [(&str, Placeholder); 7] = [
    ("messages", Placeholder::Messages),
    ("prompt", Placeholder::Prompt),
    ("system", Placeholder::System),
    ("model", Placeholder::Model),
    ("max_tokens", Placeholder::MaxTokens),
    ("min_tokens", Placeholder::MinTokens),
    ("ignore_eos", Placeholder::IgnoreEos),
];

pub(super) fn known_placeholders() -> String {
    PLACEHOLDERS
        .map(|(name, _)| format!("`{{{{{name}}}}}`"))
        .join(", ")
}

impl Placeholder {
    pub(super) fn name(self) -> &'static str {
        let found = PLACEHOLDERS.iter().find(|(_, placeholder)| *placeholder == self);
        found.map_or("", |(name, _)| name)
    }

    /// Returns true if it may occur inside a longer text.
    pub(super) fn is_text(self) -> bool {
        self != Placeholder::Messages
    }
}
