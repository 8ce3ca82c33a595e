//! Values of a template's placeholders.

use std::borrow::Cow;

use veeksha_model::Prepared;

use super::chat::write_messages;
use super::conversation::Conversation;
use crate::api::Api;
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
        if placeholder == Placeholder::Messages {
            let mut out = Vec::with_capacity(self.conversation.bytes());
            write_messages(&mut out, &self.conversation)?;
            return Ok(Some(Cow::Owned(out)));
        }
        let is_text = matches!(
            placeholder,
            Placeholder::Prompt | Placeholder::System | Placeholder::Model
        );
        Ok(self.text(placeholder)?.map(|text| {
            let mut out = Vec::new();
            if is_text {
                json(&mut out, &*text);
            } else {
                // A number or a boolean is written unchanged.
                out.extend_from_slice(text.as_bytes());
            }
            Cow::Owned(out)
        }))
    }

    fn text(&self, placeholder: Placeholder) -> Result<Option<Cow<'_, str>>, Failure> {
        Ok(match placeholder {
            // Its value is JSON; a template with it inside a longer text is refused.
            Placeholder::Messages => None,
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
