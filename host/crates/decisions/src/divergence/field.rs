//! The parts of a decision that can differ.

/// A part of a decision. The order decides which of several differences of a step is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecisionField {
    /// The nodes that the agent cancelled: another request won a race.
    Cancel,
    /// The number of a request's messages, or their roles.
    Messages,
    /// The content of a message.
    MessageContent,
    /// The tool calls of a message, or the call that it answers.
    MessageToolCalls,
    /// The reasoning of a message.
    MessageReasoning,
    /// The definitions of functions.
    Tools,
    /// The conversation that a request continues.
    History,
    /// The events that a node waits for.
    Edges,
    /// The think time.
    Wait,
    /// Length and form of the answer asked for.
    Output,
    /// The events that cancel a request.
    Cancellation,
    /// The client that sends a request.
    Client,
    /// The members that are merged into a request's body.
    Body,
    /// The headers of a request or of the session.
    Headers,
    /// The labels of a node or of the session.
    Labels,
    /// The values that a trace recorded of a request.
    Recorded,
    /// The class of a tool run.
    ToolClass,
    /// The service time that a tool run states.
    ServiceTime,
    /// The tokens of its result that a tool run states.
    ResultTokens,
    /// The failure that a tool run states.
    ToolFailure,
    /// One agent ended where the other one went on.
    Done,
    /// The number of requests.
    Requests,
    /// The number of tool runs.
    ToolRuns,
}

impl DecisionField {
    /// Returns the name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            DecisionField::Messages => "messages",
            DecisionField::MessageContent => "messages.content",
            DecisionField::MessageToolCalls => "messages.tool_calls",
            DecisionField::MessageReasoning => "messages.reasoning",
            DecisionField::Tools => "tools",
            DecisionField::History => "history",
            DecisionField::Edges => "edges",
            DecisionField::Wait => "wait",
            DecisionField::Output => "output",
            DecisionField::Cancellation => "cancellation",
            DecisionField::Client => "client",
            DecisionField::Body => "body",
            DecisionField::Headers => "headers",
            DecisionField::Labels => "labels",
            DecisionField::Recorded => "recorded",
            DecisionField::ToolClass => "tool.class",
            DecisionField::ServiceTime => "tool.service_time",
            DecisionField::ResultTokens => "tool.result_tokens",
            DecisionField::ToolFailure => "tool.fails",
            DecisionField::Cancel => "cancel",
            DecisionField::Done => "done",
            DecisionField::Requests => "requests",
            DecisionField::ToolRuns => "tool_runs",
        }
    }
}
