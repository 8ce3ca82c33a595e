//! A digest of what a session asks for: equal in two runs exactly if the workload gave them the
//! same session.

use veeksha_model::{
    Edge, HeaderField, Label, ReasoningContent, Request, Segment, Session, ToolCall, ToolChoice,
    ToolDefinitions, ToolRun,
};

/// Returns the first 64 bits of BLAKE3 over everything that the workload defines for the session:
/// its graph, messages (as segments, so that a tokenizer or a salt changes nothing), lengths, think
/// times, labels, recorded arrival. Each part is preceded by its length, so that no two sessions
/// have the same encoding.
pub(crate) fn session_digest(session: &Session) -> u64 {
    let mut work = WorkHasher(blake3::Hasher::new());
    work.number(session.arrives_at.map_or(0, |at| at + 1));
    work.labels(&session.labels);
    work.number(session.requests.len() as u64);
    session.requests.iter().for_each(|request| work.request(request));
    work.headers(&session.headers);
    session.tool_runs.iter().for_each(|run| work.tool_run(run));
    let digest = work.0.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_be_bytes(first)
}

struct WorkHasher(blake3::Hasher);

impl WorkHasher {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn labels(&mut self, labels: &[Label]) {
        self.number(labels.len() as u64);
        for (name, value) in labels {
            self.text(name);
            self.text(value);
        }
    }

    /// Nothing without headers, so that the digests of earlier runs are the same.
    fn headers(&mut self, headers: &[HeaderField]) {
        if !headers.is_empty() {
            self.number(u64::MAX);
            self.labels(headers);
        }
    }

    fn edges(&mut self, edges: &[Edge]) {
        self.number(edges.len() as u64);
        for edge in edges {
            // Other edges than these have a marker, so that the digests of earlier runs are the
            // same.
            if *edge != Edge::from(edge.parent) {
                self.number(u64::MAX);
                self.text(edge.trigger.name());
                self.number(edge.delay);
            }
            self.number(edge.parent.0.into());
        }
    }

    /// Like headers, a run has a marker, so that sessions without any keep their digest.
    fn tool_run(&mut self, run: &ToolRun) {
        self.number(u64::MAX - 1);
        self.number(run.node.0.into());
        self.edges(&run.parents);
        self.text(&run.class);
        self.number(run.service_time.map_or(0, |time| time + 1));
        self.number(run.result_tokens.map_or(0, |tokens| u64::from(tokens) + 1));
        if let Some(fails) = run.fails {
            self.mark("fails");
            self.number(fails.into());
        }
        self.labels(&run.labels);
    }

    fn request(&mut self, request: &Request) {
        self.number(request.node.0.into());
        self.edges(&request.parents);
        self.number(request.history_parent.map_or(0, |parent| u64::from(parent.0) + 1));
        self.number(request.wait_after_ready);
        self.number(request.messages.len() as u64);
        for message in &request.messages {
            self.text(message.role.name());
            self.text(message.tool_call_id.as_deref().unwrap_or_default());
            self.segments(&message.content);
            self.calls_and_reasoning(&message.tool_calls, message.reasoning.as_ref());
        }
        self.additions(request);
        self.number(
            request
                .output
                .target_tokens
                .map_or(0, |tokens| u64::from(tokens) + 1),
        );
        self.number(request.output.exact.into());
        self.text(request.body.as_deref().unwrap_or_default());
        self.labels(&request.labels);
        self.headers(&request.headers);
        self.text(request.history_mode().name());
        let answer = request.replay.as_ref().and_then(|replay| replay.answer.as_ref());
        self.number(answer.is_some().into());
        if let Some(answer) = answer {
            self.segments(&answer.content);
            self.number(answer.tool_calls.len() as u64);
            for call in &answer.tool_calls {
                self.text(&call.id);
                self.text(&call.name);
                self.text(&call.arguments);
            }
            self.calls_and_reasoning(&[], answer.reasoning.as_ref());
        }
        // The recorded instant decides when it is sent; the recorded duration changes nothing.
        let at = request.replay.as_ref().and_then(|replay| replay.recorded.at);
        self.number(at.map_or(0, |at| at + 1));
    }

