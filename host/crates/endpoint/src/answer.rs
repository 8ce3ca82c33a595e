//! Accumulated state of the events of one answer.

use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use veeksha_model::{AnswerPart, Chunk, ChunkKind, ErrorClass, Nanos, Response, ToolCall, Usage};

use crate::answer_failure::{in_stream, no_event};
use crate::answer_outcome::{AnswerOutcome, BodyEnd, ReadStamp};
use crate::echo::{Echo, EchoedPrompt};
use crate::error_body::ServerError;
use crate::failure::Failure;
use crate::skeleton::{BorrowedRange, Fit, Ignored, PlainEvent, unescape};
use crate::token_values::TokenValues;

/// The state accumulated so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) chunks: Vec<Chunk>,
    /// Bytes of text, visible or reasoning, that each generated chunk added.
    texts: Vec<u32>,
    /// The server's running count of generated tokens at each generated chunk whose event had one.
    running_tokens: Vec<u32>,
    /// Bytes of text before the current event.
    text_before: usize,
    /// The response without its texts.
    response: Response,
    /// The id that the server gave the response.
    response_id: Option<String>,
    /// The prompt that the server repeats before its answer.
    echo: Option<Echo>,
    /// Log-probabilities.
    token_values: TokenValues,
    /// Visible text. Valid UTF-8, because each piece is checked when it is appended.
    text: Vec<u8>,
    /// Reasoning text. Valid UTF-8, like `text`.
    reasoning: Vec<u8>,
    /// The block of reasoning to which the signature in `response` belongs.
    signed_block: Option<u32>,
    /// True if the signature cannot be sent back: it is of a part of the reasoning, or too long.
    is_signature_partial: bool,
    /// Server indices of `response.tool_calls`.
    tool_indices: Vec<u32>,
    pub(crate) finished: bool,
    /// True after the end marker.
    pub(crate) done: bool,
    /// The failure and the time at which it was detected.
    pub(crate) failure: Option<(Failure, Nanos)>,
    /// True after the first event with data.
    pub(crate) any_event: bool,
    pub(crate) first_generated_at: Option<Nanos>,
    /// Events so far, including those that are not recorded.
    pub(crate) events: usize,
    comments: usize,
    /// True if the response is one event that was not streamed: its parts are not chunks of a
    /// stream.
    is_whole: bool,
    event: EventContents,
}

/// Contents of the current event.
#[derive(Debug, Default)]
struct EventContents {
    kind: Option<ChunkKind>,
    usage: bool,
    /// The text of the event, if the event contains exactly one part.
    text: Option<BorrowedRange>,
    /// True if the event contains another part, or more than one.
    more: bool,
    ignored: Ignored,
    failure: Option<Failure>,
}

/// Maximum number of recorded comments per response. Bounds the memory if a server sends nothing
/// but comments.
pub(crate) const MAX_COMMENTS: usize = 10_000;

/// Maximum length of the id of a response in bytes.
const MAX_ID_BYTES: usize = 1_024;

/// Maximum length of the signature of reasoning in bytes. Real ones have some kilobytes.
const MAX_SIGNATURE_BYTES: usize = 4 << 20;

/// Finish reasons with which a server reports that generation failed: `abort` (vLLM, SGLang),
/// `error` (vLLM, Mistral, OpenRouter).
const FAILURE_REASONS: [&str; 2] = ["abort", "error"];

/// Precedence of chunk kinds: an event with several parts gets the kind that comes first here.
const RANKS: [ChunkKind; 8] = [
    ChunkKind::Content,
    ChunkKind::Tool,
    ChunkKind::Reasoning,
    ChunkKind::Finish,
    ChunkKind::Done,
    ChunkKind::Usage,
    ChunkKind::Role,
    ChunkKind::Comment,
];

fn rank(kind: ChunkKind) -> usize {
    RANKS
        .iter()
        .position(|known| *known == kind)
        .unwrap_or(RANKS.len())
}

/// Contents of an event. The endpoint readers call these methods while they read it.
impl Answer {
    fn add_kind(&mut self, kind: ChunkKind) {
        if self.event.kind.is_none_or(|known| rank(kind) < rank(known)) {
            self.event.kind = Some(kind);
        }
    }

