//! The server, and how it is spoken to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json};

use super::Secret;

/// Which of the server's interfaces is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ClientKind {
    /// OpenAI's chat completions, streamed.
    #[default]
    OpenaiChatCompletions,
    /// OpenAI's completions, streamed.
    OpenaiCompletions,
    /// OpenAI's responses, streamed.
    OpenaiResponses,
    /// Anthropic's messages, streamed.
    AnthropicMessages,
    /// `generate_stream` of Text Generation Inference.
    TgiGenerateStream,
    /// An interface that the scenario describes: what a request looks like, and where in the events of an answer things stand.
    Template,
    /// An interface that a component knows.
    Wasm,
}

impl ClientKind {
    /// All of them, in the order of the documentation.
    pub const ALL: [ClientKind; 7] = [
        ClientKind::OpenaiChatCompletions,
        ClientKind::OpenaiCompletions,
        ClientKind::OpenaiResponses,
        ClientKind::AnthropicMessages,
        ClientKind::TgiGenerateStream,
        ClientKind::Template,
        ClientKind::Wasm,
    ];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            ClientKind::OpenaiChatCompletions => "openai_chat_completions",
            ClientKind::OpenaiCompletions => "openai_completions",
            ClientKind::OpenaiResponses => "openai_responses",
            ClientKind::AnthropicMessages => "anthropic_messages",
            ClientKind::TgiGenerateStream => "tgi_generate_stream",
            ClientKind::Template => "template",
            ClientKind::Wasm => "wasm",
        }
    }

    /// One line on it.
    pub(crate) fn summary(self) -> &'static str {
        match self {
            ClientKind::OpenaiChatCompletions => "OpenAI's chat completions, streamed.",
            ClientKind::OpenaiCompletions => "OpenAI's completions, streamed.",
            ClientKind::OpenaiResponses => "OpenAI's responses, streamed.",
            ClientKind::AnthropicMessages => "Anthropic's messages, streamed.",
            ClientKind::TgiGenerateStream => "`generate_stream` of Text Generation Inference.",
            ClientKind::Template => {
                "An interface that the scenario describes: what a request looks like, and where in the events of an answer \
                 things stand."
            }
            ClientKind::Wasm => "An interface that a component knows.",
        }
    }

    /// What is appended to the server's address; of a component, what it says itself.
    pub fn default_path(self) -> &'static str {
        match self {
            ClientKind::OpenaiChatCompletions => "chat/completions",
            ClientKind::OpenaiCompletions => "completions",
            ClientKind::OpenaiResponses => "responses",
            ClientKind::AnthropicMessages => "messages",
            ClientKind::TgiGenerateStream => "generate_stream",
            ClientKind::Template | ClientKind::Wasm => "",
        }
    }

    /// What is sent as `ignore_eos` unless the scenario says otherwise: nothing to a server that would refuse to be asked.
    pub fn default_ignore_eos(self) -> Option<bool> {
        match self {
            ClientKind::AnthropicMessages | ClientKind::TgiGenerateStream => None,
            _ => Some(true),
        }
    }

    /// The member of the request that limits the answer's length. Where the request is described, its description says so.
    pub fn default_max_tokens_param(self) -> Option<&'static str> {
        match self {
            ClientKind::OpenaiChatCompletions => Some("max_completion_tokens"),
            ClientKind::OpenaiCompletions | ClientKind::AnthropicMessages => Some("max_tokens"),
            ClientKind::OpenaiResponses => Some("max_output_tokens"),
            ClientKind::TgiGenerateStream => Some("max_new_tokens"),
            ClientKind::Template | ClientKind::Wasm => None,
        }
    }
}