    /// Nothing without calls and reasoning, so that the digests of earlier runs are the same.
    fn calls_and_reasoning(&mut self, calls: &[ToolCall], reasoning: Option<&ReasoningContent>) {
        if !calls.is_empty() {
            self.mark("calls");
            self.number(calls.len() as u64);
            for call in calls {
                self.text(&call.id);
                self.text(&call.name);
                self.text(&call.arguments);
            }
        }
        if let Some(reasoning) = reasoning {
            self.mark("reasoning");
            self.segments(&reasoning.content);
            self.option(reasoning.signature.as_deref());
        }
    }

    /// The parts of a request that earlier versions did not have; nothing of those that it does not
    /// use.
    fn additions(&mut self, request: &Request) {
        if request.keep_reasoning {
            self.mark("keep reasoning");
        }
        if let Some(client) = &request.client {
            self.mark("client");
            self.text(client);
        }
        if let Some(tools) = &request.tools {
            self.mark("tools");
            match &**tools {
                ToolDefinitions::Definitions(text) => {
                    self.number(0);
                    self.text(text);
                }
                ToolDefinitions::Verbatim(text) => {
                    self.number(1);
                    self.text(text);
                }
                ToolDefinitions::Synthetic { seed, count, tokens } => {
                    self.number(2);
                    self.number(u64::from(*seed));
                    self.number(u64::from(*count));
                    self.number(u64::from(*tokens));
                }
            }
        }
        if let Some(form) = &request.output.form {
            self.mark("form");
            let (kind, name) = match &form.tool_choice {
                None => (0, None),
                Some(ToolChoice::Automatic) => (1, None),
                Some(ToolChoice::None) => (2, None),
                Some(ToolChoice::Required) => (3, None),
                Some(ToolChoice::Function(name)) => (4, Some(&**name)),
            };
            self.number(kind);
            self.option(name);
            self.option(form.schema.as_deref());
            self.number(form.log_probabilities.map_or(0, |count| u64::from(count) + 1));
            self.number(form.prompt_log_probabilities.into());
        }
    }

    /// Begins a part that most requests do not have. No text is so long.
    fn mark(&mut self, part: &str) {
        self.number(u64::MAX);
        self.text(part);
    }

    fn option(&mut self, text: Option<&str>) {
        self.number(text.is_some().into());
        self.text(text.unwrap_or_default());
    }

