//! Conversions between the contract's records and the model's.

use veeksha_model::{
    AnswerForm, Cancellation, Edge, FailureReason, HistoryMode, MediaKind, Message, NodeId, OutputSpec,
    ReasoningContent, Recorded, RecordedAnswer, Replay, Request, Response, Role, Seed, Segment, Session,
    TIMER, TokenProbabilities, ToolCall, ToolChoice, ToolDefinitions, ToolRun, Trigger,
};
use veeksha_ports::{Guarantees, PluginFailure, PluginFailureKind, ToolRunEnd};

use crate::bindings::types as wit;
use crate::text::{cut, one_line};

/// Maximum length of a plugin's message or hint, in characters; the rest is cut.
const MAX_MESSAGE_CHARS: usize = 2000;
/// Maximum length of an error code or path, in characters; the rest is cut.
const MAX_NAME_CHARS: usize = 200;

pub(crate) fn session(session: wit::Session) -> Session {
    Session {
        requests: requests(session.requests),
        tool_runs: tool_runs(session.tool_runs),
        arrives_at: session.arrives_at,
        headers: session.headers,
        labels: session.labels,
        replays: None,
    }
}

pub(crate) fn requests(requests: Vec<wit::Request>) -> Vec<Request> {
    requests.into_iter().map(request).collect()
}

pub(crate) fn tool_runs(runs: Vec<wit::ToolRun>) -> Vec<ToolRun> {
    let tool_run = |run: wit::ToolRun| ToolRun {
        node: NodeId(run.node),
        parents: edges(run.parents),
        class: run.tool.unwrap_or_else(|| TIMER.to_owned()),
        service_time: run.service_time,
        result_tokens: run.result_tokens,
        fails: run.fails,
        labels: run.labels,
        key: 0,
    };
    runs.into_iter().map(tool_run).collect()
}

fn edges(edges: Vec<wit::Edge>) -> Vec<Edge> {
    edges.into_iter().map(edge).collect()
}

fn request(request: wit::Request) -> Request {
    Request {
        node: NodeId(request.node),
        parents: edges(request.parents),
        history_parent: request.history_parent.map(NodeId),
        keep_reasoning: request.keep_reasoning,
        wait_after_ready: request.wait_after_ready,
        messages: request.messages.into_iter().map(message).collect(),
        tools: request.tools.map(|tools| Box::new(self::tools(tools))),
        output: OutputSpec {
            target_tokens: request.output.target_tokens,
            exact: request.output.exact,
            form: request.output.form.map(|form| Box::new(answer_form(form))),
        },
        cancellation: request.cancellation.map(|cancellation| {
            Box::new(Cancellation {
                when: edges(cancellation.when),
                after_chunks: cancellation.after_chunks,
            })
        }),
        client: request.client,
        body: request.body,
        headers: request.headers,
        labels: request.labels,
        replay: request.recording.map(|recorded| Box::new(recording(recorded))),
    }
}

fn tools(tools: wit::Tools) -> ToolDefinitions {
    match tools {
        wit::Tools::Definitions(text) => ToolDefinitions::Definitions(text),
        wit::Tools::Verbatim(text) => ToolDefinitions::Verbatim(text),
        wit::Tools::Synthetic(tools) => ToolDefinitions::Synthetic {
            seed: seed(tools.seed),
            count: tools.count,
            tokens: tools.tokens,
        },
    }
}

fn answer_form(form: wit::AnswerForm) -> AnswerForm {
    AnswerForm {
        tool_choice: form.tool_choice.map(|choice| match choice {
            wit::ToolChoice::Automatic => ToolChoice::Automatic,
            wit::ToolChoice::None => ToolChoice::None,
            wit::ToolChoice::Required => ToolChoice::Required,
            wit::ToolChoice::Function(name) => ToolChoice::Function(name),
        }),
        schema: form.schema,
        log_probabilities: form.log_probabilities,
        prompt_log_probabilities: form.prompt_log_probabilities,
    }
}

fn seed(seed: wit::Seed) -> Seed {
    Seed {
        high: seed.high,
        low: seed.low,
    }
}

fn reasoning(reasoning: wit::Reasoning) -> ReasoningContent {
    ReasoningContent {
        content: segments(reasoning.content),
        signature: reasoning.signature,
    }
}

fn edge(edge: wit::Edge) -> Edge {
    Edge {
        parent: NodeId(edge.parent),
        trigger: match edge.trigger {
            wit::Trigger::Dispatched => Trigger::Dispatched,
            wit::Trigger::FirstChunk => Trigger::FirstChunk,
            wit::Trigger::Completed => Trigger::Completed,
        },
        delay: edge.delay,
    }
}

fn recording(recording: wit::Recording) -> Replay {
    Replay {
        history: match recording.history {
            wit::HistoryMode::Live => HistoryMode::Live,
            wit::HistoryMode::Recorded => HistoryMode::Recorded,
            wit::HistoryMode::Fresh => HistoryMode::Fresh,
        },
        answer: recording.answer.map(|answer| RecordedAnswer {
            content: segments(answer.content),
            tool_calls: answer.tool_calls.into_iter().map(tool_call).collect(),
            reasoning: answer.reasoning.map(reasoning),
        }),
        recorded: Recorded {
            at: recording.at,
            latency: recording.latency,
            prompt_tokens: recording.prompt_tokens,
            output_tokens: recording.output_tokens,
        },
    }
}

