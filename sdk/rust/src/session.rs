//! Sessions, requests and messages, written down shortly.

use std::time::Duration;

use crate::types::{
    AnswerForm, Cancellation, Edge, Guarantees, HistoryMode, Message, Output, Reasoning, Recording, Request,
    Role, Seed, Segment, Session, SyntheticText, SyntheticTools, ToolCall, ToolChoice, Tools, Trigger,
};

impl From<u64> for Seed {
    fn from(value: u64) -> Self {
        Seed {
            high: (value >> 32) as u32,
            low: value as u32,
        }
    }
}

/// A piece of text, sent verbatim.
pub fn text(text: impl Into<String>) -> Segment {
    Segment::Text(text.into())
}

/// A piece of text that the host makes: exactly `tokens` tokens that depend on the seed, the length
/// and the target's tokenizer alone. Texts of one seed share their beginning.
pub fn synthetic(seed: impl Into<Seed>, tokens: u32) -> Segment {
    Segment::Synthetic(SyntheticText {
        seed: seed.into(),
        tokens,
    })
}

impl From<&str> for Segment {
    fn from(value: &str) -> Self {
        text(value)
    }
}

impl From<String> for Segment {
    fn from(value: String) -> Self {
        text(value)
    }
}

impl Message {
    /// A message of one role; its segments are joined without separators.
    pub fn new(role: Role, content: Vec<Segment>) -> Self {
        Message {
            role,
            content,
            tool_call_id: None,
            tool_calls: Vec::new(),
            reasoning: None,
        }
    }
}

impl Message {
    /// A message of the assistant; its calls and its reasoning can be added.
    pub fn assistant(content: impl Into<Segment>) -> Self {
        Message::new(Role::Assistant, vec![content.into()])
    }

    /// Adds a call that the assistant asks for. `arguments` is JSON text.
    pub fn call(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        self.tool_calls.push(ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        });
        self
    }

    /// Sets the reasoning of the assistant before its content.
    pub fn reasoning(mut self, content: impl Into<Segment>) -> Self {
        self.reasoning = Some(Reasoning {
            content: vec![content.into()],
            signature: None,
        });
        self
    }
}

/// Definitions of `count` functions that the host makes: their JSON text has exactly `tokens`
/// tokens.
pub fn synthetic_tools(seed: impl Into<Seed>, count: u32, tokens: u32) -> Tools {
    Tools::Synthetic(SyntheticTools {
        seed: seed.into(),
        count,
        tokens,
    })
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Edge {
    /// Waits until a node is handed over to a client thread.
    pub fn dispatched(parent: u32) -> Self {
        Edge {
            trigger: Trigger::Dispatched,
            ..Edge::from(parent)
        }
    }

    /// Waits for the first generated chunk of a node's answer.
    pub fn first_chunk(parent: u32) -> Self {
        Edge {
            trigger: Trigger::FirstChunk,
            ..Edge::from(parent)
        }
    }

    /// Joins the edges of a node, in the place of one to the same event of the same parent.
    pub(crate) fn join(self, edges: &mut Vec<Edge>) {
        let event = |edge: &Edge| (edge.parent, edge.trigger);
        match edges.iter_mut().find(|known| event(known) == event(&self)) {
            Some(known) => *known = self,
            None => edges.push(self),
        }
    }

    /// Waits for this long after the event.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = nanos(delay);
        self
    }
}

/// Waits for the end of a node.
impl From<u32> for Edge {
    fn from(parent: u32) -> Self {
        Edge {
            parent,
            trigger: Trigger::Completed,
            delay: 0,
        }
    }
}

/// True if the edge waits for the end of that node, without a delay.
impl PartialEq<u32> for Edge {
    fn eq(&self, parent: &u32) -> bool {
        *self == Edge::from(*parent)
    }
}

impl Request {
    /// A root of the session: no parents, no messages yet, no wish about the length of the answer.
    pub fn new(node: u32) -> Self {
        Request {
            node,
            parents: Vec::new(),
            history_parent: None,
            keep_reasoning: false,
            wait_after_ready: 0,
            messages: Vec::new(),
            tools: None,
            output: Output {
                target_tokens: None,
                exact: false,
                form: None,
            },
            cancellation: None,
            client: None,
            body: None,
            headers: Vec::new(),
            labels: Vec::new(),
            recording: None,
        }
    }

