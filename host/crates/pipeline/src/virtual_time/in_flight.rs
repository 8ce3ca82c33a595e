//! A request that the engine works on, and the record that becomes of it.

use std::sync::Arc;

use veeksha_events::{RequestRecord, Status};
use veeksha_model::{Chunk, Held, Nanos, Request, RequestId, StampSource, Usage};

/// A request that the engine works on.
pub(super) struct InFlight {
    pub(super) id: RequestId,
    /// The position of its client.
    pub(super) client: usize,
    pub(super) request: Arc<Request>,
    pub(super) intended: Nanos,
    pub(super) held: Held,
    pub(super) dispatched_at: Nanos,
    pub(super) measured: bool,
    pub(super) reports_first_chunk: bool,
    pub(super) session_requests: u32,
    pub(super) prompt_tokens: u32,
    pub(super) total_prompt_tokens: u32,
    /// True once the engine has admitted it: a rejected request has no connection to lose.
    pub(super) started: bool,
    pub(super) chunks: Vec<Chunk>,
    /// The tool that the answer calls, if the request requires a call.
    pub(super) tool: Option<String>,
}

/// The record of a request that has ended.
pub(super) fn record_of(
    flight: InFlight,
    at: Nanos,
    status: Status,
    http_status: Option<u16>,
    usage: Option<Usage>,
) -> RequestRecord {
    let request = &flight.request;
    RequestRecord {
        id: flight.id,
        held: flight.held,
        stamps: StampSource::default(),
        session_requests: flight.session_requests,
        parents: request.parents.clone(),
        history_parent: request.history_parent,
        wait_after_ready: request.wait_after_ready,
        cancellation: request.cancellation.clone(),
        intended: flight.intended,
        dispatched_at: flight.dispatched_at,
        picked_up_at: Some(flight.dispatched_at),
        sent_at: Some(flight.dispatched_at),
        first_byte_at: flight.chunks.first().map(|chunk| chunk.at),
        completed_at: at,
        processed_at: at,
        chunks: flight.chunks,
        status,
        http_status,
        target_prompt_tokens: flight.prompt_tokens,
        prompt_tokens: flight.prompt_tokens,
        total_prompt_tokens: flight.total_prompt_tokens,
        target_output_tokens: request.output.target_tokens,
        output_exact: request.output.exact,
        output_tokens: usage.map_or(0, |usage| usage.completion),
        output_tokens_from_usage: usage.is_some(),
        usage,
        connection_reused: false,
        // There are at most 64 clients.
        server: flight.client as u16,
        measured: flight.measured,
        labels: request.labels.clone(),
        history_mode: request.history_mode(),
        recorded: request.replay.as_ref().map(|replay| replay.recorded),
        // No tokenizer, connection or cache takes part in a simulation.
        chunk_tokens: Vec::new(),
        template_tokens: 0,
        resolve: None,
        connect: None,
        tls: None,
        retried: false,
        ideal_cached_tokens: None,
        cache: None,
        body_digest: None,
        response_id: None,
        trace_id: None,
    }
}
