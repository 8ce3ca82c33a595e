//! Request bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use veeksha_model::{ErrorClass, History, Prepared};

use super::conversation::Conversation;
use super::template::Filling;
use super::tools::{form_members, merged, write_tools};
use super::{anthropic, chat, responses};
use crate::api::{Api, check_choices};
use crate::endpoint_kind::EndpointKind;
use crate::failure::Failure;
use crate::json_writer::{ObjectWriter, json, string};

/// `max_tokens` for a request without a length: Anthropic's API requires the field.
const ANTHROPIC_MAX_TOKENS: u32 = 4_096;

/// Returns the body of a request.
///
/// # Errors
/// If the request cannot be represented: parts of its conversation that the API does not have;
/// media that are not a URL or that the API does not support; a conversation that the chat template
/// refuses; a `body` that is not a JSON object.
pub fn request_body(
    api: &Api,
    request: &Prepared,
    history: &Option<Arc<History<Prepared>>>,
) -> Result<Vec<u8>, Failure> {
    let own = own_fields(request)?;
    let nested = matches!(api.endpoint, EndpointKind::TgiGenerateStream);
    // A request's own `parameters` replace the configured ones.
    let own_parameters = own.get("parameters").filter(|_| nested);
    let parameter = |name: &str| match (own_parameters, own.get(name)) {
        // The server refuses values of other types.
        (Some(parameters), _) => serde_json::from_str::<Value>(parameters.get())
            .ok()
            .and_then(|mut parameters| parameters.get_mut(name).map(Value::take)),
        (None, Some(value)) if !nested => serde_json::from_str(value.get()).ok(),
        _ => api.sampling.get(name).cloned(),
    };
    check_choices(&api.endpoint, parameter).map_err(|message| Failure::new(ErrorClass::Protocol, message))?;
    let taken = |name: &str| own.contains_key(name) || (!nested && api.sampling.contains_key(name));
    let form = request.request.output.form.as_deref();
    let members = form.map_or_else(Vec::new, |form| form_members(form, &api.endpoint));
    let before = History::turns(history);
    let conversation = Conversation::new(&before, request);
    conversation.check(&api.endpoint)?;

    let mut object = ObjectWriter::with_capacity(conversation.bytes() + 512);
    match &api.endpoint {
        EndpointKind::Template(template) => {
            let filling = Filling {
                api,
                request,
                conversation,
            };
            template.request().fill(&filling, taken, |name, json| {
                object.field(name, |out| out.extend_from_slice(json));
            })?;
        }
        EndpointKind::TgiGenerateStream => write_tgi(&mut object, api, request, &conversation, taken)?,
        _ => write_common(&mut object, api, request, (&conversation, &members), taken)?,
    }
    let merged = |name: &str, value: &dyn Fn() -> String| {
        let (_, host) = members.iter().find(|(member, _)| *member == name)?;
        merged(name, &value(), host)
    };
    for (name, value) in api.sampling.iter().filter(|_| !nested) {
        if !own.contains_key(name.as_str()) {
            object.field(name, |out| match merged(name, &|| value.to_string()) {
                Some(text) => out.extend_from_slice(text.as_bytes()),
                None => json(out, value),
            });
        }
    }
    for (name, value) in &own {
        object.field(name, |out| match merged(name, &|| value.get().to_owned()) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => out.extend_from_slice(value.get().as_bytes()),
        });
    }
    Ok(object.finish())
}

