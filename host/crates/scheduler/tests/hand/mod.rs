//! Handmade runs: short constructors for inputs, one line of text per action.

use std::sync::Arc;

use veeksha_model::{
    ErrorClass, FailureReason, Held, History, HistoryMode, Nanos, NodeId, RequestId, Response, SessionId,
};
use veeksha_scheduler::{
    Action, ConcurrencyLimits, GracePeriod, Interval, NodeOutcome, NodePlan, NodeWork, Scheduler,
    SchedulerConfig, SchedulerInput, SessionKind, SessionPlan, Shard, TrafficRule,
};

pub(crate) fn config(traffic: TrafficRule) -> SchedulerConfig {
    SchedulerConfig {
        tools: Vec::new(),
        traffic,
        limits: ConcurrencyLimits::default(),
        cancel_session_on_failure: true,
        max_sessions: None,
        benchmark_timeout: None,
        grace: GracePeriod::Unbounded,
        seed: 1,
        shard: Shard::WHOLE,
    }
}

pub(crate) const EVERY_SECOND: TrafficRule = TrafficRule::Rate(Interval::Fixed { interval: 1.0 });

pub(crate) fn node(node: u32, parents: &[u32], wait_after_ready: Nanos) -> NodePlan<u32> {
    NodePlan {
        not_before: None,
        history_mode: HistoryMode::Live,
        recorded_answer: None,
        cancel_when: Vec::new(),
        node: NodeId(node),
        parents: parents.iter().map(|parent| NodeId(*parent).into()).collect(),
        history_parent: parents.first().copied().map(NodeId),
        wait_after_ready,
        work: NodeWork::Request(Arc::new(node)),
    }
}

pub(crate) fn session(id: u64, nodes: Vec<NodePlan<u32>>) -> SchedulerInput<u32> {
    SchedulerInput::Session(SessionPlan {
        arrives_at: None,
        id: SessionId(id),
        nodes,
        kind: SessionKind::Planned,
        cancel: Vec::new(),
    })
}

pub(crate) fn agent(id: u64, nodes: Vec<NodePlan<u32>>) -> SchedulerInput<u32> {
    SchedulerInput::Session(SessionPlan {
        arrives_at: None,
        id: SessionId(id),
        nodes,
        kind: SessionKind::Reactive,
        cancel: Vec::new(),
    })
}

pub(crate) fn id(session: u64, node: u32) -> RequestId {
    RequestId {
        session: SessionId(session),
        node: NodeId(node),
    }
}

pub(crate) fn answered(session: u64, node: u32, at: Nanos) -> SchedulerInput<u32> {
    SchedulerInput::Answered {
        request: id(session, node),
        response: Arc::new(Response::default()),
        at,
    }
}

pub(crate) fn failed(session: u64, node: u32, at: Nanos) -> SchedulerInput<u32> {
    let request = id(session, node);
    let reason = FailureReason {
        retry_after: None,
        request,
        class: ErrorClass::Status,
        status: Some(500),
        message: String::new(),
        at,
    };
    SchedulerInput::Failed {
        request,
        reason: Arc::new(reason),
        at,
    }
}

/// Returns the scheduler's actions, one line each.
pub(crate) fn on(scheduler: &mut Scheduler<u32>, now: Nanos, input: SchedulerInput<u32>) -> Vec<String> {
    let mut actions = Vec::new();
    scheduler.on(now, input, &mut actions);
    actions.iter().map(line).collect()
}

pub(crate) fn line(action: &Action<u32>) -> String {
    match action {
        Action::SessionStarted {
            session,
            at,
            requests,
        } => format!("start {session} at {at} of {requests}"),
        Action::Dispatch {
            id,
            intended,
            held,
            measured,
            session_requests,
            history,
            ..
        } => {
            let turns = History::turns(history);
            let turn = |turn: &Arc<History<u32>>| {
                let answer = match &turn.response {
                    Some(response) => response.text.as_str(),
                    None => "!",
                };
                format!("{}{answer}", turn.request)
            };
            let turns: Vec<String> = turns.iter().map(turn).collect();
            let measured = if *measured { "" } else { " unmeasured" };
            let held = if *held == Held::default() {
                String::new()
            } else {
                format!(" held {}+{}+{}", held.sessions, held.in_flight, held.in_prefill)
            };
            format!(
                "send {id} at {intended} of {session_requests} after [{}]{held}{measured}",
                turns.join(" ")
            )
        }
        Action::AskAgent {
            session,
            node,
            outcome,
            at,
        } => {
            let succeeded = match &outcome {
                NodeOutcome::Answered(_) => true,
                NodeOutcome::Failed(_) => false,
                NodeOutcome::ToolRan(run) => !run.failed,
                NodeOutcome::ToolCancelled(_) => true,
            };
            format!("ask {session}/{node} {succeeded} at {at}")
        }
        Action::ToolRan(run) => format!(
            "tool {} {} at {} from {} to {}{}",
            run.class,
            run.id,
            run.ready_at,
            run.started_at,
            run.completed_at,
            if run.is_cold { " cold" } else { "" }
        ),
        Action::ToolDropped(run) => format!(
            "dropped {} {} {} at {}{}",
            run.class,
            run.id,
            run.reason.name(),
            run.at,
            run.ready_at.map_or_else(String::new, |at| format!(" due {at}")),
        ),
        Action::ForgetAgent { session } => format!("forget {session}"),
        Action::NeverSent { request, reason, at } => format!("never {request} {} at {at}", reason.name()),
        Action::SessionFinished {
            session,
            at,
            end,
            requests,
        } => {
            format!("finish {session} {} at {at} of {requests}", end.name())
        }
        Action::Starved { due, at } => format!("starved from {due} to {at}"),
        Action::ArrivalsMissed { sessions, at } => format!("missed {sessions} at {at}"),
        Action::TimeoutReached { at } => format!("timeout at {at}"),
        Action::Cancel { request } => format!("cancel {request}"),
        Action::CancelInFlight => "cancel".into(),
        Action::Done => "done".into(),
    }
}
