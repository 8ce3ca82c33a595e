//! Mooncake's rows, with the columns that Dynamo added for sessions.

use serde::Serialize;
use serde_json::Number;
use veeksha_model::Request;

use super::length_formats::json;
use super::losses;
use super::{Chain, Converter, SourceSession, as_pieces, milliseconds};
use crate::blocks::blocks;
use crate::conversation::output_tokens;
use crate::convert::error::ConvertError;

#[derive(Serialize)]
struct MooncakeRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_for: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Number>,
    input_length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_length: Option<u32>,
    hash_ids: Vec<u64>,
}

impl Converter {
    /// Writes a row for each request, with its whole prompt. A session of one request has no id. In
    /// a linear session each request waits for the preceding row; only in others do rows name the
    /// ones they wait for (the history parent first).
    pub(super) fn mooncake(&mut self, source: &SourceSession<'_>) -> Result<Vec<String>, ConvertError> {
        let turns = &source.conversation.turns;
        let graph = source.check_chain(Chain::OfRequests).is_err();
        let mut prompts = Vec::with_capacity(turns.len());
        for (place, turn) in turns.iter().enumerate() {
            let prompt = source.conversation.prompt(place);
            prompts.push((source.tokens(turn.request, &prompt)?, prompt));
        }
        let mut rows = Vec::with_capacity(turns.len());
        for (turn, (input_length, prompt)) in turns.iter().zip(prompts) {
            let request = turn.request;
            let cut = blocks(&prompt, self.block_size);
            let waits = !request.parents.is_empty() || request.wait_after_ready > 0;
            let output_length = output_tokens(request, source.count);
            rows.push(json(&MooncakeRow {
                timestamp: source.instant(request).map(milliseconds),
                session_id: (turns.len() > 1).then(|| source.index.to_string()),
                request_id: graph.then(|| request.node.to_string()),
                wait_for: graph.then(|| wait_for(request)),
                delay: waits.then(|| milliseconds(request.wait_after_ready)),
                input_length,
                output_length,
                hash_ids: self.hash_ids(&cut),
            }));
            self.lose_content(request);
            let recorded = request
                .replay
                .as_ref()
                .and_then(|replay| replay.recorded.prompt_tokens);
            let other = recorded.is_some_and(|tokens| u64::from(tokens) != input_length);
            self.losses.add(losses::RECORDED_LENGTH, other);
            self.lose_sharing(losses::FINE_SHARING, &prompt, &as_pieces(&cut));
        }
        Ok(rows)
    }
}

/// The flavor continues the conversation of the first one.
fn wait_for(request: &Request) -> Vec<String> {
    let others = request
        .parents
        .iter()
        .map(|edge| edge.parent)
        .filter(|parent| Some(*parent) != request.history_parent);
    let parents = request.history_parent.into_iter().chain(others);
    parents.map(|parent| parent.to_string()).collect()
}
