//! A dispatcher: owns a scheduler, waits for the next instant or input, carries out actions.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_model::{Nanos, NodeId, Prepared, SessionId};
use veeksha_ports::{Job, PluginFailure, Transport};
use veeksha_scheduler::{Action, NodeOutcome, Scheduler, SchedulerInput};

use crate::entry::{EntryContent, EventEntry};
use crate::inbox::{Inbox, WaitResult};
use crate::pieces::PromptSource;
use crate::plan::OnDispatcherStart;

/// A message from a dispatcher or completion thread to the coordinator.
pub(crate) enum CoordinatorMessage {
    /// This number of sessions began: as many more may be made.
    SessionsStarted(u64),
    /// An agent has to be asked.
    Ask {
        session: SessionId,
        node: NodeId,
        outcome: NodeOutcome,
        at: Nanos,
    },
    /// An agent's session is over.
    Forget { session: SessionId },
    /// The plugin that reads answers failed on one.
    CodecFailed(Box<PluginFailure>),
    /// This dispatcher wants nothing more to be in flight.
    CancelInFlight,
    /// This dispatcher has ended.
    Done,
}

/// Channels and settings of a dispatcher thread.
pub(crate) struct DispatcherContext {
    pub(crate) index: u32,
    pub(crate) clock: RunClock,
    pub(crate) inbox: Inbox<SchedulerInput<Prepared>>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) events: Sender<EventEntry>,
    pub(crate) include_content: bool,
    pub(crate) track_prefixes: bool,
    pub(crate) on_start: Option<OnDispatcherStart>,
    pub(crate) notices: Sender<CoordinatorMessage>,
    /// Number of started sessions after which the coordinator is notified; each notification wakes
    /// it.
    pub(crate) notify_after: u64,
    /// Closed when the thread may end: until then the watch can sample it.
    pub(crate) release: Receiver<()>,
}

/// The work of one dispatcher thread: ends when its scheduler is done. `due` is what was decided
/// before the clock's zero, and is carried out then.
pub(crate) fn dispatch(
    mut scheduler: Scheduler<Prepared>,
    due: Vec<Action<Prepared>>,
    context: &DispatcherContext,
) {
    // Refused in some sandboxes; waits then end up to 50 µs later, which the lateness metrics show.
    veeksha_clock::minimal_timer_slack();
    if let Some(on_start) = &context.on_start {
        on_start(context.index);
    }
    let mut actions = due;
    // The clock reads 0 until it begins, so it cannot show when that is: wait for the absolute
    // instant.
    veeksha_clock::sleep_until(context.clock, 0);
    let mut pending = PendingMessages::default();
    let mut progress = pending.carry_out(&mut actions, context);
    while progress == DispatchProgress::Running {
        let input = match context.inbox.wait(scheduler.next_wake()) {
            WaitResult::Input(input) => input,
            WaitResult::Deadline => SchedulerInput::Tick,
            WaitResult::Disconnected => break,
        };
        scheduler.on(context.clock.now(), input, &mut actions);
        progress = pending.carry_out(&mut actions, context);
    }
    let _ = context.notices.send(CoordinatorMessage::Done);
    let _ = context.release.recv();
}

#[derive(PartialEq)]
enum DispatchProgress {
    Running,
    Done,
}

/// Messages to send once everything that is due has been dispatched. Kept between calls to reuse
/// its memory.
#[derive(Default)]
struct PendingMessages {
    later: Vec<EventEntry>,
    /// Sessions that began and that the coordinator does not know of.
    started: u64,
}

impl PendingMessages {
    /// Sends first. Telling the coordinator and the collector may wake their threads, which costs
    /// more than a dispatch.
    fn carry_out(
        &mut self,
        actions: &mut Vec<Action<Prepared>>,
        context: &DispatcherContext,
    ) -> DispatchProgress {
        // Most calls bring nothing.
        if actions.is_empty() {
            return DispatchProgress::Running;
        }
        let mut progress = DispatchProgress::Running;
        let mut notices = Vec::new();
        for action in actions.drain(..) {
            match action {
                Action::Dispatch { .. } => self.later.extend(sent(action, context)),
                Action::Cancel { request } => context.transport.cancel(request),
                Action::SessionStarted {
                    session,
                    at,
                    requests,
                } => {
                    self.started += 1;
                    let event = Event::SessionStarted {
                        session,
                        at,
                        requests,
                    };
                    self.later.push(event.into());
                }
                Action::AskAgent {
                    session,
                    node,
                    outcome,
                    at,
                } => notices.push(CoordinatorMessage::Ask {
                    session,
                    node,
                    outcome,
                    at,
                }),
                Action::ForgetAgent { session } => notices.push(CoordinatorMessage::Forget { session }),
                Action::CancelInFlight => notices.push(CoordinatorMessage::CancelInFlight),
                Action::Done => progress = DispatchProgress::Done,
                // All dispatchers see the timeout at the same time: one of them writes it down.
                Action::TimeoutReached { .. } if context.index > 0 => {}
                other => self.later.extend(recorded(other).map(EventEntry::from)),
            }
        }
        // Neither the collector of events nor the coordinator ends before the dispatchers do.
        for entry in self.later.drain(..) {
            let _ = context.events.send(entry);
        }
        if self.started >= context.notify_after {
            let _ = context
                .notices
                .send(CoordinatorMessage::SessionsStarted(std::mem::take(
                    &mut self.started,
                )));
        }
        for notice in notices {
            let _ = context.notices.send(notice);
        }
        progress
    }
}

/// Sends a request and returns the event to record.
fn sent(action: Action<Prepared>, context: &DispatcherContext) -> Option<EventEntry> {
    let Action::Dispatch {
        id,
        intended,
        held,
        payload,
        history,
        measured,
        reports_first_chunk,
        session_requests,
    } = action
    else {
        return None;
    };
    let content = context.include_content.then(|| EntryContent::Sent {
        request: payload.clone(),
        history: history.clone(),
    });
    let prompt = context.track_prefixes.then(|| PromptSource::Sent {
        request: payload.clone(),
        history: history.clone(),
    });
    let at = context.clock.now();
    context.transport.submit(Job {
        id,
        intended,
        held,
        dispatched_at: at,
        request: payload,
        history,
        session_requests,
        measured,
        reports_first_chunk,
    });
    let event = Event::Dispatched {
        request: id,
        intended,
        at,
    };
    Some(EventEntry {
        event,
        content,
        prompt,
        answer: None,
    })
}

/// The actions that are only to be written down.
pub(crate) fn recorded<P>(action: Action<P>) -> Option<Event> {
    Some(match action {
        Action::NeverSent { request, reason, at } => Event::NeverSent { request, reason, at },
        Action::SessionFinished {
            session,
            at,
            end,
            requests,
        } => Event::SessionFinished {
            session,
            at,
            end,
            requests,
        },
        Action::ToolRan(run) => Event::ToolRan(run),
        Action::ToolDropped(run) => Event::ToolDropped(run),
        Action::Starved { due, at } => Event::Starved { due, at },
        Action::ArrivalsMissed { sessions, at } => Event::ArrivalsMissed { sessions, at },
        Action::TimeoutReached { at } => Event::TimeoutReached { at },
        Action::SessionStarted {
            session,
            at,
            requests,
        } => Event::SessionStarted {
            session,
            at,
            requests,
        },
        Action::Dispatch { .. }
        | Action::Cancel { .. }
        | Action::AskAgent { .. }
        | Action::ForgetAgent { .. }
        | Action::CancelInFlight
        | Action::Done => return None,
    })
}
