//! Everything known of one request that was sent.

use std::sync::Arc;

use crate::edge::{Edge, EventInstants};
use crate::held::Held;
use crate::ids::{Nanos, NodeId, RequestId};
use crate::replay::{HistoryMode, Recorded};
use crate::response::{Chunk, ChunkKind, ErrorClass, StampSource, Usage};
use crate::session::{Cancellation, Label};

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Answered.
    Ok {
        /// Finish reason, as reported by the server.
        finish_reason: String,
    },
    /// Cancelled by its workload. Its tokens and chunks are those that had arrived.
    CancelledByClient,
    /// Failed or given up.
    Failed {
        /// Class of the failure.
        class: ErrorClass,
        /// One readable line.
        message: String,
    },
}

/// The record of one tool run that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRunRecord {
    /// The id of its node.
    pub id: RequestId,
    /// The name of its class.
    pub class: Arc<str>,
    /// The events of other nodes that it waited for.
    pub parents: Vec<Edge>,
    /// The instant at which the call was made.
    pub ready_at: Nanos,
    /// The instant at which a server took it.
    pub started_at: Nanos,
    /// Its end.
    pub completed_at: Nanos,
    /// True if it found no warm server.
    pub is_cold: bool,
    /// True if the tool failed.
    pub failed: bool,
    /// The tokens of its result.
    pub result_tokens: u32,
    /// True if it counts; false if it started after `benchmark_timeout`.
    pub measured: bool,
    /// Labels of session and run.
    pub labels: Arc<[Label]>,
}

impl ToolRunRecord {
    /// Returns the instants of the events that other nodes can wait for.
    pub fn events(&self) -> EventInstants {
        EventInstants {
            dispatched: self.started_at,
            first_chunk: self.completed_at,
            completed: self.completed_at,
        }
    }

    /// Returns the time for which it waited for a server.
    pub fn waiting_time(&self) -> Nanos {
        self.started_at.saturating_sub(self.ready_at)
    }

    /// Returns the time that its server took, a cold start included.
    pub fn service_time(&self) -> Nanos {
        self.completed_at.saturating_sub(self.started_at)
    }
}

/// The tokens of a prompt that servers had computed when it was dispatched, in the tokens of the
/// server that it was sent to. Beginnings end with a whole block of the server's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheKnowledge {
    /// The longest beginning that this server had computed.
    pub same_server: u32,
    /// The longest beginning that any server of the request's client had computed; at least
    /// `same_server`.
    pub any_server: u32,
    /// Tokens behind that, and behind the cached ones, whose text had been computed behind another
    /// beginning.
    pub moved: u32,
}

/// The record of one request that was sent: times, sizes, outcome. Nothing in it is derived.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRecord {
    /// The request's id.
    pub id: RequestId,
    /// Nodes of its session known when it finished.
    pub session_requests: u32,
    /// The events of other nodes that it waited for.
    pub parents: Vec<Edge>,
    /// The node whose conversation it continued.
    pub history_parent: Option<NodeId>,
    /// Think time after the last of them.
    pub wait_after_ready: Nanos,
    /// The events that were to cancel it.
    pub cancellation: Option<Box<Cancellation>>,
    /// The instant the schedule asked for (`scheduler_ready_at`).
    pub intended: Nanos,
    /// Time for which limits held it back after `intended`.
    pub held: Held,
    /// `scheduler_dispatched_at`.
    pub dispatched_at: Nanos,
    /// `client_picked_up_at`.
    pub picked_up_at: Option<Nanos>,
    /// The last request byte was handed to the socket.
    pub sent_at: Option<Nanos>,
    /// The first byte of the answer was read.
    pub first_byte_at: Option<Nanos>,
    /// `client_completed_at`.
    pub completed_at: Nanos,
    /// `result_processed_at`.
    pub processed_at: Nanos,
    /// The source of the arrival times.
    pub stamps: StampSource,
    /// Every event of the stream.
    pub chunks: Vec<Chunk>,
    /// Tokens in each *generated* chunk, in their order: by the server's running counts where each
    /// chunk came with one, else by the host's tokenizer, where a token counts for the chunk that
    /// brought its last character. Empty where each chunk carried one token (as many chunks as
    /// output tokens), or where it is not known.
    pub chunk_tokens: Vec<u32>,
    /// The outcome.
    pub status: Status,
    /// HTTP status, if one came.
    pub http_status: Option<u16>,
    /// Tokens of the new messages that the workload asked for.
    pub target_prompt_tokens: u32,
    /// Tokens of the new messages, by the host's tokenizer.
    pub prompt_tokens: u32,
    /// Tokens of history and new messages, by the host's tokenizer.
    pub total_prompt_tokens: u32,
    /// Tokens that the workload asked the server to generate.
    pub target_output_tokens: Option<u32>,
    /// True if the server was asked for exactly that many tokens, false if they are an upper limit.
    pub output_exact: bool,
    /// Tokens generated; 0 where nothing came.
    pub output_tokens: u32,
    /// True if `output_tokens` is the server's count, false if it is the host's tokenizer's.
    pub output_tokens_from_usage: bool,
    /// The server's counts.
    pub usage: Option<Usage>,
    /// True if the connection had carried an earlier request.
    pub connection_reused: bool,
    /// Index of the server it went to, in the order of the configuration: the servers of the first
    /// client come first.
    pub server: u16,
    /// Name resolution for a new connection; `None` also where the server is given by address.
    pub resolve: Option<Nanos>,
    /// TCP connect time of a new connection, with the proxy's consent where there is one.
    pub connect: Option<Nanos>,
    /// TLS handshake time of a new connection.
    pub tls: Option<Nanos>,
    /// True if it was sent again on a fresh connection.
    pub retried: bool,
    /// True if it counts; false for a request dispatched after `benchmark_timeout` (drained).
    pub measured: bool,
    /// Tokens that the chat template adds to history and new messages, by the host's tokenizer;
    /// they are part of `total_prompt_tokens`. 0 where no template is applied.
    pub template_tokens: u32,
    /// The part of its history parent's conversation that it sent.
    pub history_mode: HistoryMode,
    /// Data from the trace that it replays, if any.
    pub recorded: Option<Recorded>,
    /// Tokens of its prompt that an unbounded prefix cache would have known when it was dispatched;
    /// filled in by whoever keeps account of the prompts of the whole run.
    pub ideal_cached_tokens: Option<u32>,
    /// The tokens of its prompt that servers had computed before; filled in by whoever keeps
    /// account of them.
    pub cache: Option<CacheKnowledge>,
    /// XXH3 (64 bits) of the request's body; `None` if none was built, as in virtual time.
    pub body_digest: Option<u64>,
    /// The id that the server gave the response.
    pub response_id: Option<String>,
    /// The trace id that it was sent with.
    pub trace_id: Option<u128>,
    /// Labels of session and request.
    pub labels: Vec<Label>,
}

