//! The wire form of nodes: requests and tool runs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use veeksha_model::{
    AnswerForm, Cancellation, Edge, HeaderField, HistoryMode, Label, Message, NodeId, OutputSpec,
    ReasoningContent, Recorded, RecordedAnswer, Replay, Request, ToolCall, ToolChoice, ToolDefinitions,
    ToolRun, Trigger,
};

use super::content::{
    CallLine, MessageLine, ReasoningLine, SeedPair, SegmentLine, Text, content, is_default, segments,
};
use crate::redact::{NotingRedact, Redact};

#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TriggerName {
    Dispatched,
    FirstChunk,
    #[default]
    Completed,
}

/// An edge; without further keys it waits for the end of the node.
#[derive(Serialize, Deserialize)]
struct EdgeLine {
    node: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    trigger: TriggerName,
    #[serde(default, skip_serializing_if = "is_default")]
    delay_ns: u64,
}

impl From<&Edge> for EdgeLine {
    fn from(edge: &Edge) -> Self {
        EdgeLine {
            node: edge.parent.0,
            trigger: match edge.trigger {
                Trigger::Dispatched => TriggerName::Dispatched,
                Trigger::FirstChunk => TriggerName::FirstChunk,
                Trigger::Completed => TriggerName::Completed,
            },
            delay_ns: edge.delay,
        }
    }
}

impl From<EdgeLine> for Edge {
    fn from(line: EdgeLine) -> Self {
        Edge {
            parent: NodeId(line.node),
            trigger: match line.trigger {
                TriggerName::Dispatched => Trigger::Dispatched,
                TriggerName::FirstChunk => Trigger::FirstChunk,
                TriggerName::Completed => Trigger::Completed,
            },
            delay: line.delay_ns,
        }
    }
}

fn edge_lines(edges: &[Edge]) -> Vec<EdgeLine> {
    edges.iter().map(EdgeLine::from).collect()
}

fn edges(lines: Vec<EdgeLine>) -> Vec<Edge> {
    lines.into_iter().map(Edge::from).collect()
}

/// Names and values of headers or labels.
pub(super) type PairLines<'a> = Vec<(Text<'a>, Text<'a>)>;

pub(super) fn label_lines<'a>(labels: &'a [Label], redact: &dyn Redact) -> PairLines<'a> {
    let line = |(name, value): &'a Label| (Cow::Borrowed(name.as_str()), redact.text(value));
    labels.iter().map(line).collect()
}

pub(super) fn header_lines<'a>(headers: &'a [HeaderField], redact: &dyn Redact) -> PairLines<'a> {
    let line = |(name, value): &'a HeaderField| (Cow::Borrowed(name.as_str()), redact.header(name, value));
    headers.iter().map(line).collect()
}

pub(super) fn pairs(lines: PairLines<'_>) -> Vec<(String, String)> {
    let pair = |(name, value): (Text<'_>, Text<'_>)| (name.into_owned(), value.into_owned());
    lines.into_iter().map(pair).collect()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DefinitionsLine<'a> {
    Definitions(Text<'a>),
    Verbatim(Text<'a>),
    Synthetic { seed: SeedPair, count: u32, tokens: u32 },
}

impl<'a> DefinitionsLine<'a> {
    fn of(tools: &'a ToolDefinitions, redact: &dyn Redact) -> Self {
        match tools {
            ToolDefinitions::Definitions(text) => DefinitionsLine::Definitions(redact.text(text)),
            ToolDefinitions::Verbatim(text) => DefinitionsLine::Verbatim(redact.text(text)),
            ToolDefinitions::Synthetic { seed, count, tokens } => DefinitionsLine::Synthetic {
                seed: (*seed).into(),
                count: *count,
                tokens: *tokens,
            },
        }
    }
}

impl From<DefinitionsLine<'_>> for ToolDefinitions {
    fn from(line: DefinitionsLine<'_>) -> Self {
        match line {
            DefinitionsLine::Definitions(text) => ToolDefinitions::Definitions(text.into_owned()),
            DefinitionsLine::Verbatim(text) => ToolDefinitions::Verbatim(text.into_owned()),
            DefinitionsLine::Synthetic { seed, count, tokens } => ToolDefinitions::Synthetic {
                seed: seed.into(),
                count,
                tokens,
            },
        }
    }
}

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChoiceLine<'a> {
    Automatic,
    None,
    Required,
    Function(Text<'a>),
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct FormLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChoiceLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_probabilities: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    prompt_log_probabilities: bool,
}

impl<'a> FormLine<'a> {
    fn of(form: &'a AnswerForm, redact: &dyn Redact) -> Self {
        FormLine {
            tool_choice: form.tool_choice.as_ref().map(|choice| match choice {
                ToolChoice::Automatic => ChoiceLine::Automatic,
                ToolChoice::None => ChoiceLine::None,
                ToolChoice::Required => ChoiceLine::Required,
                ToolChoice::Function(name) => ChoiceLine::Function(redact.text(name)),
            }),
            schema: form.schema.as_deref().map(|schema| redact.text(schema)),
            log_probabilities: form.log_probabilities,
            prompt_log_probabilities: form.prompt_log_probabilities,
        }
    }
}

impl From<FormLine<'_>> for AnswerForm {
    fn from(line: FormLine<'_>) -> Self {
        AnswerForm {
            tool_choice: line.tool_choice.map(|choice| match choice {
                ChoiceLine::Automatic => ToolChoice::Automatic,
                ChoiceLine::None => ToolChoice::None,
                ChoiceLine::Required => ToolChoice::Required,
                ChoiceLine::Function(name) => ToolChoice::Function(name.into_owned()),
            }),
            schema: line.schema.map(Cow::into_owned),
            log_probabilities: line.log_probabilities,
            prompt_log_probabilities: line.prompt_log_probabilities,
        }
    }
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct OutputLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<FormLine<'a>>,
}

