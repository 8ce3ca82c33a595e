//! The APIs of the server.

/// The API of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServedApi {
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

impl ServedApi {
    /// Returns the API of the endpoint at that path. Endpoints that clients find below a base
    /// address are also served below `/v1`.
    pub(super) fn at(path: &str) -> Option<ServedApi> {
        Some(match path {
            "/v1/chat/completions" => ServedApi::Chat,
            "/v1/completions" => ServedApi::Text,
            "/v1/responses" => ServedApi::Responses,
            "/v1/messages" => ServedApi::Messages,
            "/generate" | "/v1/generate" => ServedApi::Generate,
            "/generate_stream" | "/v1/generate_stream" => ServedApi::GenerateStream,
            "/api/generate" | "/v1/api/generate" => ServedApi::Ollama,
            _ => return None,
        })
    }

    /// Returns the content type of streams.
    pub(super) fn stream_type(self) -> &'static str {
        match self {
            ServedApi::Ollama => "application/x-ndjson",
            _ => "text/event-stream; charset=utf-8",
        }
    }

    /// Returns bytes without content that are allowed between two events.
    pub(super) fn filler(self) -> &'static [u8] {
        match self {
            ServedApi::Ollama => b"\n",
            _ => b":\n\n",
        }
    }
}
