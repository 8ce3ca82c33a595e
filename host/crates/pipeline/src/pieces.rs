//! The pieces of a prompt, by identity and length, for consumers that account for repeated
//! prefixes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use veeksha_model::{
    History, Message, NodeId, Prepared, Request, RequestId, Response, Role, SessionId, ToolDefinitions,
};
use veeksha_prefix::{PrefixPiece, answer_pieces, pieces_of, text_piece, tool_pieces};

use crate::schedule::sends_recorded_answer;

/// A request and its conversation, shared with the run: the pieces are computed on demand.
#[derive(Clone, Debug)]
pub enum PromptSource {
    /// Of a real run.
    Sent {
        /// The new messages.
        request: Arc<Prepared>,
        /// The conversation before them.
        history: Option<Arc<History<Prepared>>>,
    },
    /// Of a simulation, which has no text: a real answer is known by the request that it answers.
    Simulated {
        /// The session of the request.
        session: SessionId,
        /// The new messages.
        request: Arc<Request>,
        /// The conversation before them.
        history: Option<Arc<History<Request>>>,
    },
}

impl PromptSource {
    /// Returns the request itself.
    pub(crate) fn request(&self) -> &Request {
        match self {
            PromptSource::Sent { request, .. } => &request.request,
            PromptSource::Simulated { request, .. } => request,
        }
    }

    /// Returns the pieces of the prompt; see [`crate::EventEntry::pieces`].
    pub fn pieces(&self, count: &dyn Fn(&str) -> u32) -> Vec<PrefixPiece> {
        match self {
            PromptSource::Sent { request, history } => {
                let sending = &request.request;
                let turns = History::turns(history);
                let mut pieces = begin(sending, turns.iter().map(|turn| &turn.request.request), count);
                for turn in &turns {
                    let asked = &turn.request.request;
                    add_turn(&mut pieces, sending, asked, count, |pieces| {
                        if let Some(response) = &turn.response {
                            let sends_reasoning = request.sends_reasoning_of(&turn.request, response);
                            add_answer(pieces, response, sends_reasoning, count);
                        }
                    });
                }
                pieces.extend(pieces_of(&sending.messages, count));
                pieces
            }
            PromptSource::Simulated {
                session,
                request,
                history,
            } => {
                let turns = History::turns(history);
                let mut pieces = begin(request, turns.iter().map(|turn| &*turn.request), count);
                for turn in &turns {
                    add_turn(&mut pieces, request, &turn.request, count, |pieces| {
                        if let Some(response) = &turn.response {
                            pieces.extend(begin_answer(count));
                            pieces.push(simulated_answer(
                                *session,
                                turn.request.node,
                                response.output_tokens,
                            ));
                        }
                    });
                }
                pieces.extend(pieces_of(&request.messages, count));
                pieces
            }
        }
    }
}

/// The answer to a request: the pieces are computed on demand.
#[derive(Clone, Debug)]
pub enum AnswerSource {
    /// Of a real run.
    Received(Arc<Response>),
    /// Of a simulation.
    Simulated {
        /// The request.
        request: RequestId,
        /// The tokens that were generated.
        tokens: u32,
    },
}

impl AnswerSource {
    /// Returns the pieces of the text that the server generated, as they follow the prompt in a
    /// conversation that keeps the reasoning.
    pub fn pieces(&self, count: &dyn Fn(&str) -> u32) -> Vec<PrefixPiece> {
        let mut pieces = Vec::new();
        match self {
            AnswerSource::Received(response) => add_answer(&mut pieces, response, true, count),
            AnswerSource::Simulated { request, tokens } => {
                pieces.extend(begin_answer(count));
                pieces.push(simulated_answer(request.session, request.node, *tokens));
            }
        }
        pieces
    }
}

/// Returns the piece of the answer to a request of a simulation.
fn simulated_answer(session: SessionId, node: NodeId, tokens: u32) -> PrefixPiece {
    PrefixPiece {
        identity: answer_identity(session, node),
        tokens,
    }
}

/// Returns the functions that the model may call in the answer to a request: its own, or those of
/// the newest turn before it that states some.
pub(crate) fn tools_of<'a>(
    request: &'a Request,
    before: impl DoubleEndedIterator<Item = &'a Request>,
) -> Option<&'a ToolDefinitions> {
    let requests = std::iter::once(request).chain(before.rev());
    requests.filter_map(|request| request.tools.as_deref()).next()
}

/// Returns the pieces before the first message.
fn begin<'a>(
    request: &'a Request,
    before: impl DoubleEndedIterator<Item = &'a Request>,
    count: &dyn Fn(&str) -> u32,
) -> Vec<PrefixPiece> {
    let tools = tools_of(request, before);
    tools.map_or(Vec::new(), |tools| tool_pieces(tools, count))
}

/// Adds a turn's messages, and its recorded answer if `sending` continues that; otherwise its real
/// one.
fn add_turn(
    pieces: &mut Vec<PrefixPiece>,
    sending: &Request,
    asked: &Request,
    count: &dyn Fn(&str) -> u32,
    add_real_answer: impl FnOnce(&mut Vec<PrefixPiece>),
) {
    pieces.extend(pieces_of(&asked.messages, count));
    match asked.replay.as_ref().and_then(|replay| replay.answer.as_ref()) {
        Some(answer) if sends_recorded_answer(sending.history_mode(), asked) => {
            pieces.extend(answer_pieces(answer, sending.keep_reasoning, count));
        }
        _ => add_real_answer(pieces),
    }
}

/// Adds the parts of a real answer that later turns send again: its text, its calls, and its
/// reasoning if they send it.
fn add_answer(
    pieces: &mut Vec<PrefixPiece>,
    response: &Response,
    sends_reasoning: bool,
    count: &dyn Fn(&str) -> u32,
) {
    pieces.extend(begin_answer(count));
    let reasoning = Some(&response.reasoning).filter(|_| sends_reasoning);
    let calls = response.tool_calls.iter();
    let calls = calls.flat_map(|call| [&call.name, &call.arguments]);
    let texts = reasoning.into_iter().chain([&response.text]).chain(calls);
    for text in texts.filter(|text| !text.is_empty()) {
        pieces.push(text_piece(text, count(text)));
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
