//! Which API a target speaks.

/// Which API a target speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `POST chat/completions`: messages with roles.
    #[default]
    ChatCompletions,
    /// `POST completions`: one text.
    Completions,
}

impl Dialect {
    /// The path behind the base URL.
    pub fn default_path(self) -> &'static str {
        match self {
            Dialect::ChatCompletions => "chat/completions",
            Dialect::Completions => "completions",
        }
    }

    /// The field that usually limits the answer's tokens.
    pub fn default_max_tokens_param(self) -> &'static str {
        match self {
            Dialect::ChatCompletions => "max_completion_tokens",
            Dialect::Completions => "max_tokens",
        }
    }
}
