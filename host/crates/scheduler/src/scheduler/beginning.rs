//! The start of a session.

use veeksha_events::NeverSentReason;
use veeksha_model::{Nanos, RequestId, SessionId};

use super::Scheduler;
use crate::contract::Action;

impl<P> Scheduler<P> {
    pub(super) fn has_begun(&mut self, id: SessionId, at: Nanos, now: Nanos, actions: &mut Vec<Action<P>>) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.give_up_if_stuck();
        let cancelled = std::mem::take(&mut session.cancelled_at_start);
        actions.push(Action::SessionStarted {
            session: id,
            at,
            requests: session.requests(),
        });
        if session.has_failed_agent() {
            self.withdraw(id, NeverSentReason::PluginFailed.into(), now, actions);
        }
        if cancelled.is_empty() {
            return;
        }
        for node in cancelled {
            self.cancel(RequestId { session: id, node }, at, actions);
        }
        // The end of a cancelled node may let others end.
        self.arm(id);
    }
}
