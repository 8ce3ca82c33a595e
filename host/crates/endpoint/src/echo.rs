//! Prompts that a server repeats before its answer (`echo` of completions), which is how it returns
//! the log-probabilities of their tokens.
//!
//! The answer begins after the prompt. A prompt that was sent as text is repeated exactly, so the
//! text after it is the answer's. Of one that was sent as token ids the length is known, and the
//! server returns the text of each token.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use veeksha_model::{ErrorClass, Prepared};

use crate::failure::{Failure, shorten};

/// A prompt that the server was asked to repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EchoedPrompt {
    /// It was sent as this text.
    Text(String),
    /// It was sent as this number of token ids.
    TokenIds(usize),
}

impl EchoedPrompt {
    /// Returns the prompt in the body of a request, if the request asks for the log-probabilities
    /// of its prompt and the body has the server repeat it.
    pub fn of(request: &Prepared, body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Sent {
            prompt: Value,
            echo: bool,
        }
        let form = request.request.output.form.as_deref();
        form.filter(|form| form.prompt_log_probabilities)?;
        let sent: Sent = serde_json::from_slice(body).ok()?;
        match sent.prompt {
            Value::String(text) if sent.echo => Some(EchoedPrompt::Text(text)),
            Value::Array(ids) if sent.echo => Some(EchoedPrompt::TokenIds(ids.len())),
            _ => None,
        }
    }
}

/// The repeated prompt, as far as it has arrived.
#[derive(Debug)]
pub(crate) struct Echo {
    prompt: EchoedPrompt,
    /// Bytes or tokens of it that have arrived.
    arrived: usize,
}

impl Echo {
    pub(crate) fn new(prompt: EchoedPrompt) -> Self {
        Echo { prompt, arrived: 0 }
    }

    /// Returns the tokens of the prompt, if they are known. `counted` is the server's count.
    pub(crate) fn tokens(&self, counted: Option<usize>) -> Result<Option<usize>, Failure> {
        match (&self.prompt, counted) {
            (EchoedPrompt::TokenIds(ids), Some(counted)) if *ids != counted => Err(refusal(format!(
                "the server counts {counted} tokens of a prompt of {ids} token ids"
            ))),
            (EchoedPrompt::TokenIds(ids), _) => Ok(Some(*ids)),
            (EchoedPrompt::Text(_), counted) => Ok(counted),
        }
    }

    /// Returns the part of an event's text that belongs to the answer. `tokens` are the texts of
    /// the event's tokens.
    ///
    /// # Errors
    /// If the prompt is not repeated.
    pub(crate) fn answer_part<'a>(
        &mut self,
        text: &'a str,
        tokens: &[String],
    ) -> Result<Cow<'a, str>, Failure> {
        match &self.prompt {
            EchoedPrompt::Text(prompt) => {
                let rest = prompt.get(self.arrived..).unwrap_or_default();
                if let Some(answer) = text.strip_prefix(rest) {
                    self.arrived = prompt.len();
                    Ok(Cow::Borrowed(answer))
                } else if rest.starts_with(text) {
                    self.arrived += text.len();
                    Ok(Cow::Borrowed(""))
                } else {
                    Err(refusal(format!(
                        "the server did not repeat the prompt, whose log-probabilities were requested: expected {:?}, got {:?}",
                        shorten(rest, QUOTED_CHARS),
                        shorten(text, QUOTED_CHARS),
                    )))
                }
            }
            EchoedPrompt::TokenIds(ids) => {
                let rest = ids.saturating_sub(self.arrived);
                self.arrived = self.arrived.saturating_add(tokens.len());
                if rest == 0 {
                    return Ok(Cow::Borrowed(text));
                }
                let (prompt, answer) = tokens.split_at(rest.min(tokens.len()));
                let (prompt, answer) = (prompt.concat(), answer.concat());
                let part = text.strip_prefix(&*prompt);
                let part = part.or_else(|| {
                    text.ends_with(&*answer)
                        .then(|| &text[text.len() - answer.len()..])
                });
                // A token may be a part of a character, so that neither fits.
                Ok(part.map_or(Cow::Owned(answer), Cow::Borrowed))
            }
        }
    }
}

/// Maximum number of characters of a text in a message.
const QUOTED_CHARS: usize = 40;

pub(crate) fn refusal(message: String) -> Failure {
    Failure::new(ErrorClass::Protocol, message)
}
