//! Identical requests for the transport.

use std::sync::Arc;

use veeksha_model::{
    Message, Nanos, NodeId, OutputSpec, Prepared, PreparedMessage, Request, RequestId, Role, Segment,
    SessionId,
};
use veeksha_ports::Job;

/// The prompt of every request: about a hundred words, like a short prompt with some context.
pub(crate) const PROMPT: &str = "The quick brown fox jumps over the lazy dog and then rests in the shade of an old oak tree while \
    the river runs slowly past the mill, where the miller counts his sacks of grain and thinks about the price of flour in the \
    town beyond the hills. His daughter reads a letter from her brother at sea, who writes of storms and strange fish and of a \
    harbour with lamps of many colours. What does she answer him, and what does she leave out? Write the letter in her words, \
    plainly, and end it with the weather.";

/// Returns the prompt of every job: a response of `tokens` tokens.
pub(crate) fn prompt(tokens: u32) -> Arc<Prepared> {
    let words = PROMPT.split_whitespace().count() as u32;
    Arc::new(Prepared {
        request: Request {
            node: NodeId(0),
            messages: vec![Message::new(Role::User, vec![Segment::Text(PROMPT.to_owned())])],
            output: OutputSpec {
                target_tokens: Some(tokens),
                exact: false,
                form: None,
            },
            ..Request::default()
        },
        messages: vec![PreparedMessage::new(Role::User, PROMPT)],
        target_tokens: words,
        prompt_tokens: words,
        ..Prepared::default()
    })
}

/// Returns job `number`, due at `intended` and dispatched at `now`.
pub(crate) fn job(prompt: &Arc<Prepared>, number: u64, intended: Nanos, now: Nanos) -> Job {
    Job {
        id: RequestId {
            session: SessionId(number),
            node: NodeId(0),
        },
        intended,
        held: Default::default(),
        dispatched_at: now,
        request: Arc::clone(prompt),
        history: None,
        session_requests: 1,
        measured: true,
        reports_first_chunk: false,
    }
}
