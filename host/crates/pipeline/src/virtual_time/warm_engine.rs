//! Warms the engine: its prefix cache keeps what it learned, the run's clock begins afterwards.

use std::sync::Arc;

use veeksha_model::{Nanos, Response, Session};
use veeksha_simulator::{EngineEvent, EngineRequest, Fault};

use crate::clients::ClientSpecs;
use crate::schedule::Timing;
use crate::warmup::{WarmupReport, WarmupTurn, WarmupWalk, session_id};

use super::prompt::PromptWriter;
use super::servers::SimulatedServers;
use super::source::nodes_of;

/// The context of a warm-up in virtual time.
pub(super) struct EngineWarmup<'a> {
    pub(super) writer: &'a PromptWriter<'a>,
    pub(super) clients: &'a ClientSpecs,
    pub(super) timing: Timing,
}

impl EngineWarmup<'_> {
    /// Sends every request at the instant at which the one before it ended, and then starts the
    /// run's clock. A session whose clients do not exist is not sent.
    pub(super) fn run(&self, sessions: &[Session], servers: &mut SimulatedServers<'_>) -> WarmupReport {
        let (mut report, mut now, mut sent) = (WarmupReport::default(), 0, 0);
        for (index, session) in sessions.iter().enumerate() {
            let mut session = session.clone();
            if let (Err(why), Some(first)) = (self.clients.take(&mut session), session.requests.first()) {
                report.failed(index, first.node, &why);
                continue;
            }
            session.distribute();
            let nodes = nodes_of(session.requests, self.timing, self.writer, self.clients);
            WarmupWalk::new(session_id(index), nodes).go(|turn| {
                sent += 1;
                let node = turn.id.node;
                let (ended, result) = self.send(u64::MAX - sent, turn, now, servers);
                now = ended;
                match result {
                    Ok(response) => Some(Some(response)),
                    Err(message) => {
                        report.failed(index, node, &message);
                        Some(None)
                    }
                }
            });
        }
        servers.begin_at(now);
        report
    }

    /// Returns the instant at which the request ended, and its result.
    fn send(
        &self,
        id: u64,
        turn: WarmupTurn<veeksha_model::Request>,
        now: Nanos,
        servers: &mut SimulatedServers<'_>,
    ) -> (Nanos, Result<Arc<Response>, String>) {
        let client = servers.at(servers.index(&turn.payload));
        let (server, writer) = (&mut client.server, &client.writer);
        let prompt = writer.prompt(turn.id.session, &turn.payload, &turn.history);
        let request = EngineRequest {
            id,
            prompt_tokens: prompt.tokens,
            blocks: prompt.blocks,
            max_tokens: turn.payload.output.target_tokens,
            exact: turn.payload.output.exact,
        };
        let deadline = now.saturating_add(client.target.request_timeout);
        let mut events = Vec::new();
        server.submit(now, request, &mut events);
        loop {
            if let Some(end) = events.drain(..).find_map(|event| end_of(id, now, event)) {
                return end;
            }
            match server.next_wake().filter(|at| *at < deadline) {
                Some(at) => server.advance(at, &mut events),
                None => {
                    server.cancel(deadline, id);
                    let message = "the request's total deadline passed";
                    return (deadline, Err(message.to_owned()));
                }
            }
        }
    }
}

fn end_of(id: u64, now: Nanos, event: EngineEvent) -> Option<(Nanos, Result<Arc<Response>, String>)> {
    if event.id() != id {
        return None;
    }
    match event {
        EngineEvent::Finished {
            at,
            completion_tokens,
            ..
        } => {
            let response = Response {
                output_tokens: completion_tokens,
                ..Response::default()
            };
            Some((at, Ok(Arc::new(response))))
        }
        EngineEvent::Rejected { status, message, .. } => {
            Some((now, Err(format!("status {status}: {message}"))))
        }
        EngineEvent::Fault {
            fault: Fault::Stall { .. },
            ..
        }
        | EngineEvent::Started { .. }
        | EngineEvent::Token { .. } => None,
        EngineEvent::Fault { at, fault, .. } => {
            let what = match fault {
                Fault::MidStreamError => "an error inside the stream",
                Fault::Truncate => "the stream ended without a finish reason",
                Fault::DropConnection | Fault::Stall { .. } => "the connection was dropped",
            };
            Some((at, Err(what.to_owned())))
        }
    }
}
