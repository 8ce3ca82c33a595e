//! Finished requests as passed to a plugin: a table, column by column.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use veeksha_definitions::{FieldValue, FinishedRequest, RequestField};
use veeksha_model::{ChunkKind, ErrorClass, Nanos, RequestRecord, Status, Trigger};

use crate::bindings::records as wit;

/// Maximum number of requests per call. From about 64 on, the cost of the call itself is
/// negligible; thousands at once exceed the processor's caches.
const CALL_REQUESTS: usize = 256;
/// Maximum number of events of all answers of one call, unless a single request has more.
const CALL_CHUNKS: usize = 64 << 10;
/// Maximum bytes of text of all requests of one call, unless a single request has more. Labels come
/// from the workload and messages from the server, so they must not exhaust a plugin's memory.
const CALL_TEXT: usize = 4 << 20;
/// An absent value in columns of 32 bits.
const NONE: u32 = u32::MAX;
/// An absent value in columns of times.
const NEVER: Nanos = (1 << 53) - 1;

/// Returns the number of leading requests that go into the next call; at least one.
pub(crate) fn call_length(requests: &[&RequestRecord]) -> usize {
    let (mut chunks, mut text) = (0, 0);
    let fitting = requests.iter().take(CALL_REQUESTS).take_while(|request| {
        chunks += request.chunks.len();
        text += text_of(request);
        chunks <= CALL_CHUNKS && text <= CALL_TEXT
    });
    fitting.count().max(1)
}

/// Returns an upper bound of a request's text in bytes: shared text is counted for each request.
fn text_of(request: &RequestRecord) -> usize {
    let labels = request.labels.iter();
    let of_status = match &request.status {
        Status::Ok { finish_reason } => finish_reason.len(),
        Status::CancelledByClient => 0,
        Status::Failed { message, .. } => message.len(),
    };
    let response_id = request.response_id.as_ref().map_or(0, |id| id.len());
    labels
        .map(|(name, value)| name.len() + value.len())
        .sum::<usize>()
        + of_status
        + response_id
}

/// Describes a request of `all` for messages: `request 17/2 (3 of 64)`.
pub(crate) fn named(all: &[&RequestRecord], index: usize) -> String {
    match all.get(index) {
        Some(request) => format!("request {} ({} of {})", request.id, index + 1, all.len()),
        None => format!("no request of {}", all.len()),
    }
}

/// Describes several requests for messages.
pub(crate) fn beginning_with(all: &[&RequestRecord], first: usize, count: usize) -> String {
    format!("{count} requests, beginning with {}", named(all, first))
}

/// Returns the table of these requests.
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
    let chunks = ChunkColumns::of(requests);
    let mut labels = LabelColumns::of(requests);
    let further = further(requests, &mut labels.texts);
    let edges = EdgeColumns::of(requests);
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
        parents_end: edges.ends,
        parents: edges.parents,
        parent_triggers: edges.triggers,
        parent_delays: edges.delays,
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
        further,
    }
}

/// Returns the columns of the fields that the contract does not name, except those without a value.
fn further<'a>(requests: &[&'a RequestRecord], texts: &mut TextColumns<'a>) -> Vec<wit::FurtherColumn> {
    let wrapped: Vec<_> = requests
        .iter()
        .map(|request| FinishedRequest::new(request))
        .collect();
    let column = |field: &RequestField| {
        let values = wrapped.iter().map(|request| match field.value(request) {
            FieldValue::Flag(value) => f64::from(u8::from(value)),
            // Counts stay below 2^53.
            FieldValue::Count(value) => value as f64,
            FieldValue::Number(value) => value,
            FieldValue::Text(text) => texts.index(text.into()).into(),
            FieldValue::Name(text) => texts.index(text.into()).into(),
            _ => f64::NAN,
        });
        let values: Vec<f64> = values.collect();
        let name = field.name?.to_owned();
        let any = values.iter().any(|value| !value.is_nan());
        any.then_some(wit::FurtherColumn { name, values })
    };
    RequestField::further().filter_map(column).collect()
}

/// Returns the values of a sparse column.
fn sparse<T>(requests: &[&RequestRecord], of: impl Fn(u32, &RequestRecord) -> Option<T>) -> Vec<T> {
    (0..)
        .zip(requests)
        .filter_map(|(place, request)| of(place, request))
        .collect()
}

