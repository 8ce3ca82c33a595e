//! Warms a real target: through the transport of the run, before the run's clock starts.

use crossbeam_channel::{Receiver, select};
use std::sync::Arc;

use veeksha_clock::RunClock;
use veeksha_model::{Prepared, Response, Session};
use veeksha_ports::{Job, PendingOutcome, PluginFailure, Transport};

use crate::control::Control;
use crate::prepare::Preparer;
use crate::warmup::{WarmupReport, WarmupTurn, WarmupWalk, session_id};

/// The context of a real target's warm-up.
pub(crate) struct TransportWarmup<'a> {
    pub(crate) preparer: &'a Preparer,
    pub(crate) transport: &'a dyn Transport,
    pub(crate) outcomes: &'a Receiver<Option<Box<dyn PendingOutcome>>>,
    pub(crate) control: &'a Control,
    /// The transport's clock.
    pub(crate) clock: RunClock,
}

impl TransportWarmup<'_> {
    /// Sends every request and waits for its answer. Ends early when a stop is asked for; what is
    /// in flight is then given up.
    pub(crate) fn run(&self, sessions: &[Session]) -> Result<WarmupReport, PluginFailure> {
        let mut report = WarmupReport::default();
        for (index, session) in sessions.iter().enumerate() {
            let id = session_id(index);
            let name = format!("warm-up session {index}");
            let nodes = self.preparer.planned(id, &name, session.clone())?;
            let count = nodes.len() as u32;
            WarmupWalk::new(id, nodes).go(|turn| {
                if self.control.is_stopped() {
                    return None;
                }
                let node = turn.id.node;
                match self.send(turn, count) {
                    Ok(response) => Some(Some(response)),
                    Err(_) if self.control.is_stopped() => None,
                    Err(message) => {
                        report.failed(index, node, &message);
                        Some(None)
                    }
                }
            });
        }
        Ok(report)
    }

    fn send(&self, turn: WarmupTurn<Prepared>, session_requests: u32) -> Result<Arc<Response>, String> {
        let id = turn.id;
        let now = self.clock.now();
        self.transport.submit(Job {
            id,
            intended: now,
            held: Default::default(),
            dispatched_at: now,
            request: turn.payload,
            history: turn.history,
            session_requests,
            measured: false,
            reports_first_chunk: false,
        });
        loop {
            select! {
                recv(self.outcomes) -> outcome => match outcome {
                    Ok(Some(returned)) if returned.id() == id => {
                        return returned.outcome().result.map(Arc::new).map_err(|reason| {
                            format!("{}: {}", reason.class.name(), reason.message)
                        });
                    }
                    Ok(_) => {}
                    Err(_) => return Err("the transport has ended".into()),
                },
                // The outcome follows soon.
                recv(self.control.woken()) -> _ => self.transport.cancel_all(),
            }
        }
    }
}
