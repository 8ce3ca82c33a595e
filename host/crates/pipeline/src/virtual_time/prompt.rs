//! Prompts without text: what the engine's prefix cache sees of a request and of the conversation
//! before it.

use std::sync::Arc;

use veeksha_model::{
    History, ReasoningContent, RecordedAnswer, Request, Response, Segment, SessionId, ToolCall,
};
use veeksha_prefix::tool_pieces;
use veeksha_prompt::Tokenizer;
use veeksha_simulator::text::TokenIdentity;

use crate::pieces::{answer_identity, hashed, tools_of};
use crate::schedule::sends_recorded_answer;

/// A prompt as the engine takes it.
pub(super) struct EnginePrompt {
    /// Chained hashes of its full blocks.
    pub(super) blocks: Vec<u64>,
    /// Tokens of the new messages.
    pub(super) new_tokens: u32,
    /// All its tokens.
    pub(super) tokens: u32,
}

/// Builds prompts of segments.
pub(super) struct PromptWriter<'a> {
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) block_size: u32,
}

impl PromptWriter<'_> {
    pub(super) fn prompt(
        &self,
        session: SessionId,
        request: &Request,
        history: &Option<Arc<History<Request>>>,
    ) -> EnginePrompt {
        let mode = request.history_mode();
        let turns = History::turns(history);
        let mut prompt = TokenIdentity::new(self.block_size);
        if let Some(tools) = tools_of(request, turns.iter().map(|turn| &*turn.request)) {
            for piece in tool_pieces(tools, &|text| self.tokenizer.count(text)) {
                prompt.piece(piece.identity, piece.tokens);
            }
        }
        for turn in &turns {
            let asked = &turn.request;
            self.messages(asked, &mut prompt);
            let recorded = asked.replay.as_ref().and_then(|replay| replay.answer.as_ref());
            match (recorded, &turn.response) {
                (Some(answer), _) if sends_recorded_answer(mode, asked) => {
                    self.answer(answer, request.keep_reasoning, &mut prompt);
                }
                (_, Some(response)) => {
                    prompt.piece(answer_identity(session, asked.node), response.output_tokens);
                }
                _ => {}
            }
        }
        let before = prompt.tokens() as u32;
        self.messages(request, &mut prompt);
        let tokens = prompt.tokens() as u32;
        EnginePrompt {
            blocks: prompt.into_blocks(),
            new_tokens: tokens - before,
            tokens,
        }
    }

    /// The recorded answer as the scheduler passes it on: its length, and no text.
    pub(super) fn recorded(&self, request: &Request) -> Option<Arc<Response>> {
        let answer = request.replay.as_ref()?.answer.as_ref()?;
        let mut words = TokenIdentity::new(self.block_size);
        self.answer(answer, true, &mut words);
        Some(Arc::new(Response {
            output_tokens: words.tokens() as u32,
            ..Response::default()
        }))
    }

    fn messages(&self, request: &Request, prompt: &mut TokenIdentity) {
        for message in &request.messages {
            self.reasoning(message.reasoning.as_ref(), prompt);
            self.segments(&message.content, prompt);
            self.calls(&message.tool_calls, prompt);
        }
    }

    fn answer(&self, answer: &RecordedAnswer, keeps_reasoning: bool, prompt: &mut TokenIdentity) {
        let reasoning = answer.reasoning.as_ref();
        self.reasoning(reasoning.filter(|_| keeps_reasoning), prompt);
        self.segments(&answer.content, prompt);
        self.calls(&answer.tool_calls, prompt);
    }

    fn reasoning(&self, reasoning: Option<&ReasoningContent>, prompt: &mut TokenIdentity) {
        if let Some(reasoning) = reasoning {
            self.segments(&reasoning.content, prompt);
        }
    }

    fn calls(&self, calls: &[ToolCall], prompt: &mut TokenIdentity) {
        for words in calls.iter().flat_map(|call| [&call.name, &call.arguments]) {
            self.verbatim(words, prompt);
        }
    }

    /// Token by token, so that texts which begin alike share what they have in common, as in a
    /// server's cache.
    fn verbatim(&self, text: &str, prompt: &mut TokenIdentity) {
        match self.tokenizer.encode(text) {
            Ok(ids) => ids.into_iter().for_each(|id| prompt.token(u64::from(id))),
            // Text that cannot be encoded counts as 0 tokens everywhere.
            Err(_) => prompt.piece(hashed(text), self.tokenizer.count(text)),
        }
    }

    fn segments(&self, segments: &[Segment], prompt: &mut TokenIdentity) {
        for segment in segments {
            match segment {
                Segment::Text(text) => self.verbatim(text, prompt),
                Segment::Synthetic { seed, tokens } => prompt.piece(u64::from(*seed), *tokens),
                Segment::TokenIds(ids) => ids.iter().for_each(|id| prompt.token(u64::from(*id))),
                Segment::Media { .. } | Segment::ToolResult(_) => {}
            }
        }
    }
}
