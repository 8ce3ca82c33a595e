//! A workload without secrets of its scenario in what files show: labels and failures.
//!
//! A server that repeats the headers of a request in its answer makes an agent carry them on.

use std::sync::Arc;

use veeksha_decisions::Redact;
use veeksha_model::{FailureReason, Label, Nanos, NodeId, Response, Session, SessionId};
use veeksha_ports::{
    AgentSource, AgentStep, Guarantees, PluginFailure, PluginFailureKind, SessionSource, ToolRunEnd,
    Workload, WorkloadFactory, WorkloadInfo,
};

use crate::scenario::decision_redaction::DecisionRedaction;

/// A workload whose labels and failures are redacted. What its requests send is unchanged.
pub(crate) struct RedactedFactory {
    inner: Arc<dyn WorkloadFactory>,
    redaction: Arc<DecisionRedaction>,
}

impl RedactedFactory {
    pub(crate) fn new(inner: Arc<dyn WorkloadFactory>, redaction: Arc<DecisionRedaction>) -> Self {
        RedactedFactory { inner, redaction }
    }

    fn redacted(&self, workload: Workload) -> Workload {
        let redaction = self.redaction.clone();
        match workload {
            Workload::Planned(inner) => Workload::Planned(Box::new(RedactedSessions { inner, redaction })),
            Workload::Reactive(inner) => Workload::Reactive(Box::new(RedactedAgents { inner, redaction })),
        }
    }
}

impl WorkloadFactory for RedactedFactory {
    fn info(&self) -> &WorkloadInfo {
        self.inner.info()
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        self.inner.open().map(|workload| self.redacted(workload))
    }

    fn open_silent(&self) -> Result<Workload, PluginFailure> {
        self.inner.open_silent().map(|workload| self.redacted(workload))
    }

    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        self.inner.guarantees()
    }
}

struct RedactedSessions {
    inner: Box<dyn SessionSource>,
    redaction: Arc<DecisionRedaction>,
}

impl SessionSource for RedactedSessions {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        self.inner.length()
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let sessions = self.inner.sessions(first, count);
        let mut sessions = sessions.map_err(|failure| redact_failure(&self.redaction, failure))?;
        for session in &mut sessions {
            redact_labels(&self.redaction, session);
        }
        Ok(sessions)
    }
}

struct RedactedAgents {
    inner: Box<dyn AgentSource>,
    redaction: Arc<DecisionRedaction>,
}

impl RedactedAgents {
    fn step(&self, step: Result<AgentStep, PluginFailure>) -> Result<AgentStep, PluginFailure> {
        let mut step = step.map_err(|failure| redact_failure(&self.redaction, failure))?;
        redact_labels(&self.redaction, &mut step.added);
        Ok(step)
    }
}

impl AgentSource for RedactedAgents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        self.inner.length()
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        let step = self.inner.start(session);
        self.step(step)
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        let step = self.inner.answered(session, node, response, completed_at);
        self.step(step)
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        let step = self.inner.failed(session, reason);
        self.step(step)
    }

    fn tool_ended(&mut self, session: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
        let step = self.inner.tool_ended(session, end);
        self.step(step)
    }

    fn finish(&mut self, session: SessionId) {
        self.inner.finish(session);
    }
}

fn redact_labels(redaction: &DecisionRedaction, session: &mut Session) {
    let of_session = session.labels.iter_mut();
    let of_requests = session
        .requests
        .iter_mut()
        .flat_map(|request| &mut request.labels);
    let of_runs = session.tool_runs.iter_mut().flat_map(|run| &mut run.labels);
    let labels = of_session.chain(of_requests).chain(of_runs);
    labels.for_each(|(name, value): &mut Label| {
        redact_text(redaction, name);
        redact_text(redaction, value);
    });
}

fn redact_failure(redaction: &DecisionRedaction, mut failure: PluginFailure) -> PluginFailure {
    redact_text(redaction, &mut failure.message);
    let texts = [
        &mut failure.source,
        &mut failure.input,
        &mut failure.last_host_call,
        &mut failure.stderr,
    ];
    let hint = match &mut failure.kind {
        PluginFailureKind::Refused { hint, .. } => hint.as_mut(),
        _ => None,
    };
    let texts = texts.into_iter().flatten().chain(hint);
    texts.for_each(|text| redact_text(redaction, text));
    failure
}

fn redact_text(redaction: &DecisionRedaction, text: &mut String) {
    let shown = match redaction.text(text) {
        std::borrow::Cow::Borrowed(_) => return,
        std::borrow::Cow::Owned(shown) => shown,
    };
    *text = shown;
}