    fn add_text(&mut self, kind: ChunkKind, text: &str) {
        if text.is_empty() {
            self.role();
            return;
        }
        self.add_kind(kind);
        if self.event.text.is_some() {
            self.event.more = true;
        }
        self.event.text = Some(BorrowedRange::of(text));
        match kind {
            ChunkKind::Reasoning => self.reasoning.extend_from_slice(text.as_bytes()),
            _ => self.text.extend_from_slice(text.as_bytes()),
        }
    }

    /// Records a role. Nothing was generated.
    pub(crate) fn role(&mut self) {
        self.add_kind(ChunkKind::Role);
    }

    /// Records the id of the response: a string or a number. The first one counts; an empty one, or
    /// a value of another type, is ignored.
    pub(crate) fn id(&mut self, json: Option<&RawValue>) {
        let Some(json) = json.filter(|_| self.response_id.is_none()) else {
            return;
        };
        match serde_json::from_str(json.get()) {
            Ok(Value::String(id)) => self.response_id(id),
            Ok(Value::Number(id)) => self.response_id(id.to_string()),
            _ => {}
        }
    }

    fn response_id(&mut self, mut id: String) {
        if self.response_id.is_none() && !id.is_empty() {
            id.truncate(id.floor_char_boundary(MAX_ID_BYTES));
            self.response_id = Some(id);
        }
    }

    /// Appends visible text. Empty text does not count as generated.
    pub(crate) fn content(&mut self, text: &str) {
        self.add_text(ChunkKind::Content, text);
    }

    /// Appends reasoning text. Empty text does not count as generated.
    pub(crate) fn reasoning(&mut self, text: &str) {
        self.add_text(ChunkKind::Reasoning, text);
    }

    /// Appends a piece of the signature of the reasoning in block `index`. An answer has one
    /// signature for all its reasoning, so those of several blocks are dropped.
    pub(crate) fn signature(&mut self, index: Option<u32>, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.event.more = true;
        self.add_kind(ChunkKind::Role);
        let index = index.unwrap_or_default();
        let signature = self.response.reasoning_signature.get_or_insert_default();
        let fits = signature.len() + piece.len() <= MAX_SIGNATURE_BYTES;
        if *self.signed_block.get_or_insert(index) == index && fits {
            signature.push_str(piece);
        } else {
            self.is_signature_partial = true;
        }
    }

    /// Records reasoning that cannot be sent back as text.
    pub(crate) fn hidden_reasoning(&mut self) {
        self.generated(ChunkKind::Reasoning);
        self.is_signature_partial = true;
    }

    /// Records generated output without text.
    pub(crate) fn generated(&mut self, kind: ChunkKind) {
        self.event.more = true;
        self.add_kind(kind);
    }

    /// Appends a piece of a tool call. Pieces are grouped by index; without an index, a new id
    /// begins a new call.
    pub(crate) fn tool(&mut self, index: Option<u32>, id: &str, name: &str, arguments: &str) {
        self.generated(ChunkKind::Tool);
        let calls = &mut self.response.tool_calls;
        let place = match index {
            Some(index) => self.tool_indices.iter().position(|known| *known == index),
            None if id.is_empty() => calls.len().checked_sub(1),
            None => calls.iter().position(|call| call.id == id),
        };
        let place = place.unwrap_or_else(|| {
            let fresh = self
                .tool_indices
                .iter()
                .max()
                .map_or(0, |last| last.saturating_add(1));
            self.tool_indices.push(index.unwrap_or(fresh));
            calls.push(ToolCall::default());
            calls.len() - 1
        });
        let call = &mut calls[place];
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        // Some servers repeat the whole name in every piece.
        if name != call.name {
            call.name.push_str(name);
        }
        call.arguments.push_str(arguments);
    }

    /// Returns true if the pieces of the call at `index` contained arguments.
    pub(crate) fn has_arguments(&self, index: u32) -> bool {
        let place = self.tool_indices.iter().position(|known| *known == index);
        place.is_some_and(|place| !self.response.tool_calls[place].arguments.is_empty())
    }

