//! Dispatch to the reader of an API.

use std::sync::Arc;

use super::{anthropic, chat, responses, template, tgi};
use crate::answer::{Answer, EndRule};
use crate::endpoint_kind::EndpointKind;
use crate::surrogates::replace_lone_surrogates;
use crate::template::Template;

/// A reader of the events of one answer, in order.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Chat completions and completions, which share one shape.
    Chat,
    Responses,
    Anthropic(anthropic::Counts),
    Tgi,
    Template(Arc<Template>),
}

impl Reader {
    pub(crate) fn new(endpoint: &EndpointKind) -> Self {
        match endpoint {
            EndpointKind::ChatCompletions | EndpointKind::Completions => Reader::Chat,
            EndpointKind::Responses => Reader::Responses,
            EndpointKind::AnthropicMessages => Reader::Anthropic(anthropic::Counts::default()),
            EndpointKind::TgiGenerateStream => Reader::Tgi,
            EndpointKind::Template(template) => Reader::Template(Arc::clone(template)),
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
            Reader::Chat => chat::read(data, answer),
            Reader::Responses => responses::read(data, answer),
            Reader::Anthropic(counts) => anthropic::read(data, counts, answer),
            Reader::Tgi => tgi::read(data, answer),
            Reader::Template(template) => template::read(data, template, answer),
        }
    }

    /// Reads a non-streamed answer.
    pub(crate) fn read_whole(&mut self, body: &str, answer: &mut Answer) {
        let body = &replace_lone_surrogates(body);
        match self {
            Reader::Chat => chat::read(body, answer),
            Reader::Responses => responses::read_whole(body, answer),
            Reader::Anthropic(counts) => anthropic::read_whole(body, counts, answer),
            Reader::Tgi => tgi::read_whole(body, answer),
            Reader::Template(template) => template::read(body, template, answer),
        }
    }

    /// Returns a description of the required members of a non-streamed answer.
    pub(crate) fn whole_has(&self) -> &'static str {
        match self {
            Reader::Chat => "choices",
            Reader::Responses => "output and no status",
            Reader::Anthropic(_) => "content and no stop reason",
            Reader::Tgi => "generated text",
            Reader::Template(_) => "text where the template expects it",
        }
    }

    /// Returns true if `data` is the end marker: the template's, else `[DONE]`. APIs without an end
    /// marker receive `[DONE]` from servers that implement several APIs.
    fn is_marker(&self, data: &str) -> bool {
        match self {
            Reader::Template(template) => template.end_marker().is_some_and(|marker| data.trim() == marker),
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
            Reader::Template(template) => template
                .end_marker()
                .is_none_or(|marker| marker.as_bytes().first() != data.trim_ascii().first()),
            _ => true,
        }
    }

    /// Returns the condition of completeness, and a description of the end marker.
    pub(crate) fn end_rule(&self) -> (EndRule, &str) {
        match self {
            Reader::Chat | Reader::Responses | Reader::Tgi => (EndRule::FinishReason, "[DONE]"),
            Reader::Anthropic(_) => (EndRule::FinishReason, "message_stop"),
            Reader::Template(template) => match (template.wants_finish_reason(), template.end_marker()) {
                (true, marker) => (EndRule::FinishReason, marker.unwrap_or_default()),
                (false, Some(marker)) => (EndRule::Marker, marker),
                (false, None) => (EndRule::Body, ""),
            },
        }
    }
}
