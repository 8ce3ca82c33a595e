//! The endpoint that a scenario names or describes, and the requests that it can express.

use std::sync::Arc;

use veeksha_endpoint::{EndpointKind, EndpointTemplate, Pointers, TemplateSpec};
use veeksha_model::{DEFAULT_CLIENT, Framing, ReasoningTarget, Request};
use veeksha_prompt::{RequestFilter, Tokenizer};
use veeksha_scenario::{ClientKind, NamedClient, TemplateFraming};

use crate::codec;
use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;

/// The endpoint of a client.
pub(crate) struct ClientEndpoint {
    /// The name of the client.
    pub(crate) name: String,
    pub(crate) endpoint: EndpointKind,
    pub(crate) reasoning: ReasoningTarget,
}

/// Returns the endpoints of the clients of a scenario, that of requests without a client first.
pub(crate) fn of_clients(
    loaded: &Loaded,
    tokenizer: &Tokenizer,
) -> Result<Arc<[ClientEndpoint]>, CommandFailure> {
    let mut endpoints = Vec::new();
    let mut servers: Vec<(ClientKind, Vec<&str>)> = Vec::new();
    for named in loaded.scenario.all_clients() {
        let endpoint = match codec::open(loaded, &named, tokenizer)? {
            Some(opened) => opened.endpoint,
            None => endpoint(&named)?,
        };
        let client = named.client;
        let addresses = client.targets.iter().map(|target| &*target.api_base);
        let addresses = addresses.chain(client.api_base.as_deref().filter(|_| client.targets.is_empty()));
        let of_client = (client.kind, addresses.collect());
        // Clients with the same API and addresses have the number of the first one.
        let number = servers.iter().position(|known| *known == of_client);
        let number = number.unwrap_or(servers.len());
        servers.push(of_client);
        endpoints.push(ClientEndpoint {
            name: named.name.to_owned(),
            reasoning: ReasoningTarget {
                support: endpoint.reasoning_support(client.reasoning_param.as_deref()),
                servers: u16::try_from(number).unwrap_or(u16::MAX),
            },
            endpoint,
        });
    }
    Ok(endpoints.into())
}

/// Returns the filter of the requests that the endpoint of their client cannot express, which also
/// returns the reasoning that the others send.
pub(crate) fn filter(clients: Arc<[ClientEndpoint]>) -> RequestFilter {
    Arc::new(move |request| {
        // An unknown client is a separate error.
        let chosen = ClientEndpoint::of(&clients, request).or(clients.first());
        chosen.map_or(Ok(ReasoningTarget::default()), |chosen| {
            veeksha_endpoint::check_request(&chosen.endpoint, request).map(|()| chosen.reasoning)
        })
    })
}

impl ClientEndpoint {
    /// Returns the endpoint of a request's client; `None` if its name is unknown.
    pub(crate) fn of<'a>(clients: &'a [Self], request: &Request) -> Option<&'a Self> {
        let name = request.client.as_deref().unwrap_or(DEFAULT_CLIENT);
        clients.iter().find(|client| client.name == name)
    }
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
