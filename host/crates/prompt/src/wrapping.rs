//! Messages made to measure where a chat template wraps them.

use std::sync::{Arc, Mutex, PoisonError};

use veeksha_model::{NodeId, Role};

use crate::PromptError;
use crate::compose::{Composed, Piece, repaired, shorten};
use crate::count::Built;
use crate::meter::{Place, TemplateMeter};
use crate::template::ChatTemplate;
use crate::writer::Writer;

/// What the asked length of a prompt means where a chat template is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PromptTarget {
    /// The messages alone; what the template adds comes on top.
    #[default]
    Content,
    /// The messages and all that the template adds around them.
    Wrapped,
}

/// Requests for which the template could not do what was asked, and the first reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateNotes {
    /// Requests that the template refused. Their `template_tokens` are 0 and their messages as long as asked for.
    pub refused: u64,
    /// Requests of [`PromptTarget::Wrapped`] whose last user message has too little synthetic text to make room. Their messages
    /// are as long as asked for, and what the template adds comes on top.
    pub too_short: u64,
    /// The first of them, for a person.
    pub first: Option<String>,
}

/// The texts of a request's messages, and their tokens as [`veeksha_model::Prepared`] has them.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) texts: Vec<Arc<str>>,
    pub(crate) target_tokens: u32,
    pub(crate) prompt_tokens: u32,
    pub(crate) template_tokens: u32,
}

impl Texts {
    /// Messages as they are, of which the template makes `whole` tokens.
    pub(crate) fn of(messages: Vec<Composed>, whole: Option<u32>) -> Texts {
        let sum = |tokens: fn(&Composed) -> u32| messages.iter().map(tokens).fold(0, u32::saturating_add);
        let prompt_tokens = sum(|message| message.tokens);
        Texts {
            target_tokens: sum(|message| message.target),
            prompt_tokens,
            template_tokens: whole.map_or(0, |whole| whole.saturating_sub(prompt_tokens)),
            texts: messages.into_iter().map(|message| message.built.text).collect(),
        }
    }
}

/// A template at work.
#[derive(Debug)]
pub(crate) struct Wrapping {
    pub(crate) meter: TemplateMeter,
    target: PromptTarget,
    notes: Mutex<TemplateNotes>,
}

impl Wrapping {
    pub(crate) fn new(template: ChatTemplate, target: PromptTarget, word: String) -> Self {
        Wrapping {
            meter: TemplateMeter::new(template, word),
            target,
            notes: Mutex::default(),
        }
    }

    pub(crate) fn notes(&self) -> TemplateNotes {
        self.locked_notes().clone()
    }

    /// The texts of a request's messages. A request that the template cannot do justice to is made as if it were asked for by its
    /// content alone, and noted: the server will have its own opinion of it.
    pub(crate) fn texts(
        &self,
        writer: &Writer,
        place: Place,
        roles: &[Role],
        pieces: Vec<Vec<Piece>>,
        node: NodeId,
    ) -> Result<Texts, PromptError> {
        if self.target == PromptTarget::Wrapped {
            match self.fitted(writer, place, roles, &pieces) {
                Ok(Some(texts)) => return Ok(texts),
                Ok(None) => {
                    let mut notes = self.locked_notes();
                    notes.too_short += 1;
                    notes.first.get_or_insert_with(|| {
                        format!(
                            "node {node}: the last user message has too little synthetic text to give up what the chat template adds"
                        )
                    });
                }
                // Counted below, where the template refuses again.
                Err(PromptError::Template { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let messages = writer.compose_all(pieces)?;
        let built: Vec<&Built> = messages.iter().map(|message| &message.built).collect();
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
        Ok(Texts::of(messages, whole))
    }

    /// The texts of which the whole, template included, has the asked length; `None` if there is no room for the template.
    ///
    /// The last user message gives up synthetic words from its end; all else is as it would be without a template.
    fn fitted(
        &self,
        writer: &Writer,
        place: Place,
        roles: &[Role],
        pieces: &[Vec<Piece>],
    ) -> Result<Option<Texts>, PromptError> {
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
        let whole = |built: &Built| {
            let messages: Vec<&Built> = others
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
        Ok(Some(Texts {
            texts,
            target_tokens: target,
            // Not `content`: the two add up to the whole even where the joint between them saves a token.
            prompt_tokens: whole - template_tokens,
            template_tokens,
        }))
    }

    fn locked_notes(&self) -> std::sync::MutexGuard<'_, TemplateNotes> {
        // A panic while the lock was held leaves notes that are at worst incomplete.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
