//! The content of a conversation that decides which endpoints can carry it.

use veeksha_model::{HistoryMode, Request, Role, Segment, ToolChoice, ToolDefinitions};

use crate::endpoint_kind::EndpointKind;
use crate::feature::{Feature, FeatureSet, refusal};

/// The features of a request and of the conversation that it continues, each turn of which may have
/// had another endpoint.
#[derive(Clone, Debug, Default)]
pub struct ConversationContent {
    /// What later turns send again.
    kept: FeatureSet,
    /// What the newest request asks for.
    asked: FeatureSet,
    tools: StatedTools,
    /// True if the answer to the newest request may call functions, in calls that its endpoint
    /// reads and sends again.
    may_call: bool,
    /// True if the endpoint of the newest request reads the calls of answers.
    reads_calls: bool,
    recorded: RecordedCalls,
}

/// The recorded answer to the newest request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RecordedCalls {
    /// There is none.
    #[default]
    Missing,
    Text,
    Calls,
}

/// The functions that the model may call.
#[derive(Clone, Debug, Default)]
enum StatedTools {
    #[default]
    Nothing,
    Portable,
    /// In the form of this endpoint.
    Verbatim(EndpointKind),
}

impl ConversationContent {
    /// Returns the content of a request to an endpoint, which continues a conversation or begins
    /// one.
    pub fn after(before: Option<&Self>, endpoint: &EndpointKind, request: &Request) -> Self {
        let mode = request.history_mode();
        let before = before.filter(|_| mode != HistoryMode::Fresh);
        let recorded = recorded_calls(request);
        let mut kept = before.map_or(FeatureSet::default(), |before| before.kept);
        let messages = || request.messages.iter();
        let is_ids = |segment: &Segment| matches!(segment, Segment::TokenIds(_));
        let ids = messages().flat_map(|message| &message.content).any(is_ids);
        kept.add(Feature::TokenIds, ids);
        kept.add(Feature::Text, !ids);
        let stated = messages().any(|message| !message.tool_calls.is_empty());
        // Without recorded history the recorded answer is not sent.
        let replayed = mode == HistoryMode::Recorded && recorded == RecordedCalls::Calls;
        let answered = before.is_some_and(|before| before.answers_with_calls(mode));
        kept.add(Feature::Calls, stated || replayed || answered);
        // Without the turns before it, the endpoint of the request is that of all.
        let parent_reads = before.map_or(reads_calls(endpoint), |before| before.reads_calls);
        kept.add(Feature::LiveResult, !parent_reads && has_live_result(request));
        kept.add(
            Feature::Reasoning,
            messages().any(|message| message.reasoning.is_some()),
        );
        let tools = match request.tools.as_deref() {
            Some(tools) => StatedTools::of(tools, endpoint),
            None => before.map_or(StatedTools::Nothing, |before| before.tools.clone()),
        };
        ConversationContent {
            kept,
            asked: asked(request, &tools),
            may_call: may_call(request, &tools) && Feature::Calls.is_in(endpoint) && reads_calls(endpoint),
            reads_calls: reads_calls(endpoint),
            recorded,
            tools,
        }
    }

    /// Checks that the body for an endpoint can express the conversation: nothing of it is dropped
    /// silently.
    ///
    /// # Errors
    /// If it cannot; a message for the author of the workload.
    pub fn check(&self, endpoint: &EndpointKind) -> Result<(), String> {
        if let Some(missing) = self.kept.union(self.asked).missing_in(endpoint) {
            return Err(refusal(endpoint, missing));
        }
        match &self.tools {
            StatedTools::Verbatim(of) if !of.has_form_of(endpoint) => Err(format!(
                "the endpoint `{}` cannot send verbatim tool definitions of the endpoint `{}`; state them as portable \
                 definitions, or state those of this endpoint in the request",
                endpoint.default_path(),
                of.default_path()
            )),
            _ => Ok(()),
        }
    }

    /// Returns true if the answer that a request with this history mode continues may have calls.
    fn answers_with_calls(&self, mode: HistoryMode) -> bool {
        match (mode, self.recorded) {
            (HistoryMode::Recorded, RecordedCalls::Calls) => true,
            (HistoryMode::Recorded, RecordedCalls::Text) => false,
            _ => self.may_call,
        }
    }
}

impl StatedTools {
    /// An empty list is none.
    fn of(tools: &ToolDefinitions, endpoint: &EndpointKind) -> Self {
        match tools {
            ToolDefinitions::Verbatim(_) => StatedTools::Verbatim(endpoint.clone()),
            ToolDefinitions::Definitions(text) if is_empty_list(text) => StatedTools::Nothing,
            ToolDefinitions::Synthetic { count: 0, .. } => StatedTools::Nothing,
            ToolDefinitions::Definitions(_) | ToolDefinitions::Synthetic { .. } => StatedTools::Portable,
        }
    }
}

fn is_empty_list(text: &str) -> bool {
    text.chars()
        .all(|char| matches!(char, '[' | ']') || char.is_whitespace())
}

/// Checks that the body for an endpoint can express a request: nothing of it is dropped silently.
/// The conversation before it is not known.
///
/// # Errors
/// If it cannot; a message for the author of the workload.
pub fn check_request(endpoint: &EndpointKind, request: &Request) -> Result<(), String> {
    ConversationContent::after(None, endpoint, request).check(endpoint)
}

/// Returns true if the calls of an endpoint's answers are known.
fn reads_calls(endpoint: &EndpointKind) -> bool {
    match endpoint {
        EndpointKind::ChatCompletions | EndpointKind::Responses | EndpointKind::AnthropicMessages => true,
        EndpointKind::Completions | EndpointKind::TgiGenerateStream => false,
        EndpointKind::Template(template) => !template.reads_answers(),
    }
}

fn recorded_calls(request: &Request) -> RecordedCalls {
    let replay = request.replay.as_deref();
    match replay.and_then(|replay| replay.answer.as_ref()) {
        None => RecordedCalls::Missing,
        Some(answer) if answer.tool_calls.is_empty() => RecordedCalls::Text,
        Some(_) => RecordedCalls::Calls,
    }
}

/// Returns the features that a request asks for, which later turns do not repeat.
fn asked(request: &Request, tools: &StatedTools) -> FeatureSet {
    let mut asked = FeatureSet::default();
    let has_tools = !matches!(tools, StatedTools::Nothing);
    asked.add(Feature::Tools, has_tools);
    // The reasoning of a recorded answer is sent only where a later request keeps it.
    let continues = request.history_parent.is_some() && request.history_mode() != HistoryMode::Fresh;
    asked.add(Feature::Reasoning, request.keep_reasoning && continues);
    if let Some(form) = request.output.form.as_deref() {
        asked.add(Feature::ToolChoice, form.tool_choice.is_some());
        asked.add(Feature::Schema, form.schema.is_some());
        asked.add(Feature::LogProbabilities, form.log_probabilities.is_some());
        asked.add(Feature::PromptLogProbabilities, form.prompt_log_probabilities);
    }
    asked
}

fn may_call(request: &Request, tools: &StatedTools) -> bool {
    let form = request.output.form.as_deref();
    let choice = form.and_then(|form| form.tool_choice.as_ref());
    !matches!(tools, StatedTools::Nothing) && choice != Some(&ToolChoice::None)
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
