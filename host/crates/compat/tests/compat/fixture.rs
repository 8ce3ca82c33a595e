//! Requests for tests, written in milliseconds.

use veeksha_model::{
    Chunk, ChunkKind, ErrorClass, Nanos, NodeId, RequestId, RequestRecord, SessionId, Status, Usage,
};

/// A request in milliseconds with plain defaults.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) session: u64,
    pub(crate) node: u32,
    pub(crate) intended: f64,
    pub(crate) dispatched: f64,
    pub(crate) pickup_time: Option<f64>,
    pub(crate) sent: Option<f64>,
    /// Arrival, kind, and true if it shared a read with the preceding event.
    pub(crate) chunks: Vec<(f64, ChunkKind, bool)>,
    pub(crate) chunk_tokens: Vec<u32>,
    pub(crate) completed: f64,
    pub(crate) failed: Option<(ErrorClass, &'static str)>,
    pub(crate) http_status: Option<u16>,
    pub(crate) prompt: u32,
    pub(crate) template: u32,
    pub(crate) output: u32,
    pub(crate) from_usage: bool,
    pub(crate) usage: Option<Usage>,
    pub(crate) target: Option<u32>,
    pub(crate) reused: bool,
    pub(crate) resolve: Option<f64>,
    pub(crate) connect: Option<f64>,
    pub(crate) tls: Option<f64>,
    pub(crate) measured: bool,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            session: 0,
            node: 0,
            intended: 0.0,
            dispatched: 0.0,
            pickup_time: Some(0.0),
            sent: Some(0.0),
            chunks: Vec::new(),
            chunk_tokens: Vec::new(),
            completed: 0.0,
            failed: None,
            http_status: Some(200),
            prompt: 10,
            template: 0,
            output: 0,
            from_usage: false,
            usage: None,
            target: None,
            reused: true,
            resolve: None,
            connect: None,
            tls: None,
            measured: true,
        }
    }
}

#[expect(dead_code, reason = "not every test target uses every part")]
impl Request {
    /// Creates a request with these intended, dispatched, taken-up and written instants.
    pub(crate) fn at(session: u64, stamps: [f64; 4]) -> Self {
        let [intended, dispatched, pickup_time, sent] = stamps;
        Request {
            session,
            intended,
            dispatched,
            pickup_time: Some(pickup_time),
            sent: Some(sent),
            ..Request::default()
        }
    }

    pub(crate) fn chunk(mut self, at: f64, kind: ChunkKind) -> Self {
        self.chunks.push((at, kind, false));
        self.completed = self.completed.max(at);
        self
    }

    /// Adds an event from the same read as the preceding one.
    pub(crate) fn merged(mut self, kind: ChunkKind) -> Self {
        let at = self.chunks.last().map_or(0.0, |chunk| chunk.0);
        self.chunks.push((at, kind, true));
        self
    }

    pub(crate) fn chunks(self, kind: ChunkKind, times: &[f64]) -> Self {
        times.iter().fold(self, |request, &at| request.chunk(at, kind))
    }

    pub(crate) fn content(self, times: &[f64]) -> Self {
        self.chunks(ChunkKind::Content, times)
    }

    pub(crate) fn reasoning(self, times: &[f64]) -> Self {
        self.chunks(ChunkKind::Reasoning, times)
    }

    pub(crate) fn chunk_tokens(mut self, tokens: &[u32]) -> Self {
        self.chunk_tokens = tokens.to_vec();
        self
    }

    /// Sets the output tokens; with `from_usage` the server reported them, and the prompt of the
    /// record.
    pub(crate) fn output(mut self, tokens: u32, from_usage: bool) -> Self {
        (self.output, self.from_usage) = (tokens, from_usage);
        self.usage = from_usage.then_some(Usage {
            prompt: self.prompt,
            completion: tokens,
            cached: None,
            reasoning: None,
        });
        self
    }

    pub(crate) fn reasoned(mut self, tokens: u32) -> Self {
        if let Some(usage) = &mut self.usage {
            usage.reasoning = Some(tokens);
        }
        self
    }

    pub(crate) fn cached(mut self, tokens: u32) -> Self {
        if let Some(usage) = &mut self.usage {
            usage.cached = Some(tokens);
        }
        self
    }

    /// Sets the server's count of the prompt where it differs from the client's.
    pub(crate) fn server_prompt(mut self, tokens: u32) -> Self {
        if let Some(usage) = &mut self.usage {
            usage.prompt = tokens;
        }
        self
    }

    pub(crate) fn failed(mut self, at: f64, class: ErrorClass, message: &'static str) -> Self {
        (self.completed, self.failed) = (at, Some((class, message)));
        (self.output, self.from_usage, self.usage) = (0, false, None);
        self
    }
}

pub(crate) fn nanos(milliseconds: f64) -> Nanos {
    (milliseconds * 1e6).round() as Nanos
}

pub(crate) fn record(request: &Request) -> RequestRecord {
    let at = |milliseconds: Option<f64>| milliseconds.map(nanos);
    RequestRecord {
        intended: nanos(request.intended),
        dispatched_at: nanos(request.dispatched),
        picked_up_at: at(request.pickup_time),
        sent_at: at(request.sent),
        first_byte_at: request.chunks.first().map(|chunk| nanos(chunk.0)),
        completed_at: nanos(request.completed),
        processed_at: nanos(request.completed),
        stamps: Default::default(),
        chunks: request
            .chunks
            .iter()
            .map(|&(at, kind, merged)| Chunk {
                at: nanos(at),
                lag: 0,
                bytes: 100,
                kind,
                merged,
            })
            .collect(),
        chunk_tokens: request.chunk_tokens.clone(),
        status: match request.failed {
            None => Status::Ok {
                finish_reason: "stop".into(),
            },
            Some((class, message)) => Status::Failed {
                class,
                message: message.into(),
            },
        },
        http_status: request.http_status,
        target_prompt_tokens: request.prompt,
        prompt_tokens: request.prompt,
        total_prompt_tokens: request.prompt + request.template,
        target_output_tokens: request.target,
        output_tokens: request.output,
        output_tokens_from_usage: request.from_usage,
        usage: request.usage,
        connection_reused: request.reused,
        resolve: at(request.resolve),
        connect: at(request.connect),
        tls: at(request.tls),
        measured: request.measured,
        template_tokens: request.template,
        ..RequestRecord::answered(RequestId {
            session: SessionId(request.session),
            node: NodeId(request.node),
        })
    }
}