    /// Appends the log-probability of a token; `None` if the server sent none that can be used, as
    /// for the first one of a prompt. `best` is the
    /// highest one of the alternatives that the server sent.
    pub(crate) fn log_probability(&mut self, logarithm: Option<f64>, best: Option<f64>) {
        self.event.more = true;
        let greedy = logarithm.zip(best).map(|(logarithm, best)| logarithm >= best);
        self.token_values.push(logarithm, greedy);
    }

    /// Returns true if the answer begins after the prompt, which the server repeats.
    pub(crate) fn has_echo(&self) -> bool {
        self.echo.is_some()
    }

    /// Appends text that may belong to the repeated prompt. `tokens` are the texts of its tokens.
    pub(crate) fn content_after_echo(&mut self, text: &str, tokens: &[String]) {
        self.event.more = true;
        let Some(echo) = &mut self.echo else {
            return self.content(text);
        };
        match echo.answer_part(text, tokens) {
            Ok(part) => self.content(&part),
            Err(failure) => self.refuse(failure),
        }
    }

    /// Records the finish reason. An empty reason is ignored.
    pub(crate) fn finish(&mut self, reason: &str) {
        if reason.is_empty() {
            return;
        }
        self.event.more = true;
        if FAILURE_REASONS.contains(&reason) {
            let message = format!("the server ended the response with the finish reason `{reason}`");
            return self.refuse(Failure::new(ErrorClass::InStream, message));
        }
        self.response.finish_reason.clear();
        self.response.finish_reason.push_str(reason);
        self.finished = true;
        self.add_kind(ChunkKind::Finish);
    }

    /// Sets the token counts. The last counts win. A part that exceeds its whole is not a count.
    pub(crate) fn usage(&mut self, mut usage: Usage) {
        usage.cached = usage.cached.filter(|cached| *cached <= usage.prompt);
        usage.reasoning = usage.reasoning.filter(|reasoning| *reasoning <= usage.completion);
        self.event.more = true;
        self.event.usage = true;
        self.response.output_tokens = usage.completion;
        self.response.usage = Some(usage);
    }

    /// Records the end marker as the event's content.
    pub(crate) fn done(&mut self) {
        self.event.more = true;
        self.done = true;
        self.add_kind(ChunkKind::Done);
    }

    /// Records the end marker for an event whose primary content is something else.
    pub(crate) fn done_with_this(&mut self) {
        self.event.more = true;
        self.done = true;
    }

    /// Records a keep-alive comment.
    pub(crate) fn comment(&mut self) {
        self.event.more = true;
        self.add_kind(ChunkKind::Comment);
    }

    /// Records an error that the server reported.
    pub(crate) fn error(&mut self, error: ServerError) {
        self.refuse(in_stream(error));
    }

    /// Fails the request: an error, or an invalid answer.
    pub(crate) fn refuse(&mut self, failure: Failure) {
        self.event.more = true;
        self.event.failure.get_or_insert(failure);
    }

    /// Records a member whose value is not read. `json` is its raw JSON, borrowed from the event.
    pub(crate) fn ignored(&mut self, json: &str) {
        self.event.ignored.add(json);
    }

    /// Returns true if text was generated before.
    pub(crate) fn has_text(&self) -> bool {
        !self.text.is_empty()
    }

    /// Returns true if the event contained no part of an answer.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.response == Response::default()
    }

    pub(crate) fn part(&mut self, part: AnswerPart) {
        match part {
            AnswerPart::Role => self.role(),
            AnswerPart::Reasoning(text) => self.reasoning(&text),
            AnswerPart::Content(text) => self.content(&text),
            AnswerPart::Tool {
                index,
                id,
                name,
                arguments,
            } => self.tool(Some(index), &id, &name, &arguments),
            AnswerPart::Finish(reason) => self.finish(&reason),
            AnswerPart::Usage(usage) => self.usage(usage),
            AnswerPart::Signature(piece) => self.signature(None, &piece),
            AnswerPart::LogProbabilities(tokens) => {
                self.event.more = true;
                let mut greedy = tokens.greedy.into_iter();
                for logarithm in tokens.logarithms {
                    self.token_values.push(Some(logarithm), greedy.next());
                }
            }
            AnswerPart::ResponseId(id) => self.response_id(id),
            AnswerPart::Done => self.done(),
            AnswerPart::Comment => self.comment(),
            AnswerPart::Error { message, code } => self.error(ServerError { message, code }),
        }
    }
}

