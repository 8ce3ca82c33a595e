//! The pieces of a prompt, by identity and length, for consumers that account for repeated
//! prefixes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use veeksha_model::{
    History, HistoryMode, Message, NodeId, Prepared, RecordedAnswer, Request, Response, Role, SessionId,
    ToolCall,
};
use veeksha_prefix::{PrefixPiece, pieces_of, text_piece};

use crate::schedule::sends_recorded_answer;

/// A request and its conversation, shared with the run: the pieces are computed on demand.
#[derive(Clone, Debug)]
pub(crate) enum PromptSource {
    /// Of a real run.
    Sent {
        request: Arc<Prepared>,
        history: Option<Arc<History<Prepared>>>,
    },
    /// Of a simulation, which has no text: a real answer is known by the request that it answers.
    Simulated {
        session: SessionId,
        request: Arc<Request>,
        history: Option<Arc<History<Request>>>,
    },
}

impl PromptSource {
    pub(crate) fn pieces(&self, count: &dyn Fn(&str) -> u32) -> Vec<PrefixPiece> {
        match self {
            PromptSource::Sent { request, history } => {
                let mode = request.request.history_mode();
                let mut pieces = Vec::new();
                for turn in History::turns(history) {
                    let asked = &turn.request.request;
                    add_turn(&mut pieces, mode, asked, count, |pieces| {
                        if let Some(response) = &turn.response {
                            add_answer(pieces, response, count);
                        }
                    });
                }
                pieces.extend(pieces_of(&request.request.messages, count));
                pieces
            }
            PromptSource::Simulated {
                session,
                request,
                history,
            } => {
                let mode = request.history_mode();
                let mut pieces = Vec::new();
                for turn in History::turns(history) {
                    add_turn(&mut pieces, mode, &turn.request, count, |pieces| {
                        if let Some(response) = &turn.response {
                            pieces.extend(begin_answer(count));
                            pieces.push(PrefixPiece {
                                identity: answer_identity(*session, turn.request.node),
                                tokens: response.output_tokens,
                            });
                        }
                    });
                }
                pieces.extend(pieces_of(&request.messages, count));
                pieces
            }
        }
    }
}

/// Adds a turn's messages, and its recorded answer if the mode selects it; otherwise its real one.
fn add_turn(
    pieces: &mut Vec<PrefixPiece>,
    mode: HistoryMode,
    asked: &Request,
    count: &dyn Fn(&str) -> u32,
    add_real_answer: impl FnOnce(&mut Vec<PrefixPiece>),
) {
    pieces.extend(pieces_of(&asked.messages, count));
    match asked.replay.as_ref().and_then(|replay| replay.answer.as_ref()) {
        Some(answer) if sends_recorded_answer(mode, asked) => add_recorded(pieces, answer, count),
        _ => add_real_answer(pieces),
    }
}

fn add_recorded(pieces: &mut Vec<PrefixPiece>, answer: &RecordedAnswer, count: &dyn Fn(&str) -> u32) {
    let answer_message = Message::new(Role::Assistant, answer.content.clone());
    pieces.extend(pieces_of([&answer_message], count));
    add_calls(pieces, &answer.tool_calls, count);
}

/// Adds the parts of a real answer that later turns send again: its text and its calls, not its
/// reasoning.
fn add_answer(pieces: &mut Vec<PrefixPiece>, response: &Response, count: &dyn Fn(&str) -> u32) {
    pieces.extend(begin_answer(count));
    if !response.text.is_empty() {
        pieces.push(text_piece(&response.text, count(&response.text)));
    }
    add_calls(pieces, &response.tool_calls, count);
}

fn add_calls(pieces: &mut Vec<PrefixPiece>, calls: &[ToolCall], count: &dyn Fn(&str) -> u32) {
    for words in calls.iter().flat_map(|call| [&call.name, &call.arguments]) {
        pieces.push(text_piece(words, count(words)));
    }
}

/// The role with which an answer begins in a later prompt.
fn begin_answer(count: &dyn Fn(&str) -> u32) -> Vec<PrefixPiece> {
    let nothing = Message::new(Role::Assistant, Vec::new());
    pieces_of([&nothing], count)
}

/// Names the real answer to a request, as a piece of later prompts.
pub(crate) fn answer_identity(session: SessionId, node: NodeId) -> u64 {
    hashed(&("answer", session.0, node.0))
}

/// Equal values give equal numbers in every process: the standard hasher with its fixed keys.
pub(crate) fn hashed(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