/// Writes the body for endpoints with a model and a stream flag at the top level.
fn write_common(
    object: &mut ObjectWriter,
    api: &Api,
    request: &Prepared,
    (conversation, form): (&Conversation<'_>, &[(&str, String)]),
    taken: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    if !taken("model") {
        object.field("model", |out| string(out, &api.model));
    }
    if matches!(api.endpoint, EndpointKind::AnthropicMessages) {
        let mut system = Vec::new();
        if !taken("system") && anthropic::write_system(&mut system, conversation) {
            object.field("system", |out| out.extend_from_slice(&system));
        }
    }
    let name = match api.endpoint {
        EndpointKind::Completions => "prompt",
        EndpointKind::Responses => "input",
        _ => "messages",
    };
    if !taken(name) {
        object.try_field(name, |out| match api.endpoint {
            EndpointKind::Completions => {
                match conversation.token_ids()? {
                    Some(ids) => json(out, ids),
                    None => string(out, &conversation.flattened(api, "completions")?),
                }
                Ok(())
            }
            EndpointKind::Responses => responses::write_input(out, conversation),
            EndpointKind::AnthropicMessages => anthropic::write_messages(out, conversation),
            _ => chat::write_messages(out, conversation, api.reasoning_param.as_deref()),
        })?;
    }
    if let Some(tools) = conversation.tools().filter(|_| !taken("tools")) {
        object.field("tools", |out| write_tools(out, tools, &api.endpoint));
    }
    for (name, value) in form.iter().filter(|(name, _)| !taken(name)) {
        object.field(name, |out| out.extend_from_slice(value.as_bytes()));
    }
    if !taken("stream") {
        object.field("stream", |out| out.extend_from_slice(b"true"));
    }
    let has_stream_options = matches!(
        api.endpoint,
        EndpointKind::ChatCompletions | EndpointKind::Completions
    );
    if api.stream_options && has_stream_options && !taken("stream_options") {
        object.field("stream_options", |out| {
            out.extend_from_slice(br#"{"include_usage":true}"#)
        });
    }
    write_output_fields(object, api, request, taken);
    Ok(())
}

/// Writes `inputs`, equal to the prompt of completions, and all other fields inside `parameters`.
/// `details` requests token counts.
fn write_tgi(
    object: &mut ObjectWriter,
    api: &Api,
    request: &Prepared,
    conversation: &Conversation<'_>,
    taken: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    if !taken("inputs") {
        let prompt = conversation.flattened(api, "generate_stream")?;
        object.field("inputs", |out| string(out, &prompt));
    }
    if !taken("parameters") {
        let mut parameters = ObjectWriter::with_capacity(128);
        let own = |name: &str| api.sampling.contains_key(name);
        if !own("details") {
            parameters.field("details", |out| out.extend_from_slice(b"true"));
        }
        write_output_fields(&mut parameters, api, request, own);
        for (name, value) in &api.sampling {
            parameters.field(name, |out| json(out, value));
        }
        let parameters = parameters.finish();
        object.field("parameters", |out| out.extend_from_slice(&parameters));
    }
    Ok(())
}

/// Returns the fields of the request's `body`.
fn own_fields(prepared: &Prepared) -> Result<BTreeMap<Cow<'_, str>, &RawValue>, Failure> {
    match prepared.request.body.as_deref() {
        None => Ok(BTreeMap::new()),
        Some(body) if body.trim().is_empty() => Ok(BTreeMap::new()),
        Some(body) => serde_json::from_str(body).map_err(|error| {
            Failure::new(
                ErrorClass::Protocol,
                format!("the request's `body` is not a JSON object: {error}"),
            )
        }),
    }
}

fn write_output_fields(
    object: &mut ObjectWriter,
    api: &Api,
    request: &Prepared,
    taken: impl Fn(&str) -> bool,
) {
    let output = &request.request.output;
    let target = output.target_tokens.filter(|tokens| *tokens > 0);
    let at_most = api.max_tokens_param.as_deref();
    let always = matches!(api.endpoint, EndpointKind::AnthropicMessages).then_some(ANTHROPIC_MAX_TOKENS);
    if let (Some(at_most), Some(tokens)) = (at_most, target.or(always))
        && !taken(at_most)
    {
        object.field(at_most, |out| json(out, &tokens));
    }
    if let (Some(at_least), Some(tokens)) = (api.min_tokens_param.as_deref(), target)
        && output.exact
        && Some(at_least) != at_most
        && !taken(at_least)
    {
        object.field(at_least, |out| json(out, &tokens));
    }
    if let Some(ignore) = api.ignore_eos.filter(|_| output.exact)
        && !taken("ignore_eos")
    {
        object.field("ignore_eos", |out| json(out, &ignore));
    }
}
