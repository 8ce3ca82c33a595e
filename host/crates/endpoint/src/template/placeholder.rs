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
    Tools,
    ToolChoice,
    Schema,
    TokenIds,
}

/// Names of the placeholders.
pub(super) const PLACEHOLDERS: [(&str, Placeholder); 11] = [
    ("messages", Placeholder::Messages),
    ("prompt", Placeholder::Prompt),
    ("system", Placeholder::System),
    ("model", Placeholder::Model),
    ("max_tokens", Placeholder::MaxTokens),
    ("min_tokens", Placeholder::MinTokens),
    ("ignore_eos", Placeholder::IgnoreEos),
    ("tools", Placeholder::Tools),
    ("tool_choice", Placeholder::ToolChoice),
    ("schema", Placeholder::Schema),
    ("token_ids", Placeholder::TokenIds),
];

pub(super) fn known_placeholders() -> String {
    PLACEHOLDERS
        .map(|(name, _)| format!("`{{{{{name}}}}}`"))
        .join(", ")
}

impl Placeholder {
    pub(crate) fn name(self) -> &'static str {
        let found = PLACEHOLDERS.iter().find(|(_, placeholder)| *placeholder == self);
        found.map_or("", |(name, _)| name)
    }

    /// Returns true if it may occur inside a longer text.
    pub(super) fn is_text(self) -> bool {
        !matches!(
            self,
            Placeholder::Messages
                | Placeholder::Tools
                | Placeholder::ToolChoice
                | Placeholder::Schema
                | Placeholder::TokenIds
        )
    }
}
