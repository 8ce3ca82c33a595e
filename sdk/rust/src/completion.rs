//! A finished request, as metrics and checks see it.

use crate::bindings::metric::veeksha::plugin::records as contract;
use crate::types::{Nanos, Trigger, Usage};

pub use contract::Status;

/// The content of a chunk of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Reasoning text.
    Reasoning,
    /// Visible text.
    Content,
    /// A piece of a function call.
    Tool,
    /// Something that this crate does not know yet.
    Other,
}

/// The facts of a trace about a request that was replayed from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// When it was sent then, relative to the earliest arrival of the trace.
    pub at: Option<Nanos>,
    /// The recorded duration of its answer.
    pub latency: Option<Nanos>,
    /// Tokens of its whole prompt then.
    pub prompt_tokens: Option<u32>,
    /// Tokens of its answer then.
    pub output_tokens: Option<u32>,
}

/// One finished request. What happened is here, nothing is derived. Times are nanoseconds since the
/// run began.
///
/// In a test, write the fields that matter and leave the rest to the default:
/// `Completion { output_tokens: 3, ..Completion::default() }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion<'a> {
    /// The session that it belongs to.
    pub session: u64,
    /// Its node in that session.
    pub node: u32,
    /// Requests of its session that were known when it finished.
    pub session_requests: u32,
    /// The nodes that it waited for.
    pub parents: &'a [u32],
    /// The awaited event of each of these nodes, as the contract numbers it;
    /// [`parent_trigger`](Self::parent_trigger) is the same as an enum.
    pub parent_triggers: &'a [u8],
    /// The time after each of these events.
    pub parent_delays: &'a [Nanos],
    /// The node whose conversation it continued.
    pub history_parent: Option<u32>,
    /// Its think time.
    pub wait_after_ready: Nanos,
    /// The instant that the schedule asked for.
    pub intended_at: Nanos,
    /// The time that limits on concurrency held it after that.
    pub held: Nanos,
    /// It was handed to a client thread.
    pub dispatched_at: Nanos,
    /// A client thread took it up.
    pub picked_up_at: Option<Nanos>,
    /// Its last byte was handed to the socket.
    pub sent_at: Option<Nanos>,
    /// The first byte of the answer was read.
    pub first_byte_at: Option<Nanos>,
    /// It was over.
    pub completed_at: Nanos,
    /// True if it counts: false if it was dispatched after the end of the measured time.
    pub measured: bool,
    /// Its outcome.
    pub status: Status,
    /// Where it failed: `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`,
    /// `truncated`, `cancelled`, `codec`.
    pub error_class: Option<&'a str>,
    /// Why it failed, in one line.
    pub error_message: Option<&'a str>,
    /// Why generation ended, in the server's word.
    pub finish_reason: Option<&'a str>,
    /// HTTP status, if one came.
    pub http_status: Option<u32>,
    /// When each chunk that carried something generated arrived; empty where nothing came.
    pub chunk_at: &'a [Nanos],
    /// Tokens in each of these chunks, where that is known. A token counts where its last character
    /// came.
    pub chunk_tokens: Option<&'a [u32]>,
    /// The content of each of these chunks, as the contract numbers it;
    /// [`chunk_kind`](Self::chunk_kind) is the same as an enum.
    pub chunk_kinds: &'a [u8],
    /// Tokens of the new messages that the workload asked for.
    pub target_prompt_tokens: u32,
    /// Tokens of the new messages.
    pub prompt_tokens: u32,
    /// Tokens of history and new messages, with what the chat template adds.
    pub total_prompt_tokens: u32,
    /// Tokens that the chat template added.
    pub template_tokens: u32,
    /// Tokens that the workload asked the server to generate.
    pub target_output_tokens: Option<u32>,
    /// Tokens generated; 0 where nothing came.
    pub output_tokens: u32,
    /// True if `output_tokens` is the server's own count.
    pub output_tokens_from_usage: bool,
    /// The server's counts.
    pub usage: Option<Usage>,
    /// Tokens of its prompt that an unbounded prefix cache would have known.
    pub ideal_cached_tokens: Option<u32>,
    /// True if the connection had carried an earlier request.
    pub connection_reused: bool,
    /// True if it was sent again on a fresh connection.
    pub retried: bool,
    /// Which of the target's servers it went to, in the order of the configuration.
    pub server: u32,
    /// Time that name resolution took, for a new connection.
    pub resolve: Option<Nanos>,
    /// Time that connecting took, for a new connection.
    pub connect: Option<Nanos>,
    /// Time that the TLS handshake took, for a new connection.
    pub tls: Option<Nanos>,
    /// The facts of the trace, if it was replayed from one.
    pub recorded: Option<Recorded>,
    /// Names and values of the labels that the workload gave it and its session.
    pub labels: &'a [(&'a str, &'a str)],
    /// Fields that are not members of this type; [`further`](Self::further) finds a value.
    pub further: Further<'a>,
}

