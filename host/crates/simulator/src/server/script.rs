//! The bodies of each API: the events of a stream, whole answers, errors.
//!
//! A script writes events one after the other; its caller decides which of them share a write. Each
//! event has the kind that a client of the API sees in it (see [`veeksha_model::ChunkKind`]): mere
//! announcements have the kind `role`.

mod answer_script;
mod content;
mod generate;
mod messages;
mod openai;
mod responses;

use super::served_api::ServedApi;

pub(super) use answer_script::{EndMarker, EventBuffer, Script};
pub(super) use content::AnswerContent;

/// Creates the script of an answer.
pub(super) fn script(api: ServedApi, content: AnswerContent) -> Box<dyn Script> {
    match api {
        ServedApi::Chat | ServedApi::Text => Box::new(openai::OpenAi::new(api, content)),
        ServedApi::Responses => Box::new(responses::Responses::new(content)),
        ServedApi::Messages => Box::new(messages::Messages::new(content)),
        ServedApi::Generate | ServedApi::GenerateStream => Box::new(generate::Tgi::new(content)),
        ServedApi::Ollama => Box::new(generate::OllamaLines::new(content)),
    }
}

/// The error message inside an answer.
pub(super) const MID_STREAM: &str =
    "the simulated engine failed while answering (faults.midstream_error_probability)";

/// Returns the status and body of an error in the API's format.
pub(super) fn error_answer(api: ServedApi, status: u16, message: &str) -> (u16, Vec<u8>) {
    let (status, body) = match api {
        ServedApi::Chat | ServedApi::Text | ServedApi::Responses => (status, openai::error(status, message)),
        ServedApi::Messages => (status, messages::error(status, message)),
        ServedApi::Generate | ServedApi::GenerateStream => generate::tgi_error(status, message),
        ServedApi::Ollama => (status, serde_json::json!({ "error": message })),
    };
    (status, body.to_string().into_bytes())
}