pub(crate) fn guarantees(guarantees: wit::Guarantees) -> Guarantees {
    Guarantees {
        max_output_tokens: guarantees.max_output_tokens,
        max_depth: guarantees.max_depth,
        distinct_prompts: guarantees.distinct_prompts,
    }
}

fn message(message: wit::Message) -> Message {
    Message {
        role: match message.role {
            wit::Role::System => Role::System,
            wit::Role::User => Role::User,
            wit::Role::Assistant => Role::Assistant,
            wit::Role::Tool => Role::Tool,
        },
        content: segments(message.content),
        tool_call_id: message.tool_call_id,
        tool_calls: message.tool_calls.into_iter().map(tool_call).collect(),
        reasoning: message.reasoning.map(reasoning),
    }
}

fn segments(segments: Vec<wit::Segment>) -> Vec<Segment> {
    segments.into_iter().map(segment).collect()
}

fn tool_call(call: wit::ToolCall) -> ToolCall {
    ToolCall {
        id: call.id,
        name: call.name,
        arguments: call.arguments,
    }
}

fn segment(segment: wit::Segment) -> Segment {
    match segment {
        wit::Segment::Text(text) => Segment::Text(text),
        wit::Segment::Synthetic(text) => Segment::Synthetic {
            seed: seed(text.seed),
            tokens: text.tokens,
        },
        wit::Segment::TokenIds(ids) => Segment::TokenIds(ids),
        wit::Segment::ResultOf(node) => Segment::ToolResult(NodeId(node)),
        wit::Segment::Media(wit::Media { kind, source }) => Segment::Media {
            kind: match kind {
                wit::MediaKind::Image => MediaKind::Image,
                wit::MediaKind::Audio => MediaKind::Audio,
                wit::MediaKind::Video => MediaKind::Video,
            },
            source,
        },
    }
}

pub(crate) fn response(node: NodeId, response: &Response, completed_at: u64) -> wit::Response {
    wit::Response {
        node: node.0,
        cancelled: response.cancelled,
        text: response.text.clone(),
        reasoning: response.reasoning.clone(),
        reasoning_signature: response.reasoning_signature.clone(),
        tool_calls: response
            .tool_calls
            .iter()
            .map(|call| wit::ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            })
            .collect(),
        finish_reason: response.finish_reason.clone(),
        usage: response.usage.map(|usage| wit::Usage {
            prompt: usage.prompt,
            completion: usage.completion,
            cached: usage.cached,
            reasoning: usage.reasoning,
        }),
        output_tokens: response.output_tokens,
        log_probabilities: response
            .log_probabilities
            .as_deref()
            .map(|tokens| wit::LogProbabilities {
                prompt: token_probabilities(&tokens.prompt),
                answer: token_probabilities(&tokens.answer),
            }),
        completed_at,
    }
}

fn token_probabilities(tokens: &TokenProbabilities) -> wit::TokenProbabilities {
    wit::TokenProbabilities {
        logarithms: tokens.logarithms.clone(),
        greedy: tokens.greedy.clone(),
    }
}

pub(crate) fn tool_result(end: ToolRunEnd<'_>) -> wit::ToolResult {
    let (outcome, waiting_time, service_time, completed_at) = match end {
        ToolRunEnd::Served(run) => {
            let outcome = if run.failed {
                wit::ToolOutcome::Failed
            } else {
                wit::ToolOutcome::Succeeded
            };
            (outcome, run.waiting_time(), run.service_time(), run.completed_at)
        }
        ToolRunEnd::Cancelled { waiting_time, at, .. } => (wit::ToolOutcome::Cancelled, waiting_time, 0, at),
    };
    wit::ToolResult {
        node: end.node().0,
        outcome,
        tokens: end.result_tokens(),
        waiting_time,
        service_time,
        completed_at,
    }
}

pub(crate) fn failure(reason: &FailureReason) -> wit::Failure {
    wit::Failure {
        node: reason.request.node.0,
        code: reason.class.name().to_owned(),
        status: reason.status,
        retry_after: reason.retry_after,
        message: reason.message.clone(),
        completed_at: reason.at,
    }
}

/// Returns the failure for an error that the plugin returned.
pub(crate) fn refusal(
    plugin: &str,
    function: &str,
    input: Option<String>,
    error: wit::Error,
) -> PluginFailure {
    let kind = PluginFailureKind::Refused {
        code: one_line(&error.code, MAX_NAME_CHARS),
        hint: error.hint.map(|hint| cut(&hint, MAX_MESSAGE_CHARS)),
        path: error.path.map(|path| one_line(&path, MAX_NAME_CHARS)),
    };
    let mut failure = PluginFailure::new(plugin, function, kind, cut(&error.message, MAX_MESSAGE_CHARS));
    failure.input = input;
    failure
}
