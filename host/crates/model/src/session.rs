//! A session as a plugin describes it: a graph of requests whose content is segments, not text.

use crate::content::Segment;
use crate::edge::Edge;
use crate::headers::{self, HeaderField};
use crate::ids::{Nanos, NodeId};
use crate::replay::{HistoryMode, Replay};

/// A name and a value that a workload attaches to a session or a request; carried to every record.
pub type Label = (String, String);

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// The user's turn.
    User,
    /// The model's turn (recorded history).
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// The name on the wire of the OpenAI APIs.
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// One message of a request, before its text exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// Content, concatenated in order without separators.
    pub content: Vec<Segment>,
    /// For [`Role::Tool`]: the call that this message answers.
    pub tool_call_id: Option<String>,
}

/// The requested length of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputSpec {
    /// Tokens to ask for; `None` leaves it to the server.
    pub target_tokens: Option<u32>,
    /// True if the server is asked to produce exactly that many (`ignore_eos`, minimum tokens).
    pub exact: bool,
}

/// One node of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Node id, unique within the session.
    pub node: NodeId,
    /// The events of other nodes that it waits for.
    pub parents: Vec<Edge>,
    /// The parent whose conversation this request continues; one of `parents`, and complete.
    pub history_parent: Option<NodeId>,
    /// Think time: the node is ready this long after its last edge was met (a root: after the
    /// session started).
    pub wait_after_ready: Nanos,
    /// The new messages of this turn; history comes before them.
    pub messages: Vec<Message>,
    /// The answer asked for.
    pub output: OutputSpec,
    /// A JSON object merged into the request body, over everything the host puts there.
    pub body: Option<String>,
    /// HTTP headers, in addition to those of the session and of the configuration, which they
    /// replace.
    pub headers: Vec<HeaderField>,
    /// Carried to the record.
    pub labels: Vec<Label>,
    /// Of a request that was recorded once: what is known of it. Boxed, because most requests have
    /// none.
    pub replay: Option<Box<Replay>>,
}

impl Request {
    /// Returns the history that it sends; a request that was never recorded sends the real answers.
    pub fn history_mode(&self) -> HistoryMode {
        self.replay
            .as_ref()
            .map_or(HistoryMode::Live, |replay| replay.history)
    }
}

/// A session as a planned generator returns it: its whole graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The nodes, in the order in which they were generated.
    pub requests: Vec<Request>,
    /// The recorded arrival instant, for traffic that replays one.
    pub arrives_at: Option<Nanos>,
    /// HTTP headers of every request.
    pub headers: Vec<HeaderField>,
    /// Carried to every request's record.
    pub labels: Vec<Label>,
}

/// A session without a recorded arrival, headers and labels.
impl From<Vec<Request>> for Session {
    fn from(requests: Vec<Request>) -> Self {
        Session {
            requests,
            ..Session::default()
        }
    }
}

impl Session {
    /// Adds the headers and the labels of the session to each of its requests.
    pub fn distribute(&mut self) {
        for request in &mut self.requests {
            let own = std::mem::take(&mut request.headers);
            request.headers = headers::merged(&self.headers, own);
            request.labels.extend_from_slice(&self.labels);
        }
    }
}
