//! Events of every kind, for the tests.

use proptest::{collection::vec, option, prelude::*, strategy::ValueTree};
use veeksha_events::{
    DroppedToolRun, Event, FailedPlugin, NeverSentReason, PluginCall, PluginRole, RequestRecord, RunInfo,
    SessionEnd, Status, ThreadSample, ToolDropReason,
};
use veeksha_model::{
    Better, CacheKnowledge, Cancellation, Chunk, ChunkKind, Edge, ErrorClass, Held, HistoryMode,
    MetricDefinition, MetricSample, NodeId, Recorded, RequestId, SessionId, StampSource, Trigger, Usage,
};

/// Numbers of which the ends are as likely as the middle.
fn wide() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(1 << 63),
        Just((1 << 63) - 1),
        any::<u64>(),
        0..1_000_000_000_u64
    ]
}

fn narrow() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0),
        Just(u32::MAX),
        Just(i32::MAX as u32),
        Just(1 << 31),
        any::<u32>(),
        0..4096_u32
    ]
}

/// Also nothing, line ends, quotes, and letters of one to four bytes.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("stop".to_owned()),
        "\\PC{0,12}",
        Just("a\0\n\"\u{1f600}é".to_owned())
    ]
}

fn request_id() -> impl Strategy<Value = RequestId> {
    (wide(), narrow()).prop_map(|(session, node)| RequestId {
        session: SessionId(session),
        node: NodeId(node),
    })
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let kind = prop::sample::select(vec![
        ChunkKind::Role,
        ChunkKind::Reasoning,
        ChunkKind::Content,
        ChunkKind::Tool,
        ChunkKind::Finish,
        ChunkKind::Usage,
        ChunkKind::Done,
        ChunkKind::Comment,
    ]);
    (wide(), narrow(), narrow(), kind, any::<bool>()).prop_map(|(at, lag, bytes, kind, merged)| Chunk {
        at,
        lag,
        bytes,
        kind,
        merged,
    })
}

fn error_class() -> impl Strategy<Value = ErrorClass> {
    prop::sample::select(vec![
        ErrorClass::Connect,
        ErrorClass::Tls,
        ErrorClass::Timeout,
        ErrorClass::Status,
        ErrorClass::Protocol,
        ErrorClass::InStream,
        ErrorClass::Truncated,
        ErrorClass::Cancelled,
        ErrorClass::Codec,
    ])
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![
        Just(Status::CancelledByClient),
        words().prop_map(|finish_reason| Status::Ok { finish_reason }),
        (error_class(), words()).prop_map(|(class, message)| Status::Failed { class, message }),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    (narrow(), narrow(), option::of(narrow()), option::of(narrow())).prop_map(
        |(prompt, completion, cached, reasoning)| Usage {
            prompt,
            completion,
            cached,
            reasoning,
        },
    )
}

fn recorded() -> impl Strategy<Value = Recorded> {
    (
        option::of(wide()),
        option::of(wide()),
        option::of(narrow()),
        option::of(narrow()),
    )
        .prop_map(|(at, latency, prompt_tokens, output_tokens)| Recorded {
            at,
            latency,
            prompt_tokens,
            output_tokens,
        })
}

fn cancellation() -> impl Strategy<Value = Option<Box<Cancellation>>> {
    let edge = (narrow(), prop::sample::select(Trigger::ALL.to_vec()), wide());
    let edge = edge.prop_map(|(parent, trigger, delay)| Edge {
        parent: NodeId(parent),
        trigger,
        delay,
    });
    // One without events is none.
    (vec(edge, 0..3), option::of(narrow())).prop_map(|(when, after_chunks)| {
        let any = !when.is_empty() || after_chunks.is_some();
        any.then(|| Box::new(Cancellation { when, after_chunks }))
    })
}

/// A request with anything in every field.
pub(crate) fn request() -> impl Strategy<Value = RequestRecord> {
    let place = (
        request_id(),
        narrow(),
        vec(narrow(), 0..4),
        option::of(narrow()),
        cancellation(),
    );
    let times = (wide(), wide(), (wide(), wide(), wide()), wide(), wide(), wide());
    let maybe_times = prop::array::uniform6(option::of(wide()));
    let answer = (
        vec(chunk(), 0..20),
        vec(narrow(), 0..5),
        status(),
        option::of(any::<u16>()),
        any::<u16>(),
    );
    let tokens = (
        prop::array::uniform5(narrow()),
        option::of(narrow()),
        option::of(narrow()),
        option::of(usage()),
    );
    let flags = prop::array::uniform5(any::<bool>());
    let modes = (
        prop::sample::select(vec![HistoryMode::Live, HistoryMode::Recorded, HistoryMode::Fresh]),
        prop::sample::select(vec![StampSource::Read, StampSource::Kernel]),
        option::of(recorded()),
        vec((words(), words()), 0..3),
    );
    (place, times, maybe_times, answer, tokens, flags, modes).prop_map(
        |(place, times, maybe_times, answer, tokens, flags, modes)| RequestRecord {
            id: place.0,
            session_requests: place.1,
            parents: place.2.into_iter().map(|parent| NodeId(parent).into()).collect(),
            history_parent: place.3.map(NodeId),
            wait_after_ready: times.0,
            cancellation: place.4,
            intended: times.1,
            held: Held {
                sessions: times.2.0,
                in_flight: times.2.1,
                in_prefill: times.2.2,
            },
            dispatched_at: times.3,
            completed_at: times.4,
            processed_at: times.5,
            picked_up_at: maybe_times[0],
            sent_at: maybe_times[1],
            first_byte_at: maybe_times[2],
            resolve: maybe_times[3],
            connect: maybe_times[4],
            tls: maybe_times[5],
            chunks: answer.0,
            chunk_tokens: answer.1,
            status: answer.2,
            http_status: answer.3,
            server: answer.4,
            target_prompt_tokens: tokens.0[0],
            prompt_tokens: tokens.0[1],
            total_prompt_tokens: tokens.0[2],
            output_tokens: tokens.0[3],
            template_tokens: tokens.0[4],
            target_output_tokens: tokens.1,
            ideal_cached_tokens: tokens.2,
            cache: tokens.2.map(|known| CacheKnowledge {
                same_server: known / 2,
                any_server: known,
                moved: known.reverse_bits(),
            }),
            body_digest: maybe_times[4].map(u64::reverse_bits),
            response_id: maybe_times[5].map(|at| format!("chatcmpl-{at}")),
            trace_id: maybe_times[5].map(|at| u128::from(at) << 50),
            usage: tokens.3,
            output_tokens_from_usage: flags[0],
            output_exact: flags[1],
            connection_reused: flags[1],
            retried: flags[2],
            measured: flags[3],
            history_mode: modes.0,
            stamps: modes.1,
            recorded: modes.2,
            labels: modes.3,
        },
    )
}

/// Infinite is possible, not-a-number is not: it is not equal to itself.
fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::MIN_POSITIVE),
        Just(f64::INFINITY),
        any::<f64>()
    ]
    .prop_map(|value| if value.is_nan() { -1.5 } else { value })
}

