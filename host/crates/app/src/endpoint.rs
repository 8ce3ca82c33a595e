//! The endpoint that a scenario names or describes, and the requests that it can express.

use std::sync::Arc;

use veeksha_endpoint::{EndpointKind, EndpointTemplate, Pointers, TemplateSpec};
use veeksha_model::{DEFAULT_CLIENT, Framing};
use veeksha_prompt::{RequestFilter, Tokenizer};
use veeksha_scenario::{ClientKind, NamedClient, TemplateFraming};

use crate::codec;
use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;

/// Returns the filter of the requests that the endpoint of their client cannot express, which also
/// returns the reasoning that the others send.
pub(crate) fn filter(loaded: &Loaded, tokenizer: &Tokenizer) -> Result<RequestFilter, CommandFailure> {
    let mut endpoints = Vec::new();
    for named in loaded.scenario.all_clients() {
        let endpoint = match codec::open(loaded, &named, tokenizer)? {
            Some(opened) => opened.endpoint,
            None => endpoint(&named)?,
        };
        let reasoning = endpoint.reasoning_support(named.client.reasoning_param.as_deref());
        endpoints.push((named.name.to_owned(), endpoint, reasoning));
    }
    Ok(Arc::new(move |request| {
        let client = request.client.as_deref().unwrap_or(DEFAULT_CLIENT);
        let chosen = endpoints.iter().find(|(name, ..)| name == client);
        // An unknown client is a separate error.
        let (_, endpoint, reasoning) = chosen.unwrap_or(&endpoints[0]);
        veeksha_endpoint::check_request(endpoint, request).map(|()| *reasoning)
    }))
}

/// Returns the endpoint, except that of a component.
pub(crate) fn endpoint(named: &NamedClient<'_>) -> Result<EndpointKind, CommandFailure> {
    match named.client.kind {
        ClientKind::Template => template_endpoint(named),
        // `complete` sets the endpoint of a component.
        kind => Ok(kind.endpoint().unwrap_or_default()),
    }
}

/// Returns the endpoint that the scenario describes by a template.
pub(crate) fn template_endpoint(named: &NamedClient<'_>) -> Result<EndpointKind, CommandFailure> {
    let refuse = |why: String| CommandFailure::usage(format!("{}.template: {why}", named.path));
    let client = named.client;
    let Some(template) = &client.template else {
        return Err(refuse("`template` is missing".to_owned()));
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
    let template = EndpointTemplate::new(spec).map_err(|error| refuse(error.to_string()))?;
    Ok(EndpointKind::Template(Arc::new(template)))
}
