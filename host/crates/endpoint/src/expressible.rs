//! The requests that an endpoint can express.

use veeksha_model::{HistoryMode, Request, Role, Segment};

use crate::endpoint_kind::EndpointKind;
use crate::template::Placeholder;

/// A part of a request that some endpoints cannot express.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Feature {
    TokenIds,
    Text,
    Calls,
    /// The result of a call in an answer of the model.
    LiveResult,
    Reasoning,
    Tools,
    ToolChoice,
    Schema,
    LogProbabilities,
    PromptLogProbabilities,
}

impl Feature {
    fn name(self) -> &'static str {
        match self {
            Feature::TokenIds => "a prompt of token ids",
            Feature::Text => "a prompt of text",
            Feature::Calls => "tool calls of the assistant",
            Feature::LiveResult => {
                "the result of a tool call after a live answer, whose calls a template does not read"
            }
            Feature::Reasoning => "reasoning",
            Feature::Tools => "tool definitions",
            Feature::ToolChoice => "a tool choice",
            Feature::Schema => "a response schema",
            Feature::LogProbabilities => "log-probabilities",
            Feature::PromptLogProbabilities => "log-probabilities of the prompt",
        }
    }

    /// The placeholder that a template needs for it; `None`: no template has it.
    fn placeholder(self) -> Option<Placeholder> {
        match self {
            Feature::TokenIds => Some(Placeholder::TokenIds),
            Feature::Calls | Feature::Reasoning => Some(Placeholder::Messages),
            Feature::Tools => Some(Placeholder::Tools),
            Feature::ToolChoice => Some(Placeholder::ToolChoice),
            Feature::Schema => Some(Placeholder::Schema),
            Feature::Text
            | Feature::LiveResult
            | Feature::LogProbabilities
            | Feature::PromptLogProbabilities => None,
        }
    }

    fn is_in(self, endpoint: &EndpointKind) -> bool {
        use EndpointKind::{AnthropicMessages, ChatCompletions, Completions, Responses};
        match (self, endpoint) {
            (Feature::Text, EndpointKind::Template(template)) => {
                let body = template.request();
                !body.uses(Placeholder::TokenIds)
                    || body.uses(Placeholder::Prompt)
                    || body.uses(Placeholder::Messages)
            }
            // A prompt of plain text has the result alone, and never a call.
            (Feature::LiveResult, EndpointKind::Template(template)) => {
                !template.reads_answers() || !template.request().uses(Placeholder::Messages)
            }
            (Feature::Text | Feature::LiveResult, _) => true,
            (_, EndpointKind::Template(template)) => {
                let placeholder = self.placeholder();
                placeholder.is_some_and(|placeholder| template.request().uses(placeholder))
            }
            (Feature::TokenIds | Feature::PromptLogProbabilities, _) => matches!(endpoint, Completions),
            (Feature::LogProbabilities, _) => matches!(endpoint, ChatCompletions | Completions | Responses),
            _ => matches!(endpoint, ChatCompletions | Responses | AnthropicMessages),
        }
    }
}

/// Checks that the body for an endpoint can express a request: nothing of it is dropped silently.
///
/// # Errors
/// If it cannot; a message for the author of the workload.
pub fn check_request(endpoint: &EndpointKind, request: &Request) -> Result<(), String> {
    let Some(missing) = features(request).find(|feature| !feature.is_in(endpoint)) else {
        return Ok(());
    };
    let hint = match (missing.placeholder(), endpoint) {
        (Some(placeholder), EndpointKind::Template(_)) => {
            format!("; put `{{{{{}}}}}` into its request", placeholder.name())
        }
        (_, EndpointKind::Template(_)) if missing == Feature::LiveResult => {
            "; state the call in the messages of the request, or use an endpoint component".to_owned()
        }
        (_, EndpointKind::Template(_)) => String::new(),
        (Some(Placeholder::TokenIds), _) => "; use `openai_completions`".to_owned(),
        (None, _) if missing == Feature::PromptLogProbabilities => "; use `openai_completions`".to_owned(),
        (Some(_), _) => {
            "; use `openai_chat_completions`, `openai_responses` or `anthropic_messages`".to_owned()
        }
        (None, _) => String::new(),
    };
    Err(format!(
        "the endpoint `{}` cannot send {}{hint}",
        endpoint.default_path(),
        missing.name()
    ))
}

/// Returns the features that a request uses.
fn features(request: &Request) -> impl Iterator<Item = Feature> {
    let segments = || request.messages.iter().flat_map(|message| &message.content);
    let is_ids = |segment: &Segment| matches!(segment, Segment::TokenIds(_));
    let ids = segments().any(is_ids);
    let replay = request.replay.as_deref();
    // Without recorded history the recorded answer is not sent.
    let replay = replay.filter(|replay| replay.history == HistoryMode::Recorded);
    let answer = replay.and_then(|replay| replay.answer.as_ref());
    let messages = || request.messages.iter();
    let calls = messages().any(|message| !message.tool_calls.is_empty())
        || answer.is_some_and(|answer| !answer.tool_calls.is_empty());
    // The reasoning of a recorded answer is sent only where a later request keeps it.
    let keeps = request.keep_reasoning
        && request.history_parent.is_some()
        && request.history_mode() != HistoryMode::Fresh;
    let reasoning = messages().any(|message| message.reasoning.is_some()) || keeps;
    let form = request.output.form.as_deref();
    [
        (ids, Feature::TokenIds),
        (!ids, Feature::Text),
        (calls, Feature::Calls),
        (has_live_result(request), Feature::LiveResult),
        (reasoning, Feature::Reasoning),
        (request.tools.is_some(), Feature::Tools),
        (
            form.is_some_and(|form| form.tool_choice.is_some()),
            Feature::ToolChoice,
        ),
        (form.is_some_and(|form| form.schema.is_some()), Feature::Schema),
        (
            form.is_some_and(|form| form.log_probabilities.is_some()),
            Feature::LogProbabilities,
        ),
        (
            form.is_some_and(|form| form.prompt_log_probabilities),
            Feature::PromptLogProbabilities,
        ),
    ]
    .into_iter()
    .filter_map(|(used, feature)| used.then_some(feature))
}

/// Returns true if a message is the result of a call that the request does not state, after a live
/// answer.
fn has_live_result(request: &Request) -> bool {
    let is_live = request.history_parent.is_some() && request.history_mode() == HistoryMode::Live;
    let calls = || request.messages.iter().flat_map(|message| &message.tool_calls);
    let is_stated = |id: &String| calls().any(|call| call.id == *id);
    let mut results = request
        .messages
        .iter()
        .filter(|message| message.role == Role::Tool);
    is_live && results.any(|result| !result.tool_call_id.as_ref().is_some_and(is_stated))
}
