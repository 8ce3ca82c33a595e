//! Prompts without text: what the engine's prefix cache sees of a request and of the conversation
//! before it.

use std::sync::Arc;

use veeksha_model::{History, RecordedAnswer, Request, Response, Segment, SessionId};
use veeksha_prompt::Tokenizer;
use veeksha_simulator::text::TokenIdentity;

use crate::pieces::{answer_identity, hashed};
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
        let mut prompt = TokenIdentity::new(self.block_size);
        for turn in History::turns(history) {
            let asked = &turn.request;
            self.messages(asked, &mut prompt);
            let recorded = asked.replay.as_ref().and_then(|replay| replay.answer.as_ref());
            match (recorded, &turn.response) {
                (Some(answer), _) if sends_recorded_answer(mode, asked) => self.answer(answer, &mut prompt),
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
        self.answer(answer, &mut words);
        Some(Arc::new(Response {
            output_tokens: words.tokens() as u32,
            ..Response::default()
        }))
    }

    fn messages(&self, request: &Request, prompt: &mut TokenIdentity) {
        for message in &request.messages {
            self.segments(&message.content, prompt);
        }
    }

    fn answer(&self, answer: &RecordedAnswer, prompt: &mut TokenIdentity) {
        self.segments(&answer.content, prompt);
        for words in answer
            .tool_calls
            .iter()
            .flat_map(|call| [&call.name, &call.arguments])
        {
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