/// The server, and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Client {
    /// Which of the server's interfaces is used.
    #[serde(rename = "type")]
    pub kind: ClientKind,
    /// The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulated
    /// engine. Null takes the environment variable `OPENAI_API_BASE`.
    pub api_base: Option<String>,
    /// The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; without either, none is sent.
    pub api_key: Option<Secret>,
    /// The model's name. Null asks the server (`/models`) and takes the one that it serves.
    pub model: Option<String>,
    /// What is appended to `api_base` for a request.
    pub address_append_value: String,
    /// Seconds that a request may take in all, from the connection to the last chunk.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e8))]
    pub request_timeout: f64,
    /// Members that are merged into the body of every request (`{"temperature": 0}`); also as JSON text.
    #[serde(deserialize_with = "parameters")]
    #[schemars(schema_with = "parameters_schema")]
    pub additional_sampling_params: Map<String, Json>,
    /// The member of the request that limits the answer's length; null sends none.
    pub max_tokens_param: Option<String>,
    /// The member of the request that sets the answer's least length (`min_tokens` for vLLM); null sends none.
    pub min_tokens_param: Option<String>,
    /// What is sent as `ignore_eos`: true makes a server that knows it generate to the full length; null sends none.
    pub ignore_eos: Option<bool>,
    /// Whether the prompt asks for the answer's length in words, for a server that knows neither `ignore_eos` nor a
    /// minimum.
    pub use_min_tokens_prompt_fallback: bool,
    /// The words that are appended then; `{tokens}` becomes the number.
    pub min_tokens_prompt: String,
    /// Further headers of every request.
    pub headers: BTreeMap<String, String>,
    /// How an `https` server is trusted.
    pub tls: Tls,
    /// Several servers of one model, in place of `api_base`. What one of them does not say is as it stands beside this list.
    pub targets: Vec<TargetServer>,
    /// Which of several servers a session goes to. All requests of a session go to the same one.
    pub balance: Balance,
    /// What becomes of a connection when its request is answered.
    pub connections: Connections,
    /// The version of HTTP. With `http2`, requests share connections; a plain `http` server must know it without being asked.
    pub http_version: HttpVersion,
    /// Seconds in which a connection must be open, its TLS handshake included. Null: as long as the request may take.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub connect_timeout: Option<f64>,
    /// An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). The environment's settings are not looked at.
    pub proxy: Option<String>,
    /// The addresses of this machine that connections start from, in turn. Each allows some 28,000 connections at a time to one
    /// server; null leaves the choice to the system.
    pub source_addresses: Option<Vec<String>>,
    /// For `type: template`: the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
    /// For `type: wasm`: the component that knows the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec: Option<CodecFile>,
    /// Whether the model's chat template is applied to count what it adds to a prompt; with the completions interface, it is also
    /// what is sent in place of the bare texts.
    pub apply_chat_template: bool,
    /// The file of the chat template. Null: the one beside the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
    pub chat_template: Option<PathBuf>,
    /// What the length is of that a workload asks for.
    pub prompt_length: PromptLength,
    /// The tokenizer that prompts are made with: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or
    /// `embedded` for the small one inside the program. Null takes the model's own where it is found, else the embedded.
    pub tokenizer: Option<String>,
}

impl Client {
    /// The allowance of one request.
    pub fn deadline(&self) -> Duration {
        Duration::try_from_secs_f64(self.request_timeout).unwrap_or(Duration::MAX)
    }

    /// The allowance for opening a connection; `None`: only that of the request.
    pub fn connect_deadline(&self) -> Option<Duration> {
        self.connect_timeout
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// The addresses that connections start from; empty: the system's choice. The rules have made sure that they are addresses.
    pub fn sources(&self) -> Vec<IpAddr> {
        self.source_addresses
            .iter()
            .flatten()
            .filter_map(|address| address.parse().ok())
            .collect()
    }
}

impl Default for Client {
    fn default() -> Self {
        let kind = ClientKind::default();
        Client {
            kind,
            api_base: None,
            api_key: None,
            model: None,
            address_append_value: kind.default_path().to_owned(),
            request_timeout: 300.0,
            additional_sampling_params: Map::new(),
            max_tokens_param: kind.default_max_tokens_param().map(str::to_owned),
            min_tokens_param: None,
            ignore_eos: kind.default_ignore_eos(),
            use_min_tokens_prompt_fallback: false,
            min_tokens_prompt: "\n\nGenerate at least {tokens} tokens.".to_owned(),
            headers: BTreeMap::new(),
            tls: Tls::default(),
            targets: Vec::new(),
            balance: Balance::default(),
            connections: Connections::default(),
            http_version: HttpVersion::default(),
            connect_timeout: None,
            proxy: None,
            source_addresses: None,
            template: None,
            codec: None,
            apply_chat_template: false,
            chat_template: None,
            prompt_length: PromptLength::default(),
            tokenizer: None,
        }
    }
}

/// What the length is of that a workload asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PromptLength {
    /// Of what is said. What the chat template adds comes on top.
    #[default]
    Content,
    /// Of what is said together with what the chat template adds to it.
    Wrapped,
}

