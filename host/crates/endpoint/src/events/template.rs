//! Events of a user-defined API: the values at the template's pointers.

use serde_json::Value;
use veeksha_model::Usage;

use super::json::error_of;
use crate::answer::Answer;
use crate::answer_failure::unreadable;
use crate::error_body::{ServerError, error_in};
use crate::template::{EndpointTemplate, PointerSink, PointerTarget};

/// Receives the parts of one event as they are found.
struct TemplateSink<'a> {
    answer: &'a mut Answer,
    usage: Usage,
    has_usage: bool,
    /// True if any part was found.
    any: bool,
}

/// Reads one event, or a non-streamed answer.
pub(super) fn read(data: &str, template: &EndpointTemplate, answer: &mut Answer) {
    let mut parts = TemplateSink {
        answer,
        usage: Usage::default(),
        has_usage: false,
        any: false,
    };
    if let Err(error) = template.walk().read(data, &mut parts) {
        return answer.refuse(unreadable(data, &error));
    }
    let TemplateSink {
        usage,
        has_usage,
        any,
        ..
    } = parts;
    if has_usage {
        answer.usage(usage);
    }
    if any {
        return;
    }
    match error_of(data) {
        Some(error) => answer.error(error),
        None => answer.role(),
    }
}

impl PointerSink for TemplateSink<'_> {
    fn text(&mut self, target: PointerTarget, text: &str) {
        self.any = true;
        match target {
            PointerTarget::Reasoning => self.answer.reasoning(text),
            _ => self.answer.content(text),
        }
    }

    fn finish(&mut self, reason: &str) {
        self.any = true;
        self.answer.finish(reason);
    }

    fn count(&mut self, target: PointerTarget, count: u64) {
        self.any = true;
        self.has_usage = true;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        match target {
            PointerTarget::PromptTokens => self.usage.prompt = count,
            PointerTarget::CachedTokens => self.usage.cached = Some(count),
            PointerTarget::ReasoningTokens => self.usage.reasoning = Some(count),
            _ => self.usage.completion = count,
        }
    }

    fn error(&mut self, error: Value) {
        self.any = true;
        let found = match &error {
            Value::String(message) => Some(ServerError {
                message: message.clone(),
                code: None,
            }),
            _ => error_in(&error),
        };
        self.answer.error(found.unwrap_or_else(|| ServerError {
            message: error.to_string(),
            code: None,
        }));
    }
}
