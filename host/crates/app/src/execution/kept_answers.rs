//! Answers that later requests of their sessions may continue.

use std::collections::HashMap;

use veeksha_events::Event;
use veeksha_model::{Nanos, NodeId, RequestId, SessionId};
use veeksha_pipeline::AnswerSource;
use veeksha_prefix::PromptPath;

/// An answer whose pieces are not computed yet.
pub(crate) struct KeptAnswer {
    pub(crate) source: AnswerSource,
    /// The end of its prompt.
    pub(crate) end: PromptPath,
    /// The position of the client that received it.
    pub(crate) client: usize,
    /// The server that generated it, among those of the client.
    pub(crate) server: u16,
    /// The instant of its last token.
    pub(crate) at: Nanos,
}

/// The answers of sessions in progress. Events may arrive in any order; a session is dropped once
/// all of it has ended.
#[derive(Default)]
pub(crate) struct KeptAnswers {
    sessions: HashMap<SessionId, SessionAnswers>,
}

#[derive(Default)]
struct SessionAnswers {
    answers: HashMap<NodeId, KeptAnswer>,
    /// Requests that ended or were never sent.
    settled: u32,
    /// The number of requests in the session, known when the session is over.
    all: Option<u32>,
}

impl KeptAnswers {
    /// Adds the answer to a request.
    pub(crate) fn add(&mut self, request: RequestId, answer: KeptAnswer) {
        let session = self.sessions.entry(request.session).or_default();
        session.answers.insert(request.node, answer);
    }

    /// Removes and returns the answer to a request.
    pub(crate) fn take(&mut self, request: RequestId) -> Option<KeptAnswer> {
        self.sessions
            .get_mut(&request.session)?
            .answers
            .remove(&request.node)
    }

    /// Processes an event, after the answer of a finished request was added.
    pub(crate) fn on(&mut self, event: &Event) {
        let id = match event {
            Event::Finished(record) => record.id.session,
            Event::NeverSent { request, .. } => request.session,
            Event::SessionFinished { session, .. } => *session,
            _ => return,
        };
        let session = self.sessions.entry(id).or_default();
        match event {
            Event::SessionFinished { requests, .. } => session.all = Some(*requests),
            _ => session.settled += 1,
        }
        if session.all.is_some_and(|all| all <= session.settled) {
            self.sessions.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use veeksha_events::{RequestRecord, SessionEnd};

    use super::*;

    fn id(node: u32) -> RequestId {
        RequestId {
            session: SessionId(7),
            node: NodeId(node),
        }
    }

    fn finish(answers: &mut KeptAnswers, node: u32) {
        let source = AnswerSource::Simulated {
            request: id(node),
            tokens: 4,
        };
        let answer = KeptAnswer {
            source,
            end: PromptPath::START,
            client: 0,
            server: 0,
            at: 1,
        };
        answers.add(id(node), answer);
        answers.on(&Event::Finished(Box::new(RequestRecord::answered(id(node)))));
    }

    #[test]
    fn sessions_are_dropped_when_all_requests_ended() {
        let over = Event::SessionFinished {
            session: SessionId(7),
            at: 5,
            end: SessionEnd::Completed,
            requests: 2,
        };
        // The session may be over before its last request is.
        for over_first in [false, true] {
            let mut answers = KeptAnswers::default();
            finish(&mut answers, 0);
            assert!(answers.take(id(0)).is_some());
            assert!(answers.take(id(0)).is_none());
            if over_first {
                answers.on(&over);
                assert!(!answers.sessions.is_empty());
                finish(&mut answers, 1);
            } else {
                finish(&mut answers, 1);
                assert!(!answers.sessions.is_empty());
                answers.on(&over);
            }
            assert!(answers.sessions.is_empty());
        }
    }
}
