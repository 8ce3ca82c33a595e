//! Requests one after the other.

use crate::flavor::{HistoryMode, Replay, Turn};
use crate::types::{Request, Session};

/// A session in which each request follows the one before it, and sends of their conversation what
/// `history` states. The numbers of the nodes and the edges are filled in.
pub fn chain(requests: impl IntoIterator<Item = (Request, Turn)>, history: HistoryMode) -> Replay {
    let linked = (0u32..).zip(requests).map(|(node, (request, turn))| {
        let request = Request { node, ..request };
        match node.checked_sub(1) {
            None => (request, Turn { node, ..turn }),
            Some(before) => {
                let request = match history {
                    HistoryMode::Fresh => request.after(before),
                    HistoryMode::Live | HistoryMode::Recorded => request.history(before),
                };
                (
                    request,
                    Turn {
                        node,
                        history,
                        ..turn
                    },
                )
            }
        }
    });
    let (requests, turns): (Vec<Request>, Vec<Turn>) = linked.unzip();
    Replay::new(Session::new(requests), turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges and modes of a chain of three.
    fn links(history: HistoryMode) -> Vec<(u32, Vec<u32>, Option<u32>, HistoryMode)> {
        let replay = chain([0; 3].map(|_| (Request::new(0), Turn::new(0))), history);
        let both = replay.session.requests.into_iter().zip(replay.turns);
        both.map(|(request, turn)| {
            assert_eq!(request.node, turn.node);
            (
                request.node,
                request.parent_nodes(),
                request.history_parent,
                turn.history,
            )
        })
        .collect()
    }

    #[test]
    fn each_request_follows_the_one_before() {
        for history in [HistoryMode::Live, HistoryMode::Recorded] {
            assert_eq!(
                links(history),
                [
                    (0, vec![], None, HistoryMode::Live),
                    (1, vec![0], Some(0), history),
                    (2, vec![1], Some(1), history)
                ]
            );
        }
        assert_eq!(
            links(HistoryMode::Fresh)[1],
            (1, vec![0], None, HistoryMode::Fresh),
            "fresh requests are ordered and send nothing of one another"
        );
    }
}
