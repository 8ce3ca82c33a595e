//! The size of what a guest returns, for the report on its use of resources.
//!
//! wasmtime limits the bytes of a call and does not report them, so that the values are added up
//! after their conversion: texts in full, other members with the size of their record.

use veeksha_model::{Label, Message, Request, Segment, Session, ToolDefinitions, ToolRun};

/// Returns the bytes of sessions.
pub(crate) fn of_sessions(sessions: &[Session]) -> u64 {
    sessions.iter().map(|session| of_session(session) as u64).sum()
}

/// Returns the bytes of a session, or of what a step adds to one.
pub(crate) fn of_session(session: &Session) -> usize {
    let requests: usize = session.requests.iter().map(of_request).sum();
    let runs = session.tool_runs.iter();
    let runs: usize = runs.map(|run| size_of::<ToolRun>() + run.class.len()).sum();
    requests + runs + pairs(&session.headers) + pairs(&session.labels) + size_of::<Session>()
}

fn of_request(request: &Request) -> usize {
    let messages: usize = request.messages.iter().map(of_message).sum();
    let tools = match request.tools.as_deref() {
        Some(ToolDefinitions::Definitions(text) | ToolDefinitions::Verbatim(text)) => text.len(),
        Some(ToolDefinitions::Synthetic { .. }) | None => 0,
    };
    size_of::<Request>()
        + size_of_val(&*request.parents)
        + messages
        + tools
        + request.body.as_ref().map_or(0, String::len)
        + pairs(&request.headers)
        + pairs(&request.labels)
}

fn of_message(message: &Message) -> usize {
    let calls = message.tool_calls.iter();
    let calls = calls.map(|call| call.id.len() + call.name.len() + call.arguments.len());
    size_of::<Message>() + message.content.iter().map(of_segment).sum::<usize>() + calls.sum::<usize>()
}

fn of_segment(segment: &Segment) -> usize {
    size_of::<Segment>()
        + match segment {
            Segment::Text(text) => text.len(),
            Segment::TokenIds(ids) => size_of_val(&**ids),
            Segment::Media { source, .. } => source.len(),
            Segment::Synthetic { .. } | Segment::ToolResult(_) => 0,
        }
}

fn pairs(pairs: &[Label]) -> usize {
    pairs.iter().map(|(name, value)| name.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use veeksha_model::Role;

    use super::*;

    /// A text of a thousand bytes adds a thousand bytes.
    #[test]
    fn texts_count_in_full() {
        let session = |text: &str| Session {
            requests: vec![Request {
                messages: vec![Message::new(Role::User, vec![Segment::Text(text.to_owned())])],
                ..Request::default()
            }],
            ..Session::default()
        };
        let (empty, full) = (session(""), session(&"x".repeat(1000)));
        assert_eq!(of_session(&full) - of_session(&empty), 1000);
        assert_eq!(
            of_sessions(&[empty.clone(), empty.clone()]),
            2 * of_session(&empty) as u64
        );
    }
}
