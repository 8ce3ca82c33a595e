//! Writes a request as JSON, directly into bytes: prompts are large, so no tree of values is built of them.
//!
//! What is said stands in `messages` (chat completions, Anthropic), `prompt` (completions), `input` (Responses), `inputs` (TGI) or where
//! a template puts it; the files of this folder say how.
//!
//! **Precedence**, field by field of the top level: the request's own `body`, then `sampling`, then what the host writes. A
//! field that wins replaces the other whole; nested objects are not merged. One thing differs in TGI, which has all about sampling
//! inside `parameters`: the fields of `sampling` go there, too.

mod anthropic;
mod chat;
mod conversation;
mod media;
mod responses;
mod template;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use veeksha_model::{ErrorClass, History, Prepared};

use self::conversation::Conversation;
use self::template::Filling;
use crate::api::Api;
use crate::dialect::Dialect;
use crate::failure::Failure;

/// What Anthropic's API is asked for if a request states no length: it wants a number in every request.
const ANTHROPIC_MAX_TOKENS: u32 = 4_096;

/// The body of a request. It fails where something is asked for that cannot be sent: media that are no URL, or that the API has no
/// place for; a conversation that the chat template refuses; a `body` that is not a JSON object.
pub fn request_body(
    api: &Api,
    request: &Prepared,
    history: &Option<Arc<History<Prepared>>>,
) -> Result<Vec<u8>, Failure> {
    let own = own_fields(request)?;
    let nested = matches!(api.dialect, Dialect::TgiGenerateStream);
    let taken = |name: &str| own.contains_key(name) || (!nested && api.sampling.contains_key(name));
    let before = History::turns(history);
    let conversation = Conversation::new(&before, request);

    let mut object = ObjectWriter::with_capacity(conversation.bytes() + 512);
    match &api.dialect {
        Dialect::Template(template) => {
            let filling = Filling {
                api,
                request,
                conversation,
            };
            template.request().fill(&filling, taken, |name, json| {
                object.field(name, |out| out.extend_from_slice(json));
            })?;
        }
        Dialect::TgiGenerateStream => write_tgi(&mut object, api, request, &conversation, taken)?,
        _ => write_common(&mut object, api, request, &conversation, taken)?,
    }
    for (name, value) in api.sampling.iter().filter(|_| !nested) {
        if !own.contains_key(name.as_str()) {
            object.field(name, |out| json(out, value));
        }
    }
    for (name, value) in &own {
        object.field(name, |out| out.extend_from_slice(value.get().as_bytes()));
    }
    Ok(object.finish())
}

/// The dialects that have a model and a stream flag at the top level.
fn write_common(
    object: &mut ObjectWriter,
    api: &Api,
    request: &Prepared,
    conversation: &Conversation<'_>,
    taken: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    if !taken("model") {
        object.field("model", |out| string(out, &api.model));
    }
    match api.dialect {
        Dialect::Completions => {
            if !taken("prompt") {
                let prompt = conversation.flattened(api, "completions")?;
                object.field("prompt", |out| string(out, &prompt));
            }
        }
        Dialect::Responses => {
            if !taken("input") {
                object.try_field("input", |out| responses::write_input(out, conversation))?;
            }
        }
        Dialect::AnthropicMessages => {
            let mut system = Vec::new();
            if !taken("system") && anthropic::write_system(&mut system, conversation) {
                object.field("system", |out| out.extend_from_slice(&system));
            }
            if !taken("messages") {
                object.try_field("messages", |out| anthropic::write_messages(out, conversation))?;
            }
        }
        _ => {
            if !taken("messages") {
                object.try_field("messages", |out| chat::write_messages(out, conversation))?;
            }
        }
    }
    if !taken("stream") {
        object.field("stream", |out| out.extend_from_slice(b"true"));
    }
    let has_stream_options = matches!(api.dialect, Dialect::ChatCompletions | Dialect::Completions);
    if api.stream_options && has_stream_options && !taken("stream_options") {
        object.field("stream_options", |out| {
            out.extend_from_slice(br#"{"include_usage":true}"#)
        });
    }
    write_output_fields(object, api, request, taken);
    Ok(())
}

/// `inputs` as completions have their prompt, and all the rest inside `parameters`. Token counts come with `details`.
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

/// The fields that the request's `body` brings.
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
    let output = request.request.output;
    let target = output.target_tokens.filter(|tokens| *tokens > 0);
    let at_most = api.max_tokens_param.as_deref();
    let always = matches!(api.dialect, Dialect::AnthropicMessages).then_some(ANTHROPIC_MAX_TOKENS);
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

/// Replaces the comma behind the last element, if there is one, with the closing bracket.
pub(crate) fn end_list(out: &mut Vec<u8>, bracket: u8) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(bracket);
}

pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    json(out, text);
}

fn json(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Writing text, numbers and JSON values into memory has no way to fail.
    let written = serde_json::to_writer(&mut *out, value);
    debug_assert!(written.is_ok());
}

/// Writes the fields of one object.
struct ObjectWriter {
    out: Vec<u8>,
}

impl ObjectWriter {
    fn with_capacity(bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        ObjectWriter { out }
    }

    fn field(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        string(&mut self.out, name);
        self.out.push(b':');
        write(&mut self.out);
        self.out.push(b',');
    }

    fn try_field(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        self.field(name, |out| result = write(out));
        result
    }

    fn finish(mut self) -> Vec<u8> {
        end_list(&mut self.out, b'}');
        self.out
    }
}