/// Fields of one request that are not members of [`Completion`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Further<'a> {
    columns: &'a [contract::FurtherColumn],
    texts: &'a [String],
    row: usize,
}

impl Default for Completion<'_> {
    /// An answered request of which nothing else is known.
    fn default() -> Self {
        Completion {
            session: 0,
            node: 0,
            session_requests: 1,
            parents: &[],
            parent_triggers: &[],
            parent_delays: &[],
            history_parent: None,
            wait_after_ready: 0,
            intended_at: 0,
            held: 0,
            dispatched_at: 0,
            picked_up_at: None,
            sent_at: None,
            first_byte_at: None,
            completed_at: 0,
            measured: true,
            status: Status::Ok,
            error_class: None,
            error_message: None,
            finish_reason: None,
            http_status: None,
            chunk_at: &[],
            chunk_tokens: None,
            chunk_kinds: &[],
            target_prompt_tokens: 0,
            prompt_tokens: 0,
            total_prompt_tokens: 0,
            template_tokens: 0,
            target_output_tokens: None,
            output_tokens: 0,
            output_tokens_from_usage: false,
            usage: None,
            ideal_cached_tokens: None,
            connection_reused: false,
            retried: false,
            server: 0,
            resolve: None,
            connect: None,
            tls: None,
            recorded: None,
            labels: &[],
            further: Further::default(),
        }
    }
}

impl<'a> Completion<'a> {
    /// True if it was answered.
    pub fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }

    /// The value of a label; of several with the same name, the last one's.
    pub fn label(&self, name: &str) -> Option<&'a str> {
        self.labels
            .iter()
            .rev()
            .find(|(of, _)| *of == name)
            .map(|(_, value)| *value)
    }

    /// A number of the request, by the name of its field in the host's documentation; `None` if the
    /// host does not have the field, or no value. Hosts since 0.2.0 have `cache_reused_tokens`,
    /// `cache_evicted_tokens`, `cache_rerouted_tokens`, `cache_changed_tokens`, `cache_new_tokens`.
    pub fn further(&self, name: &str) -> Option<f64> {
        let Further { columns, row, .. } = self.further;
        let column = columns.iter().find(|column| column.name == name)?;
        let value = column.values.get(row)?;
        (!value.is_nan()).then_some(*value)
    }

    /// As [`further`](Self::further), for a field that is text. Hosts since 0.2.0 have
    /// `response_id` and `trace_id`.
    pub fn further_text(&self, name: &str) -> Option<&'a str> {
        let index = self.further(name)?;
        self.further.texts.get(index as usize).map(String::as_str)
    }

    /// The awaited event of one of the parents.
    pub fn parent_trigger(&self, parent: usize) -> Option<Trigger> {
        match self.parent_triggers.get(parent)? {
            0 => Some(Trigger::Dispatched),
            1 => Some(Trigger::FirstChunk),
            2 => Some(Trigger::Completed),
            _ => None,
        }
    }

    /// The content of one of the chunks.
    pub fn chunk_kind(&self, chunk: usize) -> Option<ChunkKind> {
        self.chunk_kinds.get(chunk).map(|kind| match kind {
            0 => ChunkKind::Reasoning,
            1 => ChunkKind::Content,
            2 => ChunkKind::Tool,
            _ => ChunkKind::Other,
        })
    }
}

/// The absent value in columns of 32 bits.
const NONE: u32 = u32::MAX;
/// The absent value in columns of times.
const NEVER: Nanos = (1 << 53) - 1;

fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

fn time(at: Nanos) -> Option<Nanos> {
    (at != NEVER).then_some(at)
}

/// The part of a column of several entries for each request, from where the one before it ended.
fn part<'a, T>(column: &'a [T], begin: &mut usize, end: u32) -> &'a [T] {
    let part = &column[*begin..end as usize];
    *begin = end as usize;
    part
}

