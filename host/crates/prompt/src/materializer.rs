//! Turns requests into prepared requests.

use std::fmt;
use std::sync::Arc;

use veeksha_model::{
    HistoryMode, MediaKind, Message, NodeId, Prepared, PreparedMessage, PreparedReasoning, PreparedTools,
    ReasoningContent, ReasoningSupport, ReasoningTarget, RecordedAnswer, Request, Response, Role, Seed,
    Segment, ToolCall, ToolChoice, ToolDefinitions,
};

use crate::compose::PromptPiece;
use crate::definitions::DefinitionCache;
use crate::error::PromptError;
use crate::media::MediaStore;
use crate::meter::Position;
use crate::salt::TextSalt;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use crate::wrapping::{PromptTarget, PromptTexts, TemplateNotes, TemplateWrapper};
use crate::writer::{MAX_TOKENS, MessageWriter};

/// Decides whether the target can be sent a request; the error is a message for the author of the
/// workload.
pub type RequestFilter = Arc<dyn Fn(&Request) -> Result<ReasoningTarget, String> + Send + Sync>;

/// Makes text from segments. Can be shared between threads.
pub struct Materializer {
    writer: MessageWriter,
    salt: TextSalt,
    wrapping: Option<TemplateWrapper>,
    media: MediaStore,
    definitions: DefinitionCache,
    filter: Option<RequestFilter>,
}

impl fmt::Debug for Materializer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Materializer")
            .field("writer", &self.writer)
            .field("salt", &self.salt)
            .field("wrapping", &self.wrapping)
            .field("media", &self.media)
            .field("filter", &self.filter.is_some())
            .finish()
    }
}

impl Materializer {
    /// Finds the words of the tokenizer, which takes some milliseconds.
    pub fn new(tokenizer: Tokenizer) -> Result<Self, PromptError> {
        Ok(Materializer {
            writer: MessageWriter::new(tokenizer)?,
            salt: TextSalt::default(),
            wrapping: None,
            media: MediaStore::default(),
            definitions: DefinitionCache::default(),
            filter: None,
        })
    }

    /// Mixes a run's salt into every synthetic seed: another salt gives other text, while equal
    /// seeds still give equal text and shorter texts are still prefixes of longer ones. `None`
    /// leaves seeds unchanged.
    #[must_use]
    pub fn salted(self, salt: Option<u64>) -> Self {
        Materializer {
            salt: TextSalt::new(salt),
            ..self
        }
    }

    /// Applies a chat template: its additional tokens are counted for each request
    /// (`template_tokens`), and with [`PromptTarget::Wrapped`] the last user message is shortened
    /// by as many.
    #[must_use]
    pub fn with_template(self, template: ChatTemplate, target: PromptTarget) -> Self {
        let word = self.writer.words.anchor().trim_start().to_string();
        Materializer {
            wrapping: Some(TemplateWrapper::new(template, target, word)),
            ..self
        }
    }

    /// Grants media files; without it, messages may only contain URLs and generated media.
    #[must_use]
    pub fn with_media(self, media: MediaStore) -> Self {
        Materializer { media, ..self }
    }

    /// Refuses the requests that `filter` refuses.
    #[must_use]
    pub fn with_filter(self, filter: RequestFilter) -> Self {
        Materializer {
            filter: Some(filter),
            ..self
        }
    }

    /// Checks the parts of a request that are not text: the target can be sent them, and the JSON
    /// of its functions and its schema is valid.
    pub fn check_form(&self, request: &Request) -> Result<(), PromptError> {
        self.form(request).map_err(|reason| PromptError::Request {
            node: request.node,
            reason,
        })?;
        Ok(())
    }

