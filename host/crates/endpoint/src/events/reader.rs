//! Dispatch to the reader of an API.

use std::sync::Arc;

use super::{anthropic, chat, responses, template, tgi};
use crate::answer::{Answer, EndRule};
use crate::endpoint_kind::EndpointKind;
use crate::surrogates::replace_lone_surrogates;
use crate::template::EndpointTemplate;

/// A reader of the events of one answer, in order.
#[derive(Debug)]
pub(crate) enum EventReader {
    /// Chat completions and completions, which share one shape.
    Chat,
    Responses,
    Anthropic(anthropic::AnthropicUsage),
    Tgi,
    Template(Arc<EndpointTemplate>),
}

impl EventReader {
    pub(crate) fn new(endpoint: &EndpointKind) -> Self {
        match endpoint {
            EndpointKind::ChatCompletions | EndpointKind::Completions => EventReader::Chat,
            EndpointKind::Responses => EventReader::Responses,
            EndpointKind::AnthropicMessages => EventReader::Anthropic(anthropic::AnthropicUsage::default()),
            EndpointKind::TgiGenerateStream => EventReader::Tgi,
            EndpointKind::Template(template) => EventReader::Template(Arc::clone(template)),
        }
    }

    /// Reads the data of one stream event.
    pub(crate) fn read(&mut self, data: &str, answer: &mut Answer) {
        if self.is_marker(data) {
            answer.done();
            return;
        }
        let data = &replace_lone_surrogates(data);
        match self {
            EventReader::Chat => chat::read(data, answer),
            EventReader::Responses => responses::read(data, answer),
            EventReader::Anthropic(counts) => anthropic::read(data, counts, answer),
            EventReader::Tgi => tgi::read(data, answer),
            EventReader::Template(template) => template::read(data, template, answer),
        }
    }

    /// Reads a non-streamed answer.
    pub(crate) fn read_whole(&mut self, body: &str, answer: &mut Answer) {
        let body = &replace_lone_surrogates(body);
        match self {
            EventReader::Chat => chat::read(body, answer),
            EventReader::Responses => responses::read_whole(body, answer),
            EventReader::Anthropic(counts) => anthropic::read_whole(body, counts, answer),
            EventReader::Tgi => tgi::read_whole(body, answer),
            EventReader::Template(template) => template::read(body, template, answer),
        }
    }

    /// Returns a description of the required members of a non-streamed answer.
    pub(crate) fn whole_has(&self) -> &'static str {
        match self {
            EventReader::Chat => "choices",
            EventReader::Responses => "output and no status",
            EventReader::Anthropic(_) => "content and no stop reason",
            EventReader::Tgi => "generated text",
            EventReader::Template(_) => "text where the template expects it",
        }
    }

    /// Returns true if `data` is the end marker: the template's, else `[DONE]`. APIs without an end
    /// marker receive `[DONE]` from servers that implement several APIs.
    fn is_marker(&self, data: &str) -> bool {
        match self {
            EventReader::Template(template) => {
                template.end_marker().is_some_and(|marker| data.trim() == marker)
            }
            _ => data.trim() == "[DONE]",
        }
    }

    /// Returns true if the data of an event without a blank line is a whole event.
    pub(crate) fn is_whole(&self, data: &[u8]) -> bool {
        std::str::from_utf8(data).is_ok_and(|text| self.is_marker(text))
            || serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
    }

    /// Returns true if an event that differs from this one only in its text cannot be the end
    /// marker, which is compared as a whole. `[DONE]` differs in its first byte from every event
    /// with a text.
    pub(crate) fn may_repeat(&self, data: &[u8]) -> bool {
        match self {
            EventReader::Template(template) => template
                .end_marker()
                .is_none_or(|marker| marker.as_bytes().first() != data.trim_ascii().first()),
            _ => true,
        }
    }

    /// Returns the condition of completeness, and a description of the end marker.
    pub(crate) fn end_rule(&self) -> (EndRule, &str) {
        match self {
            EventReader::Chat | EventReader::Responses | EventReader::Tgi => {
                (EndRule::FinishReason, "[DONE]")
            }
            EventReader::Anthropic(_) => (EndRule::FinishReason, "message_stop"),
            EventReader::Template(template) => {
                match (template.wants_finish_reason(), template.end_marker()) {
                    (true, marker) => (EndRule::FinishReason, marker.unwrap_or_default()),
                    (false, Some(marker)) => (EndRule::Marker, marker),
                    (false, None) => (EndRule::Body, ""),
                }
            }
        }
    }
}
