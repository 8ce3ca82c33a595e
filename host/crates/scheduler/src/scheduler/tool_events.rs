//! Calls of tools that become due, start and end.

use veeksha_model::{Nanos, Trigger};

use super::Scheduler;
use crate::contract::{Action, NodeOutcome};
use crate::deadline::RunPhase;
use crate::tools::ToolEvent;

impl<P> Scheduler<P> {
    pub(super) fn next_tool_event(&self) -> Option<Nanos> {
        let ready = self.ready.first_tool_run();
        ready.into_iter().chain(self.tools.next()).min()
    }

    /// Makes the first call that is due.
    pub(super) fn call_tool(&mut self) {
        let Some((ready_at, id)) = self.ready.pop_tool_run() else {
            return;
        };
        let measured = self.phase == RunPhase::Measuring;
        let session = self.sessions.get_mut(&id.session);
        let entry = session.and_then(|session| session.enter_tool(id.node, measured, ready_at));
        if let Some((class, call, is_awaited)) = entry {
            self.measured_in_flight += usize::from(is_awaited);
            self.tools.enter(class, call);
        }
    }

    pub(super) fn on_tool(&mut self, event: ToolEvent, actions: &mut Vec<Action<P>>) {
        let (ToolEvent::Started { id, .. } | ToolEvent::Ended { id, .. }) = event;
        let Some(session) = self.sessions.get_mut(&id.session) else {
            return;
        };
        match event {
            ToolEvent::Started { at, is_cold, .. } => {
                session.start_tool(id.node, at, is_cold);
                session.release_children(id.node, Trigger::Dispatched, at, &mut self.ready);
                self.arm(id.session);
            }
            ToolEvent::Ended { at, .. } => {
                let Some((record, was_awaited)) = session.complete_tool(id.node, at) else {
                    return;
                };
                let record = Box::new(record);
                self.measured_in_flight -= usize::from(was_awaited);
                session.release_children(id.node, Trigger::Completed, at, &mut self.ready);
                actions.push(Action::ToolRan(record.clone()));
                if session.agent_open() {
                    session.asked();
                    actions.push(Action::AskAgent {
                        session: id.session,
                        node: id.node,
                        outcome: NodeOutcome::ToolRan(record),
                        at,
                    });
                }
                self.arm(id.session);
                self.settle_at_latest(id.session, actions);
            }
        }
    }
}