    /// Returns the functions of a request after [`Materializer::check_form`]'s checks.
    fn form(&self, request: &Request) -> Result<(Option<Arc<PreparedTools>>, ReasoningTarget), String> {
        let filter = self.filter.as_ref();
        let reasoning = filter.map_or(Ok(ReasoningTarget::default()), |filter| filter(request))?;
        let form = request.output.form.as_deref();
        if let Some(schema) = form.and_then(|form| form.schema.as_deref()) {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(schema)
                .map_err(|error| format!("the response schema must be a JSON object: {error}"))?;
        }
        let tools = request.tools.as_deref();
        let tools = tools.map(|tools| self.tools(tools)).transpose()?;
        let choice = form.and_then(|form| form.tool_choice.as_ref());
        if let (Some(ToolChoice::Function(name)), Some(tools)) = (choice, &tools)
            && tools.defines(name) == Some(false)
        {
            return Err(format!(
                "the tool choice is `{name}`, which `tools` does not define"
            ));
        }
        Ok((tools, reasoning))
    }

    /// Returns definitions of functions that can be sent. Equal definitions are made once.
    ///
    /// # Errors
    /// If they are invalid; a message for the author of the workload.
    pub fn tools(&self, definitions: &ToolDefinitions) -> Result<Arc<PreparedTools>, String> {
        self.definitions.prepared(&self.writer, self.salt, definitions)
    }

    /// Checks that [`Materializer::prepare`] can succeed, and otherwise returns its error: lengths
    /// are in bounds and media are available. It is cheap enough to check every request before a
    /// run: no text is written, nothing is generated or encoded, and only the first bytes of media
    /// files are read.
    pub fn check(&self, request: &Request) -> Result<(), PromptError> {
        check_length(request)?;
        self.check_form(request)?;
        if let Some(answer) = request.replay.as_ref().and_then(|replay| replay.answer.as_ref()) {
            check_answer(answer)?;
        }
        for (kind, source) in request.messages.iter().flat_map(media_of) {
            self.media
                .check(kind, source)
                .map_err(|source| PromptError::Media {
                    node: request.node,
                    source,
                })?;
        }
        Ok(())
    }

    /// Makes the text of every message, and URLs of its media. The tokens of media are not known
    /// here and not counted; those of tool calls and reasoning are part of the messages. Reasoning
    /// that the endpoint does not send is left out.
    ///
    /// `target_tokens` is the requested length: the tokens of synthetic segments, and those of each
    /// verbatim text on its own. `prompt_tokens` is the length of the finished messages,
    /// `template_tokens` the number that the chat template adds. With [`PromptTarget::Content`]
    /// `prompt_tokens` is the target; with [`PromptTarget::Wrapped`] the sum of both is.
    pub fn prepare(&self, mut request: Request) -> Result<Prepared, PromptError> {
        check_length(&request)?;
        let (tools, reasoning) = self.form(&request).map_err(|reason| PromptError::Request {
            node: request.node,
            reason,
        })?;
        drop_unsent_reasoning(&mut request, reasoning.support);
        let answer = request.replay.as_ref().and_then(|replay| replay.answer.as_ref());
        let recorded_answer = answer
            .map(|answer| self.answer(answer))
            .transpose()?
            .map(Arc::new);
        let PromptTexts {
            texts,
            mut target_tokens,
            mut prompt_tokens,
            template_tokens,
        } = self.texts(&request)?;
        let mut messages = Vec::with_capacity(texts.len());
        let mut token_ids = Vec::new();
        for (message, text) in request.messages.iter().zip(texts) {
            let mut tokens = self.call_tokens(&message.tool_calls);
            let stated = message.reasoning.as_ref();
            let stated = stated.map(|stated| self.reasoning(stated)).transpose()?;
            let stated = stated.map(|(stated, length)| {
                tokens = tokens.saturating_add(length);
                stated
            });
            for segment in &message.content {
                if let Segment::TokenIds(ids) = segment {
                    tokens = tokens.saturating_add(ids.len() as u32);
                    token_ids.extend_from_slice(ids);
                }
            }
            target_tokens = target_tokens.saturating_add(tokens);
            prompt_tokens = prompt_tokens.saturating_add(tokens);
            messages.push(PreparedMessage {
                role: message.role,
                text,
                media: self.media(request.node, message)?,
                tool_call_id: message.tool_call_id.clone(),
                tool_calls: message.tool_calls.clone(),
                reasoning: stated,
            });
        }
        Ok(Prepared {
            request,
            session_labels: 0,
            messages,
            target_tokens,
            prompt_tokens,
            template_tokens,
            recorded_answer,
            tools,
            token_ids,
            reasoning,
        })
    }

