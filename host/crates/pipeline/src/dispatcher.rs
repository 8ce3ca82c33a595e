//! A dispatcher: owns a scheduler, waits for the next instant or input, carries out actions.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_model::{FailureReason, Nanos, NodeId, Prepared, Response, SessionId};
use veeksha_ports::{Job, Transport};
use veeksha_scheduler::{Action, Input, Scheduler};

use crate::pieces::Prompt;
use crate::{Content, Entry};

/// What a dispatcher tells the coordinator.
pub(crate) enum Notice {
    /// A session began: one more may be made.
    SessionStarted,
    /// An agent has to be asked.
    Ask {
        session: SessionId,
        node: NodeId,
        answer: Result<Arc<Response>, Arc<FailureReason>>,
        at: Nanos,
    },
    /// An agent's session is over.
    Forget { session: SessionId },
    /// This dispatcher wants nothing more to be in flight.
    CancelInFlight,
    /// This dispatcher has ended.
    Done,
}

/// What a dispatcher talks to.
pub(crate) struct Lines {
    pub(crate) clock: RunClock,
    pub(crate) inbox: Receiver<Input<Prepared>>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) events: Sender<Entry>,
    pub(crate) include_content: bool,
    pub(crate) track_prefixes: bool,
    /// Whether this dispatcher writes down what all of them see at the same time.
    pub(crate) speaks_for_all: bool,
    pub(crate) notices: Sender<Notice>,
}

/// The work of one dispatcher thread: ends when its scheduler is done.
pub(crate) fn dispatch(mut scheduler: Scheduler<Prepared>, lines: &Lines) {
    // Refused in some sandboxes; waits then end up to 50 µs later, which the lateness figures show.
    veeksha_clock::minimal_timer_slack();
    let mut actions = Vec::new();
    // What is due at zero is decided before zero, and carried out then.
    while let Ok(input) = lines.inbox.try_recv() {
        scheduler.on(0, input, &mut actions);
    }
    veeksha_clock::sleep_until(lines.clock, 0);
    if carry_out(&mut actions, lines) == Progress::Done {
        let _ = lines.notices.send(Notice::Done);
        return;
    }
    loop {
        let now = lines.clock.now();
        let input = match scheduler.next_wake() {
            Some(wake) if wake <= now => Input::Tick,
            Some(wake) => match lines.inbox.recv_timeout(Duration::from_nanos(wake - now)) {
                Ok(input) => input,
                Err(RecvTimeoutError::Timeout) => Input::Tick,
                Err(RecvTimeoutError::Disconnected) => break,
            },
            None => match lines.inbox.recv() {
                Ok(input) => input,
                Err(_) => break,
            },
        };
        scheduler.on(lines.clock.now(), input, &mut actions);
        if carry_out(&mut actions, lines) == Progress::Done {
            break;
        }
    }
    let _ = lines.notices.send(Notice::Done);
}

#[derive(PartialEq)]
enum Progress {
    Running,
    Done,
}

fn carry_out(actions: &mut Vec<Action<Prepared>>, lines: &Lines) -> Progress {
    let mut progress = Progress::Running;
    for action in actions.drain(..) {
        // Neither the collector of events nor the coordinator ends before the dispatchers do.
        match action {
            Action::Dispatch {
                id,
                intended,
                held,
                payload,
                history,
                measured,
                session_requests,
            } => {
                let content = lines.include_content.then(|| Content::Sent {
                    request: payload.clone(),
                    history: history.clone(),
                });
                let prompt = lines.track_prefixes.then(|| Prompt::Sent {
                    request: payload.clone(),
                    history: history.clone(),
                });
                let at = lines.clock.now();
                let job = Job {
                    id,
                    intended,
                    held,
                    dispatched_at: at,
                    request: payload,
                    history,
                    session_requests,
                    measured,
                };
                lines.transport.submit(job);
                let event = Event::Dispatched {
                    request: id,
                    intended,
                    at,
                };
                let _ = lines.events.send(Entry {
                    event,
                    content,
                    prompt,
                });
            }
            Action::SessionStarted {
                session,
                at,
                requests,
            } => {
                let _ = lines.notices.send(Notice::SessionStarted);
                let _ = lines.events.send(
                    Event::SessionStarted {
                        session,
                        at,
                        requests,
                    }
                    .into(),
                );
            }
            Action::AskAgent {
                session,
                node,
                answer,
                at,
            } => {
                let _ = lines.notices.send(Notice::Ask {
                    session,
                    node,
                    answer,
                    at,
                });
            }
            Action::ForgetAgent { session } => {
                let _ = lines.notices.send(Notice::Forget { session });
            }
            Action::CancelInFlight => {
                let _ = lines.notices.send(Notice::CancelInFlight);
            }
            Action::Done => progress = Progress::Done,
            Action::TimeoutReached { .. } if !lines.speaks_for_all => {}
            other => {
                if let Some(event) = recorded(other) {
                    let _ = lines.events.send(event.into());
                }
            }
        }
    }
    progress
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
        | Action::AskAgent { .. }
        | Action::ForgetAgent { .. }
        | Action::CancelInFlight
        | Action::Done => return None,
    })
}