/// Any event, each kind as likely as the others and requests likelier.
pub(crate) fn event() -> impl Strategy<Value = Event> {
    let reason = prop::sample::select(vec![
        NeverSentReason::SessionCancelled,
        NeverSentReason::RunEnded,
        NeverSentReason::PluginFailed,
        NeverSentReason::Held,
        NeverSentReason::Missed,
    ]);
    let end = prop::sample::select(vec![
        SessionEnd::Completed,
        SessionEnd::Errored,
        SessionEnd::Cancelled,
        SessionEnd::Incomplete,
    ]);
    let better = prop::sample::select(vec![Better::Higher, Better::Less, Better::Neither]);
    let session = || wide().prop_map(SessionId);
    prop_oneof![
        8 => request().prop_map(|record| Event::Finished(Box::new(record))),
        1 => (wide(), wide(), prop::option::of(words())).prop_map(|(epoch_wall_nanos, epoch_monotonic_nanos, run_id)| {
            Event::RunStarted(RunInfo { epoch_wall_nanos, epoch_monotonic_nanos, run_id })
        }),
        1 => (session(), wide()).prop_map(|(session, digest)| Event::SessionPlanned { session, digest }),
        1 => (words(), words(), wide(), wide()).prop_map(|(thread, what, begin, end)| Event::PluginCalled(PluginCall {
            thread, what, begin, end
        })),
        1 => (session(), wide(), narrow()).prop_map(|(session, at, requests)| Event::SessionStarted { session, at, requests }),
        2 => (request_id(), wide(), wide()).prop_map(|(request, intended, at)| Event::Dispatched { request, intended, at }),
        1 => (request_id(), reason.clone(), wide()).prop_map(|(request, reason, at)| Event::NeverSent { request, reason, at }),
        1 => (request_id(), words(), option::of(wide()), option::of(reason), wide()).prop_map(|(id, class, ready_at, reason, at)| {
            let reason = reason.map_or(ToolDropReason::InService, ToolDropReason::NotServed);
            Event::ToolDropped(Box::new(DroppedToolRun { id, class: class.into(), ready_at, reason, at }))
        }),
        1 => (session(), wide(), end, narrow()).prop_map(|(session, at, end, requests)| Event::SessionFinished {
            session, at, end, requests
        }),
        1 => (words(), words(), better, words(), words()).prop_map(|(name, unit, better, summary, plugin)| {
            Event::MetricDefined(MetricDefinition { name, unit, better, summary, plugin })
        }),
        2 => (words(), float(), float(), option::of(request_id())).prop_map(|(metric, value, weight, request)| {
            Event::Sampled(MetricSample { metric, value, weight, request })
        }),
        2 => (words(), request_id(), any::<bool>()).prop_map(|(plugin, request, good)| Event::Judged { plugin, request, good }),
        1 => (words(), prop::sample::select(PluginRole::ALL.to_vec()), words(), option::of(session()), option::of(wide())).prop_map(
            |(plugin, part, message, session, at)| Event::PluginFailed(FailedPlugin { plugin, part, message, session, at })
        ),
        1 => (words(), words(), any::<bool>(), option::of(float()), float(), words()).prop_map(
            |(plugin, name, met, observed, threshold, detail)| Event::RunJudged { plugin, name, met, observed, threshold, detail }
        ),
        1 => (wide(), wide()).prop_map(|(due, at)| Event::Starved { due, at }),
        1 => (words(), prop::array::uniform4(wide())).prop_map(|(thread, [at, span, busy, waiting])| {
            Event::ThreadSampled(ThreadSample { thread, at, span, busy, waiting })
        }),
        1 => (wide(), any::<i64>()).prop_map(|(at, by)| Event::ClockStepped { at, by }),
        1 => (wide(), wide()).prop_map(|(sessions, at)| Event::ArrivalsMissed { sessions, at }),
        1 => wide().prop_map(|at| Event::TimeoutReached { at }),
        1 => wide().prop_map(|at| Event::Interrupted { at }),
        1 => wide().prop_map(|at| Event::RunEnded { at }),
    ]
}

/// A request of a plain run, and its number.
pub(crate) fn plain_request(number: u64) -> Event {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut record = request().new_tree(&mut runner).unwrap().current();
    record.id.session = SessionId(number);
    Event::Finished(Box::new(record))
}
