//! An answered request, for the tests.

use veeksha_model::{Chunk, ChunkKind, HistoryMode, NodeId, RequestId, SessionId, Usage};

use crate::{RequestRecord, Status};

/// A record in which every number is distinct.
pub(crate) fn record() -> RequestRecord {
    let id = RequestId {
        session: SessionId(17),
        node: NodeId(2),
    };
    RequestRecord {
        held: Default::default(),
        stamps: Default::default(),
        server: 0,
        resolve: None,
        session_requests: 3,
        parents: vec![NodeId(0).into(), NodeId(1).into()],
        history_parent: Some(NodeId(1)),
        wait_after_ready: 250_000_000,
        intended: 1_000_000_001,
        dispatched_at: 1_000_000_002,
        picked_up_at: Some(1_000_000_003),
        sent_at: Some(1_000_000_004),
        first_byte_at: Some(1_500_000_000),
        completed_at: 2_000_000_000,
        processed_at: 2_000_000_001,
        chunk_tokens: Vec::new(),
        chunks: vec![Chunk {
            lag: 0,
            at: 1_500_000_000,
            bytes: 9,
            kind: ChunkKind::Content,
            merged: true,
        }],
        status: Status::Ok {
            finish_reason: "length".into(),
        },
        http_status: Some(200),
        target_prompt_tokens: 100,
        prompt_tokens: 99,
        total_prompt_tokens: u32::MAX,
        target_output_tokens: Some(8),
        output_exact: false,
        output_tokens: 7,
        output_tokens_from_usage: true,
        usage: Some(Usage {
            prompt: 120,
            completion: 7,
            cached: Some(16),
            reasoning: None,
        }),
        connection_reused: true,
        connect: None,
        tls: None,
        retried: false,
        measured: true,
        labels: vec![("tier".into(), "gold".into())],
        template_tokens: 0,
        history_mode: HistoryMode::Live,
        recorded: None,
        ..RequestRecord::answered(id)
    }
}
