//! The conversation before a node, in each history mode.

use std::sync::Arc;

use veeksha_model::{History, HistoryMode, Response};

/// A conversation up to some turn: once with the real answers, once with the recorded ones.
///
/// The history mode of the continuing node decides how *every* answer in it is given, whatever the
/// modes of the turns in between were. With [`HistoryMode::Recorded`], a turn without a recorded
/// answer has its real one, and a failed turn that has a recorded answer has that one. A turn that
/// is itself [`HistoryMode::Fresh`] begins a conversation: its children do not continue what came
/// before it either.
///
/// Both are shared lists, and they are one list as far as nothing was recorded.
#[derive(Debug)]
pub struct ConversationHistory<P> {
    live: Option<Arc<History<P>>>,
    recorded: Option<Arc<History<P>>>,
}

impl<P> ConversationHistory<P> {
    /// Before the first turn.
    pub fn new() -> Self {
        ConversationHistory {
            live: None,
            recorded: None,
        }
    }

    /// Returns the conversation that a node of this mode continues, where `self` ends with its
    /// history parent.
    pub fn before(&self, mode: HistoryMode) -> ConversationHistory<P> {
        match mode {
            HistoryMode::Fresh => ConversationHistory::new(),
            HistoryMode::Live | HistoryMode::Recorded => self.clone(),
        }
    }

    /// Returns the turns that a node of this mode sends before its new messages.
    pub fn history_for(&self, mode: HistoryMode) -> Option<Arc<History<P>>> {
        match mode {
            HistoryMode::Live => self.live.clone(),
            HistoryMode::Recorded => self.recorded.clone(),
            HistoryMode::Fresh => None,
        }
    }

    /// The conversation with one more turn.
    pub fn with(
        self,
        request: Arc<P>,
        response: Option<Arc<Response>>,
        recorded: Option<Arc<Response>>,
    ) -> ConversationHistory<P> {
        let one_list = recorded.is_none()
            && match (&self.live, &self.recorded) {
                (None, None) => true,
                (Some(live), Some(recorded)) => Arc::ptr_eq(live, recorded),
                _ => false,
            };
        let live = Arc::new(History {
            before: self.live,
            request: request.clone(),
            response: response.clone(),
        });
        let recorded = if one_list {
            live.clone()
        } else {
            Arc::new(History {
                before: self.recorded,
                request,
                response: recorded.or(response),
            })
        };
        ConversationHistory {
            live: Some(live),
            recorded: Some(recorded),
        }
    }
}

/// Shares the lists, whatever the payload is.
impl<P> Clone for ConversationHistory<P> {
    fn clone(&self) -> Self {
        ConversationHistory {
            live: self.live.clone(),
            recorded: self.recorded.clone(),
        }
    }
}

impl<P> Default for ConversationHistory<P> {
    fn default() -> Self {
        ConversationHistory::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Option<Arc<Response>> {
        let text = text.to_owned();
        Some(Arc::new(Response {
            text,
            ..Response::default()
        }))
    }

    fn answers(history: &Option<Arc<History<u32>>>) -> Vec<Option<String>> {
        let turns = History::turns(history);
        turns
            .iter()
            .map(|turn| turn.response.as_ref().map(|response| response.text.clone()))
            .collect()
    }

    #[test]
    fn each_history_mode_has_its_answers() {
        // Recorded and answered; answered only; recorded and failed; failed only.
        let whole = ConversationHistory::new()
            .with(Arc::new(0), answer("a"), answer("A"))
            .with(Arc::new(1), answer("b"), None)
            .with(Arc::new(2), None, answer("C"))
            .with(Arc::new(3), None, None);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            answers(&whole.history_for(HistoryMode::Live)),
            [some("a"), some("b"), None, None]
        );
        assert_eq!(
            answers(&whole.history_for(HistoryMode::Recorded)),
            [some("A"), some("b"), some("C"), None]
        );
        assert!(whole.history_for(HistoryMode::Fresh).is_none());
        assert_eq!(answers(&whole.before(HistoryMode::Fresh).live), []);
        assert_eq!(answers(&whole.before(HistoryMode::Recorded).live).len(), 4);
    }

    /// The memory of a workload that records nothing is that of one list.
    #[test]
    fn lists_are_shared_until_an_answer_was_recorded() {
        let mut conversation = ConversationHistory::new();
        for turn in 0..3 {
            conversation = conversation.with(Arc::new(turn), answer("x"), None);
        }
        let both = |conversation: &ConversationHistory<u32>| {
            (
                conversation.live.clone().unwrap(),
                conversation.recorded.clone().unwrap(),
            )
        };
        let (live, recorded) = both(&conversation);
        assert!(Arc::ptr_eq(&live, &recorded));
        let (live, recorded) = both(&conversation.with(Arc::new(3), answer("x"), answer("X")));
        assert!(!Arc::ptr_eq(&live, &recorded));
        let before = |turn: &Arc<History<u32>>| turn.before.clone().unwrap();
        assert!(Arc::ptr_eq(&before(&live), &before(&recorded)));
    }
}
