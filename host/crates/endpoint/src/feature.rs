//! The parts of conversations that some endpoints cannot express.

use crate::endpoint_kind::EndpointKind;
use crate::template::Placeholder;

/// A part of a conversation that some endpoints cannot express.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    TokenIds,
    Text,
    Calls,
    /// The result of a call in an answer of the model whose endpoint does not read calls.
    LiveResult,
    Reasoning,
    Tools,
    ToolChoice,
    Schema,
    LogProbabilities,
    PromptLogProbabilities,
}

impl Feature {
    /// In the order of messages: calls follow from functions.
    const ALL: [Feature; 10] = [
        Feature::TokenIds,
        Feature::Text,
        Feature::Tools,
        Feature::Calls,
        Feature::LiveResult,
        Feature::Reasoning,
        Feature::ToolChoice,
        Feature::Schema,
        Feature::LogProbabilities,
        Feature::PromptLogProbabilities,
    ];

    /// Returns the name for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Feature::TokenIds => "a prompt of token ids",
            Feature::Text => "a prompt of text",
            Feature::Calls => "tool calls of the assistant",
            Feature::LiveResult => {
                "the result of a tool call after a live answer of an endpoint whose calls are not read"
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

    /// Returns true if the bodies of an endpoint can have it.
    pub(crate) fn is_in(self, endpoint: &EndpointKind) -> bool {
        use EndpointKind::{AnthropicMessages, ChatCompletions, Completions, Responses, TgiGenerateStream};
        match (self, endpoint) {
            (Feature::Text, EndpointKind::Template(template)) => {
                let body = template.request();
                !body.uses(Placeholder::TokenIds)
                    || body.uses(Placeholder::Prompt)
                    || body.uses(Placeholder::Messages)
            }
            // A prompt of plain text has the result alone, and never a call.
            (Feature::LiveResult, EndpointKind::Template(template)) => {
                !template.request().uses(Placeholder::Messages)
            }
            (Feature::LiveResult, _) => matches!(endpoint, Completions | TgiGenerateStream),
            (Feature::Text, _) => true,
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

/// Returns the message for the author of a workload that has a feature which the endpoint lacks.
pub(crate) fn refusal(endpoint: &EndpointKind, missing: Feature) -> String {
    let hint = match (missing, missing.placeholder(), endpoint) {
        (_, Some(placeholder), EndpointKind::Template(_)) => {
            format!("; put `{{{{{}}}}}` into its request", placeholder.name())
        }
        (Feature::LiveResult, ..) => {
            "; state the call in the messages of the request, or use an endpoint component".to_owned()
        }
        (_, _, EndpointKind::Template(_)) => String::new(),
        (Feature::PromptLogProbabilities | Feature::TokenIds, ..) => "; use `openai_completions`".to_owned(),
        (_, Some(_), _) => {
            "; use `openai_chat_completions`, `openai_responses` or `anthropic_messages`".to_owned()
        }
        (_, None, _) => String::new(),
    };
    format!(
        "the endpoint `{}` cannot send {}{hint}",
        endpoint.default_path(),
        missing.name()
    )
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeatureSet(u16);

impl FeatureSet {
    /// Adds a feature if it is used.
    pub(crate) fn add(&mut self, feature: Feature, is_used: bool) {
        self.0 |= u16::from(is_used) << feature as u16;
    }

    /// Returns the features of either set.
    pub(crate) fn union(self, other: FeatureSet) -> FeatureSet {
        FeatureSet(self.0 | other.0)
    }

    fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u16) != 0
    }

    /// Returns the first feature that an endpoint lacks.
    pub(crate) fn missing_in(self, endpoint: &EndpointKind) -> Option<Feature> {
        let mut used = Feature::ALL.into_iter().filter(|feature| self.has(*feature));
        used.find(|feature| !feature.is_in(endpoint))
    }
}
