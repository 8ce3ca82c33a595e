//! Writes a request as JSON, directly into bytes: prompts are large, so no tree of values is built of them.
//!
//! **Chat.** `messages` are the turns of the history (each one's own messages, then the model's real answer with its tool
//! calls; reasoning is not sent back), then the new messages. A turn without an answer contributes its messages only. Text alone
//! is a plain string; with media, the content is a list of blocks, text first.
//!
//! **Completions.** `prompt` is one text. With [`Api::render`] it is all those messages and answers as the model's chat template
//! writes them, up to where the next answer begins. Without it, it is their texts, joined with one line feed each, without role
//! names, and a single message is sent exactly as it is. Tool calls have no place in a text and are left out; media are refused.
//!
//! **Precedence**, field by field of the top level: the request's own `body`, then `sampling`, then what the host writes. A
//! field that wins replaces the other whole; nested objects are not merged.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use std::sync::Arc;
use veeksha_model::{ErrorClass, History, MediaKind, Prepared, PreparedMessage, Response, Role};

use crate::{Api, Dialect, Failure};

/// The body of a request for a job. It fails where the job asks for something that cannot be sent: media that are no
/// URL, media in the completions dialect, a conversation that the chat template refuses, a `body` that is not a JSON object.
pub fn request_body(
    api: &Api,
    prepared: &Prepared,
    history: &Option<Arc<History<Prepared>>>,
) -> Result<Vec<u8>, Failure> {
    let own = own_fields(prepared)?;
    let taken = |name: &str| own.contains_key(name) || api.sampling.contains_key(name);
    let turns = History::turns(history);

    let mut object = ObjectWriter::with_capacity(text_bytes(&turns, prepared) + 512);
    if !taken("model") {
        object.field("model", |out| string(out, &api.model));
    }
    match api.dialect {
        Dialect::ChatCompletions if !taken("messages") => {
            let mut result = Ok(());
            object.field("messages", |out| result = write_messages(out, &turns, prepared));
            result?;
        }
        Dialect::Completions if !taken("prompt") => {
            let prompt = flattened(api, &turns, prepared)?;
            object.field("prompt", |out| string(out, &prompt));
        }
        Dialect::ChatCompletions | Dialect::Completions => {}
    }
    if !taken("stream") {
        object.field("stream", |out| out.extend_from_slice(b"true"));
    }
    if api.stream_options && !taken("stream_options") {
        object.field("stream_options", |out| {
            out.extend_from_slice(br#"{"include_usage":true}"#)
        });
    }
    write_output_fields(&mut object, api, prepared, taken);
    for (name, value) in &api.sampling {
        if !own.contains_key(name.as_str()) {
            object.field(name, |out| json(out, value));
        }
    }
    for (name, value) in &own {
        object.field(name, |out| out.extend_from_slice(value.get().as_bytes()));
    }
    Ok(object.finish())
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
    prepared: &Prepared,
    taken: impl Fn(&str) -> bool,
) {
    let output = prepared.request.output;
    if let Some(tokens) = output.target_tokens.filter(|tokens| *tokens > 0) {
        let at_most = api.max_tokens_param.as_deref();
        if let Some(at_most) = at_most.filter(|name| !taken(name)) {
            object.field(at_most, |out| json(out, &tokens));
        }
        if let Some(at_least) = api.min_tokens_param.as_deref().filter(|_| output.exact)
            && Some(at_least) != at_most
            && !taken(at_least)
        {
            object.field(at_least, |out| json(out, &tokens));
        }
    }
    if let Some(ignore) = api.ignore_eos.filter(|_| output.exact)
        && !taken("ignore_eos")
    {
        object.field("ignore_eos", |out| json(out, &ignore));
    }
}

type Turns = [Arc<History<Prepared>>];

fn text_bytes(turns: &Turns, prepared: &Prepared) -> usize {
    let messages = |prepared: &Prepared| {
        prepared
            .messages
            .iter()
            .map(|message| message.text.len() + 48)
            .sum::<usize>()
    };
    let answers = |turn: &History<Prepared>| {
        turn.response
            .as_ref()
            .map_or(0, |response| response.text.len() + 48)
    };
    let before: usize = turns
        .iter()
        .map(|turn| messages(&turn.request) + answers(turn))
        .sum();
    // Quotes and line ends take a second byte.
    (before + messages(prepared)) * 17 / 16
}

fn write_messages(out: &mut Vec<u8>, turns: &Turns, prepared: &Prepared) -> Result<(), Failure> {
    out.push(b'[');
    for turn in turns {
        for message in &turn.request.messages {
            write_message(out, message)?;
        }
        if let Some(response) = &turn.response {
            write_answer(out, response);
        }
    }
    for message in &prepared.messages {
        write_message(out, message)?;
    }
    end_list(out, b']');
    Ok(())
}

fn write_message(out: &mut Vec<u8>, message: &PreparedMessage) -> Result<(), Failure> {
    out.extend_from_slice(b"{\"role\":");
    string(out, message.role.name());
    if let Some(id) = &message.tool_call_id {
        out.extend_from_slice(b",\"tool_call_id\":");
        string(out, id);
    }
    out.extend_from_slice(b",\"content\":");
    if message.media.is_empty() {
        string(out, &message.text);
    } else {
        out.push(b'[');
        if !message.text.is_empty() {
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            string(out, &message.text);
            out.extend_from_slice(b"},");
        }
        for (kind, source) in &message.media {
            write_media(out, *kind, source)?;
            out.push(b',');
        }
        end_list(out, b']');
    }
    out.extend_from_slice(b"},");
    Ok(())
}

/// One content block. Sound inside a `data:` URL goes as `input_audio` (OpenAI), sound behind a URL as `audio_url` (vLLM).
fn write_media(out: &mut Vec<u8>, kind: MediaKind, source: &str) -> Result<(), Failure> {
    let embedded = starts_with(source, "data:");
    if !embedded && !starts_with(source, "http://") && !starts_with(source, "https://") {
        let message = format!(
            "the {} `{}` is no URL and no `data:` URL, and a server takes nothing else",
            kind.name(),
            source.chars().take(200).collect::<String>()
        );
        return Err(Failure::new(ErrorClass::Protocol, message));
    }
    if kind == MediaKind::Audio && embedded {
        let (format, data) = audio_data(source)?;
        out.extend_from_slice(b"{\"type\":\"input_audio\",\"input_audio\":{\"data\":");
        string(out, data);
        out.extend_from_slice(b",\"format\":");
        string(out, format);
        out.extend_from_slice(b"}}");
        return Ok(());
    }
    let block = match kind {
        MediaKind::Image => "image_url",
        MediaKind::Audio => "audio_url",
        MediaKind::Video => "video_url",
    };
    out.extend_from_slice(format!("{{\"type\":\"{block}\",\"{block}\":{{\"url\":").as_bytes());
    string(out, source);
    out.extend_from_slice(b"}}");
    Ok(())
}

fn starts_with(source: &str, scheme: &str) -> bool {
    source
        .get(..scheme.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// Format and Base64 of `data:audio/FORMAT;base64,DATA`.
fn audio_data(source: &str) -> Result<(&str, &str), Failure> {
    let refuse = || {
        Failure::new(
            ErrorClass::Protocol,
            "sound in a `data:` URL must begin like `data:audio/wav;base64,`",
        )
    };
    let (kind, data) = source.split_once(',').ok_or_else(refuse)?;
    let kind = kind
        .get("data:".len()..)
        .and_then(|kind| kind.strip_suffix(";base64"))
        .ok_or_else(refuse)?;
    let format = kind
        .split(';')
        .next()
        .and_then(|kind| kind.strip_prefix("audio/"))
        .ok_or_else(refuse)?;
    Ok((
        match format {
            "x-wav" | "wave" | "vnd.wave" => "wav",
            "mpeg" => "mp3",
            other => other,
        },
        data,
    ))
}

fn write_answer(out: &mut Vec<u8>, response: &Response) {
    out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
    if response.text.is_empty() && !response.tool_calls.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        string(out, &response.text);
    }
    if !response.tool_calls.is_empty() {
        out.extend_from_slice(b",\"tool_calls\":[");
        for call in &response.tool_calls {
            out.extend_from_slice(b"{\"id\":");
            string(out, &call.id);
            out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
            string(out, &call.name);
            out.extend_from_slice(b",\"arguments\":");
            string(out, &call.arguments);
            out.extend_from_slice(b"}},");
        }
        end_list(out, b']');
    }
    out.extend_from_slice(b"},");
}

/// The prompt of the completions dialect.
fn flattened<'a>(api: &Api, turns: &'a Turns, prepared: &'a Prepared) -> Result<Cow<'a, str>, Failure> {
    let refuse = |message| Err(Failure::new(ErrorClass::Protocol, message));
    let mut conversation: Vec<(Role, &str)> = Vec::new();
    let before = turns
        .iter()
        .map(|turn| (&*turn.request, turn.response.as_deref()));
    for (request, response) in before.chain([(prepared, None)]) {
        for message in &request.messages {
            if let Some((kind, _)) = message.media.first() {
                return refuse(format!(
                    "the completions API cannot carry {}; use chat completions",
                    kind.name()
                ));
            }
            conversation.push((message.role, &message.text));
        }
        conversation.extend(response.map(|response| (Role::Assistant, &*response.text)));
    }
    if let Some(render) = &api.render {
        return render(&conversation).map(Cow::Owned).or_else(refuse);
    }
    Ok(match conversation.as_slice() {
        [(_, only)] => Cow::Borrowed(only),
        _ => {
            let texts: Vec<&str> = conversation.iter().map(|(_, text)| *text).collect();
            Cow::Owned(texts.join("\n"))
        }
    })
}

/// Replaces the comma behind the last element, if there is one, with the closing bracket.
fn end_list(out: &mut Vec<u8>, bracket: u8) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(bracket);
}

fn string(out: &mut Vec<u8>, text: &str) {
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

    fn finish(mut self) -> Vec<u8> {
        end_list(&mut self.out, b'}');
        self.out
    }
}