    /// Returns the reasoning of a message as text, and its tokens.
    fn reasoning(&self, reasoning: &ReasoningContent) -> Result<(PreparedReasoning, u32), PromptError> {
        let composed = self.writer.compose(self.pieces(&reasoning.content))?;
        let prepared = PreparedReasoning {
            text: composed.built.text,
            signature: reasoning.signature.clone(),
        };
        Ok((prepared, composed.tokens))
    }

    /// Returns the tokens of calls: their names and arguments.
    fn call_tokens(&self, calls: &[ToolCall]) -> u32 {
        let texts = calls.iter().flat_map(|call| [&call.name, &call.arguments]);
        let counts = texts.map(|text| self.writer.tokenizer.count(text));
        counts.fold(0, u32::saturating_add)
    }

    /// Returns a recorded answer as if the model had just given it: its text, its tool calls, its
    /// reasoning, and the length of all of them, counted by the tokenizer. Media are refused: no
    /// API accepts them from an assistant.
    pub fn answer(&self, answer: &RecordedAnswer) -> Result<Response, PromptError> {
        check_answer(answer)?;
        let composed = self.writer.compose(self.pieces(&answer.content))?;
        let mut response = Response {
            text: composed.built.text.to_string(),
            tool_calls: answer.tool_calls.clone(),
            finish_reason: "stop".to_string(),
            output_tokens: composed
                .tokens
                .saturating_add(self.call_tokens(&answer.tool_calls)),
            ..Response::default()
        };
        if let Some(reasoning) = &answer.reasoning {
            let (reasoning, tokens) = self.reasoning(reasoning)?;
            response.reasoning = reasoning.text.to_string();
            response.reasoning_signature = reasoning.signature;
            response.output_tokens = response.output_tokens.saturating_add(tokens);
        }
        Ok(response)
    }

    /// Returns synthetic text as at the beginning of a message: exactly `tokens` tokens. Shorter
    /// texts of a seed are prefixes of longer ones.
    pub fn text(&self, seed: Seed, tokens: u32) -> Arc<str> {
        self.writer.text(self.salt.apply(seed), tokens)
    }

    /// Renders a whole conversation as the text that the model sees, up to the beginning of its
    /// next answer; for APIs that take a text.
    ///
    /// If the template begins with the token that begins every prompt (`bos_token`), and the
    /// tokenizer adds that token to every text, it is omitted, because such servers add it.
    pub fn render_conversation(&self, messages: &[(Role, &str)]) -> Result<String, PromptError> {
        let Some(wrapping) = &self.wrapping else {
            return Err(PromptError::NoTemplate {
                path: self.writer.tokenizer.name().into(),
            });
        };
        let template = &wrapping.meter.template;
        let mut text = template.render(messages, true)?;
        if let Some(bos) = template.bos_token().filter(|bos| text.starts_with(bos))
            && self.writer.tokenizer.begins_with(bos)
        {
            text.drain(..bos.len());
        }
        Ok(text)
    }

    /// Returns the requests that the chat template could not be applied to.
    pub fn template_notes(&self) -> TemplateNotes {
        self.wrapping
            .as_ref()
            .map(TemplateWrapper::notes)
            .unwrap_or_default()
    }

    /// Returns the number of distinct words in synthetic text.
    pub fn words(&self) -> usize {
        self.writer.words.len()
    }

    /// Returns true if lengths are exact without encoding each text; see the crate's documentation.
    pub fn is_proven(&self) -> bool {
        self.writer.is_proven()
    }

