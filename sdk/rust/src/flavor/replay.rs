//! A session of a trace, with the recordings of its requests.

use crate::types::{Answer, Error, HistoryMode, Nanos, Recording, Session};

/// The recording of a request in a [`Replay`].
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The node of the session that was recorded.
    pub node: u32,
    /// The history that the request sends.
    pub history: HistoryMode,
    /// The recorded answer; requests with [`HistoryMode::Recorded`] continue it.
    pub answer: Option<Answer>,
    /// The recorded send time, relative to the earliest arrival of the trace.
    pub at: Option<Nanos>,
    /// The recorded latency of the answer.
    pub latency: Option<Nanos>,
    /// The recorded tokens of the whole prompt.
    pub prompt_tokens: Option<u32>,
    /// The recorded tokens of the answer.
    pub output_tokens: Option<u32>,
}

impl Turn {
    /// A recording of which nothing is known; the request sends the model's real answers.
    pub fn new(node: u32) -> Self {
        Turn {
            node,
            history: HistoryMode::Live,
            answer: None,
            at: None,
            latency: None,
            prompt_tokens: None,
            output_tokens: None,
        }
    }
}

/// A session, and the recordings of its requests. A node without a turn is a new request.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The session.
    pub session: Session,
    /// The recordings, in any order.
    pub turns: Vec<Turn>,
}

impl Replay {
    /// A session and its turns.
    pub fn new(session: impl Into<Session>, turns: impl Into<Vec<Turn>>) -> Self {
        Replay {
            session: session.into(),
            turns: turns.into(),
        }
    }

    /// The session as the host receives it, with each recording in its request.
    pub(super) fn into_session(self) -> Result<Session, Error> {
        let Replay { mut session, turns } = self;
        for (index, turn) in turns.into_iter().enumerate() {
            let likely = session
                .requests
                .get(index)
                .filter(|request| request.node == turn.node);
            let place = match likely {
                Some(_) => Some(index),
                None => session
                    .requests
                    .iter()
                    .position(|request| request.node == turn.node),
            };
            let request = place.and_then(|place| session.requests.get_mut(place));
            let Some(request) = request.filter(|request| request.recording.is_none()) else {
                return Err(Error::new(
                    "turn",
                    format!("node {} of a turn is unknown or has two turns", turn.node),
                ));
            };
            request.recording = Some(Recording {
                history: turn.history,
                answer: turn.answer,
                at: turn.at,
                latency: turn.latency,
                prompt_tokens: turn.prompt_tokens,
                output_tokens: turn.output_tokens,
            });
        }
        Ok(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Request;

    #[test]
    fn turns_become_recordings_of_their_requests() {
        let session = || Session::new([Request::new(4).user("a"), Request::new(2).user("b")]);
        let turn = |node, at| Turn {
            at: Some(at),
            ..Turn::new(node)
        };
        let folded = |turns: &[Turn]| Replay::new(session(), turns).into_session();
        let at = |session: Session| {
            let requests = session.requests.into_iter();
            requests.map(|request| request.recording?.at).collect::<Vec<_>>()
        };
        assert_eq!(at(folded(&[turn(4, 1), turn(2, 2)]).unwrap()), [Some(1), Some(2)]);
        assert_eq!(at(folded(&[turn(2, 2)]).unwrap()), [None, Some(2)]);
        for wrong in [[turn(4, 1), turn(4, 1)], [turn(4, 1), turn(3, 1)]] {
            assert_eq!(folded(&wrong).unwrap_err().code, "turn");
        }
    }
}
