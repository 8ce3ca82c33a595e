//! The server and the client's connection to it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json};
use veeksha_endpoint::{DEFAULT_REASONING_PARAM, EndpointKind};

use crate::plan::component_use::ComponentUse;
use crate::plan::secret::Secret;
use crate::plan::session_headers::{SessionHeaders, one_or_several, one_or_several_schema};

/// The server API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ClientKind {
    /// OpenAI chat completions, streamed.
    #[default]
    OpenaiChatCompletions,
    /// OpenAI completions, streamed.
    OpenaiCompletions,
    /// OpenAI responses, streamed.
    OpenaiResponses,
    /// Anthropic messages, streamed.
    AnthropicMessages,
    /// `generate_stream` of Text Generation Inference.
    TgiGenerateStream,
    /// An API described by the scenario: the request body, and the location of each value in an
    /// answer's events.
    Template,
    /// An API implemented by a component.
    Wasm,
}

impl ClientKind {
    /// All kinds, in the order of the documentation.
    pub const ALL: [ClientKind; 7] = [
        ClientKind::OpenaiChatCompletions,
        ClientKind::OpenaiCompletions,
        ClientKind::OpenaiResponses,
        ClientKind::AnthropicMessages,
        ClientKind::TgiGenerateStream,
        ClientKind::Template,
        ClientKind::Wasm,
    ];

    /// Returns the name in scenarios.
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

    /// Returns a one-line description.
    pub(crate) fn summary(self) -> &'static str {
        match self {
            ClientKind::OpenaiChatCompletions => "OpenAI's chat completions, streamed.",
            ClientKind::OpenaiCompletions => "OpenAI's completions, streamed.",
            ClientKind::OpenaiResponses => "OpenAI's responses, streamed.",
            ClientKind::AnthropicMessages => "Anthropic's messages, streamed.",
            ClientKind::TgiGenerateStream => "`generate_stream` of Text Generation Inference.",
            ClientKind::Template => {
                "An API described by the scenario: the request body, and the location of each value in an answer's events."
            }
            ClientKind::Wasm => "An API implemented by a component.",
        }
    }

    /// Returns the built-in API, which defines the defaults of path and length parameter; `None` if
    /// the scenario or a component defines the API.
    pub fn endpoint(self) -> Option<EndpointKind> {
        match self {
            ClientKind::OpenaiChatCompletions => Some(EndpointKind::ChatCompletions),
            ClientKind::OpenaiCompletions => Some(EndpointKind::Completions),
            ClientKind::OpenaiResponses => Some(EndpointKind::Responses),
            ClientKind::AnthropicMessages => Some(EndpointKind::AnthropicMessages),
            ClientKind::TgiGenerateStream => Some(EndpointKind::TgiGenerateStream),
            ClientKind::Template | ClientKind::Wasm => None,
        }
    }

    /// Returns the default of `ignore_eos`: none for servers that would refuse the member.
    pub fn default_ignore_eos(self) -> Option<bool> {
        match self {
            ClientKind::AnthropicMessages | ClientKind::TgiGenerateStream => None,
            _ => Some(true),
        }
    }
}

