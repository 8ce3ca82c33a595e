//! A request that has ended and whose answer is yet to be decoded off the client thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use veeksha_endpoint::{AnswerOutcome, BodyEnd, EchoedPrompt, Failure, ReadStamp, one_line, shorten};
use veeksha_model::{ErrorClass, FailureReason, Nanos, RequestId, Response, printable};
use veeksha_ports::{ConnectionUse, Job, PendingOutcome, RequestOutcome, Timings};

use crate::flight_phase::FlightPhase;
use crate::receive_stats::{ThreadCounters, merged_reads};
use crate::received::Received;
use crate::response_ids::ResponseIds;
use crate::route::Route;
use crate::status::status_failure;

/// Maximum number of characters of the finish reason.
const REASON_CHARS: usize = 100;

/// Maximum number of characters of the id of a response.
const ID_CHARS: usize = 128;

/// The complete result of a request, with the rest of its answer as raw bytes.
pub(crate) struct Landed {
    pub(crate) job: Job,
    pub(crate) route: Arc<Route>,
    pub(crate) counters: Arc<ThreadCounters>,
    /// `completed_at` is the time at which the request ended.
    pub(crate) timings: Timings,
    pub(crate) connection: ConnectionUse,
    pub(crate) phase: FlightPhase,
    pub(crate) body_digest: Option<u64>,
    pub(crate) status: Option<u16>,
    pub(crate) content_type: Option<String>,
    /// The ids of the response in its head.
    pub(crate) response_ids: ResponseIds,
    pub(crate) received: Received,
    /// The prompt that the answer contains before its own text, if it was asked for.
    pub(crate) echo: Option<EchoedPrompt>,
    pub(crate) newest: ReadStamp,
    pub(crate) end: BodyEnd,
}

impl PendingOutcome for Landed {
    fn id(&self) -> RequestId {
        self.job.id
    }

    fn outcome(self: Box<Self>) -> RequestOutcome {
        let landed = *self;
        let ended_at = landed.timings.completed_at;
        let route = landed.route;
        let mut codec_failure = None;
        let retry_after = landed.received.retry_after();
        let verdict = match (landed.received, landed.end) {
            (Received::Refusal { location, bytes, .. }, end) => AnswerOutcome::failed(match end {
                BodyEnd::Broken(failure) if is_ours(&failure) => failure,
                // An error status is reported even if its body was cut off.
                _ => status_failure(
                    &route.target,
                    &route.target.servers[usize::from(landed.connection.server)],
                    landed.status.unwrap_or_default(),
                    location.as_deref(),
                    &bytes,
                ),
            }),
            (received, end) => {
                let content_type = landed.content_type.as_deref();
                match received.verdict((&route.target, landed.echo), landed.newest, content_type, end) {
                    Ok(verdict) => verdict,
                    Err(failure) => {
                        let message = one_line(&failure.message);
                        codec_failure = Some(Box::new(failure));
                        AnswerOutcome::failed(Failure::new(ErrorClass::Codec, message))
                    }
                }
            }
        };
        let server = &route.servers[usize::from(landed.connection.server)];
        let response_id = verdict.response_id.or_else(|| {
            let sent = |name: &str| server.headers.sent(&landed.job, name);
            landed.response_ids.given(sent)
        });
        let merged = merged_reads(&verdict.chunks);
        landed.counters.merged_reads.fetch_add(merged, Ordering::Relaxed);
        let completed_at = verdict.completed_at.unwrap_or(ended_at);
        let events = verdict.chunks.len();
        RequestOutcome {
            timings: Timings {
                completed_at,
                ..landed.timings
            },
            connection: ConnectionUse {
                server: route.first_server.saturating_add(landed.connection.server),
                ..landed.connection
            },
            body_digest: landed.body_digest,
            status: landed.status,
            chunks: verdict.chunks,
            chunk_texts: verdict.chunk_texts,
            chunk_tokens: verdict.chunk_tokens,
            response_id: response_id.map(|id| safe_id(&route, &landed.job, &id)),
            // A request of which nothing was sent has no trace.
            trace_id: landed
                .timings
                .sent_at
                .and_then(|_| server.headers.trace_id(&landed.job)),
            result: verdict
                .result
                .map(|response| with_safe_finish_reason(&route, &landed.job, response))
                .map_err(|failure| FailureReason {
                    retry_after,
                    ..reason(&route, &landed.job, failure, landed.phase, events, completed_at)
                }),
            codec_failure,
            job: landed.job,
        }
    }
}

/// Returns true if the host ended the request rather than the server.
fn is_ours(failure: &Failure) -> bool {
    matches!(failure.class, ErrorClass::Timeout | ErrorClass::Cancelled)
}

/// Redacts and truncates the finish reason. It is written to every file, and a server may return
/// anything in it: the API key, or a very long text.
fn with_safe_finish_reason(route: &Route, job: &Job, mut response: Response) -> Response {
    let reason = route
        .target
        .redact_for(&job.request.request, &response.finish_reason);
    response.finish_reason = shorten(&reason, REASON_CHARS);
    response
}

/// Redacts and truncates the id of a response, for the same reason, and removes control characters.
fn safe_id(route: &Route, job: &Job, id: &str) -> String {
    let id = route.target.redact_for(&job.request.request, id);
    shorten(&printable(&id), ID_CHARS)
}

fn reason(
    route: &Route,
    job: &Job,
    failure: Failure,
    phase: FlightPhase,
    events: usize,
    at: Nanos,
) -> FailureReason {
    let message = if is_ours(&failure) {
        format!("{} {}", failure.message, phase.description(events))
    } else {
        failure.message
    };
    FailureReason {
        request: job.id,
        class: failure.class,
        status: failure.status,
        retry_after: None,
        message: route.target.redact_for(&job.request.request, &message),
        at,
    }
}
