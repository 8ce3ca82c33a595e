//! Finished requests for tests.

use veeksha_model::{
    Chunk, ChunkKind, Held, Nanos, NodeId, Recorded, RequestId, RequestRecord, SessionId, StampSource, Usage,
};

/// Returns an event of an answer.
pub(crate) fn chunk(at: Nanos, kind: ChunkKind) -> Chunk {
    Chunk {
        at,
        lag: 0,
        bytes: 9,
        kind,
        merged: false,
    }
}

/// Returns a request that was answered with three tokens in three chunks.
pub(crate) fn plain(session: u64, node: u32) -> RequestRecord {
    RequestRecord {
        intended: 1_000,
        dispatched_at: 2_000,
        picked_up_at: None,
        sent_at: None,
        completed_at: 9_000,
        processed_at: 9_500,
        stamps: StampSource::Read,
        chunks: vec![
            chunk(3_000, ChunkKind::Role),
            chunk(4_000, ChunkKind::Content),
            chunk(6_000, ChunkKind::Content),
            chunk(7_000, ChunkKind::Content),
            chunk(8_000, ChunkKind::Finish),
        ],
        http_status: None,
        target_prompt_tokens: 10,
        prompt_tokens: 10,
        total_prompt_tokens: 10,
        output_tokens: 3,
        output_tokens_from_usage: false,
        connection_reused: false,
        ..RequestRecord::answered(RequestId {
            session: SessionId(session),
            node: NodeId(node),
        })
    }
}

/// Returns a request with distinct numbers, so that swapped fields are detected.
pub(crate) fn full() -> RequestRecord {
    RequestRecord {
        session_requests: 101,
        parents: vec![NodeId(102).into(), NodeId(103).into()],
        history_parent: Some(NodeId(104)),
        wait_after_ready: 105,
        intended: 106,
        held: Held {
            sessions: 1_000,
            in_flight: 200,
            in_prefill: 30,
        },
        dispatched_at: 107,
        picked_up_at: Some(108),
        sent_at: Some(109),
        first_byte_at: Some(110),
        completed_at: 9_007_199_254_740_990,
        processed_at: 111,
        chunks: vec![
            chunk(112, ChunkKind::Role),
            chunk(113, ChunkKind::Reasoning),
            chunk(114, ChunkKind::Comment),
            chunk(115, ChunkKind::Content),
            chunk(116, ChunkKind::Tool),
            chunk(117, ChunkKind::Usage),
            chunk(118, ChunkKind::Done),
        ],
        chunk_tokens: vec![5, 0, 6],
        http_status: Some(119),
        target_prompt_tokens: 120,
        prompt_tokens: 121,
        total_prompt_tokens: 122,
        template_tokens: 123,
        target_output_tokens: Some(124),
        output_tokens: 125,
        output_tokens_from_usage: true,
        usage: Some(Usage {
            prompt: 126,
            completion: 127,
            cached: Some(128),
            reasoning: Some(129),
        }),
        ideal_cached_tokens: Some(130),
        body_digest: None,
        connection_reused: true,
        retried: true,
        server: 131,
        resolve: Some(132),
        connect: Some(133),
        tls: Some(134),
        measured: false,
        recorded: Some(Recorded {
            at: Some(135),
            latency: Some(136),
            prompt_tokens: Some(137),
            output_tokens: Some(138),
        }),
        labels: vec![("tier".into(), "gold".into()), ("stop".into(), "tier".into())],
        ..plain(139, 140)
    }
}

/// Returns `count` requests, of which the one at `bad` is bad according to `hostile-measure`.
pub(crate) fn requests(count: usize, bad: usize) -> Vec<RequestRecord> {
    let request = |index: usize| RequestRecord {
        target_output_tokens: (index == bad).then_some(13),
        ..plain(index as u64, 0)
    };
    (0..count).map(request).collect()
}

/// Returns references to the requests.
pub(crate) fn batch(requests: &[RequestRecord]) -> Vec<&RequestRecord> {
    requests.iter().collect()
}
