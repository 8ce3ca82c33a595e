//! Asking for a minimum output length in the prompt, for servers that have no parameter for it.

use veeksha_model::{Message, Request, Role, Segment};
use veeksha_prompt::Tokenizer;

/// The text that asks for a minimum length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinTokensPrompt {
    /// The sentence; `{tokens}` is replaced by the target.
    pub template: String,
}

impl MinTokensPrompt {
    /// Appends the sentence to the last user message, inside the asked length: the last synthetic
    /// segment gives up as many tokens as the sentence has. A request whose segment is too short
    /// for that is left as it is.
    pub(crate) fn apply(&self, request: &mut Request, tokenizer: &Tokenizer) {
        let Some(target) = request.output.target_tokens else {
            return;
        };
        let sentence = self.template.replace("{tokens}", &target.to_string());
        let cost = tokenizer.count(&sentence);
        let Some(message) = last_user_message(request) else {
            return;
        };
        let room = message
            .content
            .iter_mut()
            .rev()
            .find_map(|segment| match segment {
                Segment::Synthetic { tokens, .. } if *tokens > cost => Some(tokens),
                _ => None,
            });
        if let Some(tokens) = room {
            *tokens -= cost;
            message.content.push(Segment::Text(sentence));
        }
    }
}

fn last_user_message(request: &mut Request) -> Option<&mut Message> {
    request
        .messages
        .iter_mut()
        .rev()
        .find(|message| message.role == Role::User)
}
