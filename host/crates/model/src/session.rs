//! A session as a plugin describes it: a graph of requests whose content is segments, not text.

use crate::content::{ReasoningContent, Segment};
use crate::edge::Edge;
use crate::headers::{self, HeaderField};
use crate::ids::{Nanos, NodeId, Seed};
use crate::node_kind::NodeKind;
use crate::replay::{HistoryMode, Replay, ReplayedSession};
use crate::response::ToolCall;

/// A name and a value that a workload attaches to a session or a request; carried to every record.
pub type Label = (String, String);

/// The name of the client that sends requests which name none.
pub const DEFAULT_CLIENT: &str = "default";

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
    /// For [`Role::Assistant`]: the calls that it asks for.
    pub tool_calls: Vec<ToolCall>,
    /// For [`Role::Assistant`]: the reasoning before its content.
    pub reasoning: Option<ReasoningContent>,
}

impl Message {
    /// A message without calls and reasoning.
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

/// Definitions of functions that the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ToolDefinitions {
    /// JSON text of an array with `name`, `description` and `parameters` of each function; written
    /// in the form of the endpoint.
    Definitions(String),
    /// JSON text of an array, sent verbatim.
    Verbatim(String),
    /// Generated with an exact length.
    Synthetic {
        /// Equal seeds give equal definitions.
        seed: Seed,
        /// Number of functions.
        count: u32,
        /// Tokens of all definitions together, as JSON text.
        tokens: u32,
    },
}

/// The functions that the model may call in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// Any or none.
    Automatic,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Function(String),
}

/// The requested form of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerForm {
    /// The functions that the model may call; `None` leaves it to the server.
    pub tool_choice: Option<ToolChoice>,
    /// The JSON schema that the answer must fit, as text.
    pub schema: Option<String>,
    /// Log-probabilities of the answer's tokens, and of this many alternatives to each.
    pub log_probabilities: Option<u32>,
    /// True to ask for the log-probabilities of the prompt's tokens as well.
    pub prompt_log_probabilities: bool,
}

/// The events that make the client cancel a request: whichever comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancellation {
    /// Events of other nodes, or of the request itself: its own dispatch or first chunk.
    pub when: Vec<Edge>,
    /// The number of generated chunks after which the rest of the answer is not wanted.
    pub after_chunks: Option<u32>,
}

/// The requested length and form of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputSpec {
    /// Tokens to ask for; `None` leaves it to the server.
    pub target_tokens: Option<u32>,
    /// True if the server is asked to produce exactly that many (`ignore_eos`, minimum tokens).
    pub exact: bool,
    /// The requested form; `None` leaves it to the server. Boxed, because most requests have none.
    pub form: Option<Box<AnswerForm>>,
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
    /// True if the reasoning of the conversation's answers is sent as well.
    pub keep_reasoning: bool,
    /// Think time: the node is ready this long after its last edge was met (a root: after the
    /// session started).
    pub wait_after_ready: Nanos,
    /// The new messages of this turn; history comes before them.
    pub messages: Vec<Message>,
    /// The functions that the model may call; `None`: those of the history parent, if any.
    pub tools: Option<Box<ToolDefinitions>>,
    /// The answer asked for.
    pub output: OutputSpec,
    /// The events that cancel it; `None`: it is sent until its answer is complete.
    pub cancellation: Option<Box<Cancellation>>,
    /// The name of the scenario's client that sends it; `None`: the default one.
    pub client: Option<String>,
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

/// The name of the tool that every scenario has: it has a server for each call, and takes the time
/// that the call states.
pub const TIMER: &str = "timer";

/// The label with the place of the subagent that added a node: `1`, `2.1`.
pub const SUBAGENT_LABEL: &str = "subagent";

/// A node that is a tool call: it waits for a free server of its class, and then takes its service
/// time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRun {
    /// Node id, unique within the session, whose requests and tool runs share one set of names.
    pub node: NodeId,
    /// The events of other nodes that it waits for.
    pub parents: Vec<Edge>,
    /// The name of a tool class of the scenario.
    pub class: String,
    /// The service time; `None`: drawn from the distribution of the class.
    pub service_time: Option<Nanos>,
    /// The tokens of its result; `None`: drawn from the distribution of the class.
    pub result_tokens: Option<u32>,
    /// True if it fails; `None`: drawn with the failure rate of the class.
    pub fails: Option<bool>,
    /// Carried to the record.
    pub labels: Vec<Label>,
    /// Names what the host decides of the run: the values drawn from the distributions of its
    /// class, and the text of its result. Set by the host from the run's subagent and its position
    /// there, since the numbers of nodes depend on the order of concurrent answers.
    pub key: u64,
}

/// A session as a planned generator returns it: its whole graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The nodes, in the order in which they were generated.
    pub requests: Vec<Request>,
    /// The tool calls among its nodes.
    pub tool_runs: Vec<ToolRun>,
    /// The recorded arrival instant, for traffic that replays one.
    pub arrives_at: Option<Nanos>,
    /// HTTP headers of every request.
    pub headers: Vec<HeaderField>,
    /// Carried to every request's record.
    pub labels: Vec<Label>,
    /// The recorded session whose decisions this one sends again, the same in each step. Tool runs
    /// draw what they do not state as that session did.
    pub replays: Option<ReplayedSession>,
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
    /// Returns the names of its nodes, requests first.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let requests = self.requests.iter().map(|request| request.node);
        requests.chain(self.tool_runs.iter().map(|run| run.node))
    }

    /// Returns the names of its nodes with their kinds, requests first.
    pub fn kinds(&self) -> impl Iterator<Item = (NodeId, NodeKind)> {
        let requests = self
            .requests
            .iter()
            .map(|request| (request.node, NodeKind::Request));
        let tool_run = |run: &ToolRun| (run.node, NodeKind::ToolRun { key: run.key });
        requests.chain(self.tool_runs.iter().map(tool_run))
    }

    /// Adds the headers and the labels of the session to each of its requests.
    pub fn distribute(&mut self) {
        for request in &mut self.requests {
            let own = std::mem::take(&mut request.headers);
            request.headers = headers::merged(&self.headers, own);
            request.labels.extend_from_slice(&self.labels);
        }
    }
}
