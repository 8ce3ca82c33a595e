//! Verbatim text that a prefix cache has not seen.

use crate::blocks::seed_of;
use crate::session::{synthetic, text};
use crate::types::Session;

/// Begins every conversation of a session with `tokens` tokens of unique text and an empty
/// line, so that a prefix cache knows nothing of it from other sessions or from earlier passes over
/// the trace. The text depends on the epoch and the group; within the session it is the same, so
/// that its own requests still share what they shared. With 0 nothing changes.
pub fn bust_cache(session: &mut Session, tokens: u32, epoch: u64, group: u64) {
    if tokens == 0 {
        return;
    }
    let marker = synthetic(seed_of("cache_bust", &[epoch, group]), tokens);
    for request in &mut session.requests {
        if let (None, Some(first)) = (request.history_parent, request.messages.first_mut()) {
            first.content.splice(0..0, [marker.clone(), text("\n\n")]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Request, Segment};

    fn session() -> Session {
        Session::new([
            Request::new(0).system("s").user("a"),
            Request::new(1).history(0).user("b"),
            Request::new(2).after(1).user("c"),
        ])
    }

    fn beginnings(tokens: u32, epoch: u64, group: u64) -> Vec<Segment> {
        let mut session = session();
        bust_cache(&mut session, tokens, epoch, group);
        session
            .requests
            .iter()
            .map(|request| request.messages[0].content[0].clone())
            .collect()
    }

    #[test]
    fn conversations_begin_with_unique_text() {
        let marked = beginnings(8, 0, 5);
        assert!(matches!(&marked[0], Segment::Synthetic(made) if made.tokens == 8));
        assert_eq!(
            marked[1],
            text("b"),
            "what continues a conversation has it already"
        );
        assert_eq!(marked[2], marked[0], "one session, one text");
        assert_ne!(beginnings(8, 1, 5)[0], marked[0], "another epoch");
        assert_ne!(beginnings(8, 0, 6)[0], marked[0], "another group");
        assert_eq!(beginnings(0, 0, 5), [text("s"), text("b"), text("c")]);
    }
}