/// The server and the client's connection to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Client {
    /// The server API.
    #[serde(rename = "type")]
    pub kind: ClientKind,
    /// The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for
    /// the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
    pub api_base: Option<String>,
    /// The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that
    /// is unset too, no key is sent.
    pub api_key: Option<Secret>,
    /// The model's name. Null asks the server (`/models`) and takes the model that it serves.
    pub model: Option<String>,
    /// The path appended to `api_base` for a request.
    pub address_append_value: String,
    /// Maximum duration of a request in seconds, from the connection to the last chunk.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e8))]
    pub request_timeout: f64,
    /// Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON
    /// text.
    #[serde(deserialize_with = "parameters")]
    #[schemars(schema_with = "parameters_schema")]
    pub additional_sampling_params: Map<String, Json>,
    /// The request member that limits the answer's length; null sends none.
    pub max_tokens_param: Option<String>,
    /// The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends
    /// none.
    pub min_tokens_param: Option<String>,
    /// The value sent as `ignore_eos`: true makes a server that supports it generate to the full
    /// length; null sends none.
    pub ignore_eos: Option<bool>,
    /// The member of an assistant's message for its reasoning, in chat completions:
    /// `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null
    /// sends none.
    pub reasoning_param: Option<String>,
    /// True to ask for the answer's length in the prompt, for servers that support neither
    /// `ignore_eos` nor a minimum.
    pub use_min_tokens_prompt_fallback: bool,
    /// The text appended in that case; `{tokens}` is replaced by the number.
    pub min_tokens_prompt: String,
    /// Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`,
    /// `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without
    /// the label is sent without the header.
    pub headers: BTreeMap<String, String>,
    /// The headers by which a router or a server recognizes a session, with a session id that is
    /// unique across runs: one entry, or a list. `headers` override them.
    #[serde(deserialize_with = "one_or_several")]
    #[schemars(schema_with = "one_or_several_schema")]
    pub session_headers: Vec<SessionHeaders>,
    /// True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace
    /// id.
    pub traceparent: bool,
    /// Trust settings for an `https` server.
    pub tls: Tls,
    /// Several servers of one model, in place of `api_base`. Keys missing in an item default to
    /// those of the client.
    pub targets: Vec<TargetServer>,
    /// Assignment of sessions to several servers. All requests of a session go to the same one.
    pub balance: Balance,
    /// The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is
    /// known.
    pub prefix_cache: PrefixCacheKeys,
    /// Reuse of a connection after its request is complete.
    pub connections: Connections,
    /// The HTTP version. With `http2`, requests share connections; a plain `http` server must
    /// support it without negotiation.
    pub http_version: HttpVersion,
    /// Maximum time in seconds to open a connection, including the TLS handshake. Null: limited
    /// only by the request timeout. The default allows for four lost SYN packets, which Linux sends
    /// again after 1, 3, 7 and 15 seconds.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
    pub connect_timeout: Option<f64>,
    /// An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of
    /// the environment are ignored.
    pub proxy: Option<String>,
    /// Local addresses that connections start from, in turn. Each allows about 28,000 concurrent
    /// connections to one server; null leaves the choice to the system.
    pub source_addresses: Option<Vec<String>>,
    /// For `type: template`: the API description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
    /// For `type: wasm`: the component that implements the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec: Option<ComponentUse>,
    /// True to apply the model's chat template to count the tokens that it adds to a prompt; with
    /// the completions API, the templated prompt is also sent in place of the plain texts.
    pub apply_chat_template: bool,
    /// The file of the chat template. Null: the one next to the tokenizer (`tokenizer_config.json`,
    /// `chat_template.jinja`).
    pub chat_template: Option<PathBuf>,
    /// The text whose length a workload specifies.
    pub prompt_length: PromptLength,
    /// The tokenizer for prompts: a `tokenizer.json`, a model's folder, a name on the Hugging Face
    /// hub, or `embedded` for the small one inside the program. Null takes the model's tokenizer if
    /// it is found, else the embedded one.
    pub tokenizer: Option<String>,
}

/// Returns the profile in the address of a simulator (`sim://PROFILE`). Schemes are
/// case-insensitive.
pub(super) fn sim_profile(address: &str) -> Option<&str> {
    let (scheme, profile) = address.split_once("://")?;
    scheme.eq_ignore_ascii_case("sim").then_some(profile)
}

impl Client {
    /// Returns the profile of the built-in simulator, if this is the target.
    pub fn sim_profile(&self) -> Option<&str> {
        self.api_base.as_deref().and_then(sim_profile)
    }

    /// Returns true if the target is the built-in simulator.
    pub fn is_simulated(&self) -> bool {
        self.sim_profile().is_some()
    }

    /// Returns the maximum duration of one request.
    pub fn deadline(&self) -> Duration {
        Duration::try_from_secs_f64(self.request_timeout).unwrap_or(Duration::MAX)
    }

