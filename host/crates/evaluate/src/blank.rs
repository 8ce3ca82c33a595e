//! A record of which a test sets what matters to it.

use veeksha_events::{RequestRecord, Status};
use veeksha_model::{Held, HistoryMode, NodeId, RequestId, SessionId, StampSource};

/// Everything at the run's zero, nothing answered.
pub(crate) fn record() -> RequestRecord {
    RequestRecord {
        id: RequestId {
            session: SessionId(0),
            node: NodeId(0),
        },
        session_requests: 1,
        parents: Vec::new(),
        history_parent: None,
        wait_after_ready: 0,
        intended: 0,
        held: Held::default(),
        dispatched_at: 0,
        picked_up_at: Some(0),
        sent_at: Some(0),
        first_byte_at: None,
        completed_at: 0,
        processed_at: 0,
        stamps: StampSource::Kernel,
        chunks: Vec::new(),
        chunk_tokens: Vec::new(),
        status: Status::Ok {
            finish_reason: "stop".into(),
        },
        http_status: Some(200),
        target_prompt_tokens: 0,
        prompt_tokens: 0,
        total_prompt_tokens: 0,
        target_output_tokens: None,
        output_tokens: 0,
        output_tokens_from_usage: true,
        usage: None,
        connection_reused: true,
        server: 0,
        resolve: None,
        connect: None,
        tls: None,
        retried: false,
        measured: true,
        template_tokens: 0,
        history_mode: HistoryMode::Live,
        recorded: None,
        ideal_cached_tokens: None,
        labels: Vec::new(),
    }
}
