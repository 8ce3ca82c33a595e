//! Finished requests as they cross to a plugin: a table, column by column.

use std::collections::HashMap;

use veeksha_model::{ChunkKind, ErrorClass, Nanos, RequestRecord, Status};

use crate::bindings::records as wit;

/// Requests of one call. From some 64 on, a call's own cost no longer counts; thousands at once leave the processor's caches.
const CALL_REQUESTS: usize = 256;
/// Events of all answers of one call, unless a single request has more.
const CALL_CHUNKS: usize = 64 << 10;
/// What does not exist, in columns of 32 bits.
const NONE: u32 = u32::MAX;
/// What does not exist, in columns of times.
const NEVER: Nanos = (1 << 53) - 1;

/// How many of these requests go into the next call; at least one.
pub(crate) fn call_length(requests: &[&RequestRecord]) -> usize {
    let mut chunks = 0;
    let fitting = requests.iter().take(CALL_REQUESTS).take_while(|request| {
        chunks += request.chunks.len();
        chunks <= CALL_CHUNKS
    });
    fitting.count().max(1)
}

/// Which request of `all` is meant, in words: `request 17/2 (3 of 64)`.
pub(crate) fn named(all: &[&RequestRecord], index: usize) -> String {
    match all.get(index) {
        Some(request) => format!("request {} ({} of {})", request.id, index + 1, all.len()),
        None => format!("no request of {}", all.len()),
    }
}

/// Several requests in words.
pub(crate) fn beginning_with(all: &[&RequestRecord], first: usize, count: usize) -> String {
    format!("{count} requests, beginning with {}", named(all, first))
}

/// The table of these requests.
pub(crate) fn batch(requests: &[&RequestRecord]) -> wit::Batch {
    let times = |of: fn(&RequestRecord) -> Option<Nanos>| -> Vec<Nanos> {
        requests
            .iter()
            .map(|request| of(request).unwrap_or(NEVER))
            .collect()
    };
    let counts = |of: fn(&RequestRecord) -> Option<u32>| -> Vec<u32> {
        requests
            .iter()
            .map(|request| of(request).unwrap_or(NONE))
            .collect()
    };
    let facts = |of: fn(&RequestRecord) -> bool| -> Vec<bool> {
        requests.iter().map(|request| of(request)).collect()
    };
    let chunks = Chunks::of(requests);
    let labels = Labels::of(requests);
    let (parents_end, parents) = parents(requests);
    wit::Batch {
        session: requests.iter().map(|request| request.id.session.0).collect(),
        node: counts(|request| Some(request.id.node.0)),
        session_requests: counts(|request| Some(request.session_requests)),
        history_parent: counts(|request| request.history_parent.map(|node| node.0)),
        wait_after_ready: times(|request| Some(request.wait_after_ready)),
        intended_at: times(|request| Some(request.intended)),
        held: times(|request| Some(request.held.total())),
        dispatched_at: times(|request| Some(request.dispatched_at)),
        picked_up_at: times(|request| request.picked_up_at),
        sent_at: times(|request| request.sent_at),
        first_byte_at: times(|request| request.first_byte_at),
        completed_at: times(|request| Some(request.completed_at)),
        measured: facts(|request| request.measured),
        status: requests.iter().map(|request| status(request)).collect(),
        http_status: counts(|request| request.http_status.map(u32::from)),
        finish_reason: labels.finish_reasons,
        server: counts(|request| Some(request.server.into())),
        connection_reused: facts(|request| request.connection_reused),
        retried: facts(|request| request.retried),
        target_prompt_tokens: counts(|request| Some(request.target_prompt_tokens)),
        prompt_tokens: counts(|request| Some(request.prompt_tokens)),
        total_prompt_tokens: counts(|request| Some(request.total_prompt_tokens)),
        template_tokens: counts(|request| Some(request.template_tokens)),
        target_output_tokens: counts(|request| request.target_output_tokens),
        output_tokens: counts(|request| Some(request.output_tokens)),
        output_tokens_from_usage: facts(|request| request.output_tokens_from_usage),
        usage_prompt: counts(|request| request.usage.map(|usage| usage.prompt)),
        usage_completion: counts(|request| request.usage.map(|usage| usage.completion)),
        usage_cached: counts(|request| request.usage?.cached),
        usage_reasoning: counts(|request| request.usage?.reasoning),
        ideal_cached_tokens: counts(|request| request.ideal_cached_tokens),
        parents_end,
        parents,
        chunk_tokens_known: chunks.known,
        chunks_end: chunks.ends,
        chunk_at: chunks.at,
        chunk_tokens: chunks.tokens,
        chunk_kinds: chunks.kinds,
        labels_end: labels.ends,
        label_names: labels.names,
        label_values: labels.values,
        texts: labels.texts.texts,
        failures: sparse(requests, failure),
        connections: sparse(requests, connection),
        replays: sparse(requests, replay),
    }
}

/// What only some requests have.
fn sparse<T>(requests: &[&RequestRecord], of: impl Fn(u32, &RequestRecord) -> Option<T>) -> Vec<T> {
    (0..)
        .zip(requests)
        .filter_map(|(place, request)| of(place, request))
        .collect()
}