    /// Returns the maximum time to open a connection; `None`: limited only by the request timeout.
    pub fn connect_deadline(&self) -> Option<Duration> {
        self.connect_timeout
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// Returns the addresses that connections start from; empty: the system's choice. The rules
    /// have verified that they are addresses.
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
        let endpoint = EndpointKind::default();
        Client {
            kind,
            api_base: None,
            api_key: None,
            model: None,
            address_append_value: endpoint.default_path().to_owned(),
            request_timeout: 300.0,
            additional_sampling_params: Map::new(),
            max_tokens_param: endpoint.default_max_tokens_param().map(str::to_owned),
            min_tokens_param: None,
            ignore_eos: kind.default_ignore_eos(),
            reasoning_param: Some(DEFAULT_REASONING_PARAM.to_owned()),
            use_min_tokens_prompt_fallback: false,
            min_tokens_prompt: "\n\nGenerate at least {tokens} tokens.".to_owned(),
            headers: BTreeMap::new(),
            session_headers: Vec::new(),
            traceparent: false,
            tls: Tls::default(),
            targets: Vec::new(),
            balance: Balance::default(),
            prefix_cache: PrefixCacheKeys::default(),
            connections: Connections::default(),
            http_version: HttpVersion::default(),
            connect_timeout: Some(30.0),
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

/// The text whose length a workload specifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PromptLength {
    /// The messages alone. The tokens of the chat template come on top.
    #[default]
    Content,
    /// The messages including the tokens that the chat template adds.
    Wrapped,
}

/// Trust settings for an `https` server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tls {
    /// A PEM file of certificates to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Accepts any certificate. For tests only: the API key is unprotected.
    pub insecure: bool,
    /// A PEM file with the client's certificate, for servers that require one. Needs `client_key`.
    pub client_certificate: Option<PathBuf>,
    /// A PEM file with the certificate's private key.
    pub client_key: Option<PathBuf>,
}

/// The properties of a server's prefix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrefixCacheKeys {
    /// The number of tokens that the cache keeps together: the block size of vLLM (16), the page
    /// size of SGLang (1), 128 for OpenAI. Null: unknown, and taken as 1.
    #[schemars(range(min = 1, max = 65536))]
    pub block_tokens: Option<u32>,
    /// True if the cache also keeps the tokens of answers, as those of vLLM, SGLang and
    /// TensorRT-LLM do.
    pub keeps_answers: bool,
    /// True if the server leaves out the number of cached tokens where it is 0: answers with a
    /// usage and without the number then have 0.
    pub omits_zero: bool,
}

impl Default for PrefixCacheKeys {
    fn default() -> Self {
        PrefixCacheKeys {
            block_tokens: None,
            keeps_answers: true,
            omits_zero: false,
        }
    }
}

/// One of several servers. Missing keys default to those of `client`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetServer {
    /// The server's address up to the version.
    pub api_base: String,
    /// The key sent to this server.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// Additional headers of requests to this server, as those of `client`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Trust settings for this server.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// The proxy for this server.
    #[serde(default)]
    pub proxy: Option<String>,
}

/// Assignment of sessions to several servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Balance {
    /// Servers in turn, one session each.
    #[default]
    RoundRobin,
    /// The server with the fewest requests in flight when the session begins.
    LeastInFlight,
}

/// Reuse of a connection after its request is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Connections {
    /// It serves the next request of any session.
    #[default]
    Pooled,
    /// It serves the next request of the same session, and is closed when the session is idle for a
    /// while.
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

/// An API description: the request body, and the location of each value in an answer's events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Template {
    /// The request's body. A text `{{prompt}}`, `{{messages}}`, `{{model}}`, `{{max_tokens}}`,
    /// `{{tools}}` and others is replaced by the request's value; a member whose text has no value
    /// is omitted.
    #[schemars(schema_with = "anything_schema")]
    pub request: Json,
    /// Framing of an answer's events.
    #[serde(default)]
    pub framing: TemplateFraming,
    /// Locations of values in an event.
    pub answer: TemplateAnswer,
}

/// Framing of an answer's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum TemplateFraming {
    /// Server-sent events.
    #[default]
    EventStream,
    /// One JSON value per line.
    Lines,
    /// The whole body is one JSON value.
    Whole,
}

/// Locations of values in an answer's events: JSON pointers, in which `*` is every element of a
/// list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TemplateAnswer {
    /// The generated text, for example `/token/text`.
    pub text: Option<String>,
    /// Reasoning text.
    pub reasoning: Option<String>,
    /// The reason why generation ended. An answer without it counts as truncated.
    pub finish_reason: Option<String>,
    /// The server's count of prompt tokens.
    pub prompt_tokens: Option<String>,
    /// The server's count of generated tokens.
    pub output_tokens: Option<String>,
    /// Prompt tokens found in the prefix cache.
    pub cached_tokens: Option<String>,
    /// Generated tokens that were reasoning.
    pub reasoning_tokens: Option<String>,
    /// The message of an error inside an answer.
    pub error: Option<String>,
    /// The data of the event that ends an answer, for example `[DONE]`.
    pub done: Option<String>,
}

/// Veeksha expects JSON text; a table is accepted too.
fn parameters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Json>, D::Error> {
    match Json::deserialize(deserializer)? {
        Json::Object(map) => Ok(map),
        // Text that does not parse is reported by the rules, with its place.
        Json::String(text) => Ok(parse_parameters(&text).unwrap_or_default()),
        _ => Err(serde::de::Error::custom("expected a table")),
    }
}

/// Parses the text form; blank text means no parameters.
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
