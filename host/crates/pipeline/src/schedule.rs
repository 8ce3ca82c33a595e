//! Recorded instants on the run's clock, and the scheduler's view of a recorded session.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use veeksha_model::{HistoryMode, Nanos, NodeId, Request, Response, Session, SessionId};
use veeksha_ports::{PluginFailure, PluginFailureKind};
use veeksha_scheduler::{NodePlan, NodeWork};

/// Maps recorded instants to the run's clock: `offset + recorded / speedup`. Think times are not
/// scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplaySchedule {
    /// Instant of the recording's zero on the run's clock.
    pub offset: Nanos,
    /// Speed relative to the recording; above 0, and 1 is as recorded.
    pub speedup: f64,
}

impl Default for ReplaySchedule {
    /// As recorded, from the run's zero on.
    fn default() -> Self {
        ReplaySchedule {
            offset: 0,
            speedup: 1.0,
        }
    }
}

/// The end of time: every guest language can count so far.
const END: Nanos = 1 << 53;

impl ReplaySchedule {
    /// A recorded instant on the run's clock, to the nearest nanosecond.
    pub fn at(&self, recorded: Nanos) -> Nanos {
        let scaled = (recorded as f64 / self.speedup).round().clamp(0.0, END as f64) as Nanos;
        self.offset.saturating_add(scaled).min(END)
    }
}

/// Use of a workload's recorded instants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    schedule: ReplaySchedule,
    /// True if sessions need an arrival.
    replays: bool,
}

impl Timing {
    /// `replays` is true if sessions need an arrival.
    pub(crate) fn new(schedule: ReplaySchedule, replays: bool) -> Self {
        Timing { schedule, replays }
    }

    /// Returns the start of a planned session. Traffic that replays arrivals requires one.
    pub(crate) fn arrival(
        &self,
        plugin: &str,
        id: SessionId,
        session: &Session,
    ) -> Result<Option<Nanos>, PluginFailure> {
        match session.arrives_at {
            Some(recorded) => Ok(Some(self.schedule.at(recorded))),
            None if self.replays => Err(without_arrival(plugin, id, "has no recorded arrival")),
            None => Ok(None),
        }
    }

    /// Agents were never recorded.
    pub(crate) fn allows_agent(&self, plugin: &str, id: SessionId) -> Result<(), PluginFailure> {
        if self.replays {
            return Err(without_arrival(
                plugin,
                id,
                "is an agent's, which has no recorded arrival",
            ));
        }
        Ok(())
    }

    /// Returns the scheduler's node for a request.
    pub(crate) fn node<P>(
        &self,
        request: &Request,
        recorded_answer: Option<Arc<Response>>,
        payload: Arc<P>,
    ) -> NodePlan<P> {
        let recorded_at = request.replay.as_ref().and_then(|replay| replay.recorded.at);
        NodePlan {
            node: request.node,
            parents: request.parents.clone(),
            history_parent: request.history_parent,
            wait_after_ready: request.wait_after_ready,
            not_before: recorded_at.map(|at| self.schedule.at(at)),
            history_mode: request.history_mode(),
            recorded_answer,
            cancel_when: request
                .cancellation
                .as_ref()
                .map_or_else(Vec::new, |cancellation| cancellation.when.clone()),
            work: NodeWork::Request(payload),
        }
    }
}

fn without_arrival(plugin: &str, id: SessionId, what: &str) -> PluginFailure {
    let message = format!(
        "session {id} {what}, and traffic of the type `fixed_schedule` starts every session at its own; use traffic of the type \
         `rate` or `concurrent`, or a workload whose sessions state their arrival (`arrives_at`)"
    );
    PluginFailure::new(plugin, "workload.sessions", PluginFailureKind::Result, message)
}

/// The nodes of a planned session whose recorded answer some request sends again: those behind a
/// request that continues its conversation in [`HistoryMode::Recorded`].
fn sent_as_recorded(requests: &[Request]) -> HashSet<NodeId> {
    let mut answers = HashSet::new();
    let recorded = |request: &&Request| request.history_mode() == HistoryMode::Recorded;
    if !requests.iter().any(|request| recorded(&request)) {
        return answers;
    }
    let by_node: HashMap<NodeId, &Request> = requests.iter().map(|request| (request.node, request)).collect();
    for request in requests.iter().filter(recorded) {
        let mut next = request.history_parent;
        while let Some(request) = next
            .filter(|node| answers.insert(*node))
            .and_then(|node| by_node.get(&node))
        {
            next = request
                .history_parent
                .filter(|_| request.history_mode() != HistoryMode::Fresh);
        }
    }
    answers
}

/// Drops the recorded answers of a planned session that no request sends: a long recording may be
/// replayed with live answers, and its answers are then neither made nor kept. The same applies to
/// their reasoning if no request keeps it.
pub(crate) fn drop_unsent(requests: &mut [Request]) {
    if requests.iter().all(|request| request.replay.is_none()) {
        return;
    }
    let answers = sent_as_recorded(requests);
    let keeps_reasoning = requests.iter().any(|request| request.keep_reasoning);
    for request in requests {
        let Some(replay) = &mut request.replay else {
            continue;
        };
        if !answers.contains(&request.node) {
            replay.answer = None;
        }
        if let Some(answer) = replay.answer.as_mut().filter(|_| !keeps_reasoning) {
            answer.reasoning = None;
        }
    }
}

/// Returns true if a request sends the recorded answer of an earlier turn instead of the real one.
pub(crate) fn sends_recorded_answer(mode: HistoryMode, turn: &Request) -> bool {
    mode == HistoryMode::Recorded && turn.replay.as_ref().is_some_and(|replay| replay.answer.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_model::Replay;

    #[test]
    fn instants_are_shifted_and_scaled() {
        let as_recorded = ReplaySchedule::default();
        assert_eq!(
            [0, 1, END, u64::MAX].map(|at| as_recorded.at(at)),
            [0, 1, END, END]
        );
        let faster = ReplaySchedule {
            offset: 500,
            speedup: 4.0,
        };
        // 10 / 4 = 2.5 rounds up to 3.
        assert_eq!([0, 4, 10].map(|at| faster.at(at)), [500, 501, 503]);
        let slower = ReplaySchedule {
            offset: 0,
            speedup: 0.5,
        };
        assert_eq!(slower.at(7), 14);
    }

    fn request(node: u32, parent: Option<u32>, history: HistoryMode) -> Request {
        Request {
            node: NodeId(node),
            parents: parent.into_iter().map(|parent| NodeId(parent).into()).collect(),
            history_parent: parent.map(NodeId),
            replay: Some(Box::new(Replay {
                history,
                ..Replay::default()
            })),
            ..Request::default()
        }
    }

    /// 0 <- 1 <- 2 (fresh) <- 3 <- 4 (recorded): node 4 sends the answers of 3 and 2, and 2 began a
    /// conversation. Node 5 continues 1 live.
    #[test]
    fn answers_are_kept_while_sent() {
        use HistoryMode::{Fresh, Live, Recorded};
        let mut session = vec![
            request(0, None, Live),
            request(1, Some(0), Live),
            request(2, Some(1), Fresh),
            request(3, Some(2), Live),
            request(4, Some(3), Recorded),
            request(5, Some(1), Live),
        ];
        assert_eq!(sent_as_recorded(&session), HashSet::from([NodeId(2), NodeId(3)]));
        session[5] = request(5, Some(1), Recorded);
        assert_eq!(
            sent_as_recorded(&session),
            HashSet::from([0, 1, 2, 3].map(NodeId))
        );
        assert!(sent_as_recorded(&session[..4]).is_empty());
    }
}
