//! The server, and how it is spoken to.

use std::collections::BTreeMap;
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
}

impl ClientKind {
    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            ClientKind::OpenaiChatCompletions => "openai_chat_completions",
            ClientKind::OpenaiCompletions => "openai_completions",
        }
    }

    /// What is appended to the server's address.
    pub fn default_path(self) -> &'static str {
        match self {
            ClientKind::OpenaiChatCompletions => "chat/completions",
            ClientKind::OpenaiCompletions => "completions",
        }
    }

    /// The member of the request that limits the answer's length.
    pub fn default_max_tokens_param(self) -> &'static str {
        match self {
            ClientKind::OpenaiChatCompletions => "max_completion_tokens",
            ClientKind::OpenaiCompletions => "max_tokens",
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
            max_tokens_param: Some(kind.default_max_tokens_param().to_owned()),
            min_tokens_param: None,
            ignore_eos: Some(true),
            use_min_tokens_prompt_fallback: false,
            min_tokens_prompt: "\n\nGenerate at least {tokens} tokens.".to_owned(),
            headers: BTreeMap::new(),
            tls: Tls::default(),
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

fn parameters_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"anyOf": [
        {"type": "object", "additionalProperties": true},
        {"type": "string"},
    ]})
}
