//! How one target is spoken to: everything that a request's body depends on besides the request.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use veeksha_model::Role;

use crate::endpoint_kind::EndpointKind;

/// Makes one text of a conversation, as the model's chat template does: who speaks and what is said, in order. The error is one
/// line for a person.
pub type RenderConversation = Arc<dyn Fn(&[(Role, &str)]) -> Result<String, String> + Send + Sync>;

/// What a request's body depends on besides the request.
#[derive(Clone)]
pub struct Api {
    /// Which API is spoken.
    pub endpoint: EndpointKind,
    /// The `model` field of every request.
    pub model: String,
    /// The field that limits the answer's tokens (usually [`EndpointKind::default_max_tokens_param`]); `None`: never sent.
    pub max_tokens_param: Option<String>,
    /// The field that asks for at least as many tokens; `None`: never sent. Only requests whose output is exact carry it.
    pub min_tokens_param: Option<String>,
    /// Value of `ignore_eos`; `None`: the field is left out. Only requests whose output is exact carry it.
    pub ignore_eos: Option<bool>,
    /// Fields added to every request body (Veeksha's `additional_sampling_params`); they win over the host's own.
    pub sampling: Map<String, Value>,
    /// Whether the stream is asked for token counts (`stream_options.include_usage`).
    pub stream_options: bool,
    /// For [`EndpointKind::Completions`]: the conversation as one text; `None`: its texts, joined with line feeds. It runs on the
    /// client thread before the request is sent, because a conversation has answers that were not known earlier; it belongs to
    /// the time before the send, not to any latency. A conversation of 20 messages of 200 tokens takes a template of the usual size
    /// some 25 us on one core.
    pub render: Option<RenderConversation>,
}

impl Api {
    /// Checks [`Api::sampling`].
    ///
    /// # Errors
    /// If it has a parameter that would make the measurement wrong; the message names it.
    pub fn check_sampling(&self) -> Result<(), String> {
        check_choices(&self.endpoint, self.sampling.get("n"))
    }
}

/// Refuses several choices per request. Only the first one's chunks are measured, while some servers
/// count the tokens of all of them (vLLM): every figure per token would be wrong by a factor of `n`.
pub(crate) fn check_choices(endpoint: &EndpointKind, n: Option<&Value>) -> Result<(), String> {
    let has_choices = matches!(
        endpoint,
        EndpointKind::ChatCompletions | EndpointKind::Completions
    );
    match n.filter(|n| has_choices && !n.is_null() && n.as_f64() != Some(1.0)) {
        Some(n) => Err(format!(
            "`n` = {n} is not supported: only one choice per request is measured; remove `n` and send more requests"
        )),
        None => Ok(()),
    }
}

impl Default for Api {
    /// Chat completions with token counts, and nothing else stated.
    fn default() -> Self {
        Api {
            endpoint: EndpointKind::default(),
            model: String::new(),
            max_tokens_param: EndpointKind::default()
                .default_max_tokens_param()
                .map(str::to_owned),
            min_tokens_param: None,
            ignore_eos: None,
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
            .field("sampling", &self.sampling)
            .field("stream_options", &self.stream_options)
            .field("render", &self.render.is_some())
            .finish()
    }
}