/// Event lifecycle.
impl Answer {
    /// Returns the state before the first event. `is_whole` is true for a response that is one
    /// event and was not streamed.
    pub(crate) fn new(is_whole: bool) -> Self {
        Answer {
            is_whole,
            ..Answer::default()
        }
    }

    /// Expects the prompt before the answer.
    pub(crate) fn expect_echo(&mut self, prompt: Option<EchoedPrompt>) {
        self.echo = prompt.map(Echo::new);
    }

    pub(crate) fn fail(&mut self, at: Nanos, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some((failure, at));
        }
    }

    /// Returns the number of generated chunks so far.
    pub(crate) fn generated_chunks(&self) -> usize {
        self.texts.len()
    }

    /// Returns the bytes of text so far, visible or reasoning.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len() + self.reasoning.len()
    }

    /// Returns true if no further input can change the result.
    pub(crate) fn is_over(&self) -> bool {
        self.done || self.failure.is_some()
    }

    /// Commits the event that was just read. Returns the input for a skeleton if the event
    /// contained one text and nothing else.
    pub(crate) fn end_event(&mut self, stamp: ReadStamp, merged: bool, bytes: usize) -> Option<PlainEvent> {
        let event = std::mem::take(&mut self.event);
        if let Some(failure) = event.failure {
            self.fail(stamp.at, failure);
            return None;
        }
        let kind = match event.kind {
            Some(kind) if self.is_whole && kind.is_generated() => ChunkKind::Finish,
            // LiteLLM sends usage with a choice whose delta is empty.
            Some(ChunkKind::Role) if event.usage && self.finished => ChunkKind::Usage,
            Some(kind) => kind,
            None if event.usage => ChunkKind::Usage,
            None => ChunkKind::Role,
        };
        if kind.is_generated() && event.usage {
            self.running_tokens.push(self.response.output_tokens);
        }
        self.push(stamp, merged, bytes, kind);
        match event.text {
            Some(text) if !event.more => Some(PlainEvent {
                kind,
                text,
                ignored: event.ignored,
            }),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, stamp: ReadStamp, merged: bool, bytes: usize, kind: ChunkKind) {
        self.events += 1;
        if kind == ChunkKind::Comment {
            self.comments += 1;
            if self.comments > MAX_COMMENTS {
                return;
            }
        }
        if kind.is_generated() && self.first_generated_at.is_none() {
            self.first_generated_at = Some(stamp.at);
        }
        if kind.is_generated() {
            let text = self.text_bytes();
            self.texts
                .push(u32::try_from(text - self.text_before).unwrap_or(u32::MAX));
            self.text_before = text;
        }
        self.chunks.push(Chunk {
            at: stamp.at,
            lag: stamp.lag,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            kind,
            merged,
        });
    }

    /// Commits an event that fits a skeleton. Returns false and changes nothing if its text is
    /// invalid.
    #[inline]
    pub(crate) fn fitted(&mut self, stamp: ReadStamp, merged: bool, fit: &Fit<'_>) -> bool {
        let text = match fit.kind {
            ChunkKind::Reasoning => &mut self.reasoning,
            _ => &mut self.text,
        };
        if !fit.escaped {
            text.extend_from_slice(fit.text);
        } else if !unescape(text, fit.text) {
            return false;
        }
        self.push(stamp, merged, fit.data_bytes, fit.kind);
        true
    }

    /// Returns the result of the answer. `rule` is the proof of completeness, `marker` describes
    /// the endpoint's end in messages.
    pub(crate) fn verdict(
        self,
        (rule, marker): (EndRule, &str),
        content_type: Option<&str>,
        end: BodyEnd,
        beginning: &[u8],
    ) -> AnswerOutcome {
        let chunk_tokens = chunk_tokens(&self.running_tokens, self.texts.len());
        let has_output =
            !self.texts.is_empty() || self.text_bytes() > 0 || !self.response.tool_calls.is_empty();
        let is_part = end == BodyEnd::Cancelled && !self.finished;
        let response = || {
            let mut response = self.response;
            let prompt_tokens = response.usage.map(|usage| usage.prompt as usize);
            let echo = self.echo.as_ref();
            let prompt_tokens = prompt_tokens.filter(|count| *count > 0);
            response.log_probabilities = self.token_values.divide(echo, prompt_tokens, is_part)?;
            // A server that reports zeros did not count; the caller counts with its tokenizer
            // instead.
            if has_output && response.usage.is_some_and(|usage| usage.completion == 0) {
                response.usage = None;
            }
            if self.is_signature_partial {
                response.reasoning_signature = None;
            }
            Ok(Response {
                text: into_text(self.text),
                reasoning: into_text(self.reasoning),
                ..response
            })
        };
        let last_event = self.chunks.last().map(|chunk| chunk.at);
        let generated = || {
            self.chunks
                .iter()
                .filter(|chunk| chunk.kind.is_generated())
                .count()
        };
        let counted = !chunk_tokens.is_empty();
        let (result, completed_at) = match (self.failure, end) {
            (Some((failure, at)), _) => (Err(failure), Some(at)),
            (None, _) if self.finished || (rule == EndRule::Marker && self.done) => (response(), last_event),
            (None, BodyEnd::Broken(failure)) => (Err(failure), None),
            (None, BodyEnd::Cancelled) => (response().map(|part| cancelled(part, counted)), None),
            (None, BodyEnd::Complete) if !self.any_event => (Err(no_event(content_type, beginning)), None),
            (None, BodyEnd::Complete) if rule == EndRule::Body && has_output => (response(), last_event),
            (None, BodyEnd::Complete) => {
                let missing = match rule {
                    EndRule::FinishReason => "a finish reason",
                    EndRule::Marker => "its end marker",
                    EndRule::Body => "any text",
                };
                let done = if self.done {
                    format!(", although it sent {marker}")
                } else {
                    String::new()
                };
                let message = format!(
                    "the stream ended without {missing} after {} generated chunks{done}",
                    generated()
                );
                (Err(Failure::new(ErrorClass::Truncated, message)), None)
            }
        };
        AnswerOutcome {
            chunks: self.chunks,
            chunk_texts: self.texts,
            chunk_tokens,
            response_id: self.response_id,
            result,
            completed_at,
        }
    }
}

