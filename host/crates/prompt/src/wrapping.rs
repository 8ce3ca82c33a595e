//! Messages with exact lengths inside a chat template.

use std::sync::{Arc, Mutex, PoisonError};

use veeksha_model::{NodeId, Role};

use crate::compose::{Composed, PromptPiece, repaired, shorten};
use crate::count::BuiltText;
use crate::error::PromptError;
use crate::meter::{Position, TemplateMeter};
use crate::template::ChatTemplate;
use crate::writer::MessageWriter;

/// The meaning of a prompt's requested length if a chat template is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PromptTarget {
    /// The messages alone; the tokens of the template come on top.
    #[default]
    Content,
    /// The messages including all tokens that the template adds.
    Wrapped,
}

/// Requests for which the template could not be applied as requested, and the first reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateNotes {
    /// Number of requests that the template refused. Their `template_tokens` are 0 and their
    /// messages have the requested length.
    pub refused: u64,
    /// Number of requests with [`PromptTarget::Wrapped`] whose last user message has too little
    /// synthetic text to be shortened. Their messages have the requested length, and the tokens of
    /// the template come on top.
    pub too_short: u64,
    /// Description of the first one for the user.
    pub first: Option<String>,
}

/// The texts of a request's messages, and their tokens as in [`veeksha_model::Prepared`].
#[derive(Debug)]
pub(crate) struct PromptTexts {
    pub(crate) texts: Vec<Arc<str>>,
    pub(crate) target_tokens: u32,
    pub(crate) prompt_tokens: u32,
    pub(crate) template_tokens: u32,
}

impl PromptTexts {
    /// Returns messages unchanged; with the template they have `whole` tokens.
    pub(crate) fn of(messages: Vec<Composed>, whole: Option<u32>) -> PromptTexts {
        let sum = |tokens: fn(&Composed) -> u32| messages.iter().map(tokens).fold(0, u32::saturating_add);
        let prompt_tokens = sum(|message| message.tokens);
        PromptTexts {
            target_tokens: sum(|message| message.target),
            prompt_tokens,
            template_tokens: whole.map_or(0, |whole| whole.saturating_sub(prompt_tokens)),
            texts: messages.into_iter().map(|message| message.built.text).collect(),
        }
    }
}

/// A chat template with its caches.
#[derive(Debug)]
pub(crate) struct TemplateWrapper {
    pub(crate) meter: TemplateMeter,
    target: PromptTarget,
    notes: Mutex<TemplateNotes>,
}

impl TemplateWrapper {
    pub(crate) fn new(template: ChatTemplate, target: PromptTarget, word: String) -> Self {
        TemplateWrapper {
            meter: TemplateMeter::new(template, word),
            target,
            notes: Mutex::default(),
        }
    }

    pub(crate) fn notes(&self) -> TemplateNotes {
        self.locked_notes().clone()
    }

    /// Returns the texts of a request's messages. A request that the template cannot be applied to
    /// is made as if only its contents had a length, and counted; the server may still accept it.
    pub(crate) fn texts(
        &self,
        writer: &MessageWriter,
        place: Position,
        roles: &[Role],
        pieces: Vec<Vec<PromptPiece>>,
        node: NodeId,
    ) -> Result<PromptTexts, PromptError> {
        if self.target == PromptTarget::Wrapped {
            match self.fit(writer, place, roles, &pieces) {
                Ok(Some(texts)) => return Ok(texts),
                Ok(None) => {
                    let mut notes = self.locked_notes();
                    notes.too_short += 1;
                    notes.first.get_or_insert_with(|| {
                        format!(
                            "node {node}: the last user message has too little synthetic text to make space for the chat template"
                        )
                    });
                }
                // Counted below, where the template refuses again.
                Err(PromptError::Template { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let messages = writer.compose_all(pieces)?;
        let built: Vec<&BuiltText> = messages.iter().map(|message| &message.built).collect();
        let whole = match self.meter.tokens(writer, place, roles, &built) {
            Ok(whole) => Some(whole),
            Err(error @ PromptError::Template { .. }) => {
                let mut notes = self.locked_notes();
                notes.refused += 1;
                notes.first.get_or_insert_with(|| format!("node {node}: {error}"));
                None
            }
            Err(error) => return Err(error),
        };
        Ok(PromptTexts::of(messages, whole))
    }

    /// Returns texts whose whole, including the template, has the requested length; `None` if the
    /// template does not fit.
    ///
    /// Words are removed from the end of the last user message; everything else is unchanged.
    fn fit(
        &self,
        writer: &MessageWriter,
        place: Position,
        roles: &[Role],
        pieces: &[Vec<PromptPiece>],
    ) -> Result<Option<PromptTexts>, PromptError> {
        let Some(last) = roles.iter().rposition(|role| *role == Role::User) else {
            return Ok(None);
        };
        let mut shortened = pieces[last].clone();
        if !shorten(&mut shortened, self.meter.adds(writer, place, roles)?) {
            return Ok(None);
        }
        let others: Vec<Option<Composed>> = (0..)
            .zip(pieces)
            .map(|(index, pieces)| {
                let other = (index != last).then(|| writer.compose(pieces.clone()));
                other.transpose()
            })
            .collect::<Result<_, _>>()?;
        let mut target = writer.asked(&pieces[last])?;
        for other in others.iter().flatten() {
            target = target.saturating_add(other.target);
        }
        let whole = |built: &BuiltText| {
            let messages: Vec<&BuiltText> = others
                .iter()
                .map(|other| other.as_ref().map_or(built, |other| &other.built))
                .collect();
            self.meter.tokens(writer, place, roles, &messages)
        };
        let (built, whole) = repaired(&mut shortened, target, |pieces| writer.build(pieces), whole)?;
        if built.text.is_empty() {
            return Ok(None);
        }
        let mut content = writer.count(&built)?;
        let mut texts = Vec::with_capacity(others.len());
        for other in others {
            texts.push(match other {
                Some(other) => {
                    content = content.saturating_add(other.tokens);
                    other.built.text
                }
                None => built.text.clone(),
            });
        }
        let template_tokens = whole.saturating_sub(content);
        Ok(Some(PromptTexts {
            texts,
            target_tokens: target,
            // Not `content`: the two add up to the whole even if the joint between them saves a
            // token.
            prompt_tokens: whole - template_tokens,
            template_tokens,
        }))
    }

    fn locked_notes(&self) -> std::sync::MutexGuard<'_, TemplateNotes> {
        // A panic with the lock held leaves at worst incomplete notes.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
