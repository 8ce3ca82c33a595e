//! Number of tokens that a chat template adds to a request.
//!
//! The server encodes the whole conversation at once, so the joints between the template's text and
//! the messages count: the count is that of the whole rendered text, never a sum of its parts.
//!
//! * A request that begins a conversation: the rendered text of its messages, up to where the
//!   answer begins.
//! * A request that continues a conversation: the tokens that it adds to the previous prompt and
//!   its answer. The conversation is not known when a request is prepared, so a short one is used
//!   instead: a user message of one word and an answer of one word, once as the server left it
//!   (prompt, then answer), once as the template renders it before the new messages. The difference
//!   includes the text that closes the answer, wraps the new messages, and begins the next answer.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use veeksha_model::Role;

use crate::count::BuiltText;
use crate::error::PromptError;
use crate::skeleton::PromptSkeleton;
use crate::template::ChatTemplate;
use crate::writer::MessageWriter;

/// Maximum number of cached request shapes; more than any workload has whose conversations come
/// turn by turn.
const SHAPES: usize = 1024;

/// Counts the tokens of rendered conversations.
#[derive(Debug)]
pub(crate) struct TemplateMeter {
    pub(crate) template: ChatTemplate,
    /// A word of one token that may be first in a text.
    word: String,
    /// Tokens of the previous conversation's substitute, or the error of rendering it.
    before: OnceLock<Result<u32, String>>,
    shapes: RwLock<HashMap<Vec<Role>, [Option<PromptShape>; 2]>>,
}

/// Cached properties of requests with messages of certain roles.
#[derive(Clone, Debug)]
struct PromptShape {
    skeleton: Option<Arc<PromptSkeleton>>,
    /// Number of tokens that the template adds to messages of a few words.
    adds: u32,
}

/// Position of a request in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    First,
    Later,
}

impl TemplateMeter {
    pub(crate) fn new(template: ChatTemplate, word: String) -> Self {
        TemplateMeter {
            template,
            word,
            before: OnceLock::new(),
            shapes: RwLock::default(),
        }
    }

    /// Returns the tokens of the messages including those that the template adds.
    pub(crate) fn tokens(
        &self,
        writer: &MessageWriter,
        place: Position,
        roles: &[Role],
        messages: &[&BuiltText],
    ) -> Result<u32, PromptError> {
        let shape = self.shape(writer, place, roles)?;
        let whole = match &shape.skeleton {
            Some(skeleton) if messages.iter().all(|message| message.is_bare_synthetic()) => {
                writer.count(&skeleton.assemble(messages))?
            }
            skeleton => {
                let new = roles
                    .iter()
                    .zip(messages)
                    .map(|(role, built)| (*role, &*built.text));
                let rendered = self.render(place, new)?;
                // A template may trim or cut messages: then the positions of synthetic text are
                // unknown.
                let synthetic = messages.iter().any(|message| !message.stretches.is_empty());
                let assembled = skeleton
                    .as_ref()
                    .filter(|_| synthetic)
                    .map(|skeleton| skeleton.assemble(messages))
                    .filter(|assembled| *assembled.text == *rendered);
                writer.count(&assembled.unwrap_or_else(|| BuiltText::verbatim(rendered)))?
            }
        };
        Ok(whole.saturating_sub(self.before(writer, place)?))
    }

    /// Returns the number of tokens that the template adds to short messages with these roles,
    /// which is close to that of others.
    pub(crate) fn adds(
        &self,
        writer: &MessageWriter,
        place: Position,
        roles: &[Role],
    ) -> Result<u32, PromptError> {
        Ok(self.shape(writer, place, roles)?.adds)
    }

    fn shape(
        &self,
        writer: &MessageWriter,
        place: Position,
        roles: &[Role],
    ) -> Result<PromptShape, PromptError> {
        let slot = place as usize;
        // A panic with the lock held leaves at worst incomplete shapes.
        let shapes = self.shapes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = shapes.get(roles).and_then(|places| places[slot].clone()) {
            return Ok(shape);
        }
        drop(shapes);
        let previous_turn = self.previous_turn();
        let history = if place == Position::Later {
            &previous_turn[..]
        } else {
            &[]
        };
        let skeleton = PromptSkeleton::of(&self.template, history, roles, &self.word).map(Arc::new);
        // Three words: one on either side of the template's text, and one between them.
        let sample = [self.word.as_str(); 3].join(" ");
        let rendered = self.render(place, roles.iter().map(|role| (*role, sample.as_str())))?;
        let content = 3 * roles.len() as u32;
        let whole = writer
            .count(&BuiltText::verbatim(rendered))?
            .saturating_sub(self.before(writer, place)?);
        let shape = PromptShape {
            skeleton,
            adds: whole.saturating_sub(content),
        };
        let mut shapes = self.shapes.write().unwrap_or_else(PoisonError::into_inner);
        if shapes.len() >= SHAPES {
            shapes.clear();
        }
        shapes.entry(roles.to_vec()).or_default()[slot] = Some(shape.clone());
        Ok(shape)
    }

    /// Returns the substitute for the previous conversation.
    fn previous_turn(&self) -> [(Role, &str); 2] {
        [
            (Role::User, self.word.as_str()),
            (Role::Assistant, self.word.as_str()),
        ]
    }

    fn render<'a>(
        &'a self,
        place: Position,
        new: impl Iterator<Item = (Role, &'a str)>,
    ) -> Result<String, PromptError> {
        let previous_turn = self.previous_turn();
        let before = match place {
            Position::First => &[],
            Position::Later => &previous_turn[..],
        };
        let messages: Vec<(Role, &str)> = before.iter().copied().chain(new).collect();
        self.template.render(&messages, true)
    }

    /// Returns the tokens of the previous conversation as the server left it: its prompt, followed
    /// by the answer.
    fn before(&self, writer: &MessageWriter, place: Position) -> Result<u32, PromptError> {
        if place == Position::First {
            return Ok(0);
        }
        let tokens = self.before.get_or_init(|| {
            let [asked, (_, answer)] = self.previous_turn();
            let left = self.template.render(&[asked], true).map(|prompt| prompt + answer);
            left.and_then(|text| writer.count(&BuiltText::verbatim(text)))
                .map_err(|error| error.to_string())
        });
        tokens.clone().map_err(|reason| PromptError::Template {
            name: self.template.name().to_string(),
            reason,
        })
    }
}
