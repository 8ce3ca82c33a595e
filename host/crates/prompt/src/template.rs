//! Chat templates, which turn a model's messages into the text that its tokenizer sees.
//!
//! A template is Jinja as in Hugging Face's `apply_chat_template`; servers apply it to every chat
//! request, and the text that it adds around the messages is part of the prompt. `jinja` creates
//! the environment that templates expect, `files` finds a model's template.

mod bounds;
mod files;
mod guards;
mod jinja;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::Environment;
use veeksha_model::Role;

pub use jinja::SpecialTokens;

use crate::error::PromptError;

/// A model's chat template. Clones share it.
#[derive(Clone)]
pub struct ChatTemplate(Arc<Compiled>);

struct Compiled {
    name: String,
    environment: Environment<'static>,
    tokens: BTreeMap<String, String>,
}

impl ChatTemplate {
    /// Compiles a template's text; `tokens` are the control tokens that it may name, `name` is used
    /// in messages.
    pub fn from_text(name: &str, text: &str, tokens: SpecialTokens) -> Result<Self, PromptError> {
        let environment = jinja::environment(text, &tokens).map_err(|error| PromptError::Template {
            name: name.to_string(),
            reason: jinja::reason(&error),
        })?;
        Ok(ChatTemplate(Arc::new(Compiled {
            name: name.to_string(),
            environment,
            tokens,
        })))
    }

    /// Returns the path it was loaded from, or its given name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the text of the token that begins every prompt, if the model has one.
    pub fn bos_token(&self) -> Option<&str> {
        self.0.tokens.get("bos_token").map(String::as_str)
    }

    /// Renders the conversation as one text. With `add_generation_prompt` the text ends where the
    /// assistant's next answer begins.
    ///
    /// A template may refuse a conversation (roles that do not alternate, an unknown role): the
    /// error names the template and contains its message.
    pub fn render(
        &self,
        messages: &[(Role, &str)],
        add_generation_prompt: bool,
    ) -> Result<String, PromptError> {
        jinja::render(&self.0.environment, messages, add_generation_prompt).map_err(|error| {
            PromptError::Template {
                name: self.0.name.clone(),
                reason: jinja::reason(&error),
            }
        })
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("name", &self.0.name)
            .field("tokens", &self.0.tokens)
            .finish_non_exhaustive()
    }
}