/// How an `https` server is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tls {
    /// A PEM file of certificates that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Accepts any certificate. For tests only: nothing protects the key then.
    pub insecure: bool,
    /// A PEM file with the certificate that this client shows, for servers that ask for one. Needs `client_key`.
    pub client_certificate: Option<PathBuf>,
    /// A PEM file with the certificate's private key.
    pub client_key: Option<PathBuf>,
}

/// One of several servers. What it does not say is as it stands in `client`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetServer {
    /// Its address up to the version.
    pub api_base: String,
    /// The key sent to it.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// Headers of the requests to it, besides those of all.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How it is trusted.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// The proxy on the way to it.
    #[serde(default)]
    pub proxy: Option<String>,
}

/// Which of several servers a session goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Balance {
    /// One session after the other, in turn.
    #[default]
    RoundRobin,
    /// The one with the fewest requests in flight when the session begins.
    LeastInFlight,
}

/// What becomes of a connection when its request is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Connections {
    /// It serves the next request, whose ever that is.
    #[default]
    Pooled,
    /// It serves the next request of the same session, and is closed when the session has none for a while.
    PerSession,
    /// It is closed.
    Never,
}

/// The version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
}

/// An interface in words: what a request looks like, and where in the events of an answer things stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Template {
    /// The request's body. A text `{{prompt}}`, `{{messages}}`, `{{model}}` or `{{max_tokens}}` stands for that of the request; a
    /// member whose text has no value is left out.
    #[schemars(schema_with = "anything_schema")]
    pub request: Json,
    /// How an answer is cut into events.
    #[serde(default)]
    pub framing: TemplateFraming,
    /// Where things stand in an event.
    pub answer: TemplateAnswer,
}

/// How an answer is cut into events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum TemplateFraming {
    /// Server-sent events.
    #[default]
    EventStream,
    /// A JSON value on each line.
    Lines,
    /// The whole body is one JSON value.
    Whole,
}

/// Where things stand in the events of an answer: JSON pointers, in which `*` is every element of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TemplateAnswer {
    /// The text that was generated, for example `/token/text`.
    pub text: Option<String>,
    /// Reasoning text.
    pub reasoning: Option<String>,
    /// Why generation ended. An answer in which this never stands is taken for cut short.
    pub finish_reason: Option<String>,
    /// The server's count of the prompt's tokens.
    pub prompt_tokens: Option<String>,
    /// The server's count of the tokens generated.
    pub output_tokens: Option<String>,
    /// Prompt tokens that the prefix cache knew.
    pub cached_tokens: Option<String>,
    /// Generated tokens that were reasoning.
    pub reasoning_tokens: Option<String>,
    /// The server's words when it fails inside an answer.
    pub error: Option<String>,
    /// The data of the event that ends an answer, for example `[DONE]`.
    pub done: Option<String>,
}

/// The component that knows the interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodecFile {
    /// The component's file, relative to the scenario's folder.
    pub path: PathBuf,
    /// Its configuration, checked against the schema that the component brings.
    #[serde(default)]
    pub config: Map<String, Json>,
    /// Files that it may read: the name that it knows each by, and where it is.
    #[serde(default)]
    pub files: BTreeMap<String, PathBuf>,
}

/// Veeksha takes JSON text; a table says the same.
fn parameters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Json>, D::Error> {
    match Json::deserialize(deserializer)? {
        Json::Object(map) => Ok(map),
        // Text that does not parse is reported by the rules, with its place.
        Json::String(text) => Ok(parse_parameters(&text).unwrap_or_default()),
        _ => Err(serde::de::Error::custom("expected a table")),
    }
}

/// Parses the text form; blank text is no parameters.
pub(crate) fn parse_parameters(text: &str) -> Result<Map<String, Json>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Json::Object(map)) => Ok(map),
        Ok(_) => Err("the JSON text must be an object, as in `{\"temperature\": 0}`".to_owned()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
}

fn anything_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "additionalProperties": true})
}

fn parameters_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"anyOf": [
        {"type": "object", "additionalProperties": true},
        {"type": "string"},
    ]})
}