#[derive(Serialize, Deserialize)]
struct CancellationLine {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    when: Vec<EdgeLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_chunks: Option<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HistoryName {
    #[default]
    Live,
    Recorded,
    Fresh,
}

#[derive(Serialize, Deserialize)]
struct AnswerLine<'a> {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content: Vec<SegmentLine<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallLine<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningLine<'a>>,
}

#[derive(Serialize, Deserialize)]
struct ReplayLine<'a> {
    #[serde(default, skip_serializing_if = "is_default")]
    history: HistoryName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerLine<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u32>,
}

impl<'a> ReplayLine<'a> {
    fn of(replay: &'a Replay, redact: &dyn Redact) -> Self {
        let answer = |answer: &'a RecordedAnswer| AnswerLine {
            content: segments(&answer.content, redact),
            tool_calls: answer
                .tool_calls
                .iter()
                .map(|call| CallLine::of(call, redact))
                .collect(),
            reasoning: answer
                .reasoning
                .as_ref()
                .map(|reasoning| ReasoningLine::of(reasoning, redact)),
        };
        ReplayLine {
            history: match replay.history {
                HistoryMode::Live => HistoryName::Live,
                HistoryMode::Recorded => HistoryName::Recorded,
                HistoryMode::Fresh => HistoryName::Fresh,
            },
            answer: replay.answer.as_ref().map(answer),
            at_ns: replay.recorded.at,
            latency_ns: replay.recorded.latency,
            prompt_tokens: replay.recorded.prompt_tokens,
            output_tokens: replay.recorded.output_tokens,
        }
    }
}

