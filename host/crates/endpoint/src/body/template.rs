//! Values of a template's placeholders.

use std::borrow::Cow;

use veeksha_model::Prepared;

use super::chat::write_messages;
use super::conversation::Conversation;
use super::tools::{tool_choice, write_tools};
use crate::api::Api;
use crate::endpoint_kind::EndpointKind;
use crate::failure::Failure;
use crate::json_writer::json;
use crate::template::{Fill, Placeholder};

/// Values from one request.
pub(super) struct Filling<'a> {
    pub(super) api: &'a Api,
    pub(super) request: &'a Prepared,
    pub(super) conversation: Conversation<'a>,
}

impl Filling<'_> {
    fn tokens(&self) -> Option<u32> {
        self.request
            .request
            .output
            .target_tokens
            .filter(|tokens| *tokens > 0)
    }

    fn least_tokens(&self) -> Option<u32> {
        self.tokens().filter(|_| self.request.request.output.exact)
    }

    fn ignore_eos(&self) -> Option<bool> {
        self.api.ignore_eos.filter(|_| self.request.request.output.exact)
    }
}

impl Fill for Filling<'_> {
    fn json(&self, placeholder: Placeholder) -> Result<Option<Cow<'_, [u8]>>, Failure> {
        let form = self.request.request.output.form.as_deref();
        // Definitions and choices have the form of chat completions, like messages.
        let chat = EndpointKind::ChatCompletions;
        let mut out = Vec::new();
        let has_value = match placeholder {
            Placeholder::Messages => {
                out.reserve(self.conversation.bytes());
                write_messages(&mut out, &self.conversation, self.api.reasoning_param.as_deref())?;
                true
            }
            Placeholder::Tools => {
                let tools = self.conversation.tools();
                tools.map(|tools| write_tools(&mut out, tools, &chat)).is_some()
            }
            Placeholder::ToolChoice => {
                let choice = form.and_then(|form| form.tool_choice.as_ref());
                choice
                    .map(|choice| json(&mut out, &tool_choice(choice, &chat)))
                    .is_some()
            }
            Placeholder::Schema => {
                let schema = form.and_then(|form| form.schema.as_ref());
                schema
                    .map(|schema| out.extend_from_slice(schema.as_bytes()))
                    .is_some()
            }
            Placeholder::TokenIds => {
                let ids = self.conversation.token_ids()?;
                ids.map(|ids| json(&mut out, ids)).is_some()
            }
            Placeholder::Prompt | Placeholder::System | Placeholder::Model => {
                let text = self.text(placeholder)?;
                text.map(|text| json(&mut out, &*text)).is_some()
            }
            // A number or a boolean is written unchanged.
            Placeholder::MaxTokens | Placeholder::MinTokens | Placeholder::IgnoreEos => {
                let text = self.text(placeholder)?;
                text.map(|text| out.extend_from_slice(text.as_bytes())).is_some()
            }
        };
        Ok(has_value.then_some(Cow::Owned(out)))
    }

    fn text(&self, placeholder: Placeholder) -> Result<Option<Cow<'_, str>>, Failure> {
        Ok(match placeholder {
            // Their values are JSON; a template with them inside a longer text is refused.
            Placeholder::Messages
            | Placeholder::Tools
            | Placeholder::ToolChoice
            | Placeholder::Schema
            | Placeholder::TokenIds => None,
            Placeholder::Prompt if self.conversation.token_ids()?.is_some() => None,
            Placeholder::Prompt => Some(self.conversation.flattened(self.api, "template's")?),
            Placeholder::System => {
                let texts: Vec<&str> = self.conversation.system().map(|message| &*message.text).collect();
                (!texts.is_empty()).then(|| Cow::Owned(texts.join("\n")))
            }
            Placeholder::Model => Some(Cow::Borrowed(&self.api.model)),
            Placeholder::MaxTokens => self.tokens().map(|tokens| tokens.to_string().into()),
            Placeholder::MinTokens => self.least_tokens().map(|tokens| tokens.to_string().into()),
            Placeholder::IgnoreEos => self.ignore_eos().map(|ignore| ignore.to_string().into()),
        })
    }
}
