//! A valid request, independent of its API.

use crate::engine::EngineRequest;
use crate::text::blocks_of;

use super::delivery_mode::DeliveryMode;

/// A prompt whose length is not known yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptText {
    Text(String),
    Ids(Vec<u32>),
}

/// A valid request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) model: Option<String>,
    pub(super) delivery: DeliveryMode,
    pub(super) prompt: PromptText,
    pub(super) max_tokens: Option<u32>,
    /// The tool that must be called.
    pub(super) tool: Option<String>,
    /// True if TGI's details are requested.
    pub(super) details: bool,
    /// True if the answer has exactly `max_tokens` tokens.
    pub(super) exact: bool,
}

impl Completion {
    /// Converts to an engine request; the driver sets its id.
    pub(super) fn into_engine_request(self, tokens: Vec<u32>, block_size: u32) -> EngineRequest {
        EngineRequest {
            id: 0,
            prompt_tokens: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            blocks: blocks_of(tokens.into_iter().map(u64::from), block_size),
            max_tokens: self.max_tokens,
            exact: self.exact,
        }
    }

    /// Converts to an engine request with a number of prompt tokens that are not identified.
    pub(super) fn into_counted_request(self, tokens: u32) -> EngineRequest {
        EngineRequest {
            id: 0,
            prompt_tokens: tokens,
            blocks: Vec::new(),
            max_tokens: self.max_tokens,
            exact: self.exact,
        }
    }
}

/// Returns true if the answer must have exactly `max_tokens` tokens; the error is a message for the
/// client.
pub(super) fn exact(
    ignore_eos: Option<bool>,
    min_tokens: Option<u32>,
    max_tokens: Option<u32>,
) -> Result<bool, String> {
    if ignore_eos.unwrap_or(false) {
        return Ok(true);
    }
    let min_tokens = min_tokens.unwrap_or(0);
    match max_tokens {
        _ if min_tokens == 0 => Ok(false),
        Some(max) if min_tokens == max => Ok(true),
        Some(max) if min_tokens > max => {
            Err(format!("min_tokens is {min_tokens}, more than max_tokens, {max}"))
        }
        _ => Err(
            "min_tokens must equal max_tokens: the simulator draws other lengths; \
                  set ignore_eos for an exact length"
                .into(),
        ),
    }
}
