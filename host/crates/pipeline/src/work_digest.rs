//! A digest of what a session asks for: equal in two runs exactly if the workload gave them the
//! same session.

use veeksha_model::{Label, Nanos, Request, Segment};

/// Returns the first 64 bits of BLAKE3 over everything that the workload defines for the session:
/// its graph, messages (as segments, so that a tokenizer or a salt changes nothing), lengths, think
/// times, labels, recorded arrival. Each part is preceded by its length, so that no two sessions
/// have the same encoding.
pub(crate) fn session_digest(requests: &[Request], labels: &[Label], arrives_at: Option<Nanos>) -> u64 {
    let mut work = WorkHasher(blake3::Hasher::new());
    work.number(arrives_at.map_or(0, |at| at + 1));
    work.labels(labels);
    work.number(requests.len() as u64);
    requests.iter().for_each(|request| work.request(request));
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

    fn request(&mut self, request: &Request) {
        self.number(request.node.0.into());
        self.number(request.parents.len() as u64);
        for parent in &request.parents {
            self.number(parent.0.into());
        }
        self.number(request.history_parent.map_or(0, |parent| u64::from(parent.0) + 1));
        self.number(request.wait_after_ready);
        self.number(request.messages.len() as u64);
        for message in &request.messages {
            self.text(message.role.name());
            self.text(message.tool_call_id.as_deref().unwrap_or_default());
            self.segments(&message.content);
        }
        self.number(
            request
                .output
                .target_tokens
                .map_or(0, |tokens| u64::from(tokens) + 1),
        );
        self.number(request.output.exact.into());
        self.text(request.body.as_deref().unwrap_or_default());
        self.labels(&request.labels);
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
        }
        // The recorded instant decides when it is sent; the recorded duration changes nothing.
        let at = request.replay.as_ref().and_then(|replay| replay.recorded.at);
        self.number(at.map_or(0, |at| at + 1));
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
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_model::{Message, NodeId, OutputSpec, Role, Seed};

    fn request(node: u32) -> Request {
        Request {
            node: NodeId(node),
            parents: Vec::new(),
            history_parent: None,
            wait_after_ready: 0,
            messages: vec![Message {
                role: Role::User,
                content: vec![Segment::Text("ab".into()), Segment::Text("c".into())],
                tool_call_id: None,
            }],
            output: OutputSpec::default(),
            body: None,
            labels: Vec::new(),
            replay: None,
        }
    }

    /// Every single change gives another digest; the same session gives the same.
    #[test]
    fn digest_covers_every_field_of_a_session() {
        let plain = session_digest(&[request(0)], &[], None);
        assert_eq!(plain, session_digest(&[request(0)], &[], None));
        let changed = |change: &dyn Fn(&mut Request)| {
            let mut request = request(0);
            change(&mut request);
            session_digest(&[request], &[], None)
        };
        let label = || ("tier".to_owned(), "gold".to_owned());
        let all = [
            plain,
            session_digest(&[request(1)], &[], None),
            session_digest(&[request(0), request(1)], &[], None),
            session_digest(&[request(0)], &[label()], None),
            session_digest(&[request(0)], &[], Some(0)),
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
            changed(&|request| request.parents = vec![NodeId(7)]),
            changed(&|request| request.history_parent = Some(NodeId(0))),
        ];
        let distinct: std::collections::HashSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