    /// Replays a recording.
    pub fn recording(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// Waits for a node of the session: for its end, given its number, or for the event of an
    /// [`Edge`]. A later edge to the same event of a node replaces the earlier one.
    pub fn after(mut self, edge: impl Into<Edge>) -> Self {
        edge.into().join(&mut self.parents);
        self
    }

    /// Returns the nodes that it waits for.
    pub fn parent_nodes(&self) -> Vec<u32> {
        self.parents.iter().map(|edge| edge.parent).collect()
    }

    /// Continues the conversation of a node, and waits for its end.
    pub fn history(mut self, parent: u32) -> Self {
        self.history_parent = Some(parent);
        let waits = |edge: &Edge| edge.parent == parent && edge.trigger == Trigger::Completed;
        if self.parents.iter().any(waits) {
            return self;
        }
        self.after(parent)
    }

    /// Thinks for this long once every edge is met (a root: once the session started).
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait_after_ready = nanos(wait);
        self
    }

    /// Cancels it once the event of an [`Edge`] has happened: of another node of the session, which
    /// is its end if only its number is given, or of the request itself (its dispatch or its first
    /// chunk). Of several events the first one counts.
    pub fn cancel_when(mut self, edge: impl Into<Edge>) -> Self {
        self.cancellation_mut().when.push(edge.into());
        self
    }

    /// Cancels it this long after it was dispatched.
    pub fn cancel_after(self, time: Duration) -> Self {
        let dispatched = Edge::dispatched(self.node).delay(time);
        self.cancel_when(dispatched)
    }

    /// Cancels it this long after its first generated chunk.
    pub fn cancel_at_first_chunk(self, delay: Duration) -> Self {
        let chunk = Edge::first_chunk(self.node).delay(delay);
        self.cancel_when(chunk)
    }

    /// Returns the request with another number. Events of the request itself remain its own.
    pub(crate) fn renumbered(mut self, node: u32) -> Self {
        let when = self.cancellation.iter_mut().flat_map(|cancel| &mut cancel.when);
        for edge in when.filter(|edge| edge.parent == self.node) {
            edge.parent = node;
        }
        Request { node, ..self }
    }

    /// Cancels it after this number of generated chunks.
    pub fn cancel_after_chunks(mut self, chunks: u32) -> Self {
        self.cancellation_mut().after_chunks = Some(chunks);
        self
    }

    fn cancellation_mut(&mut self) -> &mut Cancellation {
        self.cancellation.get_or_insert_with(|| Cancellation {
            when: Vec::new(),
            after_chunks: None,
        })
    }

    /// Adds an HTTP header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a message.
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Adds a system message.
    pub fn system(self, content: impl Into<Segment>) -> Self {
        self.message(Message::new(Role::System, vec![content.into()]))
    }

    /// Adds a user message.
    pub fn user(self, content: impl Into<Segment>) -> Self {
        self.message(Message::new(Role::User, vec![content.into()]))
    }

    /// Adds the result of a tool call.
    pub fn tool(self, call_id: impl Into<String>, content: impl Into<Segment>) -> Self {
        let message = Message::new(Role::Tool, vec![content.into()]);
        self.message(Message {
            tool_call_id: Some(call_id.into()),
            ..message
        })
    }

    /// Asks for exactly this many tokens (the end-of-sequence token is ignored).
    pub fn output_exactly(mut self, tokens: u32) -> Self {
        self.output.target_tokens = Some(tokens);
        self.output.exact = true;
        self
    }

    /// Asks for at most this many tokens.
    pub fn output_at_most(mut self, tokens: u32) -> Self {
        self.output.target_tokens = Some(tokens);
        self.output.exact = false;
        self
    }

    /// States the functions that the model may call.
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Restricts the functions that the answer may call.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.form().tool_choice = Some(choice);
        self
    }

    /// Asks for an answer that fits a JSON schema, given as text.
    pub fn response_schema(mut self, schema: impl Into<String>) -> Self {
        self.form().schema = Some(schema.into());
        self
    }

    /// Asks for the log-probabilities of the answer's tokens, and of this many alternatives to
    /// each.
    pub fn log_probabilities(mut self, alternatives: u32) -> Self {
        self.form().log_probabilities = Some(alternatives);
        self
    }

    fn form(&mut self) -> &mut AnswerForm {
        self.output.form.get_or_insert(AnswerForm {
            tool_choice: None,
            schema: None,
            log_probabilities: None,
            prompt_log_probabilities: false,
        })
    }

    /// Sends the reasoning of the conversation's answers as well.
    pub fn keep_reasoning(mut self) -> Self {
        self.keep_reasoning = true;
        self
    }

    /// Sends a prompt of token ids, in place of messages of text.
    pub fn token_ids(self, ids: impl Into<Vec<u32>>) -> Self {
        self.user(Segment::TokenIds(ids.into()))
    }

    /// Merges a JSON object into the request's body, over everything the host puts there.
    pub fn body(mut self, object: impl Into<String>) -> Self {
        self.body = Some(object.into());
        self
    }

    /// Adds a label to the request's record.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }
}