fn failure(place: u32, request: &RequestRecord) -> Option<wit::FailedRequest> {
    match &request.status {
        Status::Ok { .. } | Status::CancelledByClient => None,
        Status::Failed { class, message } => Some(wit::FailedRequest {
            request: place,
            code: class.name().to_owned(),
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
        Status::CancelledByClient => wit::Status::CancelledByClient,
        Status::Failed { class, .. } => match class {
            ErrorClass::Cancelled => wit::Status::Cancelled,
            _ => wit::Status::Failed,
        },
    }
}

/// The edges of all requests.
struct EdgeColumns {
    ends: Vec<u32>,
    parents: Vec<u32>,
    triggers: Vec<u8>,
    delays: Vec<Nanos>,
}

impl EdgeColumns {
    fn of(requests: &[&RequestRecord]) -> Self {
        let edges = || requests.iter().flat_map(|request| &request.parents);
        let mut count = 0;
        let ends = requests.iter().map(|request| {
            count += request.parents.len();
            u32::try_from(count).unwrap_or(NONE)
        });
        EdgeColumns {
            ends: ends.collect(),
            parents: edges().map(|edge| edge.parent.0).collect(),
            triggers: edges().map(|edge| trigger(edge.trigger)).collect(),
            delays: edges().map(|edge| edge.delay).collect(),
        }
    }
}

/// The number of an event in the contract.
fn trigger(trigger: Trigger) -> u8 {
    match trigger {
        Trigger::Dispatched => 0,
        Trigger::FirstChunk => 1,
        Trigger::Completed => 2,
    }
}

/// The generated chunks of all requests.
struct ChunkColumns {
    ends: Vec<u32>,
    at: Vec<Nanos>,
    tokens: Vec<u32>,
    kinds: Vec<u8>,
    /// Per request: true if its tokens are known per chunk.
    known: Vec<bool>,
}

impl ChunkColumns {
    fn of(requests: &[&RequestRecord]) -> Self {
        let most = requests.iter().map(|request| request.chunks.len()).sum();
        let mut all = ChunkColumns {
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
        // Generated chunks come in long runs, and copying a run is much faster than copying single
        // chunks.
        let runs = request
            .chunks
            .chunk_by(|one, next| one.kind.is_generated() == next.kind.is_generated());
        for run in runs {
            if run.first().is_some_and(|chunk| chunk.kind.is_generated()) {
                self.at.extend(run.iter().map(|chunk| chunk.at));
                self.kinds.extend(run.iter().map(|chunk| match chunk.kind {
                    ChunkKind::Reasoning => 0,
                    ChunkKind::Tool => 2,
                    _ => 1,
                }));
            }
        }
        let generated = self.at.len() - before;
        // A record omits the numbers if each is 1.
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

/// The text columns of all requests: labels and finish reasons.
struct LabelColumns<'a> {
    finish_reasons: Vec<u32>,
    ends: Vec<u32>,
    names: Vec<u32>,
    values: Vec<u32>,
    texts: TextColumns<'a>,
}

impl<'a> LabelColumns<'a> {
    fn of(requests: &[&'a RequestRecord]) -> Self {
        let mut all = LabelColumns {
            finish_reasons: Vec::with_capacity(requests.len()),
            ends: Vec::with_capacity(requests.len()),
            names: Vec::new(),
            values: Vec::new(),
            texts: TextColumns {
                // Capacity for one unique text per request, such as a user's name.
                places: HashMap::with_capacity(requests.len() + 16),
                ..TextColumns::default()
            },
        };
        for request in requests {
            all.finish_reasons.push(match &request.status {
                Status::Ok { finish_reason } => all.texts.place(0, finish_reason),
                Status::CancelledByClient | Status::Failed { .. } => NONE,
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

/// Deduplicated texts.
#[derive(Default)]
struct TextColumns<'a> {
    texts: Vec<String>,
    places: HashMap<Cow<'a, str>, u32>,
    /// The last text at each position of a request: nearly always repeated.
    last: Vec<(&'a str, u32)>,
}

impl<'a> TextColumns<'a> {
    /// Returns the index of a text at position `slot` of its request.
    fn place(&mut self, slot: usize, text: &'a str) -> u32 {
        if let Some((last, place)) = self.last.get(slot)
            && *last == text
        {
            return *place;
        }
        let place = self.index(text.into());
        match self.last.get_mut(slot) {
            Some(last) => *last = (text, place),
            // Slots are filled in order, but a request without a finish reason skips the first one.
            None => self.last.resize(slot + 1, (text, place)),
        }
        place
    }

    /// Returns the index of a text.
    fn index(&mut self, text: Cow<'a, str>) -> u32 {
        let next = end(&self.texts);
        match self.places.entry(text) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.texts.push(new.key().clone().into_owned());
                *new.insert(next)
            }
        }
    }
}

/// Returns the length as a `u32`. A batch is bounded far below the range of 32 bits.
fn end<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veeksha_model::{CacheKnowledge, Chunk, Edge, NodeId, Recorded, RequestId, SessionId, Usage};

    use super::*;

    fn plain(chunks: Vec<Chunk>) -> RequestRecord {
        let id = RequestId {
            session: SessionId(0),
            node: NodeId(0),
        };
        RequestRecord {
            chunks,
            ..RequestRecord::answered(id)
        }
    }

    fn chunk(kind: ChunkKind) -> Chunk {
        Chunk {
            at: 1,
            lag: 0,
            bytes: 1,
            kind,
            merged: false,
        }
    }

    #[test]
    fn a_call_takes_some_requests_and_never_none() {
        let with = |chunks| plain(vec![chunk(ChunkKind::Content); chunks]);
        let (small, half, huge) = (with(1), with(CALL_CHUNKS / 2), with(CALL_CHUNKS + 1));
        assert_eq!(call_length(&vec![&small; CALL_REQUESTS + 9]), CALL_REQUESTS);
        assert_eq!(call_length(&[&half, &half, &small]), 2);
        assert_eq!(call_length(&[&huge, &small]), 1);
        assert_eq!(call_length(&[&small, &huge]), 1);
        let labelled = |bytes: usize| RequestRecord {
            labels: vec![("user".into(), "x".repeat(bytes))],
            ..small.clone()
        };
        let (mebibyte, monstrous) = (labelled(1 << 20), labelled(9 << 20));
        assert_eq!(call_length(&[&mebibyte; 9]), 3);
        assert_eq!(call_length(&[&monstrous, &small]), 1);
    }

    fn kind() -> impl Strategy<Value = ChunkKind> {
        prop::sample::select(ChunkKind::ALL.to_vec())
    }

    fn status() -> impl Strategy<Value = Status> {
        prop_oneof![
            "[ab]{0,2}".prop_map(|finish_reason| Status::Ok { finish_reason }),
            "[ab]{0,2}".prop_map(|message| Status::Failed {
                class: ErrorClass::Timeout,
                message
            }),
        ]
    }

    prop_compose! {
        fn edge()(parent in 0..9u32, trigger in prop::sample::select(&Trigger::ALL[..]), delay in 0..9u64) -> Edge {
            Edge { parent: NodeId(parent), trigger, delay }
        }
    }

    prop_compose! {
        fn request()(
            kinds in prop::collection::vec(kind(), 0..9),
            chunk_tokens in prop::collection::vec(0..4u32, 0..4),
            output_tokens in 0..9u32,
            parents in prop::collection::vec(edge(), 0..3),
            labels in prop::collection::vec(("[ab]{0,2}", "[ab]{0,2}"), 0..4),
            status in status(),
            usage in prop::option::of((0..9u32, prop::option::of(0..9u32))),
            times in prop::array::uniform4(prop::option::of(0..9u64)),
            recorded in any::<bool>(),
            response_id in prop::option::of("[ab]{0,2}"),
            trace_id in prop::option::of(0..3u128),
        ) -> RequestRecord {
            RequestRecord {
                chunk_tokens,
                output_tokens,
                parents,
                labels,
                status,
                usage: usage.map(|(prompt, cached)| Usage { prompt, completion: 1, cached, reasoning: None }),
                sent_at: times[0],
                resolve: times[1],
                connect: times[2],
                tls: times[3],
                recorded: recorded.then(Recorded::default),
                response_id,
                trace_id,
                ..plain(kinds.into_iter().map(chunk).collect())
            }
        }
    }

    #[test]
    fn numbers_that_the_contract_does_not_name_are_further_columns() {
        let cached = RequestRecord {
            total_prompt_tokens: 100,
            usage: Some(Usage {
                prompt: 100,
                completion: 1,
                cached: Some(30),
                reasoning: None,
            }),
            cache: Some(CacheKnowledge {
                same_server: 50,
                any_server: 60,
                moved: 8,
            }),
            ..plain(Vec::new())
        };
        let unknown = plain(Vec::new());
        let batch = batch(&[&cached, &unknown]);
        let value = |class: &str| {
            let name = format!("cache_{class}_tokens");
            let column = batch.further.iter().find(|column| column.name == name);
            let values = &column.expect(&name).values;
            assert!(values[1].is_nan(), "{name}");
            values[0]
        };
        let classes = ["reused", "evicted", "rerouted", "changed", "new"].map(value);
        assert_eq!(classes, [30.0, 20.0, 10.0, 8.0, 32.0]);
        assert_eq!(batch.further.len(), classes.len(), "only columns with values");
    }

    proptest! {
        /// Reading a table as the contract defines returns the original requests.
        #[test]
        fn table_equals_the_records(requests in prop::collection::vec(request(), 0..9)) {
            let all: Vec<&RequestRecord> = requests.iter().collect();
            let batch = batch(&all);
            let text = |place: &u32| batch.texts[*place as usize].as_str();
            let mut texts = batch.texts.clone();
            texts.sort();
            texts.dedup();
            prop_assert_eq!(texts.len(), batch.texts.len(), "a text is there once");
            let further = |name: &str, row: usize| {
                let column = batch.further.iter().find(|column| column.name == name)?;
                let value = column.values[row];
                (!value.is_nan()).then(|| text(&(value as u32)).to_owned())
            };
            let (mut parents, mut chunks, mut labels) = (0, 0, 0);
            for (i, request) in requests.iter().enumerate() {
                let of = |begin: &mut usize, ends: &[u32]| {
                    let end = ends[i] as usize;
                    std::mem::replace(begin, end)..end
                };
                let (parents, chunks, labels) = (
                    of(&mut parents, &batch.parents_end),
                    of(&mut chunks, &batch.chunks_end),
                    of(&mut labels, &batch.labels_end),
                );
                let edges: Vec<Edge> = parents
                    .map(|place| Edge {
                        parent: NodeId(batch.parents[place]),
                        trigger: Trigger::ALL[usize::from(batch.parent_triggers[place])],
                        delay: batch.parent_delays[place],
                    })
                    .collect();
                prop_assert_eq!(&edges, &request.parents);
                let expected: Vec<(&str, &str)> =
                    request.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let found: Vec<(&str, &str)> =
                    labels.map(|l| (text(&batch.label_names[l]), text(&batch.label_values[l]))).collect();
                prop_assert_eq!(found, expected);
                let kinds: Vec<u8> = request
                    .chunks
                    .iter()
                    .filter(|chunk| chunk.kind.is_generated())
                    .map(|chunk| match chunk.kind {
                        ChunkKind::Reasoning => 0,
                        ChunkKind::Content => 1,
                        _ => 2,
                    })
                    .collect();
                prop_assert_eq!(&batch.chunk_kinds[chunks.clone()], &kinds[..]);
                prop_assert_eq!(batch.chunk_at[chunks.clone()].len(), kinds.len());
                let tokens = &batch.chunk_tokens[chunks];
                let given = request.chunk_tokens.len() == kinds.len() && !kinds.is_empty();
                let one_each = request.chunk_tokens.is_empty() && request.output_tokens as usize == kinds.len();
                if !batch.chunk_tokens_known[i] {
                    prop_assert!(tokens.iter().all(|tokens| *tokens == 0));
                    prop_assert!(!given && !one_each);
                } else if given {
                    prop_assert_eq!(tokens, &request.chunk_tokens[..]);
                } else {
                    prop_assert!(tokens.iter().all(|tokens| *tokens == 1));
                    prop_assert!(one_each || kinds.is_empty());
                }
                let response_id = request.response_id.as_ref().map(ToString::to_string);
                prop_assert_eq!(further("response_id", i), response_id);
                let trace_id = request.trace_id.map(|id| format!("{id:032x}"));
                prop_assert_eq!(further("trace_id", i), trace_id);
                let place = i as u32;
                let failure = batch.failures.iter().find(|failure| failure.request == place);
                match &request.status {
                    Status::Ok { finish_reason } => {
                        prop_assert_eq!(text(&batch.finish_reason[i]), finish_reason.as_str());
                        prop_assert!(failure.is_none());
                    }
                    Status::CancelledByClient => {
                        prop_assert_eq!(batch.finish_reason[i], NONE);
                        prop_assert!(failure.is_none());
                    }
                    Status::Failed { message, .. } => {
                        prop_assert_eq!(batch.finish_reason[i], NONE);
                        prop_assert_eq!(&failure.unwrap().message, message);
                    }
                }
                prop_assert_eq!(batch.sent_at[i], request.sent_at.unwrap_or(9_007_199_254_740_991));
                prop_assert_eq!(batch.usage_prompt[i], request.usage.map_or(4_294_967_295, |usage| usage.prompt));
                let made = batch.connections.iter().find(|made| made.request == place);
                let parts = [request.resolve, request.connect, request.tls];
                prop_assert_eq!(made.map_or([None; 3], |made| [made.resolve, made.connect, made.tls]), parts);
                prop_assert_eq!(
                    batch.replays.iter().any(|replay| replay.request == place),
                    request.recorded.is_some()
                );
            }
            prop_assert_eq!([batch.parents.len(), batch.parent_triggers.len(), batch.parent_delays.len()], [parents; 3]);
            prop_assert_eq!(batch.chunk_at.len(), chunks);
            prop_assert_eq!(batch.label_names.len(), labels);
        }
    }
}
