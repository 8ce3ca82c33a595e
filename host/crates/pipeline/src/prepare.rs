//! Converts a plugin's requests into the forms that the scheduler and the transport take.

use std::sync::Arc;

use veeksha_model::{Prepared, Request, Segment, Session, SessionId, ToolDefinitions};
use veeksha_ports::{PluginFailure, PluginFailureKind, ToolRunKeys};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scheduler::NodePlan;

use crate::clients::ClientSpecs;
use crate::schedule::{Timing, drop_unsent};
use crate::tool_runs::ToolSpecs;

/// Text of a plugin's own in one request, at most. No model's context holds as much, and counting
/// its tokens takes seconds in which nothing else is made.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Makes prompts, off the timed path.
#[derive(Clone)]
pub(crate) struct Preparer {
    pub(crate) plugin: String,
    pub(crate) materializer: Arc<Materializer>,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) clients: ClientSpecs,
    pub(crate) timing: Timing,
    pub(crate) tools: ToolSpecs,
}

impl Preparer {
    /// The nodes of a whole session; `name` is its name in messages. Recorded answers become text
    /// only where some request sends them again.
    pub(crate) fn planned(
        &self,
        id: SessionId,
        name: &str,
        mut session: Session,
    ) -> Result<Vec<NodePlan<Prepared>>, PluginFailure> {
        drop_unsent(&mut session.requests);
        ToolRunKeys::default().assign(&mut session);
        self.nodes(id, name, session)
    }

    fn nodes(
        &self,
        id: SessionId,
        name: &str,
        mut session: Session,
    ) -> Result<Vec<NodePlan<Prepared>>, PluginFailure> {
        let refused = |why: String| self.refused(format!("{name}: {why}"));
        let labels = session.labels.len();
        self.clients.take(&mut session).map_err(refused)?;
        session.distribute();
        let mut nodes = self.tools.take(id, &mut session).map_err(refused)?;
        nodes.reserve(session.requests.len());
        for request in session.requests {
            nodes.push(self.node(name, request, labels)?);
        }
        Ok(nodes)
    }

    /// The nodes of an agent's step: what later steps send again is not known yet.
    pub(crate) fn step(
        &self,
        session: SessionId,
        added: Session,
    ) -> Result<Vec<NodePlan<Prepared>>, PluginFailure> {
        self.nodes(session, &format!("session {session}"), added)
    }

    /// The node of a request whose last `session_labels` labels belong to its session.
    fn node(
        &self,
        session: &str,
        mut request: Request,
        session_labels: usize,
    ) -> Result<NodePlan<Prepared>, PluginFailure> {
        if let Some(sentence) = self.clients.min_tokens_prompt(&request) {
            sentence.apply(&mut request, &self.tokenizer);
        }
        let bytes = text_bytes(&request);
        if bytes > MAX_TEXT_BYTES {
            return Err(self.refused(format!(
                "{session}, node {}: {bytes} bytes of text in one request; {MAX_TEXT_BYTES} are allowed \
                 (synthetic segments are not counted)",
                request.node
            )));
        }
        let node = request.node;
        let mut prepared = self.materializer.prepare(request).map_err(|error| {
            self.refused(format!(
                "the prompt of {session}, node {node} cannot be made: {error}"
            ))
        })?;
        prepared.session_labels = session_labels;
        let prepared = Arc::new(prepared);
        let recorded = prepared.recorded_answer.clone();
        Ok(self.timing.node(&prepared.request, recorded, prepared.clone()))
    }

    fn refused(&self, message: String) -> PluginFailure {
        PluginFailure::new(&self.plugin, "prepare", PluginFailureKind::Result, message)
    }
}

fn text_bytes(request: &Request) -> usize {
    let answer = request.replay.as_ref().and_then(|replay| replay.answer.as_ref());
    let messages = || request.messages.iter();
    let reasoning = messages().map(|message| &message.reasoning);
    let reasoning = reasoning.chain(answer.map(|answer| &answer.reasoning)).flatten();
    let contents = messages().map(|message| &message.content);
    let contents = contents.chain(answer.map(|answer| &answer.content));
    let contents = contents.chain(reasoning.clone().map(|reasoning| &reasoning.content));
    let segments = contents.flatten().map(|segment| match segment {
        Segment::Text(text) => text.len(),
        Segment::TokenIds(ids) => size_of_val(&ids[..]),
        Segment::Synthetic { .. } | Segment::Media { .. } | Segment::ToolResult(_) => 0,
    });
    let calls = messages().map(|message| &message.tool_calls);
    let calls = calls.chain(answer.map(|answer| &answer.tool_calls)).flatten();
    let calls = calls.map(|call| call.id.len() + call.name.len() + call.arguments.len());
    let signatures = reasoning.map(|reasoning| reasoning.signature.as_ref().map_or(0, String::len));
    let tools = match request.tools.as_deref() {
        Some(ToolDefinitions::Definitions(text) | ToolDefinitions::Verbatim(text)) => text.len(),
        Some(ToolDefinitions::Synthetic { .. }) | None => 0,
    };
    let form = request.output.form.as_deref();
    let schema = form.and_then(|form| form.schema.as_ref()).map_or(0, String::len);
    segments
        .chain(calls)
        .chain(signatures)
        .chain([tools, schema])
        .sum()
}
