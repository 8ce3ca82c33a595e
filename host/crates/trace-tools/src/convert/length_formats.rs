//! Formats of lengths without hash ids, and `shared_prefix`, which has them for the first prompt of
//! a session.

use serde::Serialize;
use veeksha_model::{HistoryMode, seconds};
use veeksha_prefix::PrefixPiece;

use super::losses;
use super::{Chain, Converter, SourceSession, as_pieces};
use crate::blocks::blocks;
use crate::conversation::length;
use crate::convert::error::ConvertError;
use crate::convert::format::TargetFormat;

#[derive(Serialize)]
struct RequestLogRow {
    /// Not `timestamp`, which is in milliseconds in other formats with the same columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    arrived_at: Option<f64>,
    input_length: u64,
    output_length: u32,
}

#[derive(Serialize)]
struct TimedRow {
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<f64>,
    input_length: u64,
    new_input_length: u64,
    output_length: u32,
    session_context: Context,
}

#[derive(Serialize)]
struct Context {
    node_id: u32,
    parent_nodes: Vec<u32>,
    history_parent: Option<u32>,
    wait_after_ready: f64,
}

#[derive(Serialize)]
struct SharedPrefixRow {
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_after_previous_response_s: Option<f64>,
    input_length: u64,
    new_input_length: u64,
    output_length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_ids: Option<Vec<u64>>,
}

impl Converter {
    pub(super) fn request_log(&mut self, source: &SourceSession<'_>) -> Result<Vec<String>, ConvertError> {
        let mut rows = Vec::new();
        for (place, turn) in source.conversation.turns.iter().enumerate() {
            let request = turn.request;
            let prompt = source.conversation.prompt(place);
            rows.push(RequestLogRow {
                arrived_at: source.instant(request).map(seconds),
                input_length: source.tokens(request, &prompt)?,
                output_length: source.output(request)?,
            });
        }
        for (place, turn) in source.conversation.turns.iter().enumerate() {
            let request = turn.request;
            self.lose_content(request);
            self.lose_empty_answer(source, request);
            self.losses.add(losses::EDGES, !request.parents.is_empty());
            self.losses.add(losses::THINK_TIMES, request.wait_after_ready > 0);
            self.lose_sharing(losses::SHARING, &source.conversation.prompt(place), &[]);
        }
        let written = rows.iter().map(|row| match self.to {
            TargetFormat::RequestLogCsv => {
                let arrived_at = row
                    .arrived_at
                    .map(|seconds| seconds.to_string())
                    .unwrap_or_default();
                format!("{arrived_at},{},{}", row.input_length, row.output_length)
            }
            _ => json(row),
        });
        Ok(written.collect())
    }

    pub(super) fn timed_synthetic_session(
        &mut self,
        source: &SourceSession<'_>,
    ) -> Result<Vec<String>, ConvertError> {
        let mut rows = Vec::new();
        let mut prompts: Vec<Vec<PrefixPiece>> = Vec::new();
        for (place, turn) in source.conversation.turns.iter().enumerate() {
            let request = turn.request;
            let prompt = source.conversation.prompt(place);
            let new_input_length = source.tokens(request, &turn.new)?;
            let recorded = request
                .replay
                .as_ref()
                .and_then(|replay| replay.recorded.prompt_tokens);
            // The recorded length of the whole prompt is kept, unless it is less than the new part.
            let recorded = recorded
                .map(u64::from)
                .filter(|tokens| *tokens >= new_input_length);
            let history = request
                .history_parent
                .filter(|_| request.history_mode() != HistoryMode::Fresh);
            rows.push(json(&TimedRow {
                session_id: source.index.to_string(),
                timestamp: source.instant(request).map(seconds),
                input_length: recorded.unwrap_or_else(|| length(&prompt)),
                new_input_length,
                output_length: source.output(request)?,
                session_context: Context {
                    node_id: request.node.0,
                    parent_nodes: request.parents.iter().map(|edge| edge.parent.0).collect(),
                    history_parent: history.map(|parent| parent.0),
                    wait_after_ready: seconds(request.wait_after_ready),
                },
            }));
            prompts.push(prompt);
        }
        for (place, prompt) in prompts.iter().enumerate() {
            let turn = &source.conversation.turns[place];
            self.lose_content(turn.request);
            self.lose_empty_answer(source, turn.request);
            // The history is kept as text unique to the session, represented by its length.
            let kept = source.conversation.prompt_of_its_own(place, source.index);
            self.lose_sharing(losses::SHARING, prompt, &kept);
        }
        Ok(rows)
    }

    pub(super) fn shared_prefix(&mut self, source: &SourceSession<'_>) -> Result<Vec<String>, ConvertError> {
        source.check_chain(Chain::OfTurns)?;
        let mut rows = Vec::new();
        for (place, turn) in source.conversation.turns.iter().enumerate() {
            let request = turn.request;
            let prompt = source.conversation.prompt(place);
            let new_input_length = source.tokens(request, &turn.new)?;
            let output_length = source.output(request)?;
            let wait = (place > 0).then_some(request.wait_after_ready);
            rows.push((
                SharedPrefixRow {
                    session_id: source.index.to_string(),
                    timestamp: source.instant(request).map(seconds),
                    wait_after_previous_response_s: wait.map(seconds),
                    input_length: length(&prompt),
                    new_input_length,
                    output_length,
                    hash_ids: None,
                },
                prompt,
            ));
        }
        let mut first = Vec::new();
        for (place, (row, prompt)) in rows.iter_mut().enumerate() {
            let request = source.conversation.turns[place].request;
            self.lose_content(request);
            self.lose_empty_answer(source, request);
            if place == 0 {
                let cut = blocks(prompt, self.block_size);
                row.hash_ids = Some(self.hash_ids(&cut));
                first = as_pieces(&cut);
                self.lose_sharing(losses::FINE_SHARING, prompt, &first);
                self.losses.add(losses::FIRST_WAIT, request.wait_after_ready > 0);
            } else {
                let own = source.conversation.prompt_of_its_own(place, source.index);
                let kept: Vec<PrefixPiece> = first.iter().copied().chain(own.into_iter().skip(1)).collect();
                self.lose_sharing(losses::SHARING, prompt, &kept);
            }
        }
        Ok(rows.iter().map(|(row, _)| json(row)).collect())
    }
}

pub(super) fn json(row: &impl Serialize) -> String {
    // Rows are structs of numbers and text, which always have a JSON form.
    serde_json::to_string(row).unwrap_or_default()
}