impl Default for Request {
    /// A request of an [`AgentSession`](crate::AgentSession), which numbers it.
    fn default() -> Self {
        Request::new(0)
    }
}

impl Default for Recording {
    /// A recording of which nothing is known; the request sends the model's real answers.
    fn default() -> Self {
        Recording {
            history: HistoryMode::Live,
            answer: None,
            at: None,
            latency: None,
            prompt_tokens: None,
            output_tokens: None,
        }
    }
}

impl Default for Guarantees {
    /// Guarantees nothing.
    fn default() -> Self {
        Guarantees {
            max_output_tokens: None,
            max_depth: None,
            distinct_prompts: false,
        }
    }
}

impl Session {
    /// A session of these requests.
    pub fn new(requests: impl Into<Vec<Request>>) -> Self {
        Session {
            requests: requests.into(),
            tool_runs: Vec::new(),
            arrives_at: None,
            headers: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// The recorded arrival, relative to the start of the run.
    pub fn arrives_at(mut self, instant: Duration) -> Self {
        self.arrives_at = Some(nanos(instant));
        self
    }

    /// Adds an HTTP header to each of its requests.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a label to the record of each of its requests.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }
}

impl From<Request> for Session {
    fn from(request: Request) -> Self {
        Session::new([request])
    }
}

impl Request {
    /// Sends it by one of the scenario's `clients`; without this, its `client` does.
    pub fn client(mut self, name: impl Into<String>) -> Self {
        self.client = Some(name.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_parent_is_a_parent_once() {
        let request = Request::new(3).after(1).history(1).after(2).after(2);
        assert_eq!(request.parents, [1, 2]);
        assert_eq!(request.history_parent, Some(1));
    }

    #[test]
    fn a_later_edge_replaces_one_to_the_same_event() {
        let delay = Duration::from_micros(3);
        let chunk = Edge::first_chunk(1).delay(delay);
        let request = Request::new(3)
            .after(1)
            .after(Edge::first_chunk(1))
            .after(Edge::dispatched(0))
            .after(chunk);
        assert_eq!(request.parents, [Edge::from(1), chunk, Edge::dispatched(0)]);
    }

    #[test]
    fn the_history_keeps_other_edges_to_its_node() {
        let chunk = Edge::first_chunk(1).delay(Duration::from_secs(10));
        let before = Request::new(3).after(chunk).history(1);
        assert_eq!(before.parents, [chunk, Edge::from(1)]);
        let after = Request::new(3).history(1).after(chunk);
        assert_eq!(after.parents, [Edge::from(1), chunk]);
        // The history needs the whole answer; a delay after it stays.
        let later = Edge::from(1).delay(Duration::from_micros(3));
        assert_eq!(Request::new(3).after(later).history(1).parents, [later]);
        assert_eq!(Request::new(3).history(1).after(later).parents, [later]);
    }

    #[test]
    fn events_of_a_request_itself_follow_its_number() {
        let request = Request::new(3)
            .cancel_when(1)
            .cancel_after(Duration::from_micros(2))
            .cancel_at_first_chunk(Duration::from_micros(5))
            .renumbered(8);
        let own = [
            Edge::dispatched(8).delay(Duration::from_micros(2)),
            Edge::first_chunk(8).delay(Duration::from_micros(5)),
        ];
        assert_eq!(request.node, 8);
        assert_eq!(
            request.cancellation.unwrap().when,
            [Edge::from(1), own[0], own[1]]
        );
    }

    #[test]
    fn every_event_that_cancels_is_kept() {
        let request = Request::new(3)
            .cancel_when(1)
            .cancel_after(Duration::from_micros(2))
            .cancel_when(Edge::first_chunk(3))
            .cancel_after_chunks(64);
        let cancellation = request.cancellation.unwrap();
        let dispatched = Edge::dispatched(3).delay(Duration::from_micros(2));
        assert_eq!(
            cancellation.when,
            [Edge::from(1), dispatched, Edge::first_chunk(3)]
        );
        assert_eq!(cancellation.after_chunks, Some(64));
    }

    #[test]
    fn a_request_names_its_client() {
        assert_eq!(Request::new(0).client, None);
        assert_eq!(Request::new(0).client("judge").client.as_deref(), Some("judge"));
    }

    #[test]
    fn a_wait_is_in_nanoseconds() {
        assert_eq!(
            Request::new(0).wait(Duration::from_millis(350)).wait_after_ready,
            350_000_000
        );
    }

    #[test]
    fn a_seed_keeps_its_64_bits() {
        assert_eq!(
            Seed::from(0x0123_4567_89ab_cdef),
            Seed {
                high: 0x0123_4567,
                low: 0x89ab_cdef
            }
        );
    }
}
