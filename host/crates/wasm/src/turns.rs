//! What a flavor says of a session's requests, put where it belongs: on the requests.

use std::collections::HashMap;

use veeksha_model::{HistoryMode, NodeId, Recorded, RecordedAnswer, Replay, Request, Session};

use crate::bindings::trace_flavor as wit;
use crate::{admit, convert};

/// A session with its turns, if both can be used.
pub(crate) fn session(replay: wit::Replay) -> Result<Session, String> {
    let mut session = convert::session(replay.session);
    admit::session(&session)?;
    let mut places = Places::default();
    for (index, turn) in replay.turns.into_iter().enumerate() {
        let node = NodeId(turn.node);
        let request = places
            .of(&session.requests, node, index)
            .and_then(|at| session.requests.get_mut(at))
            .ok_or_else(|| format!("a turn is about node {node}, which the session does not have"))?;
        if request.replay.is_some() {
            return Err(format!("two turns are about node {node}"));
        }
        let turn = self::turn(turn);
        admit::replay(&turn).map_err(|why| format!("the turn of node {node}: {why}"))?;
        request.replay = Some(Box::new(turn));
    }
    Ok(session)
}

/// Where each node stands. Flavors name the turns in the order of the requests, and then nothing has to be looked up.
#[derive(Default)]
struct Places(Option<HashMap<NodeId, usize>>);

impl Places {
    fn of(&mut self, requests: &[Request], node: NodeId, likely: usize) -> Option<usize> {
        if requests.get(likely).is_some_and(|request| request.node == node) {
            return Some(likely);
        }
        let places = self.0.get_or_insert_with(|| {
            let numbered = requests.iter().enumerate();
            numbered.map(|(at, request)| (request.node, at)).collect()
        });
        places.get(&node).copied()
    }
}

fn turn(turn: wit::Turn) -> Replay {
    Replay {
        history: match turn.history {
            wit::HistoryMode::Live => HistoryMode::Live,
            wit::HistoryMode::Recorded => HistoryMode::Recorded,
            wit::HistoryMode::Fresh => HistoryMode::Fresh,
        },
        answer: turn.answer.map(|answer| RecordedAnswer {
            content: convert::segments(answer.content),
            tool_calls: answer.tool_calls.into_iter().map(convert::tool_call).collect(),
        }),
        recorded: Recorded {
            at: turn.at,
            latency: turn.latency,
            prompt_tokens: turn.prompt_tokens,
            output_tokens: turn.output_tokens,
        },
    }
}
