//! The bodies of each API: the events of a stream, whole answers, errors.
//!
//! A script writes events one after the other; its caller decides which of them share a write. Each
//! event has the kind that a client of the API sees in it (see [`veeksha_model::ChunkKind`]): mere
//! announcements have the kind `role`.

mod content;
mod generate;
mod messages;
mod openai;
mod responses;

use veeksha_model::{ChunkKind, Usage};

use crate::engine::FinishReason;

pub(super) use content::AnswerContent;

/// The API of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    /// OpenAI: `/v1/chat/completions`.
    Chat,
    /// OpenAI: `/v1/completions`.
    Text,
    /// OpenAI: `/v1/responses`.
    Responses,
    /// Anthropic: `/v1/messages`.
    Messages,
    /// Hugging Face TGI: `/generate`, never streamed.
    Generate,
    /// Hugging Face TGI: `/generate_stream`, always streamed.
    GenerateStream,
    /// Ollama: `/api/generate`, streamed as lines of JSON.
    Ollama,
}

impl Api {
    /// Returns the API of the endpoint at that path. Endpoints that clients find below a base
    /// address are also served below `/v1`.
    pub(super) fn at(path: &str) -> Option<Api> {
        Some(match path {
            "/v1/chat/completions" => Api::Chat,
            "/v1/completions" => Api::Text,
            "/v1/responses" => Api::Responses,
            "/v1/messages" => Api::Messages,
            "/generate" | "/v1/generate" => Api::Generate,
            "/generate_stream" | "/v1/generate_stream" => Api::GenerateStream,
            "/api/generate" | "/v1/api/generate" => Api::Ollama,
            _ => return None,
        })
    }

    /// Returns the content type of streams.
    pub(super) fn stream_type(self) -> &'static str {
        match self {
            Api::Ollama => "application/x-ndjson",
            _ => "text/event-stream; charset=utf-8",
        }
    }

    /// Returns bytes without content that are allowed between two events.
    pub(super) fn filler(self) -> &'static [u8] {
        match self {
            Api::Ollama => b"\n",
            _ => b":\n\n",
        }
    }
}

/// Events to be written: their bytes, and the end of each.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) bytes: Vec<u8>,
    pub(super) marks: Vec<(usize, ChunkKind)>,
}

impl Events {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.marks.clear();
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Ends an event.
    pub(super) fn end(&mut self, kind: ChunkKind) {
        self.marks.push((self.bytes.len(), kind));
    }

    /// Appends a server-sent event with a name and JSON data.
    pub(super) fn named(&mut self, name: &str, data: &serde_json::Value, kind: ChunkKind) {
        self.text("event: ");
        self.text(name);
        self.text("\ndata: ");
        self.text(&data.to_string());
        self.text("\n\n");
        self.end(kind);
    }
}

/// Presence of the event that ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndMarker {
    Sent,
    Missing,
}

/// The events of one answer.
pub(super) trait Script: Send {
    /// Writes the events before the first token, when the request is admitted to the batch.
    fn begin(&mut self, _out: &mut Events, _usage: &Usage) {}

    /// Writes one token. `last`: the answer is complete with it.
    fn token(&mut self, out: &mut Events, index: u32, last: bool);

    /// Writes the events after the last token.
    fn finish(&mut self, out: &mut Events, reason: FinishReason, usage: &Usage, marker: EndMarker);

    /// Writes an error in place of the rest.
    fn error(&mut self, out: &mut Events, message: &str);

    /// Returns the body of an answer that is not streamed; without a reason it was cut off.
    fn whole(&self, reason: Option<FinishReason>, usage: &Usage) -> Vec<u8>;
}

/// Creates the script of an answer.
pub(super) fn script(api: Api, content: AnswerContent) -> Box<dyn Script> {
    match api {
        Api::Chat | Api::Text => Box::new(openai::OpenAi::new(api, content)),
        Api::Responses => Box::new(responses::Responses::new(content)),
        Api::Messages => Box::new(messages::Messages::new(content)),
        Api::Generate | Api::GenerateStream => Box::new(generate::Tgi::new(content)),
        Api::Ollama => Box::new(generate::OllamaLines::new(content)),
    }
}

/// The error message inside an answer.
pub(super) const MID_STREAM: &str =
    "the simulated engine failed while answering (faults.midstream_error_probability)";

/// Returns the status and body of an error in the API's format.
pub(super) fn error_answer(api: Api, status: u16, message: &str) -> (u16, Vec<u8>) {
    let (status, body) = match api {
        Api::Chat | Api::Text | Api::Responses => (status, openai::error(status, message)),
        Api::Messages => (status, messages::error(status, message)),
        Api::Generate | Api::GenerateStream => generate::tgi_error(status, message),
        Api::Ollama => (status, serde_json::json!({ "error": message })),
    };
    (status, body.to_string().into_bytes())
}