impl RequestRecord {
    /// Returns false if the whole response came as one event, as with `stream: false`: when the
    /// server generated its first token is not known then.
    pub fn is_stream(&self) -> bool {
        !matches!(self.chunks.as_slice(), [only] if only.kind == ChunkKind::Finish)
    }

    /// A measured request that was answered at the run's zero with nothing: records with more in
    /// them are made of it by setting what matters.
    pub fn answered(id: RequestId) -> RequestRecord {
        RequestRecord {
            id,
            session_requests: 1,
            parents: Vec::new(),
            history_parent: None,
            wait_after_ready: 0,
            cancellation: None,
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
            output_exact: false,
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
            cache: None,
            body_digest: None,
            response_id: None,
            trace_id: None,
            labels: Vec::new(),
        }
    }
}

impl RequestRecord {
    /// Returns true if the request was answered.
    pub fn is_ok(&self) -> bool {
        matches!(self.status, Status::Ok { .. })
    }

    /// Returns true if the request failed or was given up by the host.
    pub fn is_failed(&self) -> bool {
        matches!(self.status, Status::Failed { .. })
    }

    /// Returns the instants of the events that other requests can wait for.
    pub fn events(&self) -> EventInstants {
        EventInstants {
            dispatched: self.dispatched_at,
            first_chunk: self.generated_at().next().unwrap_or(self.completed_at),
            completed: self.completed_at,
        }
    }

    /// Arrival times of the chunks that carried something generated, in order.
    pub fn generated_at(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.chunks
            .iter()
            .filter(|chunk| chunk.kind.is_generated())
            .map(|chunk| chunk.at)
    }

    /// Arrival times of the output, in order: those of the generated chunks, or, if the response
    /// was not streamed and has output tokens, that of its only event.
    pub fn output_at(&self) -> impl Iterator<Item = Nanos> + '_ {
        let is_whole = !self.is_stream() && self.output_tokens > 0;
        self.chunks
            .iter()
            .filter(move |chunk| is_whole || chunk.kind.is_generated())
            .map(|chunk| chunk.at)
    }

    /// Returns true if any output arrived. An answer without output has no latencies.
    pub fn has_output(&self) -> bool {
        self.output_at().next().is_some()
    }

    /// Returns the tokens of each generated chunk, in order: those of `chunk_tokens`, or one each
    /// where that is empty and there are as many chunks as output tokens. `None` where neither
    /// holds.
    pub fn tokens_by_chunk(&self) -> Option<Vec<u32>> {
        let chunks = self.generated_at().count();
        if self.chunk_tokens.len() == chunks {
            Some(self.chunk_tokens.clone())
        } else if self.chunk_tokens.is_empty() && chunks == self.output_tokens as usize {
            Some(vec![1; chunks])
        } else {
            None
        }
    }
}
