//! API settings of a target: the inputs of a request's body other than the request.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use veeksha_model::Role;

use crate::endpoint_kind::EndpointKind;

/// Renders a conversation as one text, like the model's chat template. The input is the roles and
/// texts in order. The error is a one-line message.
pub type RenderConversation = Arc<dyn Fn(&[(Role, &str)]) -> Result<String, String> + Send + Sync>;

/// The usual value of [`Api::reasoning_param`]: the name that most servers read.
pub const DEFAULT_REASONING_PARAM: &str = "reasoning_content";

/// Inputs of a request's body other than the request.
#[derive(Clone)]
pub struct Api {
    /// The API of the target.
    pub endpoint: EndpointKind,
    /// The `model` field of every request.
    pub model: String,
    /// The field that limits the answer's tokens (usually
    /// [`EndpointKind::default_max_tokens_param`]); `None`: never sent.
    pub max_tokens_param: Option<String>,
    /// The field that sets a minimum number of tokens; `None`: never sent. Only sent with requests
    /// of an exact output length.
    pub min_tokens_param: Option<String>,
    /// Value of `ignore_eos`; `None`: the field is omitted. Only sent with requests of an exact
    /// output length.
    pub ignore_eos: Option<bool>,
    /// The member for the reasoning of an assistant's message, in chat completions and in
    /// templates; `None`: never sent.
    pub reasoning_param: Option<String>,
    /// Fields added to every request body (Veeksha's `additional_sampling_params`). They override
    /// the host's fields.
    pub sampling: Map<String, Value>,
    /// True to request token counts in the stream (`stream_options.include_usage`).
    pub stream_options: bool,
    /// For [`EndpointKind::Completions`]: renders the conversation as one text; `None`: its texts,
    /// joined with line feeds. Runs on the client thread before the request is sent, because a
    /// conversation contains answers that were not known earlier. Its time precedes the send and is
    /// not part of any latency. Rendering 20 messages of 200 tokens with a typical template takes
    /// about 25 us on one core.
    pub render: Option<RenderConversation>,
}

impl Api {
    /// Checks [`Api::sampling`].
    ///
    /// # Errors
    /// If it contains a parameter that would invalidate the measurement. The message names the
    /// parameter.
    pub fn check_sampling(&self) -> Result<(), String> {
        check_choices(&self.endpoint, |name| self.sampling.get(name).cloned())
    }
}

/// Refuses several choices per request: `n`, and `best_of`, which has the server generate choices
/// that it does not return. Only one choice's chunks are measured, while some servers count the
/// tokens of all of them (vLLM): every per-token metric would be wrong by that factor. `parameter`
/// returns the value of a parameter of the request.
pub(crate) fn check_choices(
    endpoint: &EndpointKind,
    parameter: impl Fn(&str) -> Option<Value>,
) -> Result<(), String> {
    let names: &[&str] = match endpoint {
        EndpointKind::ChatCompletions | EndpointKind::Completions => &["n", "best_of"],
        EndpointKind::TgiGenerateStream => &["best_of"],
        // The names may have another meaning.
        EndpointKind::Responses | EndpointKind::AnthropicMessages | EndpointKind::Template(_) => &[],
    };
    for name in names {
        match parameter(name) {
            Some(value) if !value.is_null() && value.as_f64() != Some(1.0) => {
                return Err(format!(
                    "`{name}` = {value} is not supported: only one choice per request is measured; remove `{name}` and send more requests"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Default for Api {
    /// Returns chat completions with token counts, and no other settings.
    fn default() -> Self {
        Api {
            endpoint: EndpointKind::default(),
            model: String::new(),
            max_tokens_param: EndpointKind::default()
                .default_max_tokens_param()
                .map(str::to_owned),
            min_tokens_param: None,
            ignore_eos: None,
            reasoning_param: Some(DEFAULT_REASONING_PARAM.to_owned()),
            sampling: Map::new(),
            stream_options: true,
            render: None,
        }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("endpoint", &self.endpoint)
            .field("model", &self.model)
            .field("max_tokens_param", &self.max_tokens_param)
            .field("min_tokens_param", &self.min_tokens_param)
            .field("ignore_eos", &self.ignore_eos)
            .field("reasoning_param", &self.reasoning_param)
            .field("sampling", &self.sampling)
            .field("stream_options", &self.stream_options)
            .field("render", &self.render.is_some())
            .finish()
    }
}