fn failure(place: u32, request: &RequestRecord) -> Option<wit::FailedRequest> {
    match &request.status {
        Status::Ok { .. } => None,
        Status::Failed { class, message } => Some(wit::FailedRequest {
            request: place,
            class: class.name().to_owned(),
            message: message.clone(),
        }),
    }
}

fn connection(place: u32, request: &RequestRecord) -> Option<wit::NewConnection> {
    let RequestRecord {
        resolve,
        connect,
        tls,
        ..
    } = *request;
    (resolve.is_some() || connect.is_some() || tls.is_some()).then_some(wit::NewConnection {
        request: place,
        resolve,
        connect,
        tls,
    })
}

fn replay(place: u32, request: &RequestRecord) -> Option<wit::ReplayedRequest> {
    request.recorded.map(|recorded| wit::ReplayedRequest {
        request: place,
        at: recorded.at,
        latency: recorded.latency,
        prompt_tokens: recorded.prompt_tokens,
        output_tokens: recorded.output_tokens,
    })
}

fn status(request: &RequestRecord) -> wit::Status {
    match &request.status {
        Status::Ok { .. } => wit::Status::Ok,
        Status::Failed { class, .. } => match class {
            ErrorClass::Cancelled => wit::Status::Cancelled,
            _ => wit::Status::Failed,
        },
    }
}

fn parents(requests: &[&RequestRecord]) -> (Vec<u32>, Vec<u32>) {
    let mut parents = Vec::new();
    let ends = requests.iter().map(|request| {
        parents.extend(request.parents.iter().map(|node| node.0));
        end(&parents)
    });
    (ends.collect(), parents)
}

/// The chunks that carried something generated, of all requests.
struct Chunks {
    ends: Vec<u32>,
    at: Vec<Nanos>,
    tokens: Vec<u32>,
    kinds: Vec<u8>,
    /// Of each request, whether its tokens are known chunk by chunk.
    known: Vec<bool>,
}

impl Chunks {
    fn of(requests: &[&RequestRecord]) -> Self {
        let most = requests.iter().map(|request| request.chunks.len()).sum();
        let mut all = Chunks {
            ends: Vec::with_capacity(requests.len()),
            at: Vec::with_capacity(most),
            tokens: Vec::with_capacity(most),
            kinds: Vec::with_capacity(most),
            known: Vec::with_capacity(requests.len()),
        };
        for request in requests {
            all.add(request);
        }
        all
    }

    fn add(&mut self, request: &RequestRecord) {
        let before = self.at.len();
        for chunk in &request.chunks {
            let kind = match chunk.kind {
                ChunkKind::Reasoning => 0,
                ChunkKind::Content => 1,
                ChunkKind::Tool => 2,
                _ => continue,
            };
            self.at.push(chunk.at);
            self.kinds.push(kind);
        }
        let generated = self.at.len() - before;
        // A record leaves the numbers out where each is 1.
        let known = match request.chunk_tokens.len() {
            counted if counted == generated => {
                self.tokens.extend_from_slice(&request.chunk_tokens);
                true
            }
            0 if generated == request.output_tokens as usize => {
                self.tokens.resize(self.at.len(), 1);
                true
            }
            _ => {
                self.tokens.resize(self.at.len(), 0);
                false
            }
        };
        self.known.push(known);
        self.ends.push(end(&self.at));
    }
}

/// The labels of all requests, and their finish reasons: what is text.
struct Labels<'a> {
    finish_reasons: Vec<u32>,
    ends: Vec<u32>,
    names: Vec<u32>,
    values: Vec<u32>,
    texts: Texts<'a>,
}

impl<'a> Labels<'a> {
    fn of(requests: &[&'a RequestRecord]) -> Self {
        let mut all = Labels {
            finish_reasons: Vec::with_capacity(requests.len()),
            ends: Vec::with_capacity(requests.len()),
            names: Vec::new(),
            values: Vec::new(),
            texts: Texts::default(),
        };
        for request in requests {
            all.finish_reasons.push(match &request.status {
                Status::Ok { finish_reason } => all.texts.place(0, finish_reason),
                Status::Failed { .. } => NONE,
            });
            for (label, (name, value)) in request.labels.iter().enumerate() {
                all.names.push(all.texts.place(2 * label + 1, name));
                all.values.push(all.texts.place(2 * label + 2, value));
            }
            all.ends.push(end(&all.names));
        }
        all
    }
}

/// Texts, each of them once.
#[derive(Default)]
struct Texts<'a> {
    texts: Vec<String>,
    places: HashMap<&'a str, u32>,
    /// What stood last where a text stands in its request: nearly always the same again.
    last: Vec<(&'a str, u32)>,
}

impl<'a> Texts<'a> {
    /// The place of a text that stands in a request at `slot`.
    fn place(&mut self, slot: usize, text: &'a str) -> u32 {
        if let Some((last, place)) = self.last.get(slot)
            && *last == text
        {
            return *place;
        }
        let next = end(&self.texts);
        let place = *self.places.entry(text).or_insert(next);
        if place == next {
            self.texts.push(text.to_owned());
        }
        match self.last.get_mut(slot) {
            Some(last) => *last = (text, place),
            // Slots are filled in their order, but a request without a finish reason leaves the first one out.
            None => self.last.resize(slot + 1, (text, place)),
        }
        place
    }
}

/// A batch is bounded far below what 32 bits count.
fn end<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}
