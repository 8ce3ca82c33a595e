//! Finished requests as tables of a test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_model::{Chunk, ChunkKind, Nanos, NodeId, RequestId, RequestRecord, SessionId, Status, Usage};

use crate::play::failure_class;

/// Maximum number of chunks of a request.
const MAX_CHUNKS: u32 = 100_000;

/// A finished request. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RequestInput {
    /// The session. Default: the position in the list.
    pub(crate) session: Option<u64>,
    /// The node in the session.
    pub(crate) node: u32,
    /// The instant at which it was due and sent.
    pub(crate) at: f64,
    /// The time from `at` to the first chunk.
    pub(crate) ttfc: Option<f64>,
    /// The time between two chunks.
    pub(crate) gap: Option<f64>,
    /// The times from `at` to each chunk, in place of `ttfc` and `gap`.
    pub(crate) chunks: Vec<f64>,
    /// The time from `at` to the end. Default: that of the last chunk.
    pub(crate) latency: Option<f64>,
    /// Tokens of the answer. Default: the number of chunks.
    pub(crate) output_tokens: Option<u32>,
    /// Tokens of the prompt.
    pub(crate) prompt_tokens: u32,
    /// Prompt tokens that the server's cache had.
    pub(crate) cached_tokens: Option<u32>,
    /// The reason why generation ended.
    pub(crate) finish: Option<String>,
    /// `ok`, `failed` or `cancelled` (by the workload). Default: `ok`; `failed` with `error`.
    pub(crate) status: Option<StatedOutcome>,
    /// The class of the failure: `status`, `timeout`, …
    pub(crate) error: Option<String>,
    /// The HTTP status.
    pub(crate) http_status: Option<u16>,
    /// The labels of the request.
    pub(crate) labels: BTreeMap<String, String>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StatedOutcome {
    /// It was answered.
    Ok,
    /// It failed.
    Failed,
    /// Its workload cancelled it.
    Cancelled,
}

fn nanos(seconds: f64) -> Nanos {
    // Saturates at both ends.
    (seconds * 1e9).round() as Nanos
}

impl RequestInput {
    /// Returns the times of the chunks after `at`, in seconds.
    fn chunk_times(&self) -> Vec<f64> {
        if !self.chunks.is_empty() {
            return self.chunks.clone();
        }
        let Some(first) = self.ttfc else { return Vec::new() };
        let count = self.output_tokens.unwrap_or(1).clamp(1, MAX_CHUNKS);
        let gap = self.gap.unwrap_or(0.0);
        (0..count).map(|index| first + f64::from(index) * gap).collect()
    }

    /// Returns the record of the request. `index` is its position in the list.
    pub(crate) fn record(&self, index: usize) -> Result<RequestRecord, String> {
        let at = nanos(self.at);
        let times = self.chunk_times();
        let end = self.latency.or(times.last().copied()).unwrap_or(0.0);
        let chunk = |time: &f64| Chunk {
            at: at.saturating_add(nanos(*time)),
            lag: 0,
            bytes: 1,
            kind: ChunkKind::Content,
            merged: false,
        };
        let output_tokens = self.output_tokens.unwrap_or(times.len() as u32);
        let completed_at = at.saturating_add(nanos(end));
        Ok(RequestRecord {
            intended: at,
            dispatched_at: at,
            picked_up_at: Some(at),
            sent_at: Some(at),
            first_byte_at: times.first().map(|time| at.saturating_add(nanos(*time))),
            completed_at,
            processed_at: completed_at,
            chunks: times.iter().map(chunk).collect(),
            status: self.status()?,
            http_status: self.http_status.or(Some(200)),
            target_prompt_tokens: self.prompt_tokens,
            prompt_tokens: self.prompt_tokens,
            total_prompt_tokens: self.prompt_tokens,
            target_output_tokens: Some(output_tokens),
            output_tokens,
            usage: Some(Usage {
                prompt: self.prompt_tokens,
                completion: output_tokens,
                cached: self.cached_tokens,
                reasoning: None,
            }),
            labels: self.labels.clone().into_iter().collect(),
            ..RequestRecord::answered(RequestId {
                session: SessionId(self.session.unwrap_or(index as u64)),
                node: NodeId(self.node),
            })
        })
    }

    fn status(&self) -> Result<Status, String> {
        let default = match self.error {
            Some(_) => StatedOutcome::Failed,
            None => StatedOutcome::Ok,
        };
        Ok(match self.status.unwrap_or(default) {
            StatedOutcome::Ok => Status::Ok {
                finish_reason: self.finish.clone().unwrap_or_else(|| "stop".to_owned()),
            },
            StatedOutcome::Cancelled => Status::CancelledByClient,
            StatedOutcome::Failed => Status::Failed {
                class: failure_class(self.error.as_deref().unwrap_or("status"))?,
                message: "scripted failure".to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_from_the_first_and_the_gap() {
        let input = RequestInput {
            at: 2.0,
            ttfc: Some(0.5),
            gap: Some(0.25),
            output_tokens: Some(3),
            ..RequestInput::default()
        };
        let record = input.record(7).unwrap();
        assert_eq!(record.id.session, SessionId(7));
        let times: Vec<Nanos> = record.chunks.iter().map(|chunk| chunk.at).collect();
        assert_eq!(times, [2_500_000_000, 2_750_000_000, 3_000_000_000]);
        assert_eq!(record.completed_at, 3_000_000_000);
        assert!(record.is_ok());
    }

    #[test]
    fn an_error_is_a_failure_of_its_class() {
        let failed = |error: &str| {
            let input = RequestInput {
                error: Some(error.to_owned()),
                ..RequestInput::default()
            };
            input.record(0)
        };
        assert!(failed("timeout").unwrap().is_failed());
        assert_eq!(
            failed("timout").unwrap_err(),
            "unknown class of failures `timout`: did you mean timeout?"
        );
    }
}