    fn segments(&mut self, segments: &[Segment]) {
        self.number(segments.len() as u64);
        for segment in segments {
            match segment {
                Segment::Text(text) => {
                    self.number(0);
                    self.text(text);
                }
                Segment::Synthetic { seed, tokens } => {
                    self.number(1);
                    self.number(u64::from(*seed));
                    self.number(u64::from(*tokens));
                }
                Segment::Media { kind, source } => {
                    self.number(2);
                    self.text(kind.name());
                    self.text(source);
                }
                Segment::TokenIds(ids) => {
                    self.number(3);
                    self.number(ids.len() as u64);
                    ids.iter().for_each(|id| self.number(u64::from(*id)));
                }
                Segment::ToolResult(run) => {
                    self.number(4);
                    self.number(u64::from(run.0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_model::{AnswerForm, Message, NodeId, Role, Seed, Trigger};

    fn request(node: u32) -> Request {
        Request {
            node: NodeId(node),
            messages: vec![Message::new(
                Role::User,
                vec![Segment::Text("ab".into()), Segment::Text("c".into())],
            )],
            ..Request::default()
        }
    }

    fn edge(trigger: Trigger, delay: u64) -> Edge {
        Edge {
            parent: NodeId(7),
            trigger,
            delay,
        }
    }

    fn tools(tools: ToolDefinitions) -> Option<Box<ToolDefinitions>> {
        Some(Box::new(tools))
    }

    fn synthetic_tools(count: u32) -> ToolDefinitions {
        ToolDefinitions::Synthetic {
            seed: Seed { high: 0, low: 1 },
            count,
            tokens: 100,
        }
    }

    fn form(change: impl FnOnce(&mut AnswerForm)) -> Option<Box<AnswerForm>> {
        let mut form = AnswerForm::default();
        change(&mut form);
        Some(Box::new(form))
    }

    /// Every single change gives another digest; the same session gives the same.
    #[test]
    fn digest_covers_every_field_of_a_session() {
        let session = |requests: &[Request]| Session::from(requests.to_vec());
        let plain = session_digest(&session(&[request(0)]));
        assert_eq!(plain, session_digest(&session(&[request(0)])));
        let changed = |change: &dyn Fn(&mut Request)| {
            let mut request = request(0);
            change(&mut request);
            session_digest(&session(&[request]))
        };
        let label = || ("tier".to_owned(), "gold".to_owned());
        let all = [
            plain,
            session_digest(&session(&[request(1)])),
            session_digest(&session(&[request(0), request(1)])),
            session_digest(&Session {
                labels: vec![label()],
                ..session(&[request(0)])
            }),
            session_digest(&Session {
                headers: vec![label()],
                ..session(&[request(0)])
            }),
            session_digest(&Session {
                arrives_at: Some(0),
                ..session(&[request(0)])
            }),
            changed(&|request| request.messages[0].content = vec![Segment::Text("abc".into())]),
            changed(&|request| {
                request.messages[0].content = vec![Segment::Text("a".into()), Segment::Text("bc".into())];
            }),
            changed(&|request| {
                request.messages[0].content = vec![Segment::Synthetic {
                    seed: Seed { high: 0, low: 1 },
                    tokens: 3,
                }];
            }),
            changed(&|request| request.messages[0].role = Role::System),
            changed(&|request| request.output.target_tokens = Some(0)),
            changed(&|request| request.output.exact = true),
            changed(&|request| request.wait_after_ready = 1),
            changed(&|request| request.body = Some("{}".into())),
            changed(&|request| request.labels = vec![label()]),
            changed(&|request| request.headers = vec![label()]),
            changed(&|request| request.parents = vec![NodeId(7).into()]),
            changed(&|request| request.parents = vec![edge(Trigger::Dispatched, 0)]),
            changed(&|request| request.parents = vec![edge(Trigger::FirstChunk, 0)]),
            changed(&|request| request.parents = vec![edge(Trigger::Completed, 5)]),
            changed(&|request| request.history_parent = Some(NodeId(0))),
            changed(&|request| request.keep_reasoning = true),
            changed(&|request| request.client = Some("judge".into())),
            changed(&|request| request.client = Some("critic".into())),
            changed(&|request| request.messages[0].tool_calls = vec![ToolCall::default()]),
            changed(&|request| request.messages[0].reasoning = Some(ReasoningContent::default())),
            changed(&|request| {
                request.messages[0].reasoning = Some(ReasoningContent {
                    signature: Some(String::new()),
                    ..ReasoningContent::default()
                });
            }),
            changed(&|request| request.tools = tools(ToolDefinitions::Definitions("[]".into()))),
            changed(&|request| request.tools = tools(ToolDefinitions::Verbatim("[]".into()))),
            changed(&|request| request.tools = tools(synthetic_tools(1))),
            changed(&|request| request.tools = tools(synthetic_tools(2))),
            changed(&|request| request.output.form = form(|_| ())),
            changed(&|request| request.output.form = form(|form| form.tool_choice = Some(ToolChoice::None))),
            changed(&|request| request.output.form = form(|form| form.schema = Some("{}".into()))),
            changed(&|request| request.output.form = form(|form| form.log_probabilities = Some(0))),
            changed(&|request| request.output.form = form(|form| form.prompt_log_probabilities = true)),
        ];
        let distinct: std::collections::HashSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