/// The entry of a request in a list that only some requests are in.
fn entry<'a, T>(list: &mut &'a [T], is_this: impl Fn(&T) -> bool) -> Option<&'a T> {
    let (first, rest) = list.split_first()?;
    is_this(first).then(|| {
        *list = rest;
        first
    })
}

/// Shows each request of a batch to `see`, in order, with its place.
pub(crate) fn each(batch: &contract::Batch, mut see: impl FnMut(u32, &Completion<'_>)) {
    let text = |place: u32| batch.texts[place as usize].as_str();
    let labels: Vec<(&str, &str)> = batch
        .label_names
        .iter()
        .zip(&batch.label_values)
        .map(|(name, value)| (text(*name), text(*value)))
        .collect();
    let mut failures = &batch.failures[..];
    let mut connections = &batch.connections[..];
    let mut replays = &batch.replays[..];
    let (mut of_parents, mut of_triggers, mut of_delays) = (0, 0, 0);
    let (mut of_at, mut of_tokens, mut of_kinds, mut of_labels) = (0, 0, 0, 0);
    for (i, place) in (0..batch.session.len()).zip(0..) {
        let usage = some(batch.usage_prompt[i]).map(|prompt| Usage {
            prompt,
            completion: batch.usage_completion[i],
            cached: some(batch.usage_cached[i]),
            reasoning: some(batch.usage_reasoning[i]),
        });
        let failure = entry(&mut failures, |failure| failure.request == place);
        let connection = entry(&mut connections, |connection| connection.request == place);
        let replay = entry(&mut replays, |replay| replay.request == place);
        let (parents_end, chunks_end) = (batch.parents_end[i], batch.chunks_end[i]);
        let chunk_tokens = part(&batch.chunk_tokens, &mut of_tokens, chunks_end);
        let completion = Completion {
            session: batch.session[i],
            node: batch.node[i],
            session_requests: batch.session_requests[i],
            parents: part(&batch.parents, &mut of_parents, parents_end),
            parent_triggers: part(&batch.parent_triggers, &mut of_triggers, parents_end),
            parent_delays: part(&batch.parent_delays, &mut of_delays, parents_end),
            history_parent: some(batch.history_parent[i]),
            wait_after_ready: batch.wait_after_ready[i],
            intended_at: batch.intended_at[i],
            held: batch.held[i],
            dispatched_at: batch.dispatched_at[i],
            picked_up_at: time(batch.picked_up_at[i]),
            sent_at: time(batch.sent_at[i]),
            first_byte_at: time(batch.first_byte_at[i]),
            completed_at: batch.completed_at[i],
            measured: batch.measured[i],
            status: batch.status[i],
            error_class: failure.map(|failure| failure.code.as_str()),
            error_message: failure.map(|failure| failure.message.as_str()),
            finish_reason: some(batch.finish_reason[i]).map(text),
            http_status: some(batch.http_status[i]),
            chunk_at: part(&batch.chunk_at, &mut of_at, chunks_end),
            chunk_tokens: batch.chunk_tokens_known[i].then_some(chunk_tokens),
            chunk_kinds: part(&batch.chunk_kinds, &mut of_kinds, chunks_end),
            target_prompt_tokens: batch.target_prompt_tokens[i],
            prompt_tokens: batch.prompt_tokens[i],
            total_prompt_tokens: batch.total_prompt_tokens[i],
            template_tokens: batch.template_tokens[i],
            target_output_tokens: some(batch.target_output_tokens[i]),
            output_tokens: batch.output_tokens[i],
            output_tokens_from_usage: batch.output_tokens_from_usage[i],
            usage,
            ideal_cached_tokens: some(batch.ideal_cached_tokens[i]),
            connection_reused: batch.connection_reused[i],
            retried: batch.retried[i],
            server: batch.server[i],
            resolve: connection.and_then(|connection| connection.resolve),
            connect: connection.and_then(|connection| connection.connect),
            tls: connection.and_then(|connection| connection.tls),
            recorded: replay.map(|replay| Recorded {
                at: replay.at,
                latency: replay.latency,
                prompt_tokens: replay.prompt_tokens,
                output_tokens: replay.output_tokens,
            }),
            labels: part(&labels, &mut of_labels, batch.labels_end[i]),
            further: Further {
                columns: &batch.further,
                texts: &batch.texts,
                row: i,
            },
        };
        see(place, &completion);
    }
}
