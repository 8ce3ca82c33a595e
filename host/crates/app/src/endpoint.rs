//! The endpoint that a scenario names or describes, and the requests that it can express.

use std::sync::Arc;

use veeksha_endpoint::{EndpointKind, EndpointTemplate, Pointers, TemplateSpec};
use veeksha_model::Framing;
use veeksha_prompt::{RequestFilter, Tokenizer};
use veeksha_scenario::{Client, ClientKind, TemplateFraming};

use crate::codec;
use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;

/// Returns the filter of the requests that the endpoint cannot express, which also returns the
/// reasoning that the others send.
pub(crate) fn filter(loaded: &Loaded, tokenizer: &Tokenizer) -> Result<RequestFilter, CommandFailure> {
    let client = &loaded.scenario.client;
    let endpoint = match &client.codec {
        Some(file) => codec::open(loaded, file, tokenizer)?.endpoint,
        None => endpoint(client)?,
    };
    let reasoning = endpoint.reasoning_support(client.reasoning_param.as_deref());
    Ok(Arc::new(move |request| {
        veeksha_endpoint::check_request(&endpoint, request).map(|()| reasoning)
    }))
}

/// Returns the endpoint, except that of a component.
pub(crate) fn endpoint(client: &Client) -> Result<EndpointKind, CommandFailure> {
    match client.kind {
        ClientKind::Template => template_endpoint(client),
        // `complete` sets the endpoint of a component.
        kind => Ok(kind.endpoint().unwrap_or_default()),
    }
}

/// Returns the endpoint that the scenario describes by a template.
pub(crate) fn template_endpoint(client: &Client) -> Result<EndpointKind, CommandFailure> {
    let Some(template) = &client.template else {
        return Err(CommandFailure::usage("client.template: `template` is missing"));
    };
    let answer = template.answer.clone();
    let spec = TemplateSpec {
        path: client.address_append_value.clone(),
        headers: Vec::new(),
        request: template.request.clone(),
        framing: match template.framing {
            TemplateFraming::EventStream => Framing::EventStream,
            TemplateFraming::Lines => Framing::Lines,
            TemplateFraming::Whole => Framing::Whole,
        },
        answer: Pointers {
            text: answer.text,
            reasoning: answer.reasoning,
            finish_reason: answer.finish_reason,
            prompt_tokens: answer.prompt_tokens,
            output_tokens: answer.output_tokens,
            cached_tokens: answer.cached_tokens,
            reasoning_tokens: answer.reasoning_tokens,
            error: answer.error,
            done: answer.done,
        },
    };
    let template = EndpointTemplate::new(spec)
        .map_err(|error| CommandFailure::usage(format!("client.template: {error}")))?;
    Ok(EndpointKind::Template(Arc::new(template)))
}