    /// Returns the texts of a request's messages with their token counts.
    fn texts(&self, request: &Request) -> Result<PromptTexts, PromptError> {
        let messages = request.messages.iter();
        let pieces = messages.map(|message| self.pieces(&message.content)).collect();
        let Some(wrapping) = &self.wrapping else {
            return Ok(PromptTexts::of(self.writer.compose_all(pieces)?, None));
        };
        let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
        let place = match request.history_parent {
            Some(_) if request.history_mode() != HistoryMode::Fresh => Position::Later,
            _ => Position::First,
        };
        wrapping.texts(&self.writer, place, &roles, pieces, request.node)
    }

    /// Returns the media of a message as URLs.
    fn media(&self, node: NodeId, message: &Message) -> Result<Vec<(MediaKind, Arc<str>)>, PromptError> {
        media_of(message)
            .map(
                |(kind, source)| match self.media.resolve(kind, source, self.salt) {
                    Ok(url) => Ok((kind, url)),
                    Err(source) => Err(PromptError::Media { node, source }),
                },
            )
            .collect()
    }

    /// Returns the text pieces of segments, with adjacent texts joined.
    fn pieces(&self, content: &[Segment]) -> Vec<PromptPiece> {
        let mut pieces: Vec<PromptPiece> = Vec::with_capacity(content.len());
        for segment in content {
            match (segment, pieces.last_mut()) {
                (Segment::Text(text), Some(PromptPiece::Text(before))) => before.push_str(text),
                (Segment::Text(text), _) => pieces.push(PromptPiece::Text(text.clone())),
                (Segment::Synthetic { seed, tokens }, _) => {
                    pieces.push(PromptPiece::synthetic(self.salt.apply(*seed), *tokens));
                }
                (Segment::Media { .. } | Segment::TokenIds(_) | Segment::ToolResult(_), _) => {}
            }
        }
        pieces
    }
}

fn drop_unsent_reasoning(request: &mut Request, support: ReasoningSupport) {
    let messages = request.messages.iter_mut().map(|message| &mut message.reasoning);
    let answer = request.replay.as_mut().and_then(|replay| replay.answer.as_mut());
    for reasoning in messages.chain(answer.map(|answer| &mut answer.reasoning)) {
        reasoning.take_if(|reasoning| !support.sends_content(reasoning));
    }
}

/// Returns the media that a message names.
fn media_of(message: &Message) -> impl Iterator<Item = (MediaKind, &str)> {
    message.content.iter().filter_map(|segment| match segment {
        Segment::Media { kind, source } => Some((*kind, source.as_str())),
        _ => None,
    })
}

/// Refuses a request that asks for too many tokens.
fn check_length(request: &Request) -> Result<(), PromptError> {
    let content = request.messages.iter().flat_map(|message| &message.content);
    let reasoning = request
        .messages
        .iter()
        .filter_map(|message| message.reasoning.as_ref());
    match too_long(content.chain(reasoning.flat_map(|reasoning| &reasoning.content))) {
        None => Ok(()),
        Some(tokens) => Err(PromptError::TooLong {
            node: request.node,
            tokens,
            limit: MAX_TOKENS,
        }),
    }
}

/// Refuses a recorded answer that no model can have given.
fn check_answer(answer: &RecordedAnswer) -> Result<(), PromptError> {
    let reasoning = answer.reasoning.iter().flat_map(|reasoning| &reasoning.content);
    let content = || answer.content.iter().chain(reasoning.clone());
    if let Some(tokens) = too_long(content()) {
        return Err(PromptError::AnswerTooLong {
            tokens,
            limit: MAX_TOKENS,
        });
    }
    let media = content().find_map(|segment| match segment {
        Segment::Media { kind, .. } => Some(kind.name()),
        _ => None,
    });
    media.map_or(Ok(()), |kind| Err(PromptError::AnswerMedia { kind }))
}

/// Returns the number of synthetic tokens that the segments request, if it exceeds the limit.
fn too_long<'a>(content: impl IntoIterator<Item = &'a Segment>) -> Option<u64> {
    let tokens = content
        .into_iter()
        .map(|segment| match segment {
            Segment::Synthetic { tokens, .. } => u64::from(*tokens),
            _ => 0,
        })
        .sum();
    (tokens > u64::from(MAX_TOKENS)).then_some(tokens)
}
