//! The request bodies of each API: the keys that matter here.

use serde::Deserialize;
use serde_json::Value;

use crate::tools::tool_of;

use super::prompt::{BodyMessage, MessageContent, render};
use crate::server::completion::{Completion, PromptText, exact};
use crate::server::delivery_mode::DeliveryMode;

/// Chat completions and completions.
#[derive(Debug, Deserialize)]
pub(super) struct OpenAiBody {
    model: Option<String>,
    messages: Option<Vec<BodyMessage>>,
    prompt: Option<Prompt>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    min_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    n: Option<u32>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Texts(Vec<String>),
}

impl OpenAiBody {
    pub(super) fn chat(mut self) -> Result<Completion, String> {
        let messages = self.messages.take().ok_or("messages is missing")?;
        let tool = tool_of(self.tools.as_deref(), self.tool_choice.as_ref());
        let prompt = PromptText::Text(render(self.tools.as_deref(), messages, "messages")?);
        self.completion(prompt, tool)
    }

    pub(super) fn text(mut self) -> Result<Completion, String> {
        let prompt = match self.prompt.take().ok_or("prompt is missing")? {
            Prompt::Text(text) => PromptText::Text(text),
            Prompt::Ids(ids) => PromptText::Ids(ids),
            Prompt::Texts(mut texts) => match (texts.pop(), texts.is_empty()) {
                (Some(text), true) => PromptText::Text(text),
                _ => {
                    return Err("prompt must be one text: the simulator does not accept lists".into());
                }
            },
        };
        self.completion(prompt, None)
    }

    fn completion(self, prompt: PromptText, tool: Option<String>) -> Result<Completion, String> {
        if self.n.is_some_and(|n| n != 1) {
            return Err("n must be 1: the simulator gives one answer per request".into());
        }
        let max_tokens = self.max_completion_tokens.or(self.max_tokens);
        let stream = self.stream.unwrap_or(false);
        Ok(Completion {
            model: self.model,
            delivery: if !stream {
                DeliveryMode::Whole
            } else if self.stream_options.unwrap_or_default().include_usage {
                DeliveryMode::StreamWithUsage
            } else {
                DeliveryMode::Stream
            },
            prompt,
            max_tokens,
            tool,
            details: false,
            exact: exact(self.ignore_eos, self.min_tokens, max_tokens)?,
        })
    }
}

/// These APIs always send the token counts.
fn delivery(stream: bool) -> DeliveryMode {
    if stream {
        DeliveryMode::StreamWithUsage
    } else {
        DeliveryMode::Whole
    }
}

/// OpenAI's responses.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesBody {
    model: Option<String>,
    input: Option<ResponsesInput>,
    instructions: Option<String>,
    stream: Option<bool>,
    max_output_tokens: Option<u32>,
    min_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ResponsesInput {
    Text(String),
    Items(Vec<BodyMessage>),
}

impl ResponsesBody {
    pub(super) fn completion(self) -> Result<Completion, String> {
        let mut messages: Vec<BodyMessage> = self
            .instructions
            .map(|text| BodyMessage::new("system", text))
            .into_iter()
            .collect();
        match self.input.ok_or("input is missing")? {
            ResponsesInput::Text(text) => messages.push(BodyMessage::new("user", text)),
            ResponsesInput::Items(items) => messages.extend(items),
        }
        Ok(Completion {
            model: self.model,
            delivery: delivery(self.stream.unwrap_or(false)),
            prompt: PromptText::Text(render(self.tools.as_deref(), messages, "input")?),
            max_tokens: self.max_output_tokens,
            tool: tool_of(self.tools.as_deref(), self.tool_choice.as_ref()),
            details: false,
            exact: exact(self.ignore_eos, self.min_tokens, self.max_output_tokens)?,
        })
    }
}

/// Anthropic's messages.
#[derive(Debug, Deserialize)]
pub(super) struct MessagesBody {
    model: Option<String>,
    messages: Option<Vec<BodyMessage>>,
    system: Option<MessageContent>,
    stream: Option<bool>,
    max_tokens: Option<u32>,
    min_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
}

impl MessagesBody {
    pub(super) fn completion(self) -> Result<Completion, String> {
        let mut messages: Vec<BodyMessage> = self
            .system
            .map(|content| BodyMessage::with_parts("system", content))
            .into_iter()
            .collect();
        messages.extend(self.messages.ok_or("messages is missing")?);
        if self.max_tokens.is_none() {
            return Err("max_tokens is missing: this API needs it".into());
        }
        Ok(Completion {
            model: self.model,
            delivery: delivery(self.stream.unwrap_or(false)),
            prompt: PromptText::Text(render(self.tools.as_deref(), messages, "messages")?),
            max_tokens: self.max_tokens,
            tool: tool_of(self.tools.as_deref(), self.tool_choice.as_ref()),
            details: false,
            exact: exact(self.ignore_eos, self.min_tokens, self.max_tokens)?,
        })
    }
}

/// TGI's `/generate` and `/generate_stream`.
#[derive(Debug, Deserialize)]
pub(super) struct GenerateBody {
    model: Option<String>,
    inputs: Option<String>,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    max_new_tokens: Option<u32>,
    min_new_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    #[serde(default)]
    details: bool,
}

/// TGI's default limit of generated tokens.
const TGI_TOKENS: u32 = 100;

impl GenerateBody {
    pub(super) fn completion(self, delivery: DeliveryMode) -> Result<Completion, String> {
        let parameters = self.parameters;
        let max_tokens = Some(parameters.max_new_tokens.unwrap_or(TGI_TOKENS));
        Ok(Completion {
            model: self.model,
            delivery,
            prompt: PromptText::Text(self.inputs.ok_or("inputs is missing")?),
            max_tokens,
            tool: None,
            details: parameters.details,
            exact: exact(parameters.ignore_eos, parameters.min_new_tokens, max_tokens)?,
        })
    }
}

/// Ollama's `/api/generate`.
#[derive(Debug, Deserialize)]
pub(super) struct OllamaBody {
    model: Option<String>,
    prompt: Option<String>,
    system: Option<String>,
    stream: Option<bool>,
    #[serde(default)]
    options: OllamaOptions,
}

#[derive(Debug, Default, Deserialize)]
struct OllamaOptions {
    /// Negative: no limit.
    num_predict: Option<i64>,
    min_tokens: Option<u32>,
    ignore_eos: Option<bool>,
}

impl OllamaBody {
    pub(super) fn completion(self) -> Result<Completion, String> {
        let mut prompt = self.system.map_or_else(String::new, |system| system + "\n");
        prompt.push_str(&self.prompt.ok_or("prompt is missing")?);
        let options = self.options;
        let max_tokens = options.num_predict.and_then(|limit| u32::try_from(limit).ok());
        Ok(Completion {
            model: self.model,
            delivery: delivery(self.stream.unwrap_or(true)),
            prompt: PromptText::Text(prompt),
            max_tokens,
            tool: None,
            details: false,
            exact: exact(options.ignore_eos, options.min_tokens, max_tokens)?,
        })
    }
}