impl From<ReplayLine<'_>> for Replay {
    fn from(line: ReplayLine<'_>) -> Self {
        Replay {
            history: match line.history {
                HistoryName::Live => HistoryMode::Live,
                HistoryName::Recorded => HistoryMode::Recorded,
                HistoryName::Fresh => HistoryMode::Fresh,
            },
            answer: line.answer.map(|answer| RecordedAnswer {
                content: content(answer.content),
                tool_calls: answer.tool_calls.into_iter().map(ToolCall::from).collect(),
                reasoning: answer.reasoning.map(ReasoningContent::from),
            }),
            recorded: Recorded {
                at: line.at_ns,
                latency: line.latency_ns,
                prompt_tokens: line.prompt_tokens,
                output_tokens: line.output_tokens,
            },
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct RequestEntry<'a> {
    node: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parents: Vec<EdgeLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    history_parent: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    keep_reasoning: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    wait_ns: u64,
    messages: Vec<MessageLine<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<DefinitionsLine<'a>>,
    #[serde(default, skip_serializing_if = "is_default")]
    output: OutputLine<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancellation: Option<CancellationLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: PairLines<'a>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: PairLines<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayLine<'a>>,
    /// True if a secret was replaced in what the server would be sent, headers aside.
    #[serde(default, skip_serializing_if = "is_default")]
    redacted: bool,
}

impl<'a> RequestEntry<'a> {
    /// Returns the node if its request cannot be sent as it was.
    pub(super) fn redacted(&self) -> Option<NodeId> {
        self.redacted.then_some(NodeId(self.node))
    }

    pub(super) fn of(request: &'a Request, redact: &dyn Redact) -> Self {
        let noting = NotingRedact::new(redact);
        let entry = RequestEntry {
            headers: header_lines(&request.headers, redact),
            labels: label_lines(&request.labels, redact),
            ..RequestEntry::of_content(request, &noting)
        };
        RequestEntry {
            redacted: noting.has_changed(),
            ..entry
        }
    }

    /// Returns the entry without headers and labels.
    fn of_content(request: &'a Request, redact: &dyn Redact) -> Self {
        let messages = request.messages.iter();
        let cancellation = |cancellation: &Cancellation| CancellationLine {
            when: edge_lines(&cancellation.when),
            after_chunks: cancellation.after_chunks,
        };
        RequestEntry {
            node: request.node.0,
            parents: edge_lines(&request.parents),
            history_parent: request.history_parent.map(|node| node.0),
            keep_reasoning: request.keep_reasoning,
            wait_ns: request.wait_after_ready,
            messages: messages.map(|message| MessageLine::of(message, redact)).collect(),
            tools: request
                .tools
                .as_deref()
                .map(|tools| DefinitionsLine::of(tools, redact)),
            output: OutputLine {
                tokens: request.output.target_tokens,
                exact: request.output.exact,
                form: request
                    .output
                    .form
                    .as_deref()
                    .map(|form| FormLine::of(form, redact)),
            },
            cancellation: request.cancellation.as_deref().map(cancellation),
            client: request.client.as_deref().map(Cow::Borrowed),
            body: request.body.as_deref().map(|body| redact.body(body)),
            headers: Vec::new(),
            labels: Vec::new(),
            redacted: false,
            replay: request
                .replay
                .as_deref()
                .map(|replay| ReplayLine::of(replay, redact)),
        }
    }
}

impl From<RequestEntry<'_>> for Request {
    fn from(line: RequestEntry<'_>) -> Self {
        let cancellation = |line: CancellationLine| {
            Box::new(Cancellation {
                when: edges(line.when),
                after_chunks: line.after_chunks,
            })
        };
        Request {
            node: NodeId(line.node),
            parents: edges(line.parents),
            history_parent: line.history_parent.map(NodeId),
            keep_reasoning: line.keep_reasoning,
            wait_after_ready: line.wait_ns,
            messages: line.messages.into_iter().map(Message::from).collect(),
            tools: line.tools.map(|tools| Box::new(tools.into())),
            output: OutputSpec {
                target_tokens: line.output.tokens,
                exact: line.output.exact,
                form: line.output.form.map(|form| Box::new(form.into())),
            },
            cancellation: line.cancellation.map(cancellation),
            client: line.client.map(Cow::into_owned),
            body: line.body.map(Cow::into_owned),
            headers: pairs(line.headers),
            labels: pairs(line.labels),
            replay: line.replay.map(|replay| Box::new(replay.into())),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ToolRunEntry<'a> {
    node: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parents: Vec<EdgeLine>,
    class: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fails: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: PairLines<'a>,
}

impl<'a> ToolRunEntry<'a> {
    pub(super) fn of(run: &'a ToolRun, redact: &dyn Redact) -> Self {
        ToolRunEntry {
            node: run.node.0,
            parents: edge_lines(&run.parents),
            class: Cow::Borrowed(&run.class),
            service_ns: run.service_time,
            result_tokens: run.result_tokens,
            fails: run.fails,
            labels: label_lines(&run.labels, redact),
        }
    }
}

impl From<ToolRunEntry<'_>> for ToolRun {
    fn from(line: ToolRunEntry<'_>) -> Self {
        ToolRun {
            node: NodeId(line.node),
            parents: edges(line.parents),
            class: line.class.into_owned(),
            service_time: line.service_ns,
            result_tokens: line.result_tokens,
            fails: line.fails,
            labels: pairs(line.labels),
            key: 0,
        }
    }
}
