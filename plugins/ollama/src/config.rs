//! The configuration.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The endpoint codec `ollama`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Which of the two APIs is spoken.
    pub api: Api,
    /// The time that the server keeps the model in memory after a request: `5m`, `-1s` for ever.
    /// Left to the server if it is absent.
    pub keep_alive: Option<String>,
    /// True if a model that can reason does. Left to the server if absent.
    pub think: Option<Think>,
    /// Only with `generate`: the prompt is sent to the model as it is, without the server's
    /// template.
    pub raw: bool,
    /// Ollama's options of a model, such as `temperature` or `num_ctx`. `num_predict` is the
    /// host's: it is the length asked for.
    pub options: Map<String, Value>,
}

/// An API of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `/api/chat`: messages, with the roles of those who speak.
    #[default]
    Chat,
    /// `/api/generate`: one text.
    Generate,
}

/// The amount of reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// Not at all.
    Off,
    /// As the model does by itself.
    On,
    /// Little; for models that know levels.
    Low,
    /// More; for models that know levels.
    Medium,
    /// Much; for models that know levels.
    High,
}