/// Returns the part of an answer that was cancelled. A usage that came before the end counts what
/// was sent only if each chunk came with one (`counted`), and half a tool call is not a call.
fn cancelled(mut part: Response, counted: bool) -> Response {
    part.cancelled = true;
    part.usage = part.usage.filter(|_| counted);
    part.tool_calls
        .retain(|call| serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok());
    part
}

/// Returns the tokens that each of `chunks` generated chunks added, from the server's running
/// counts. Empty unless every chunk has a count and the counts never decrease.
fn chunk_tokens(running: &[u32], chunks: usize) -> Vec<u32> {
    if running.len() != chunks || running.last().is_none_or(|total| *total == 0) {
        return Vec::new();
    }
    let before = std::iter::once(&0).chain(running);
    let added = running.iter().zip(before);
    added
        .map(|(count, before)| count.checked_sub(*before))
        .collect::<Option<_>>()
        .unwrap_or_default()
}

/// Converts to a `String`. Each piece was checked as UTF-8, so the whole is UTF-8.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Condition under which an answer is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EndRule {
    /// The server sent a finish reason.
    #[default]
    FinishReason,
    /// The end marker was received. Applies to a template without a pointer to a finish reason.
    Marker,
    /// The body ended as HTTP defines it, and something was generated. Applies to a template with
    /// neither a finish reason nor a marker.
    Body,
}
